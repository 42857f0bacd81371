"""What a person runs in a tab, beside an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, run_cell, texts
from tests.engines import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[[str], Page]

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
    found = wait_for(lambda: (r := book.executions()) and len(r) == 3 and r, "the records")
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
