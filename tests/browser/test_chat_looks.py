"""How the assistant looks: for those who see it, and for those who do not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from cellwright.assistant.models.model import ToolCall
from tests.browser.chatting import Panel
from tests.browser.conftest import cells, keep_picture
from tests.conftest import ROOT
from tests.integration.assistant.model_servers import Holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.conftest import Server
    from tests.integration.assistant.model_servers import ModelServer

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(300), pytest.mark.all]

AXE = ROOT / "lab" / "node_modules" / "axe-core" / "axe.min.js"
LOAD = "sales = [310, 420, 380, 505]\nmonths = ['Jan', 'Feb', 'Mar', 'Apr']"
ANSWER = (
    "The mean is in cell 3 now. For the best month use\n\n```python\nmax(zip(sales, months))\n```\n\n"
    "| month | sales |\n|---|---|\n| Apr | 505 |\n| Feb | 420 |"
)


def set_theme(page: Page, theme: str) -> None:
    """Choose a theme in JupyterLab's menu."""
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.locator(".lm-Menu").get_by_text("Theme", exact=True).click()
    page.locator(".lm-Menu").get_by_text(theme, exact=True).click()
    is_light = "true" if theme.endswith("Light") else "false"
    page.wait_for_function(
        f"""() => document.body.dataset.jpThemeLight === '{is_light}'
            && !document.querySelector('#jupyterlab-splash')"""
    )


def find_violations(page: Page, *places: str) -> list[str]:
    """What axe finds that is serious or critical."""
    page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate(
        f"async () => await axe.run({{include: {json.dumps([[place] for place in places])}}})"
    )
    return [
        f"{each['id']} {node['target']} {node.get('failureSummary', '')[:300]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_the_assistant_is_shown_in_light_and_dark_and_narrow_without_serious_violations(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    server.write("sales report.ipynb", LOAD, "total = sum(sales)\ntotal", "total / count")
    page = open_page("sales%20report.ipynb")
    page.set_viewport_size({"width": 1280, "height": 720})
    panel = Panel.open(page)
    violations = find_violations(page, ".cw-chat")
    panel.choose_model()
    page.locator("[data-id='filebrowser']").click()  # room for the notebook
    panel.attach("sales report.ipynb")
    panel.choose_mode("Agent")
    panel.expect_mode(True)
    source = "mean = total / len(sales)\nprint(f'{mean:.1f} a month')"
    model.add(
        ToolCall("1", "RunNotebookCells", {"cellIds": ["a", "b"]}),
        ToolCall("2", "UpdateNotebookCell", {"cellId": "c", "content": source}),
        ToolCall("3", "RunNotebookCells", {"cellIds": ["c"]}),
        ANSWER,
    )
    turn = panel.ask("Repair the mean, and tell me the best month")
    question = turn.locator(".cw-question")
    expect(question).to_be_visible()
    keep_picture(page, "chat-question")
    violations += find_violations(page, ".cw-chat")
    question.get_by_role("button", name="Allow for this chat").click()
    panel.expect_answer("The mean is in")
    bar = turn.locator(".cw-review-bar")
    bar.get_by_role("button", name="Diff").click()
    expect(bar.locator(".cw-plus").first).to_be_visible()
    bar.scroll_into_view_if_needed()
    keep_picture(page, "chat-review")
    violations += find_violations(page, ".cw-chat")
    bar.get_by_role("button", name="Diff").click()
    turn.locator(".cw-text").first.scroll_into_view_if_needed()
    keep_picture(page, "chat")

    cell = page.locator(".jp-Cell").nth(1)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Alt+k")
    model.add(
        "This names the result:\n\n```python\ntotal = sum(sales)\nprint('total:', total)\n```"
    )
    page.keyboard.type("print it with its name")
    page.keyboard.press("Enter")
    expect(cell.get_by_role("button", name="Accept")).to_be_visible()
    keep_picture(page, "chat-inline")
    violations += find_violations(page, ".cw-inline")

    set_theme(page, "JupyterLab Dark")
    keep_picture(page, "chat-dark")
    violations += find_violations(page, ".cw-chat", ".cw-inline")
    page.keyboard.press("Escape")
    panel.node.locator(".cw-title").click()
    title = panel.node.locator(".cw-list .cw-open").first.bounding_box()
    assert title is not None
    assert title["width"] > 120, "titles can be read"
    panel.node.get_by_role("button", name="Context").click()
    expect(panel.node.locator(".cw-preview section").first).to_be_visible()
    panel.node.get_by_label("Model", exact=True).select_option(label="Another model …")
    panel.button("Attach").click()
    expect(panel.node.locator(".cw-attach li").first).to_be_visible()
    violations += find_violations(page, ".cw-chat")
    set_theme(page, "JupyterLab Light")
    violations += find_violations(page, ".cw-chat")
    panel.button("Attach").click()
    panel.node.get_by_role("button", name="Context").click()
    panel.node.locator(".cw-title").click()
    panel.choose_model()

    page.set_viewport_size({"width": 800, "height": 600})
    box = panel.node.bounding_box()
    assert box is not None
    assert box["width"] < 320, box
    wide = panel.node.evaluate("node => node.scrollWidth > node.clientWidth + 1")
    assert not wide, "nothing is cut at the side"
    keep_picture(page, "chat-narrow")

    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        set_theme(page, theme)
        if theme.endswith("Light"):
            cell.locator(".cm-content").click()
            page.keyboard.press("Control+a")
            page.keyboard.type("1 / 0")
            page.keyboard.press("Control+Enter")
        expect(cell.locator(".cw-offer")).to_be_visible()
        violations += find_violations(page, ".cw-chat", ".cw-offer", ".jp-Cell .cw-review")
    assert violations == []


def focused(page: Page) -> str:
    found: str = page.evaluate("() => document.activeElement.textContent")
    return found


def test_the_panel_is_used_with_the_keyboard_alone(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    server.write("keys only.ipynb", "x = 1")
    page = open_page("keys%20only.ipynb")
    panel = Panel.open(page)
    panel.choose_model()
    model.add(ToolCall("1", "RunNotebookCells", {"cellIds": ["a"]}), "It ran.")
    press = page.keyboard.press
    panel.prompt.focus()
    page.keyboard.type("@keys")
    expect(panel.choices.first).to_contain_text("keys only.ipynb")
    press("Tab")  # chooses
    expect(panel.chip("keys only.ipynb")).to_be_visible()
    expect(panel.prompt).to_be_focused()
    press("Tab")
    press("ArrowRight")
    press("ArrowRight")
    expect(panel.node.get_by_role("radio", name="Agent")).to_be_checked()
    press("Shift+Tab")
    page.keyboard.type("run cell 1")
    press("Enter")
    expect(panel.last.locator(".cw-question")).to_be_visible()
    expect(panel.prompt).to_be_focused()  # a question does not take the focus
    for _ in range(40):
        press("Shift+Tab")
        if focused(page) == "Allow":
            break
    press("Enter")
    panel.expect_answer("It ran.")
    answered = panel.last.get_by_role("group", name="Run cell 1 of keys only.ipynb?")
    expect(answered).to_be_focused()  # the focus stays where it was
    model.add(Holds(["Once upon a time"]), "It is cell 1.")
    panel.prompt.focus()
    page.keyboard.type("go on")
    press("Enter")
    expect(panel.last.locator(".cw-answer")).to_contain_text("Once upon")
    while focused(page) != "Stop":
        press("Tab")
    press("Enter")
    expect(panel.last.locator(".cw-ending")).to_contain_text("Stopped.")
    expect(panel.prompt).to_be_focused()
    while focused(page) != "Retry":
        press("Shift+Tab")
    press("Enter")
    panel.expect_answer("It is cell 1.")
    expect(panel.node.locator(".cw-log")).to_be_focused()
    # In a cell, too.
    page.locator(".jp-Cell").first.locator(".cm-content").click()
    press("Control+Alt+k")
    model.add("```python\nx = 2\n```")
    page.keyboard.type("another number")
    press("Enter")
    expect(page.get_by_role("button", name="Accept")).to_be_visible()
    while focused(page) != "Accept":
        press("Tab")
    press("Enter")
    expect(page.locator(".cw-inline")).to_have_count(0)
    assert cells(page)["a"]["source"] == "x = 2"
    assert page.evaluate("() => !!document.activeElement.closest('.jp-Notebook')")
