"""Long texts that cells print: drawn in parts, and to the person as ever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, read_saved, run_cell, texts

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


def test_a_notebook_with_a_long_text_is_saved_a_part_at_a_time_as_it_is(
    server: Server, open_page: OpenPage
) -> None:
    path = server.write("parts.ipynb", "1", "last")
    text = "".join(f'line {number} \U0001f389 "\\ \x1b[31m\n' for number in range(80_000))
    shape = json.loads(path.read_bytes())
    shape["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
    path.write_text(json.dumps(shape), encoding="utf-8")
    page = open_page("parts.ipynb")
    page.evaluate(
        """() => {
            const write = JSON.stringify;
            window.longest = 0;
            JSON.stringify = (...given) => {
                const text = write(...given);
                const isSave = given[0]?.type === 'notebook' && given[0].format === 'json';
                window.longest = Math.max(window.longest, isSave ? text.length : 0);
                return text;
            };
        }"""
    )
    save = f"""async source => {{
        const {{ context, content }} = {PANEL};
        content.model.sharedModel.cells[0].setSource(source);
        await context.save().catch(() => undefined);
        return context.model.dirty;
    }}"""
    assert page.evaluate(save, "2") is False
    first, last = read_saved(path)
    assert "".join(first["source"]) == "2"
    assert "".join(first["outputs"][0]["text"]) == text
    assert "".join(last["source"]) == "last"
    assert 0 < page.evaluate("() => window.longest") < 1_000
    # What the server refuses is not saved.
    refuse = "**/api/contents/parts.ipynb*"
    page.route(
        refuse,
        lambda route: (
            route.fulfill(status=500, json={"message": "full"})
            if route.request.method == "PUT"
            else route.fallback()
        ),
    )
    assert page.evaluate(save, "3") is True
    page.unroute(refuse)
    assert "".join(read_saved(path)[0]["source"]) == "2"
    assert page.evaluate(save, "4") is False
    assert "".join(read_saved(path)[0]["source"]) == "4"


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
