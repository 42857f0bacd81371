"""What happens to the tab, the server and the engine, and what becomes of the notebook."""

from __future__ import annotations

import contextlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error

from cellwright import connect
from cellwright.errors import EngineLost, NotebookNotFound
from tests.browser.conftest import (
    FIRST,
    PANEL,
    START,
    Server,
    cells,
    keep_picture,
    read_saved,
    start_server,
    texts,
)
from tests.browser.test_runs import begin_run, wait_heard
from tests.engines import ask, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

    OpenPage = Callable[[str], Page]

pytestmark = [pytest.mark.timeout(120), pytest.mark.all]


def find_pid() -> int | None:
    try:
        return int(ask("status")["pid"])
    except (ConnectionError, EngineLost):
        return None


def wait_shared(page: Page) -> None:
    page.wait_for_function(
        f"() => window.jupyterapp && {PANEL}?.hasClass?.('cw-shared')", timeout=60_000
    )


def type_in(page: Page, index: int, source: str) -> None:
    page.evaluate(
        f"([index, source]) => {PANEL}.content.model.cells.get(index).sharedModel.setSource(source)",
        [index, source],
    )


def test_a_tab_that_is_loaded_again_and_renamed_in_the_middle_of_a_run_loses_nothing(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    go = server.folder / "go-reload"
    wait = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('end')"
    path = server.write("again.ipynb", wait, "b = 0")
    page = open_page("again.ipynb")
    run = agent.open("again.ipynb").run(["a"], detach=0.0)
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(0).outputs.length > 0")
    page.reload()
    wait_shared(page)
    go.touch()
    assert agent.attach(run.run).state == "done"
    wait_for(lambda: b"end" in path.read_bytes(), "the outputs in the file")
    page.wait_for_function(
        f"() => JSON.stringify({PANEL}.content.model.cells.get(0).outputs.toJSON()).includes('end')"
    )
    assert texts(cells(page)["a"]) == "begun\nend\n"
    # Renamed as in the file browser, with changes that are not saved.
    page.evaluate(
        f"""async () => {{
            {PANEL}.content.model.cells.get(1).sharedModel.setSource('b = "typed"');
            await window.jupyterapp.serviceManager.contents.rename('again.ipynb', 'moved.ipynb');
        }}"""
    )
    wait_shared(page)
    moved = server.folder / "moved.ipynb"
    book = agent.open("moved.ipynb")

    answer = book.edit([{"op": "replace", "cell": "a", "source": "1 + 1"}])
    assert (answer.host, answer.saved) == ("tab", True)
    assert book.run(["a"]).ok
    page.evaluate(f"async () => await {PANEL}.context.save()")
    # JupyterLab itself may say that the path in its address is gone.
    assert "Changed" not in "".join(page.locator(".jp-Dialog").all_inner_texts())
    saved = read_saved(moved)
    assert ["".join(cell["source"]) for cell in saved] == ["1 + 1", 'b = "typed"']
    assert [cell["source"] for cell in cells(page).values()] == ["1 + 1", 'b = "typed"']
    assert not path.exists()


def test_a_cell_that_was_waiting_when_the_page_was_loaded_again_does_not_wait_for_ever(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """The one before it fails, so that it never begins, and nothing is heard of it again."""
    go = server.folder / "go-waiting"
    fail = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n1 / 0"
    server.write("waiting.ipynb", fail, "2")
    page = open_page("waiting.ipynb")
    run = agent.open("waiting.ipynb").run(["a", "b"], detach=0.0)
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(0).outputs.length > 0")
    page.reload()
    wait_shared(page)
    prompts = f"() => {PANEL}.content.widgets.map(cell => cell.promptNode?.textContent)"
    page.wait_for_function(f"() => ({prompts})()[0] === '[*]:'")
    go.touch()
    assert agent.attach(run.run).state == "done"
    page.wait_for_function(f"() => ({prompts})()[0] === '[1]:'")
    assert page.evaluate(prompts)[1] == "[ ]:"


def test_two_pages_and_an_engine_that_is_killed_lose_nothing(
    server: Server, open_page: OpenPage
) -> None:
    path = server.write("pages.ipynb", "a = 0", "b = 0", "c = 0")
    first, second = open_page("pages.ipynb"), open_page("pages.ipynb")
    first.evaluate(f"() => {PANEL}.content.model.cells.get(0).sharedModel.setSource('a = 1')")

    def edit(cell: str, source: str) -> bool:
        workspace = connect(cwd=str(server.folder), actor="mcp:agent")
        assert workspace is not None
        with workspace:
            book = workspace.open("pages.ipynb")
            return book.edit([{"op": "replace", "cell": cell, "source": source}]).host == "tab"

    assert edit("b", "b = 1")
    for page in (first, second):
        page.wait_for_function(
            f"() => {PANEL}.content.model.cells.get(1).sharedModel.getSource() === 'b = 1'"
        )
    before = ask("status")["pid"]
    os.kill(before, signal.SIGKILL)
    # Both pages find the next engine by themselves.
    wait_for(lambda: find_pid() not in (None, before), "the next engine")
    for page in (first, second):
        wait_shared(page)
    assert edit("c", "c = 1")
    first.wait_for_function(
        f"() => {PANEL}.content.model.cells.get(2).sharedModel.getSource() === 'c = 1'"
    )
    first.evaluate(f"async () => await {PANEL}.context.save()")
    wanted = ["a = 1", "b = 1", "c = 1"]
    for page in (first, second):
        page.wait_for_function(
            f"""wanted => JSON.stringify([...{PANEL}.content.model.cells].map(
                m => m.sharedModel.getSource())) === JSON.stringify(wanted)""",
            arg=wanted,
        )
        assert page.locator(".jp-Dialog").all_inner_texts() == []
    keep_picture(second, "two-pages")
    saved = read_saved(path)
    assert ["".join(cell["source"]) for cell in saved] == wanted


def test_a_notebook_with_two_views_in_one_page_stays_there_when_one_of_them_is_closed(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """The person runs a cell in each of them, and closes it: the other one has what the cell says."""
    gates = [server.folder / f"go-view-{number}" for number in range(2)]
    sources = [
        f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('end')"
        for go in gates
    ]
    path = server.write("views.ipynb", *sources, "c = 0")
    page = open_page("views.ipynb")
    wait_heard(server, page)
    book = agent.open("views.ipynb")
    views = "[...window.jupyterapp.shell.widgets('main')].filter(each => each.context)"
    for number, cell in enumerate("ab"):
        page.evaluate(
            "async () => { await window.jupyterapp.commands.execute('docmanager:clone') }"
        )
        page.wait_for_function(f"() => {views}.length === 2")
        place = 1 - number  # the newer view first, and then the older one
        page.evaluate(f"place => window.jupyterapp.shell.activateById({views}[place].id)", place)
        page.wait_for_function(f"place => {PANEL} === {views}[place]", arg=place)
        begin_run(page, number)
        wait_for(lambda cell=cell: book.presence().active == cell, "the place of the person")
        wait_for(lambda number=number: book.read().cells[number].status == "running", "the run")
        with ThreadPoolExecutor(1) as thread:
            edits = [
                {"op": "replace", "cell": "c", "source": f"c = {number}{each}"} for each in range(9)
            ]
            editing = thread.submit(lambda edits=edits: [book.edit([edit]) for edit in edits])
            page.wait_for_function(
                f"source => {PANEL}.content.model.cells.get(2).sharedModel.getSource() === source",
                arg=edits[1]["source"],
            )
            page.evaluate(f"() => {PANEL}.dispose()")
            assert {answer.host for answer in editing.result()} == {"tab"}
        page.wait_for_function(f"() => {views}.length === 1 && {views}[0].hasClass('cw-shared')")
        page.evaluate(f"() => window.jupyterapp.shell.activateById({views}[0].id)")
        assert cells(page)["c"]["source"] == f"c = {number}8"
        gates[number].touch()
        page.wait_for_function(
            f"cell => {views}[0].content.model.cells.get(cell).executionCount === cell + 1",
            arg=number,
        )
        assert texts(cells(page)[cell]) == "begun\nend\n"
    page.evaluate(f"async () => await {PANEL}.context.save()")
    assert page.locator(".jp-Dialog").all_inner_texts() == []
    assert ["".join(cell["source"]) for cell in read_saved(path)] == [*sources, "c = 18"]
    wait_for(lambda: "running" not in [run.status for run in book.executions()], "the records")
    assert [(run.cell, run.status) for run in book.executions()] == [("a", "ok"), ("b", "ok")]


@pytest.mark.timeout(240)
def test_a_connection_that_breaks_is_made_again_and_both_sides_are_merged(
    server: Server, open_page: OpenPage
) -> None:
    """Without a network the page goes on as ever, and to others the file is the notebook."""
    path = server.write("drop.ipynb", "a = 0", "b = 0")
    page = open_page("drop.ipynb")
    page.evaluate(
        """() => {
            const send = WebSocket.prototype.send;
            WebSocket.prototype.send = function (data) {
                if (this.url.includes('cellwright/engine')) {
                    window.wire = this;
                }
                return send.call(this, data);
            };
        }"""
    )
    page.evaluate(
        f"() => {{ {PANEL}.content.activeCellIndex = 1 }}"
    )  # it tells where the person is
    page.wait_for_function("() => window.wire")
    page.context.set_offline(True)
    page.evaluate("() => window.wire.close()")
    # Without a network, the browser may wait a minute for the goodbye of the other end.
    page.wait_for_function(f"() => !{PANEL}.hasClass('cw-shared')", timeout=90_000)
    page.evaluate(f"() => {PANEL}.content.model.cells.get(0).sharedModel.setSource('typed')")

    def edit(cell: str, source: str) -> str:
        workspace = connect(cwd=str(server.folder), actor="mcp:agent")
        assert workspace is not None
        with workspace:
            edits = [{"op": "replace", "cell": cell, "source": source}]
            return str(workspace.open("drop.ipynb").edit(edits).host)

    wait_for(lambda: ask("status") is not None, "the engine")
    assert edit("b", "meanwhile") == "file"
    page.context.set_offline(False)
    page.wait_for_function(f"() => {PANEL}.hasClass('cw-shared')", timeout=60_000)
    page.wait_for_function(
        f"() => {PANEL}.content.model.cells.get(1).sharedModel.getSource() === 'meanwhile'"
    )
    assert edit("b", "again") == "tab"
    assert page.locator(".jp-Dialog").all_inner_texts() == []
    saved = read_saved(path)
    assert ["".join(cell["source"]) for cell in saved] == ["typed", "again"]
    assert [cell["source"] for cell in cells(page).values()] == ["typed", "again"]


def test_a_page_that_crashes_leaves_the_run_of_an_agent_to_the_file(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    go = server.folder / "go-crash"
    wait = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('end')"
    path = server.write("crash.ipynb", wait, "b = 0")
    page = open_page("crash.ipynb")
    run = agent.open("crash.ipynb").run(["a"], detach=0.0)
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(0).outputs.length > 0")
    with page.expect_event("crash"), contextlib.suppress(Error):
        page.goto("chrome://crash")
    go.touch()
    assert agent.attach(run.run).state == "done"
    wait_for(lambda: b"end" in path.read_bytes(), "the outputs in the file")
    again = open_page("crash.ipynb")
    assert texts(cells(again)["a"]) == "begun\nend\n"
    assert agent.open("crash.ipynb").edit([{"op": "delete", "cell": "b"}]).host == "tab"


def test_a_notebook_that_is_deleted_while_it_is_open_is_still_in_its_page(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """Nothing is lost before the page is closed: saving writes the file anew."""
    path = server.write("deleted.ipynb", "a = 0", "b = 0")
    page = open_page("deleted.ipynb")
    page.evaluate(
        f"""async () => {{
            {PANEL}.content.model.cells.get(0).sharedModel.setSource('typed');
            await window.jupyterapp.serviceManager.contents.delete('deleted.ipynb');
        }}"""
    )
    assert not path.exists()
    answer = agent.open("deleted.ipynb").edit([{"op": "replace", "cell": "b", "source": "more"}])
    assert answer.host == "tab"
    assert [cell["source"] for cell in cells(page).values()] == ["typed", "more"]
    keep_picture(page, "deleted")
    page.evaluate(f"async () => await {PANEL}.context.save()")
    saved = read_saved(path)
    assert ["".join(cell["source"]) for cell in saved] == ["typed", "more"]


def test_a_notebook_that_is_deleted_in_the_file_browser_of_its_page_is_not_made_again(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """JupyterLab ends its kernel and closes its tab, also while an agent's cell runs there."""
    source = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.02)"
    path = server.write("trash.ipynb", source)
    page = open_page("trash.ipynb")
    book = agent.open("trash.ipynb")
    run = book.run(["a"], detach=0.0)
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(0).outputs.length > 0")
    page.locator(".jp-DirListing-item", has_text="trash.ipynb").click(button="right")
    page.locator(".lm-Menu-item", has_text="Move to Trash").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Move to Trash").click()
    (cell,) = agent.attach(run.run).answer
    assert cell.status == "died"
    assert cell.saved or cell.artifact, "the file had it, or the artifact has"
    page.wait_for_function(f"() => {PANEL}?.context?.path !== 'trash.ipynb'")
    wait_for(lambda: not path.exists(), "the file to be gone")

    def is_gone() -> bool:
        return all(row.path != "trash.ipynb" for row in agent.list(opened=True))

    wait_for(is_gone, "the engine to know that the tab is gone")
    with pytest.raises(NotebookNotFound):
        book.edit([{"op": "replace", "cell": "a", "source": "again"}])
    assert not path.exists()


def test_what_is_typed_while_the_notebook_is_saved_is_still_to_be_saved(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """JupyterLab calls a notebook saved when the server has what it was when the save began."""
    path = server.write("typing.ipynb", "a = 1", "b = 2")
    page = open_page("typing.ipynb")
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == "PUT" and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/contents/typing.ipynb*", hold)
    type_in(page, 0, "a = 10")
    page.evaluate(f"() => {{ window.saving = {PANEL}.context.save() }}")
    wait_for(lambda: page.wait_for_timeout(20) or held, "the save")
    type_in(page, 1, "b = 20")
    held[0].continue_()
    page.evaluate("() => window.saving")
    assert ["".join(cell["source"]) for cell in read_saved(path)] == ["a = 10", "b = 2"]
    assert page.evaluate(f"() => {PANEL}.context.model.dirty")
    # An agent's save comes after one that is under way, which would write over it.
    held.clear()
    page.evaluate(f"() => {{ window.saving = {PANEL}.context.save() }}")
    wait_for(lambda: page.wait_for_timeout(20) or held, "the save")
    with ThreadPoolExecutor(1) as thread:
        edit = {"op": "replace", "cell": "a", "source": "a = 100"}
        answer = thread.submit(agent.open("typing.ipynb").edit, [edit])
        page.wait_for_function(
            f"() => {PANEL}.content.model.cells.get(0).sharedModel.getSource() === 'a = 100'"
        )
        page.wait_for_timeout(200)
        held[0].continue_()
        while not answer.done():
            page.wait_for_timeout(20)
        assert answer.result().saved
    page.evaluate("() => window.saving")
    assert ["".join(cell["source"]) for cell in read_saved(path)] == ["a = 100", "b = 20"]
    assert not page.evaluate(f"() => {PANEL}.context.model.dirty")
    assert page.locator(".jp-Dialog").all_inner_texts() == []


def test_a_server_that_is_started_again_under_an_open_page_loses_nothing(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    """The page goes on as ever; to others the file is the notebook until the server is back."""
    del server  # it has an engine of its own; the other one shares it
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    sources = ("a = 0", "b = 0", "c = 0")

    def edit(cell: str, source: str) -> str:
        workspace = connect(cwd=str(notebooks), actor="mcp:agent")
        assert workspace is not None
        with workspace:
            edits = [{"op": "replace", "cell": cell, "source": source}]
            return str(workspace.open("restart.ipynb").edit(edits).host)

    context = browser.new_context()
    page = context.new_page()
    with start_server(notebooks, *START, "--") as first:
        path = first.write("restart.ipynb", *sources)
        page.goto(f"{first.url}lab/tree/restart.ipynb?token={first.token}&reset")
        wait_shared(page)
        # A Jupyter server does not end while it starts a kernel.
        page.wait_for_function(f"() => {PANEL}.sessionContext.session?.kernel?.status === 'idle'")
        assert edit("b", "b = 1") == "tab"
        type_in(page, 0, "a = 'typed before'")
    page.wait_for_function(f"() => !{PANEL}.hasClass('cw-shared')")
    type_in(page, 0, "a = 'typed meanwhile'")
    wait_for(lambda: edit("c", "c = 1") == "file", "the engine to know that the page is gone")
    with start_server(notebooks, *START, "--", like=first):
        wait_shared(page)
        wanted = ["a = 'typed meanwhile'", "b = 1", "c = 1"]
        page.wait_for_function(
            f"""wanted => JSON.stringify([...{PANEL}.content.model.cells].map(
                m => m.sharedModel.getSource())) === JSON.stringify(wanted)""",
            arg=wanted,
        )
        assert page.evaluate(f"() => {PANEL}.context.model.dirty")
        assert edit("b", "b = 2") == "tab"
        wanted[1] = "b = 2"
        assert [cell["source"] for cell in cells(page).values()] == wanted
        assert ["".join(cell["source"]) for cell in read_saved(path)] == wanted
        assert "Changed" not in "".join(page.locator(".jp-Dialog").all_inner_texts())
        keep_picture(page, "server-restarted")
        context.close()


def test_a_page_whose_notebooks_are_not_shared_is_left_alone(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """The setting `share`: to agents the file is the notebook, and JupyterLab is as without us."""
    path = server.write("unshared.ipynb", "a = 0", "b = 0")
    page = open_page(FIRST.replace(" ", "%20"))
    save = "raw => window.jupyterapp.serviceManager.settings.save('cellwright-lab:live', raw)"
    page.evaluate(save, '{"share": false}')
    try:
        page.goto(f"{server.url}lab/tree/unshared.ipynb?token={server.token}&reset")
        page.wait_for_function(
            f"""() => window.jupyterapp?.shell && {PANEL}?.context?.isReady
                && {PANEL}.sessionContext?.session?.kernel?.status === 'idle'""",
            timeout=60_000,
        )
        type_in(page, 0, "a = 'typed'")
        book = agent.open("unshared.ipynb")
        answer = book.edit([{"op": "replace", "cell": "b", "source": "b = 1"}])
        assert answer.host == "file"
        assert all(row.path != "unshared.ipynb" for row in agent.list(opened=True))
        page.wait_for_timeout(1500)  # three looks of the engine, if it looked
        assert [cell["source"] for cell in cells(page).values()] == ["a = 'typed'", "b = 0"]
        assert not page.evaluate(f"() => {PANEL}.hasClass('cw-shared')")
        assert not page.evaluate(
            "() => window.jupyterapp.commands.hasCommand('cellwright:run-stale')"
        )
        assert b"b = 1" in path.read_bytes()
    finally:
        page.evaluate(save, "{}")
