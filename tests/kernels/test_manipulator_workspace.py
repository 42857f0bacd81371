"""Kernels that edit their own notebook, where Cellwright runs it: in process, and in the engine."""

from __future__ import annotations

import json
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright.cli.main import main
from tests.conftest import ROOT
from tests.engines import engine_of_its_own, wait_for
from tests.unit.cli.calling import process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)

IMPORT = "from cellwright_kernel import markdown, notebook\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    return tmp_path


@pytest.fixture
def workspace(folder: Path) -> Iterator[cellwright.Workspace]:
    with cellwright.Workspace(str(folder)) as made:
        yield made


def write(path: Path, *sources: str) -> None:
    """Make a notebook with the cells c0, c1 and so on."""
    made = cellwright.Notebook()
    cells = [{"op": "insert", "source": s, "id": f"c{n}"} for n, s in enumerate(sources)]
    made.apply(cells)
    cellwright.write(made, str(path))


def sources(path: Path) -> list[str]:
    return [cell.source for cell in cellwright.read(str(path)).cells]


def conformance(results: Path, only: str = "") -> str:
    """A cell that tries statements about frontends once it is over; all of them by default."""
    start = "from cellwright.protocol.conformance.inside import start"
    return f"{start}\nstart({str(results)!r}, after=0.2, only={only.split()!r})"


def require_all(results: Path, only: str = "") -> None:
    wait_for(results.exists, "the table", 60)
    rows = json.loads(results.read_text())["rows"]
    assert [row for row in rows if row["verdict"] == "failed"] == []
    if only:
        assert [row["id"] for row in rows] == only.split()
        return
    assert [row["id"] for row in rows if row["verdict"] == "skipped"] == ["F-60", "F-61", "F-62"]
    assert len(rows) > 40


def test_every_statement_holds_for_a_file_in_process(
    folder: Path, workspace: cellwright.Workspace
) -> None:
    write(folder / "nb.ipynb", conformance(folder / "results.json"))
    workspace.open("nb.ipynb").run()
    require_all(folder / "results.json")
    assert cellwright.read(str(folder / "nb.ipynb")).validate() is None


@pytest.mark.parametrize(
    "only",
    [
        pytest.param("F-01 F-13 F-32 F-41 F-52", id="some"),
        pytest.param("", id="all of them", marks=pytest.mark.all),
    ],
)
def test_every_statement_holds_for_a_file_in_the_engine(
    folder: Path, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    write(folder / "nb.ipynb", conformance(folder / "results.json", only))
    with engine_of_its_own(monkeypatch):
        assert process("run", "nb.ipynb").code == 0
        require_all(folder / "results.json", only)
    assert cellwright.read(str(folder / "nb.ipynb")).validate() is None


def test_the_report_writes_itself_into_the_file(folder: Path) -> None:
    shutil.copy(ROOT / "examples" / "report.ipynb", folder)
    before = cellwright.read("report.ipynb")
    assert main(["run", "report.ipynb", "--quiet"]) == 0
    after = cellwright.read("report.ipynb")
    assert after.cells[0].raw == before.cells[0].raw
    assert [cell.type for cell in after.cells[4:]] == ["markdown", "code"] * 3
    assert [cell.execution_count for cell in after.cells if cell.type == "code"] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    assert "Wed  12.4" in str(after.cells[5].to_dict()["outputs"])
    assert after.metadata["report"] == {"sections": 3, "cells": 10}
    assert after.validate() is None


def test_what_a_kernel_changes_is_on_disk_when_it_is_told_so_and_can_be_undone(
    folder: Path, workspace: cellwright.Workspace
) -> None:
    path = folder / "nb.ipynb"
    write(
        path,
        IMPORT
        + "import json\n"
        + "notebook.splice(1, 1, [markdown('# new')])\n"
        + "print([''.join(cell['source']) for cell in json.load(open('nb.ipynb'))['cells']][1:])",
        "old",
    )
    book = workspace.open("nb.ipynb")
    (ran,) = book.run(["c0"])
    assert ran.status == "ok"
    assert "['# new']" in json.dumps(cellwright.read(str(path)).cell("c0").to_dict()["outputs"])
    book.undo()
    assert sources(path)[1:] == ["old"]


def test_an_edit_by_somebody_else_meanwhile_is_kept(
    folder: Path, workspace: cellwright.Workspace
) -> None:
    path = folder / "nb.ipynb"
    write(
        path,
        IMPORT
        + "import pathlib, time\n"
        + "pathlib.Path('asked').touch()\n"
        + "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        + "notebook.insert_markdown('# by the kernel')",
        "x",
    )
    running = threading.Thread(target=lambda: workspace.open("nb.ipynb").run(["c0"]))
    running.start()
    try:
        wait_for((folder / "asked").exists, "the cell", 60)
        workspace.open("nb.ipynb").edit([{"op": "replace", "cell": "c1", "source": "by a person"}])
    finally:
        (folder / "go").touch()
        running.join(60)
    assert sources(path)[1:] == ["by a person", "# by the kernel"]


def test_a_failing_nested_cell_is_a_result_of_its_own(
    folder: Path, workspace: cellwright.Workspace
) -> None:
    write(
        folder / "nb.ipynb",
        IMPORT + "try:\n    notebook.run(1, 3)\nexcept Exception as error:\n    print(error)",
        "1 / 0",
        "'never'",
    )
    (ran,) = workspace.open("nb.ipynb").run(["c0"])
    assert ran.status == "ok"
    cells = [cell.to_dict() for cell in cellwright.read("nb.ipynb").cells]
    said = "".join(cells[0]["outputs"][0]["text"])
    assert said == "Cell execution failed at index 1: ZeroDivisionError\n"
    assert cells[1]["outputs"][0]["ename"] == "ZeroDivisionError"
    assert [cell["execution_count"] for cell in cells] == [1, 2, None]


def test_code_of_eval_has_no_notebook(workspace: cellwright.Workspace) -> None:
    code = (
        IMPORT
        + "try:\n    notebook.cell_count()\nexcept Exception as error:\n    print(error.code)"
    )
    answer: Any = workspace.eval([code], kernel="python3", timeout=30)
    assert answer.cells[0].text == "NO_ACTIVE_NOTEBOOK\n"


def test_cells_that_a_thread_asks_for_are_run_when_the_kernel_is_free(
    folder: Path, workspace: cellwright.Workspace
) -> None:
    path = folder / "nb.ipynb"
    write(path, IMPORT + "ran = notebook.futures.run(1); 'over'", "print('by the way')")
    (ran,) = workspace.open("nb.ipynb").run(["c0"])
    assert ran.status == "ok"

    def has_run() -> bool:
        return cellwright.read(str(path)).cell("c1").execution_count == 2

    wait_for(has_run, "its run", 30)


def test_an_interrupt_ends_the_nested_cell_and_the_one_around_it(
    folder: Path, workspace: cellwright.Workspace
) -> None:
    path = folder / "nb.ipynb"
    slow = "import pathlib, time\npathlib.Path('in').touch()\ntime.sleep(60)"
    write(path, IMPORT + "notebook.run(1); print('not reached')", slow, "6 * 7")
    found: list[Any] = []
    book = workspace.open("nb.ipynb")
    running = threading.Thread(target=lambda: found.extend(book.run(["c0"])))
    running.start()
    wait_for((folder / "in").exists, "the nested cell", 60)
    began = time.monotonic()
    workspace.kernel("interrupt", book.real)
    running.join(60)
    assert time.monotonic() - began < 30
    assert [ran.status for ran in found] == ["cancelled"]
    (after,) = book.run(["c2"])
    assert after.status == "ok"


def test_whoever_watches_hears_what_a_kernel_changes(
    folder: Path, workspace: cellwright.Workspace
) -> None:
    write(folder / "nb.ipynb", IMPORT + "notebook.insert_markdown('# new')")
    told: list[dict[str, Any]] = []
    enough = threading.Event()
    watching = threading.Thread(
        target=workspace.watch,
        args=("nb.ipynb",),
        kwargs={"progress": told.append, "until": enough.is_set},
    )
    watching.start()
    try:
        wait_for(lambda: bool(workspace.caller.hub.events._listeners), "the watcher")
        workspace.open("nb.ipynb").run(["c0"])
        wait_for(lambda: any(event.get("event") == "changed" for event in told), "the change")
    finally:
        enough.set()
        watching.join()
    changed = next(event for event in told if event["event"] == "changed")
    assert changed["notebook"] == str(folder.resolve() / "nb.ipynb")
    assert cellwright.read(folder / "nb.ipynb").cells[1].handle in changed["cells"]
