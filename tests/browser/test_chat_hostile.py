"""Hostile texts in answers, results, names and titles: nothing runs, and nothing is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from cellwright.assistant.models.model import ToolCall
from tests.browser.chatting import Panel, watch
from tests.browser.test_marks import PAYLOADS, RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.conftest import Server
    from tests.integration.assistant.model_servers import ModelServer

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(300), pytest.mark.all]

LEAK = "http://127.0.0.1:9/leak"
MARKDOWN = (
    f"![x]({LEAK}.png)",
    f'[x]({LEAK} "title")',
    f"![x][ref]\n\n[ref]: {LEAK}",
    f"[![x]({LEAK})]({LEAK})",
    f"```mermaid\ngraph TD; A[\"<img src='{LEAK}' onerror={RUN}>\"]\n```",
    f'> ```mermaid\n> graph TD; A-->B; click A href "javascript:{RUN}"\n> ```',
    "[run](command:notebook:run-all-cells)",
    "[run](jupyter://notebook:run-all-cells)",
    '[run](#" data-commandlinker-command="notebook:run-all-cells)',
    f"![](data:text/html,<script>{RUN}</script>)",
    f"[x](data:text/html;base64,PHNjcmlwdD4{RUN}) [y](vbscript:{RUN}) [z](JaVaScRiPt:{RUN})",
    f"[x](java&#115;cript:{RUN}) [y](javascript&colon;{RUN}) <javascript:{RUN}>",
    f'```"><img src=x onerror={RUN}>\ncode\n```',
    f"`<img src=x onerror={RUN}>` and \ue000img src=x onerror={RUN}>",
    f"$$\\href{{javascript:{RUN}}}{{x}}$$ $\\url{{{LEAK}}}$ $\\style{{background:url({LEAK})}}{{x}}$",
    f"| a |\n|---|\n| <img src={LEAK}> ![b]({LEAK}) |",
    f"# <img src=x onerror={RUN}> {{#id onclick={RUN}}}",
    f"<details open ontoggle={RUN}><summary>x</summary>![x]({LEAK})</details>",
    f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;img src=x onerror={RUN}&#62;",
    f"[x]: javascript:{RUN}\n\n[x] ![x]",
)
TEXTS = (*PAYLOADS, *MARKDOWN)
FORBIDDEN = (
    "script, iframe, object, embed, link, meta, base, style, video, audio, svg script, "
    ".cw-log img:not([src^='data:image/']), .cw-text img, [onerror], [onload], [onclick], [ontoggle], "
    "[data-commandlinker-command], [href^='javascript' i], [href^='data' i], [href^='command' i], "
    "[href^='jupyter' i], [style*='url'], form[action]"
)


def test_sixty_hostile_texts_run_nothing_and_fetch_nothing(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    server.write("<img src=x onerror=window.pwned=1>hostile.ipynb", *TEXTS)
    for number, text in enumerate(TEXTS[:20]):
        name = f"{number} {text}".replace("/", "").replace("\n", "")[:120]
        (server.folder / f"{name}.txt").write_text("x")
    page = open_page("%3Cimg%20src=x%20onerror=window.pwned=1%3Ehostile.ipynb")
    panel = Panel.open(page)
    panel.choose_model()
    noted = watch(page)
    panel.button("Attach").click()  # file names in the list
    expect(panel.node.locator(".cw-attach li").nth(5)).to_be_visible()
    page.keyboard.type("hostile.ipynb")
    expect(panel.node.locator(".cw-attach li").first).to_contain_text("hostile.ipynb")
    page.keyboard.press("Enter")
    panel.expect_mode(True)
    for start in range(0, len(TEXTS), 15):
        answer = "\n\n".join(
            f"Text {n}.\n\n{text}" for n, text in enumerate(TEXTS[start : start + 15])
        )
        model.add(ToolCall("read", "GetNotebookCells", {}), f"{answer}\n\nThe end.")
        turn = panel.ask(TEXTS[start].replace("\n", " "))  # it is the title, too
        panel.expect_answer("The end.")
        expect(turn.locator(".cw-text").last).to_contain_text("Text 14.")
        turn.locator("summary").first.click()
    for text in PAYLOADS[:3]:  # each alone, as a whole answer
        model.add(text)
        panel.ask("again")
        expect(panel.button("Send")).to_be_visible()
    panel.node.locator(".cw-title").click()  # titles in the list
    expect(panel.node.locator(".cw-list li").first).to_be_visible()
    panel.node.get_by_role("button", name="Context").click()
    expect(panel.node.locator(".cw-preview section").first).to_be_visible()
    page.mouse.move(1000, 300)
    page.evaluate("() => new Promise(done => setTimeout(done, 500))")
    assert page.evaluate("() => window.pwned") is None
    assert noted == []
    assert panel.node.locator(FORBIDDEN).count() == 0
    links = panel.node.locator(".cw-text a")
    found = links.evaluate_all("links => links.map(a => [a.protocol, a.rel, a.target])")
    assert found, "links of the web stay links"
    allowed = [
        ["http:", "noopener noreferrer", "_blank"],
        ["https:", "noopener noreferrer", "_blank"],
    ]
    assert [each for each in found if each not in allowed] == []
    # Only the person's own click opens one, in a page of its own that knows nothing of this one.
    with page.expect_popup() as opened:
        links.first.click()
    assert opened.value.evaluate("() => window.opener") is None
