"""Marks in the tab: what is stale, what agents changed; and that none of it can run code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import connect
from tests.browser.conftest import PANEL, Server, cells, change_on_disk, keep_picture, run_cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[[str], Page]

pytestmark = pytest.mark.timeout(120)


def execute(page: Page, command: str) -> None:
    page.evaluate(f"async () => await window.jupyterapp.commands.execute('{command}')")


def test_stale_cells_are_marked_with_their_reason_and_run_by_a_command(
    server: Server, open_page: OpenPage
) -> None:
    path = server.write("stale.ipynb", "x = 1", "y = x + 1", "z = 3")
    page = open_page("stale.ipynb")
    for index in range(3):
        run_cell(page, index)
    mark = page.locator(".cw-stale")
    page.evaluate(
        f"() => {PANEL}.content.model.cells.get(0).sharedModel.setSource('x = 2')",
    )
    page.wait_for_function("() => document.querySelectorAll('.cw-stale').length === 2")
    found = [mark.nth(number).get_attribute("title") or "" for number in range(2)]
    assert "edited" in found[0] or "changed" in found[0], found
    assert "x" in found[1], found
    keep_picture(page, "stale")
    for count in (0, 2):  # a setting, off and on again
        execute(page, "cellwright:mark-stale")
        page.wait_for_function(f"() => document.querySelectorAll('.cw-stale').length === {count}")
    execute(page, "cellwright:run-stale")
    page.wait_for_function("() => document.querySelectorAll('.cw-stale').length === 0")
    assert [cell["count"] for cell in cells(page).values()] == [4, 5, 3]
    page.evaluate(f"async () => await {PANEL}.context.save()")
    assert b"stale" not in path.read_bytes()


def test_what_agents_changed_is_marked_until_it_is_accepted_or_undone(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("review.ipynb", "a = 0", "b = 0", "c = 0", "d = 0")
    page = open_page("review.ipynb")
    book = agent.open("review.ipynb")
    book.edit([{"op": "replace", "cell": "a", "source": "a = 1"}])
    book.edit([{"op": "replace", "cell": "b", "source": "b = 1"}])
    book.edit([{"op": "delete", "cell": "d"}])
    bars = page.locator(".cw-review")
    page.wait_for_function("() => document.querySelectorAll('.cw-review').length === 3")
    assert "mcp:agent deleted a cell" in bars.all_inner_texts()[0]
    assert all("mcp:agent" in text for text in bars.all_inner_texts())
    keep_picture(page, "review")
    first = page.locator(".jp-Cell").nth(0).locator(".cw-review")
    first.get_by_text("Accept").click()
    page.wait_for_function("() => document.querySelectorAll('.cw-review').length === 2")
    # A cell that is moved keeps its bar.
    page.evaluate(f"() => {PANEL}.content.model.sharedModel.moveCell(1, 2)")
    page.wait_for_function(
        f"() => {PANEL}.content.widgets[2].node.querySelector('.cw-review') !== null"
    )
    page.locator(".jp-Cell .cw-review").get_by_text("Undo", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('.cw-review').length === 1")
    assert cells(page)["b"]["source"] == "b = 0"
    execute(page, "cellwright:undo-all")
    page.wait_for_function("() => document.querySelectorAll('.cw-review').length === 0")
    assert {name: cell["source"] for name, cell in cells(page).items()} == {
        "a": "a = 1",
        "b": "b = 0",
        "c": "c = 0",
        "d": "d = 0",
    }
    book.edit([{"op": "replace", "cell": "c", "source": "c = 1"}])
    page.wait_for_function("() => document.querySelectorAll('.cw-review').length === 1")
    execute(page, "cellwright:accept-all")
    assert bars.count() == 0
    saved = path.read_text()
    assert "agent" not in saved
    assert "".join(json.loads(saved)["cells"][0]["source"]) == "a = 1"


def test_many_deleted_cells_leave_the_notebook_its_room(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    server.write("room.ipynb", *(f"x = {number}" for number in range(12)))
    page = open_page("room.ipynb")
    book = agent.open("room.ipynb")
    for cell in "bcdefghi":
        book.edit([{"op": "delete", "cell": cell}])
    page.wait_for_function("() => document.querySelectorAll('.cw-header').length === 8")
    heights = page.evaluate(
        f"() => [{PANEL}.contentHeader, {PANEL}.content].map(each => each.node.offsetHeight)"
    )
    assert heights[0] <= 4 * 28 < 4 * heights[0], heights
    keep_picture(page, "headers")
    # The newest is seen, and the others by scrolling.
    headers = page.locator(".cw-header")
    headers.last.get_by_text("Restore").click()
    page.wait_for_function("() => document.querySelectorAll('.cw-header').length === 7")
    headers.first.get_by_text("Restore").click()
    page.wait_for_function("() => document.querySelectorAll('.cw-header').length === 6")
    assert list(cells(page)) == ["a", "b", "i", "j", "k", "l"]
    execute(page, "cellwright:accept-all")
    page.wait_for_function(f"() => {PANEL}.contentHeader.node.offsetHeight === 0")


@pytest.mark.all
def test_marks_have_a_diff_outlive_the_page_and_are_undone_by_turn(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("turn.ipynb", "x = 1\nprint(x)", "b = 0", "c = 0")
    page = open_page("turn.ipynb")
    book = agent.open("turn.ipynb")
    book.edit([{"op": "replace", "cell": "a", "source": "x = 2\nprint(x)\nx"}])
    book.edit([{"op": "delete", "cell": "b"}])
    book.edit([{"op": "insert", "source": "new = 1", "at": 2, "id": "new"}])
    book.edit([{"op": "replace", "cell": "c", "source": "c = 1"}])

    def count(number: int) -> None:
        page.wait_for_function(f"() => document.querySelectorAll('.cw-review').length === {number}")

    count(4)
    first = page.locator(".jp-Cell").nth(0).locator(".cw-review")
    first.get_by_text("Diff").click()
    lines = first.locator(".cw-diff span")
    lines.first.wait_for()
    assert lines.all_text_contents() == ["- x = 1\n", "+ x = 2\n", "  print(x)\n", "+ x\n"]
    keep_picture(page, "diff")
    first.get_by_text("Diff").click()
    assert lines.count() == 0
    page.locator(".jp-Cell", has_text="c = 1").locator(".cw-review").get_by_text("Accept").click()
    count(3)
    # The page is loaded again: what was accepted stays accepted, and the rest is shown.
    page.reload()
    count(3)
    texts = page.locator(".cw-review > span").all_text_contents()
    assert texts == [
        "mcp:agent deleted a cell",
        "Changed by mcp:agent",
        "Added by mcp:agent",
    ]
    page.locator(".jp-Cell .cw-review").first.get_by_text("Undo turn").click()
    count(0)
    sources = {name: cell["source"] for name, cell in cells(page).items()}
    assert sources == {"a": "x = 1\nprint(x)", "b": "b = 0", "c": "c = 1"}
    page.evaluate(f"async () => await {PANEL}.context.save()")
    assert "agent" not in path.read_text()
    page.reload()
    page.wait_for_function(f"() => window.jupyterapp && {PANEL}?.hasClass?.('cw-shared')")
    count(0)


RUN = "window.pwned=1"
PAYLOADS = (
    f"<img src=x onerror={RUN}>",
    f"<script>{RUN}</script>",
    f"<svg onload={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<a href='javascript:{RUN}'>x</a>",
    f"'\"><img src=x onerror={RUN}>",
    f"</pre><img src=x onerror={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<math><mtext><img src=x onerror={RUN}></mtext></math>",
    f"<button data-commandlinker-command=cellwright:undo-all onclick={RUN}>x</button>",
    f"<style>@import 'javascript:{RUN}'</style>",
    f"${{{RUN}}} {{{{{RUN}}}}}",
    f"<body onload={RUN}>",
    f"<video src=x onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}></audio>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<form><button formaction='javascript:{RUN}'>x</button></form>",
    f"<select autofocus onfocus={RUN}></select>",
    # What an attacker would like besides: commands, requests, styles, markup of the notebook's own.
    f"<marquee onstart={RUN}>x</marquee>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href='javascript:{RUN}'><text>x</text></a></svg>",
    f"<math href='javascript:{RUN}'>x</math>",
    f"<base href='javascript:{RUN}//'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<link rel=stylesheet href='javascript:{RUN}'>",
    "<img src='http://127.0.0.1:9/leak?token=x'>",
    "<div style='background:url(http://127.0.0.1:9/leak)'>x</div>",
    f"<template><script>{RUN}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"<textarea><img src=x onerror={RUN}></textarea>",
    f"<!--><img src=x onerror={RUN}>-->",
    f"<![CDATA[><img src=x onerror={RUN}>]]>",
    f"<IMG SRC=x OnErRoR={RUN}>",
    f"&lt;img src=x onerror={RUN}&gt;<img/src=x/onerror={RUN}>",
    f"[x](javascript:{RUN}) ![x](javascript:{RUN})",
    f"$\\href{{javascript:{RUN}}}{{x}}$",
    f"<a data-commandlinker-command=notebook:run-cell data-commandlinker-args='{{}}' onmouseover={RUN}>x</a>",
)
HALVES = {
    "first": PAYLOADS[:20],
    "second": PAYLOADS[20:],
}


def make_hostile_outputs(payload: str) -> list[dict[str, Any]]:
    """One output of each kind that has the payload in all its texts."""
    bundle = {"text/html": payload, "text/markdown": payload, "text/plain": payload}
    return [
        {"output_type": "display_data", "data": bundle, "metadata": {"name": payload}},
        {"output_type": "display_data", "data": {"text/markdown": payload}, "metadata": {}},
        {"output_type": "stream", "name": "stdout", "text": payload},
        {"output_type": "error", "ename": payload, "evalue": payload, "traceback": [payload]},
    ]


@pytest.mark.parametrize("half", ["first", pytest.param("second", marks=pytest.mark.all)])
def test_no_text_of_others_runs_in_the_page(server: Server, open_page: OpenPage, half: str) -> None:
    """In conflict bars, review bars, the name of the notebook, outputs and metadata of cells."""
    payloads = HALVES[half]
    name = f"<img src=x onerror=window.pwned=1>{half}.ipynb"
    path = server.write(name, *(f"{chr(97 + n)} = 0" for n in range(len(payloads))))
    page = open_page(f"%3Cimg%20src=x%20onerror=window.pwned=1%3E{half}.ipynb")
    leaks: list[str] = []
    page.on("request", lambda request: leaks.append(request.url) if ":9/" in request.url else None)
    ids = [chr(97 + number) for number in range(len(payloads))]
    page.evaluate(
        f"() => [...{PANEL}.content.model.cells].forEach(m => m.sharedModel.setSource('mine'))"
    )
    change_on_disk(path, **dict(zip(ids, payloads, strict=True)))
    count = len(payloads)
    page.wait_for_function(f"() => document.querySelectorAll('.cw-conflict').length === {count}")
    shown = page.locator(".cw-conflict pre").all_text_contents()
    assert shown == list(payloads)
    for number in range(count):
        page.locator(".cw-conflict").first.get_by_text("Keep mine").click()
        assert page.locator(".cw-conflict").count() == count - number - 1
    for payload, cell in zip(payloads, ids, strict=True):
        workspace = connect(cwd=str(server.folder), actor=f"mcp:{payload}")
        assert workspace is not None
        with workspace:
            workspace.open(name).edit([{"op": "replace", "cell": cell, "source": "y = 1"}])
    page.wait_for_function(f"() => document.querySelectorAll('.cw-review').length === {count}")
    texts = page.locator(".cw-review span").all_text_contents()
    assert [text.removeprefix("Changed by mcp:") for text in texts] == list(payloads)
    page.mouse.move(300, 300)
    run = "() => new Promise(done => setTimeout(() => done(window.pwned), 300))"
    assert page.evaluate(run) is None
    assert leaks == []
    # Another program writes them into outputs and metadata, which are merged into the page.
    shape = json.loads(path.read_text())
    for cell, payload in zip(shape["cells"], payloads, strict=True):
        cell["metadata"] = {"tags": [payload], "name": payload, "trusted": True}
        cell["outputs"] = make_hostile_outputs(payload)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(shape), encoding="utf-8")
    new.replace(path)
    page.wait_for_function(
        f"() => [...{PANEL}.content.model.cells].every(model => model.outputs.length === 4)"
    )
    for number in range(count):
        page.evaluate(f"async at => await {PANEL}.content.scrollToItem(at)", number)
        page.wait_for_function(
            f"""at => {PANEL}.content.widgets[at].node
                .querySelectorAll('.jp-OutputArea-output').length === 4""",
            arg=number,
        )
    assert page.evaluate(run) is None
    keep_picture(page, f"payloads-{half}")
    assert page.locator(".cw-bar img, .cw-bar script, .cw-bar svg, .cw-bar a").count() == 0


def test_nothing_hidden_is_in_a_name_or_a_source_that_a_tab_shows(
    server: Server, open_page: OpenPage
) -> None:
    """A bidirectional mark could make one name, or one version of a cell, look like another."""
    path = server.write("hidden.ipynb", "a = 0", "b = 0")
    page = open_page("hidden.ipynb")
    page.evaluate(f"() => {PANEL}.content.model.cells.get(0).sharedModel.setSource('mine')")
    change_on_disk(path, a="is_admin = '\u202e' \u2066# no\u2069")
    page.locator(".cw-conflict").wait_for()
    shown = page.locator(".cw-conflict pre").text_content()
    assert shown == "is_admin = '<U+202E>' <U+2066># no<U+2069>"
    page.get_by_text("Keep mine").click()
    workspace = connect(cwd=str(server.folder), actor="mcp:\u202ead\u200ba")
    assert workspace is not None
    with workspace:
        workspace.open("hidden.ipynb").edit([{"op": "replace", "cell": "b", "source": "\u202eb"}])
    bar = page.locator(".cw-review")
    bar.wait_for()
    assert bar.locator("span").first.text_content() == "Changed by mcp:<U+202E>ad<U+200B>a"
    bar.get_by_text("Diff").click()
    assert page.locator(".cw-diff .cw-plus").text_content() == "+ <U+202E>b\n"
    assert cells(page)["b"]["source"] == "\u202eb"
