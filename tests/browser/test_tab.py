"""An agent, a terminal and a person in one JupyterLab tab, in a real browser."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.errors import Conflict
from cellwright.workspace.hosts.leases import Leases
from tests.browser.conftest import (
    FIRST,
    PANEL,
    Server,
    cells,
    change_on_disk,
    keep_picture,
    put_cursor,
    read_saved,
    run_cell,
    texts,
)
from tests.browser.test_runs import begin_run
from tests.engines import wait_for
from tests.integration.mcp.process import raw_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    OpenPage = Callable[[str], Page]

pytestmark = pytest.mark.timeout(120)


def test_an_edit_appears_in_the_tab_in_place_and_is_saved(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("edit.ipynb", "x = 1", "y = 2")
    page = open_page("edit.ipynb")
    put_cursor(page, 0)
    page.keyboard.press("End")
    page.keyboard.type(" + 1", delay=5)
    answer = agent.open("edit.ipynb").edit(
        [
            {"op": "replace", "cell": "b", "source": "y = 22"},
            {"op": "insert", "after": "a", "source": "between = True"},
        ]
    )
    page.keyboard.type("0", delay=5)
    assert (answer.host, answer.saved) == ("tab", True)
    found = cells(page)
    assert [cell["source"] for cell in found.values()] == ["x = 1 + 10", "between = True", "y = 22"]
    saved = read_saved(path)
    assert ["".join(cell["source"]) for cell in saved] == ["x = 1 + 1", "between = True", "y = 22"]


def test_several_cells_are_put_where_they_belong_and_are_one_step_back(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    server.write("many.ipynb", "a", "b", "c", "d")
    page = open_page("many.ipynb")
    agent.open("many.ipynb").edit(
        [
            {"op": "delete", "cell": "b"},
            {"op": "insert", "source": "one", "after": "a"},
            {"op": "insert", "source": "two", "after": "a"},
            {"op": "move", "cell": "d", "at": 0},
            {"op": "insert", "source": "three", "after": "c"},
        ]
    )
    found = [cell["source"] for cell in cells(page).values()]
    assert found == ["d", "a", "one", "two", "c", "three"]
    page.evaluate(f"() => {{ {PANEL}.content.mode = 'command'; {PANEL}.content.node.focus() }}")
    page.keyboard.press("z")
    assert [cell["source"] for cell in cells(page).values()] == ["a", "b", "c", "d"]


def test_an_edit_of_a_source_is_one_step_back_and_the_persons_steps_stay(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    server.write("undo.ipynb", "x = 1")
    page = open_page("undo.ipynb")
    put_cursor(page, 0)
    page.keyboard.press("End")
    page.keyboard.type("0")
    agent.open("undo.ipynb").edit([{"op": "replace", "cell": "a", "source": "z = 0\nx = 10"}])
    assert cells(page)["a"]["source"] == "z = 0\nx = 10"
    page.keyboard.press("Control+z")
    assert cells(page)["a"]["source"] == "x = 10"
    page.keyboard.press("Control+z")
    assert cells(page)["a"]["source"] == "x = 1"


def test_an_edit_makes_the_page_look_only_at_what_has_changed(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """Styles that are written again, or a colour that fades, concern every cell of a notebook."""
    server.write("quick.ipynb", *(f"x{number} = {number}" for number in range(4)))
    page = open_page("quick.ipynb")
    styles = page.evaluate(
        """() => {
            window.written = [];
            const found = [...document.head.querySelectorAll('style')].filter(
                node => node.textContent.includes('\u037c'));
            for (const node of found) {
                const watch = new MutationObserver(records => window.written.push(...records));
                watch.observe(node, {childList: true, characterData: true, subtree: true});
            }
            return found.length;
        }"""
    )
    assert styles == 1
    edits = [
        {"op": "replace", "cell": "a", "source": "x0 = 'new'"},
        *({"op": "insert", "after": "b", "source": f"y{number} = 'new'"} for number in range(3)),
    ]
    assert agent.open("quick.ipynb").edit(edits).saved
    page.wait_for_function(
        f"""() => {PANEL}.content.widgets.slice(2, 5).every(
            cell => cell.node.querySelector('.cm-content')?.textContent.includes("'new'"))"""
    )
    assert page.evaluate("() => window.written.length") == 0
    # They are the editor's own all the same: a string has its colour.
    colours = page.evaluate(
        f"""() => {PANEL}.content.widgets.slice(0, 5).map(cell => [
            ...cell.node.querySelectorAll('.cm-line span')].map(
                word => getComputedStyle(word).color).join())"""
    )
    assert colours[0] == colours[2]
    assert colours[0] != colours[1]
    faded = page.evaluate(
        """() => [...document.styleSheets].flatMap(sheet => [...sheet.cssRules])
            .filter(rule => rule.type === CSSRule.KEYFRAMES_RULE && rule.name === 'cw-changed')
            .flatMap(rule => [...rule.cssRules].flatMap(step => [...step.style]))"""
    )
    assert faded == ["opacity"], "the browser fades it without the page"


@pytest.mark.all
def test_the_page_goes_to_where_an_agent_edits_and_runs_if_the_person_follows(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    server.write("follow.ipynb", *(f"x = {number}\n\n\n\n\n" for number in range(26)))
    page = open_page("follow.ipynb")
    book = agent.open("follow.ipynb")
    save = "raw => window.jupyterapp.serviceManager.settings.save('cellwright-lab:live', raw)"
    put_cursor(page, 0)
    is_seen = f"""index => {{
        const [cell, list] = [{PANEL}.content.widgets[index].node, {PANEL}.content.outerNode]
            .map(node => node.getBoundingClientRect());
        return cell.bottom > list.top && cell.top < list.bottom;
    }}"""
    book.edit([{"op": "replace", "cell": "x", "source": "first = 1"}])
    book.run(["y"])
    assert page.evaluate(is_seen, 0)
    page.evaluate(save, '{"follow": true}')
    page.reload()
    page.wait_for_function(f"() => window.jupyterapp && {PANEL}?.hasClass?.('cw-shared')")
    try:
        put_cursor(page, 0)
        page.wait_for_function(is_seen, arg=0)
        book.edit([{"op": "replace", "cell": "y", "source": "second = 2"}])
        page.wait_for_function(is_seen, arg=24)
        book.run(["c"])
        page.wait_for_function(is_seen, arg=2)
        assert not page.evaluate(is_seen, 24)
        # Nothing but the view has moved.
        place = f"() => [{PANEL}.content.activeCellIndex, {PANEL}.content.mode]"
        assert page.evaluate(place) == [0, "edit"]
    finally:
        page.evaluate(save, "{}")


@pytest.mark.all
def test_a_notebook_that_another_program_has_is_shared_as_soon_as_that_is_over(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("taken.ipynb", "x = 1")
    page = open_page(FIRST)
    leases = Leases("a batch")
    leases.own(str(path.resolve()))
    try:
        with page.expect_console_message(lambda said: "is not shared" in said.text):
            page.evaluate(
                """() => window.jupyterapp.commands.execute(
                    'docmanager:open', {path: 'taken.ipynb'})"""
            )
        assert not page.evaluate(f"() => {PANEL}.hasClass('cw-shared')")
    finally:
        leases.release(str(path.resolve()))
    page.wait_for_function(
        f"() => {PANEL}.context.path === 'taken.ipynb' && {PANEL}.hasClass('cw-shared')"
    )
    edit = {"op": "replace", "cell": "a", "source": "x = 2"}
    assert agent.open("taken.ipynb").edit([edit]).host == "tab"


def test_what_a_person_types_while_an_agent_edits_the_same_cell_is_all_there(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """Each key is a step of its own to the page, and agents edit between them."""
    path = server.write("both.ipynb", "first = 0\n\n# between\n\nlast = ''")
    page = open_page("both.ipynb")
    book = agent.open("both.ipynb")
    put_cursor(page, 0)
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowLeft")
    words = "typed while an agent works in the same cell"

    def edit_often() -> int:
        done = 0
        while not is_typed.is_set():
            view = book.read()
            source = re.sub(r"first = \d+", f"first = {done + 1}", view.cells[0].source)
            edit = {"op": "replace", "cell": "a", "source": source}
            with contextlib.suppress(Conflict):  # the person was quicker: it is read anew
                book.edit([edit], base=view.revision)
                done += 1
        return done

    is_typed = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        edits = thread.submit(edit_often)
        try:
            page.keyboard.type(words, delay=40)
        finally:
            is_typed.set()
        count = edits.result()
    assert count > 0
    wanted = f"first = {count}\n\n# between\n\nlast = '{words}'"
    assert cells(page)["a"]["source"] == wanted
    place = page.evaluate(f"() => {PANEL}.content.activeCell.editor.getCursorPosition()")
    assert (place["line"], place["column"]) == (4, len(f"last = '{words}"))
    page.evaluate(f"async () => await {PANEL}.context.save()")
    assert "".join(read_saved(path)[0]["source"]) == wanted


def test_a_cell_where_a_person_types_or_that_they_run_stays_while_its_neighbours_are_moved(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """JupyterLab makes a cell anew that it moves: history, cursor and later outputs are gone."""
    go = server.folder / "go-moved"
    wait = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('end')"
    server.write("stay.ipynb", "a", "b", wait, "d", "e")
    page = open_page("stay.ipynb")
    book = agent.open("stay.ipynb")
    begin_run(page, 2)
    wait_for(lambda: book.read().cells[2].status == "running", "the run to be known")
    put_cursor(page, 4)
    page.keyboard.press("End")
    page.keyboard.insert_text(" = 1")
    wait_for(lambda: book.presence().active == "e", "the place of the person")
    page.evaluate(f"() => {{ window.was = [2, 4].map(at => {PANEL}.content.widgets[at]) }}")
    book.edit([{"op": "move", "cell": "c", "at": 0}])
    book.edit([{"op": "move", "cell": "e", "at": 1}])
    assert list(cells(page)) == ["c", "e", "a", "b", "d"]
    assert page.evaluate(
        f"() => window.was.every((cell, at) => cell === {PANEL}.content.widgets[at])"
    )
    # A step of its own, however quickly or slowly it comes after the one before.
    page.evaluate(f"() => {PANEL}.content.model.sharedModel.cells[1].undoManager.stopCapturing()")
    page.keyboard.insert_text("0")
    assert cells(page)["e"]["source"] == "e = 10"
    go.touch()
    page.evaluate("async () => { await window.done }")
    assert (texts(cells(page)["c"]), cells(page)["c"]["count"]) == ("begun\nend\n", 1)
    for source in ("e = 1", "e"):
        page.keyboard.press("Control+z")
        assert cells(page)["e"]["source"] == source, "their own step, and no more"


@pytest.mark.all
def test_the_settings_are_in_the_settings_editor_and_hold_at_once(
    server: Server, open_page: OpenPage
) -> None:
    server.write("settings.ipynb", "x = 1", "x + 1")
    page = open_page("settings.ipynb")
    for index in range(2):
        run_cell(page, index)
    page.evaluate(
        f"() => {PANEL}.content.model.cells.get(0).sharedModel.setSource('x = 2')",
    )
    page.wait_for_function("() => document.querySelectorAll('.cw-stale').length === 2")
    page.evaluate(
        """() => window.jupyterapp.commands.execute(
            'settingeditor:open', {query: 'Cellwright'})"""
    )
    form = page.locator("[id='jp-SettingsEditor-cellwright-lab:live']")
    for name in ("Share open notebooks", "Follow", "Mark stale cells"):
        form.get_by_text(name, exact=True).wait_for()
    keep_picture(page, "settings")
    try:
        form.get_by_label("Mark stale cells").uncheck()
        page.wait_for_function("() => document.querySelectorAll('.cw-stale').length === 0")
    finally:
        save = "raw => window.jupyterapp.serviceManager.settings.save('cellwright-lab:live', raw)"
        page.evaluate(save, "{}")


def test_a_run_streams_into_the_tab_in_the_kernel_of_the_tab(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    go = server.folder / "go-run"
    path = server.write(
        "run.ipynb",
        f"import os, time\nprint(0, flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
        "print(1)\nz = 7",
    )
    page = open_page("run.ipynb")
    book = agent.open("run.ipynb")
    run = book.run(["a"], detach=0.0)
    page.wait_for_function(f"() => {PANEL}.content.widgets[0].promptNode.textContent.includes('*')")
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(0).outputs.length > 0")
    go.touch()
    assert agent.attach(run.run).state == "done"
    found = cells(page)["a"]
    assert (texts(found), found["count"]) == ("0\n1\n", 1)
    assert b'"1\\n"' in path.read_bytes()
    # The person's next cell is in the same kernel.
    page.evaluate(
        f"""async () => {{
            {PANEL}.content.model.sharedModel.insertCell(1, {{cell_type: 'code', id: 'mine', source: 'z + 1'}});
            {PANEL}.content.activeCellIndex = 1;
            await window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    assert texts(cells(page)["mine"]) == "8"


def test_a_tab_that_is_closed_in_the_middle_of_a_run_misses_nothing(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    go = server.folder / "go"
    path = server.write(
        "closed.ipynb",
        "print('first')",
        f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('end')",
    )
    page = open_page("closed.ipynb")
    run = agent.open("closed.ipynb").run(["a", "b"], detach=0.0)
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(1).outputs.length > 0")
    page.close()
    go.touch()
    assert agent.attach(run.run).state == "done"
    wait_for(lambda: b"end" in path.read_bytes(), "the outputs in the file")
    saved = read_saved(path)
    assert ["".join(cell["outputs"][0]["text"]) for cell in saved] == ["first\n", "begun\nend\n"]
    page = open_page("closed.ipynb")
    assert [texts(cell) for cell in cells(page).values()] == ["first\n", "begun\nend\n"]


def test_where_the_person_is_reaches_the_engine(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    server.write("place.ipynb", "1", "2", "3")
    page = open_page("place.ipynb")
    page.evaluate(f"() => {{ {PANEL}.content.activeCellIndex = 1 }}")
    page.keyboard.press("Shift+ArrowDown")

    def look() -> bool:
        found = agent.open("place.ipynb").presence()
        return (
            found.active == "c" and list(found.selected) == ["b", "c"] and found.mode == "command"
        )

    wait_for(look, "the selection")


def test_a_person_an_agent_and_git_change_one_notebook_and_all_of_it_is_there(
    server: Server, open_page: OpenPage, tmp_path: Path
) -> None:
    """All at once: real keys, a real MCP client, and a branch that is checked out."""
    path = server.write("four.ipynb", "a = 0", "b = 0", "print('run')", "d = 0")
    git = ["git", f"--git-dir={tmp_path / 'git'}", f"--work-tree={server.folder}"]

    def run_git(*words: str) -> None:
        who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
        subprocess.run([*git, *who, *words], check=True, capture_output=True, cwd=server.folder)

    run_git("init", "-q", "-b", "main")
    run_git("add", path.name)
    run_git("commit", "-q", "-m", "begin")
    run_git("checkout", "-q", "-b", "other")
    change_on_disk(path, d="d = 'from git'")
    run_git("commit", "-q", "-a", "-m", "change d")
    run_git("checkout", "-q", "main")
    page = open_page(path.name)
    put_cursor(page, 0)
    page.keyboard.press("End")

    def work() -> list[dict[str, Any]]:
        run_git("checkout", "-q", "other")
        edits = [{"op": "replace", "cell": "b", "source": "b = 1"}]
        with raw_server(server.folder) as mcp:
            mcp.greet()
            answers = [
                mcp.call("tools/call", {"name": name, "arguments": {"path": path.name, **more}})
                for name, more in (
                    ("notebook_edit", {"edits": edits}),
                    ("notebook_run", {"cells": ["c"]}),
                )
            ]
        return [answer["result"] for answer in answers]

    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work)
        typed = 0
        while not working.done():
            typed += 1
            page.keyboard.type(f" + {typed}", delay=20)
        edited, ran = working.result()
    assert typed > 3, "the person typed meanwhile"
    assert not edited.get("isError"), edited
    assert not ran.get("isError"), ran
    assert (edited["structuredContent"]["host"], edited["structuredContent"]["saved"]) == (
        "tab",
        True,
    )
    page.wait_for_function(
        f"() => {PANEL}.content.model.cells.get(3).sharedModel.getSource() === \"d = 'from git'\""
    )
    page.evaluate(f"async () => await {PANEL}.context.save()")
    assert page.locator(".jp-Dialog").all_inner_texts() == []
    sources = {
        "a": "a = 0" + "".join(f" + {number + 1}" for number in range(typed)),
        "b": "b = 1",
        "c": "print('run')",
        "d": "d = 'from git'",
    }
    saved = {cell["id"]: cell for cell in read_saved(path)}
    assert {name: "".join(cell["source"]) for name, cell in saved.items()} == sources
    assert "".join(saved["c"]["outputs"][0]["text"]) == "run\n"

    def read_tab() -> dict[str, str]:
        return {name: cell["source"] for name, cell in cells(page).items()}

    assert read_tab() == sources
    # One step back in each cell takes back what was done there, and nothing else.
    for index, name in ((3, "d"), (1, "b")):
        put_cursor(page, index)
        page.keyboard.press("Control+z")
        sources[name] = f"{name} = 0"
        assert read_tab() == sources
    put_cursor(page, 0)
    for _ in range(3 * typed):  # typing with a pause in between is more than one step
        page.keyboard.press("Control+z")
    assert read_tab() == {**sources, "a": "a = 0"}


def test_a_conflict_with_the_file_is_shown_in_the_cell_and_the_person_chooses(
    server: Server, open_page: OpenPage
) -> None:
    path = server.write("conflict.ipynb", "x = 0", "y = 0")
    page = open_page("conflict.ipynb")
    put_cursor(page, 0)
    page.keyboard.press("End")
    page.keyboard.type("1")
    change_on_disk(path, a="x = 'theirs'", b="y = 'theirs'")
    bar = page.locator(".cw-conflict")
    bar.wait_for(timeout=20_000)
    assert "x = 'theirs'" in bar.inner_text()
    assert cells(page)["a"]["source"] == "x = 01"
    bar.get_by_text("Take the file").click()
    assert cells(page)["a"]["source"] == "x = 'theirs'"
    page.wait_for_function("() => document.querySelector('.cw-conflict') === null")
    page.evaluate(f"async () => await {PANEL}.context.save()")
    assert page.locator(".jp-Dialog").all_inner_texts() == []
    assert b"y = 'theirs'" in path.read_bytes()
