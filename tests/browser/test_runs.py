"""What a person runs in a tab, beside an agent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, read_saved, run_cell, texts
from tests.engines import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(120)


def test_runs_of_the_person_and_of_the_agent_are_of_one_kernel_and_on_record(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    go = server.folder / "go-runs"
    wait = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('end')"
    slow = "import time\ntime.sleep(0.2)\ny = x + 1"  # long enough to be on record while it runs
    server.write("runs.ipynb", "x = 1", slow, "1 / 0", wait)
    page = open_page("runs.ipynb")
    book = agent.open("runs.ipynb")
    run_cell(page, 0)
    assert book.run(["b"]).ok
    run_cell(page, 2)
    found = wait_for(
        lambda: (
            (r := book.executions())
            and [run.status for run in r].count("running") == 0
            and len(r) == 3
            and r
        ),
        "the records",
    )
    assert [(run.cell, run.status, run.count) for run in found] == [
        ("a", "ok", 1),
        ("b", "ok", 2),
        ("c", "error", 3),
    ]
    assert len({run.kernel for run in found}) == 1, "one life of one kernel"
    states = {cell.cell: cell.state for cell in book.stale().cells}
    assert (states["a"], states["b"]) == ("fresh", "fresh")
    # A person who runs the cell of an agent wins.
    run = book.run(["d"], detach=0.0)
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(3).outputs.length > 0")
    page.evaluate(
        f"""() => {{
            {PANEL}.content.activeCellIndex = 3;
            window.done = window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    # JupyterLab clears the outputs when the person's run begins; the kernel still runs the agent's.
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get(3).outputs.length === 0")
    go.touch()
    (execution,) = agent.attach(run.run).answer
    page.evaluate("async () => { await window.done }")
    assert not execution.saved
    assert (texts(cells(page)["d"]), cells(page)["d"]["count"]) == ("begun\nend\n", 5)
    # After a restart the next cell is in another life.
    page.evaluate(f"async () => await {PANEL}.sessionContext.session.kernel.restart()")
    run_cell(page, 0)
    last = wait_for(lambda: (r := book.executions()[-1]).cell == "a" and r, "the record")
    assert last.kernel != found[0].kernel
    assert book.run(stale=True, keep_going=True)[0].cell == "b"


def wait_heard(server: Server, page: Page) -> None:
    """Wait until the engine listens to the kernel beside the page: both are connected to it."""
    kernel = page.evaluate(f"() => {PANEL}.sessionContext.session.kernel.id")
    wait_for(lambda: server.ask(f"api/kernels/{kernel}")["connections"] == 2, "the engine")


def begin_run(page: Page, index: int) -> None:
    """Run a cell as a person does, and do not wait for it."""
    page.evaluate(
        f"""() => {{
            {PANEL}.content.activeCellIndex = {index};
            window.done = window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get({index}).outputs.length > 0")


def test_what_a_person_runs_outlives_their_page(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """The page is closed, opened again in the middle, loaded again, and gets all of it."""
    go = server.folder / "go-left"
    wait = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('end')"
    path = server.write("left.ipynb", wait, "6 * 7")
    page = open_page("left.ipynb")
    wait_heard(server, page)
    begin_run(page, 0)
    page.evaluate(
        f"""() => {{
            {PANEL}.content.activeCellIndex = 1;
            window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    page.close()
    book = agent.open("left.ipynb")
    wait_for(lambda: read_saved(path)[0]["outputs"], "what was said before the page was closed")
    assert book.read().cells[0].status == "running"
    page = open_page("left.ipynb", busy=True)
    assert texts(cells(page)["a"]) == "begun\n"
    page.wait_for_function(f"() => {PANEL}.content.widgets[0].promptNode.textContent.includes('*')")
    go.touch()
    for index in (0, 1):
        page.wait_for_function(
            f"() => {PANEL}.content.model.cells.get({index}).executionCount === {index + 1}"
        )
    found = cells(page)
    assert (texts(found["a"]), found["a"]["count"]) == ("begun\nend\n", 1)
    assert texts(found["b"]) == "42"
    wait_for(lambda: read_saved(path)[1]["outputs"], "the outputs in the file")
    # The page shows the end of a cell a moment before it is on record.
    wait_for(lambda: "running" not in [run.status for run in book.executions()], "the records")
    records = [(run.cell, run.status, run.count) for run in book.executions()]
    assert sorted(records) == [("a", "ok", 1), ("b", "ok", 2)]


@pytest.mark.all
def test_a_cell_of_twenty_seconds_whose_page_is_closed_is_whole_when_it_is_opened_again(
    server: Server, open_page: OpenPage
) -> None:
    source = "import time\nfor i in range(20):\n    print(i, flush=True)\n    time.sleep(1)"
    path = server.write("twenty.ipynb", source)
    page = open_page("twenty.ipynb")
    wait_heard(server, page)
    began = time.monotonic()
    begin_run(page, 0)
    page.wait_for_timeout(2_000)
    page.close()
    wait_for(lambda: read_saved(path)[0]["execution_count"] == 1, "its end", 40)
    assert 18 < time.monotonic() - began < 30
    page = open_page("twenty.ipynb")
    found = cells(page)["a"]
    assert (texts(found), found["count"]) == ("".join(f"{i}\n" for i in range(20)), 1)
