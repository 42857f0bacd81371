"""A tab that is opened on a notebook whose kernel the engine runs already."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import LAB, PANEL, Server, cells, keep_picture, run_cell, texts
from tests.browser.test_runs import begin_run
from tests.engines import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(180), pytest.mark.all]

FOREVER = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.02)"


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


def test_a_tab_without_a_kernel_uses_the_one_in_which_an_agent_runs_the_notebook(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """Or the person's next run would start a second one, without the variables."""
    server.write("later.ipynb", "x = 41", "x + 1")
    page = open_page("later.ipynb")
    page.evaluate(f"async () => await {PANEL}.sessionContext.shutdown()")
    book = agent.open("later.ipynb")
    assert book.run(["a"]).ok, "the page said at once that its kernel is gone"
    wait_idle(page)
    assert texts(run_cell(page, 1)) == "42"
    (session,) = [each for each in agent.sessions() if each.session.endswith("later.ipynb")]
    assert cells(page)["b"]["count"] == 2
    assert book.run(["b"]).ok
    assert [each.pid for each in agent.sessions() if each.session == session.session] == [
        session.pid
    ]


@pytest.mark.parametrize("began", ["tab", "engine"])
def test_input_goes_to_the_one_who_ran_the_cell_and_widgets_of_an_agent_are_in_the_tab(
    server: Server, open_page: OpenPage, agent: Any, began: str
) -> None:
    """In a kernel of the tab, which the engine uses too, and in one of the engine."""
    widget = "import ipywidgets\nslider = ipywidgets.IntSlider(3)\nslider"
    server.write(
        f"ask-{began}.ipynb", "w = input('who? ')\nprint('it is', w)", widget, "slider.value"
    )
    book = agent.open(f"ask-{began}.ipynb")
    if began == "engine":
        assert not book.run(["a"], kernel=str(LAB / "python")).ok
    page = open_page(f"ask-{began}.ipynb")
    box = page.locator(".jp-Stdin-input")
    # The agent's own: its answer, or an error at once; the person is not asked.
    (refused,) = book.run(["a"])
    assert refused.status == "error"
    assert "StdinNotImplementedError" in str(cells(page)["a"]["outputs"])
    assert book.run(["a"], answers=["the agent"]).ok
    assert "it is the agent" in texts(cells(page)["a"])
    assert box.count() == 0
    # The person's own: the box in the page.
    page.evaluate(
        f"""() => {{
            {PANEL}.content.activeCellIndex = 0;
            window.done = window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    box.wait_for()
    box.fill("ada")
    box.press("Enter")
    page.evaluate("async () => { await window.done }")
    assert "it is ada" in texts(cells(page)["a"])

    assert book.run(["b"]).ok
    handle = page.locator(".jp-Cell .widget-slider .noUi-handle")
    handle.wait_for(timeout=60_000)
    keep_picture(page, f"widget-{began}")
    handle.focus()
    page.keyboard.press("ArrowRight")
    wait_for(lambda: book.run(["c"])[0].outputs[0]["data"]["text/plain"] == "4", "the slider")


OTHER_VERSION = """
import asyncio, logging, sys
from types import SimpleNamespace as Facts
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from cellwright.server.kernels import EngineKernels

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
asked = []

class OtherManager(AsyncMappingKernelManager):
    async def start_kernel(self, **more):
        raise TypeError("start_kernel() takes other arguments")

async def list_sessions():
    return []

async def main():
    sessions = Facts(list_sessions=list_sessions)
    app = Facts(session_manager=sessions, web_app=Facts(settings={"server_root_dir": "/root-of-it"}))
    kernels = EngineKernels(app, OtherManager())

    async def ask(method):
        asked.append(method)
        found = {"id": "k", "name": "python3", "connection_file": "/nowhere"}
        return {"kernels": {"/root-of-it/nb.ipynb": found}}

    kernels.ask = ask
    kernels.attach()
    print(await sessions.list_sessions(), await sessions.list_sessions(), asked)

asyncio.run(main())
"""


def test_a_jupyter_server_that_cannot_use_kernels_of_the_engine_says_so_once() -> None:
    """As another version, whose manager of kernels is called otherwise; its pages still open."""
    done = subprocess.run(
        [str(LAB / "python"), "-P", "-c", OTHER_VERSION], capture_output=True, text=True, check=True
    )
    warning, answers = done.stdout.splitlines()
    assert warning.startswith("WARNING Jupyter Server 2.")
    assert "kernels of their own here: TypeError: start_kernel() takes other" in warning
    assert answers == "[] [] ['kernels']"
    assert done.stderr == ""
