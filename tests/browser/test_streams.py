"""Long texts that cells print: drawn in parts, and to the person as ever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, run_cell, texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(120), pytest.mark.all]

LINES = "".join(f"line {number} <b>\n" for number in range(20_000))
NODE = f"{PANEL}.content.widgets[0].outputArea.node.querySelector('.jp-RenderedText')"


def test_a_long_text_of_a_file_has_its_colours_and_links_and_is_copied_as_it_is(
    server: Server, open_page: OpenPage
) -> None:
    path = server.write("long.ipynb", "1")
    shape = json.loads(path.read_bytes())
    coloured = f"\x1b[1;31m{LINES}\x1b[0mhttps://example.org/ is the end\n"
    shape["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stderr", "text": coloured}]
    path.write_text(json.dumps(shape), encoding="utf-8")
    page = open_page("long.ipynb")
    shown = f"{LINES}https://example.org/ is the end\n"
    page.wait_for_function(f"text => {NODE}?.textContent === text", arg=shown)
    assert page.evaluate(f"() => {NODE}.querySelectorAll('.cw-part').length") > 5
    assert page.evaluate(f"() => {NODE}.querySelector('a').href") == "https://example.org/"
    found = page.evaluate(
        f"""() => [...{NODE}.querySelectorAll('.cw-part')].map(
            part => [...part.querySelectorAll('.ansi-red-fg.ansi-bold, .ansi-red-intense-fg.ansi-bold')]
                .map(span => span.textContent).join(''))"""
    )
    assert "".join(found) == LINES
    copied = page.evaluate(
        f"""() => {{
            const selection = window.getSelection();
            selection.selectAllChildren({NODE});
            return selection.toString();
        }}"""
    )
    assert copied.rstrip("\n") == shown.rstrip("\n")


def test_of_a_text_that_an_agents_cell_prints_only_what_is_new_travels(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    gates = [server.folder / f"gate-{number}" for number in range(4)]
    server.write(
        "travels.ipynb",
        "import os, time\n"
        f"for gate in {[str(gate) for gate in gates]}:\n"
        "    print('x' * 99_999 + '.', flush=True)\n"
        "    while not os.path.exists(gate): time.sleep(0.02)",
    )
    page = open_page("travels.ipynb")
    lengths: list[int] = []
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.enable")
    devtools.on(
        "Network.webSocketFrameReceived",
        lambda frame: lengths.append(
            len(frame["response"]["payloadData"])
            if '"editor.land"' in frame["response"]["payloadData"]
            else 0
        ),
    )
    run = agent.open("travels.ipynb").run(["a"], detach=0.0)
    for number, gate in enumerate(gates, start=1):
        page.wait_for_function(
            f"length => {NODE}?.textContent.length === length", arg=number * 100_001
        )
        gate.touch()
    assert agent.attach(run.run).state == "done"
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(0).executionCount === 1")
    assert 400_000 < sum(lengths) < 500_000


@pytest.mark.parametrize("who", ["person", "agent"])
def test_a_long_text_that_grows_keeps_what_is_drawn_and_ends_as_the_cell_says(
    server: Server, open_page: OpenPage, agent: Any, who: str
) -> None:
    name = f"grows-{who}.ipynb"
    server.write(
        name,
        "for number in range(20_000): print('line', number, '<b>', flush=number % 1000 == 0)\n"
        "for number in range(5): print(f'\\r{number} of 4', end='', flush=True)",
    )
    page = open_page(name)
    run = (lambda: run_cell(page, 0)) if who == "person" else (lambda: agent.open(name).run(["a"]))
    run()
    shown = f"{LINES}4 of 4"
    page.wait_for_function(f"text => {NODE}?.textContent === text", arg=shown)
    assert texts(cells(page)["a"]) == shown
    page.evaluate(f"() => {{ window.first = {NODE}.querySelector('.cw-part') }}")
    # What is written over is only the last line.
    page.evaluate(
        f"""() => {PANEL}.content.model.cells.get(0).outputs.add(
            {{output_type: 'stream', name: 'stdout', text: '\\rthe end'}})"""
    )
    page.wait_for_function(f"text => {NODE}.textContent === text", arg=f"{LINES}the end")
    assert page.evaluate(f"() => window.first === {NODE}.querySelector('.cw-part')")
    # A short text is JupyterLab's own again.
    page.evaluate(f"() => {PANEL}.content.model.sharedModel.cells[0].setSource('print(1)')")
    run()
    page.wait_for_function(f"() => {NODE}?.textContent === '1\\n'")
    assert page.evaluate(f"() => {NODE}.querySelector('.cw-part')") is None
