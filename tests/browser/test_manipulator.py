"""Kernels that edit and run their own notebook, which is open in a tab."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, run_cell, texts
from tests.conftest import ROOT
from tests.engines import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    OpenPage = Callable[[str], Page]

pytestmark = pytest.mark.timeout(300)

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


FILLED = ("F-13", "F-34")


@pytest.mark.all
@pytest.mark.parametrize("pages", [1, 2])
def test_the_tab_passes_the_conformance_kit_by_real_messages(
    server: Server, open_page: OpenPage, pages: int
) -> None:
    """The kit runs in a notebook that is open in the page, in its kernel, also with two pages."""
    pass_kit(server, open_page, f"kit-{pages}", pages)


@pytest.fixture
def oldest(server: Server) -> Iterator[str]:
    """Return the name of a kernel of the oldest ipykernel, which the server has for this test only.

    With two kernels for Python, JupyterLab asks which one a notebook of another kernel is to have.
    """
    python = ROOT / ".dev" / "ipykernel6" / "bin" / "python"
    assert python.exists(), "`./dev test --all` makes it"
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "ipykernel 6.29",
        "language": "python",
        "env": {"PYTHONPATH": str(ROOT / "src")},
    }
    place = server.folder.parent / "jupyter-data" / "kernels" / "oldest"
    place.mkdir(parents=True, exist_ok=True)
    (place / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    yield place.name
    shutil.rmtree(place)


@pytest.mark.all
@pytest.mark.parametrize("pages", [1, 2])
def test_the_tab_passes_the_conformance_kit_with_the_oldest_ipykernel(
    server: Server, open_page: OpenPage, oldest: str, pages: int
) -> None:
    """Its threads speak in the name of whatever request came last, from any page."""
    page = pass_kit(server, open_page, f"kit-oldest-{pages}", pages, kernel=oldest)
    page.evaluate(
        f"""() => {{ {PANEL}.content.model.sharedModel.insertCell(0, {{
            cell_type: 'code', source: 'import ipykernel; print(ipykernel.__version__)'}}) }}"""
    )
    assert texts(run_cell(page, 0)).startswith("6.29.")


def pass_kit(
    server: Server, open_page: OpenPage, name: str, pages: int, kernel: str = "python3"
) -> Page:
    """Let the kit run in a notebook that is open in pages, and return the first of them."""
    results = server.folder / f"{name}.json"
    server.write(
        f"{name}.ipynb",
        f"from cellwright.protocol.conformance.inside import start\nstart({str(results)!r}, after=0.2)",
        kernel=kernel,
    )
    page = open_page(f"{name}.ipynb")
    for _ in range(pages - 1):
        other = open_page(f"{name}.ipynb")
        # As one that is being loaded: it asks the kernel what it is, and must not answer for it.
        other.evaluate(
            f"() => {{ setInterval(() => {PANEL}.sessionContext.session.kernel.requestKernelInfo(), 400) }}"
        )
    page.bring_to_front()
    page.evaluate(f"() => {PANEL}.content.node.focus()")
    run_cell(page, 0)
    wait_for(results.exists, "the kit", 240)
    rows = json.loads(results.read_text())["rows"]
    # These two begin with no cells at all, and JupyterLab adds an empty one to such a notebook.
    failed = {row["id"]: row["detail"] for row in rows if row["verdict"] == "failed"}
    assert failed.keys() <= set(FILLED), failed
    assert all(", ''], not [" in detail for detail in failed.values())
    # Whether there is a notebook, and in which mode, cannot be changed from inside it.
    skipped = [row["id"] for row in rows if row["verdict"] == "skipped"]
    assert skipped == ["F-60", "F-61", "F-62"]
    assert len(rows) > 40
    return page
