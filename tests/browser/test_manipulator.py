"""Kernels that edit and run their own notebook, which is open in a tab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, run_cell, texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[[str], Page]

pytestmark = pytest.mark.timeout(120)

EDITS = """\
from cellwright_kernel import notebook
notebook.insert_code('made = 6 * 7\\nprint("ran", made)', at=1)
print(len(notebook.cells))
"""
RUNS = """\
from cellwright_kernel import NotebookError
notebook.run(1)
print('here', made)
try:
    notebook.run(3)
except NotebookError as error:
    print(error.code)
"""


def test_a_kernel_edits_and_runs_its_notebook_in_the_tab_once(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("kernel.ipynb", EDITS, RUNS, "1 / 0", "3")
    before = path.read_bytes()
    page, other = open_page("kernel.ipynb"), open_page("kernel.ipynb")
    page.bring_to_front()
    page.evaluate(f"() => {PANEL}.content.node.focus()")
    assert texts(run_cell(page, 0)) == "5\n"
    found = list(cells(page).values())
    assert [cell["source"] for cell in found].count('made = 6 * 7\nprint("ran", made)') == 1
    assert (len(found), len(cells(other))) == (5, 4)
    assert page.evaluate(f"() => {PANEL}.context.model.dirty")
    assert path.read_bytes() == before, "saving is the person's"
    # Its cells run inside the one that waits, in the kernel of the tab; not the one that asks.
    ran = run_cell(page, 2)
    assert texts(ran) == "here 42\nEXECUTION_FAILED\n"
    assert texts(list(cells(page).values())[1]) == "ran 42\n"
    # An engine's own cell is answered by the engine, and the comm is still open.
    page.evaluate(
        f"""() => {PANEL}.content.model.sharedModel.insertCell(5, {{
            cell_type: 'code', id: 'more', source: 'notebook.insert_code("again", at=0)'}})"""
    )
    assert agent.open("kernel.ipynb").run(["more"]).ok
    assert [cell["source"] for cell in cells(page).values()].count("again") == 1
