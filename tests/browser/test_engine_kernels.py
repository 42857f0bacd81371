"""A tab that is opened on a notebook whose kernel the engine runs already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, run_cell, texts
from tests.engines import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(180), pytest.mark.all]

FOREVER = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.02)"


def begin_run(page: Page, index: int) -> None:
    page.evaluate(
        f"""() => {{
            {PANEL}.content.activeCellIndex = {index};
            window.done = window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    page.wait_for_function(f"() => {PANEL}.content.model.cells.get({index}).outputs.length > 0")


def wait_idle(page: Page) -> None:
    page.wait_for_function(f"() => {PANEL}.sessionContext.session?.kernel?.status === 'idle'")


def test_a_tab_uses_the_kernel_of_the_engine_and_asks_the_engine_to_interrupt_and_restart_it(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    server.write("lent.ipynb", "x = 41", "x + 1", FOREVER, "'x' in globals()")
    book = agent.open("lent.ipynb")
    assert book.run(["a"]).ok
    (session,) = [each for each in agent.sessions() if each.session.endswith("lent.ipynb")]
    page = open_page("lent.ipynb")
    assert texts(run_cell(page, 1)) == "42", "the tab has the kernel in which the agent ran"
    assert book.run(["b"]).ok
    assert cells(page)["b"]["count"] == 3
    assert [each.pid for each in agent.sessions() if each.session == session.session] == [
        session.pid
    ]
    states = {cell.cell: cell.state for cell in book.stale().cells}
    assert (states["a"], states["b"]) == ("fresh", "fresh"), "one life of one kernel"

    # The person interrupts their own cell, and then one of the agent.
    begin_run(page, 2)
    interrupt = f"async () => await {PANEL}.sessionContext.session.kernel.interrupt()"
    page.evaluate(interrupt)
    page.evaluate("async () => { await window.done }")
    assert "KeyboardInterrupt" in str(cells(page)["c"]["outputs"])
    run = book.run(["c"], detach=0.0)
    page.wait_for_function(
        f"() => {PANEL}.content.model.cells.get(2).outputs.toJSON()[0]?.text?.startsWith?.('begun')"
    )
    page.evaluate(interrupt)
    assert agent.attach(run.run).state == "done"

    # The person restarts it, and then the agent: both use the new one.
    page.evaluate(f"async () => await {PANEL}.sessionContext.session.kernel.restart()")
    assert texts(run_cell(page, 3)) == "False"
    assert book.run(["a"]).ok
    assert texts(run_cell(page, 1)) == "42"
    kernel = page.evaluate(f"() => {PANEL}.sessionContext.session.kernel.id")
    agent.kernel("restart", session.session)
    page.wait_for_function(f"() => {PANEL}.sessionContext.session.kernel.status !== 'idle'")
    wait_idle(page)
    assert texts(run_cell(page, 3)) == "False"
    assert page.evaluate(f"() => {PANEL}.sessionContext.session.kernel.id") == kernel

    # It is shut down here, and gone there.
    page.evaluate(f"async () => await {PANEL}.sessionContext.shutdown()")
    wait_for(lambda: session.session not in [each.session for each in agent.sessions()], "its end")
