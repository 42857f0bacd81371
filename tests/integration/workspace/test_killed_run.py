"""A process that is killed while a cell runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import nbformat
import pytest

from tests.unit.workspace.memory import make_notebook, texts

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import Book, Workspace

PROGRAM = """
import cellwright
with cellwright.Workspace('.') as workspace:
    workspace.open('long.ipynb').run()
"""


def kinds(book: Book) -> list[tuple[str, str]]:
    return [(entry.kind, entry.label) for entry in book.log()]


@pytest.mark.timeout(120)
def test_whoever_is_killed_while_a_cell_runs_leaves_a_valid_file_and_an_honest_history(
    folder: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "0.02")
    source = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    make_notebook(folder, "x = 1", source, name="long.ipynb")
    path = folder / "long.ipynb"
    path.write_text(path.read_text().replace('"script"', '"python"'))
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=folder)
    book = workspace.open("long.ipynb")
    try:
        wait = threading.Event()
        while texts(book, 1) != "begun\n":
            assert process.poll() is None
            wait.wait(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    nbformat.validate(nbformat.read(path, as_version=4))
    assert kinds(book) == [("run", "run c1"), ("run", "run c0")]
    assert [(row.cell, row.status) for row in book.executions()] == [
        ("c0", "ok"),
        ("c1", "running"),
    ]
    cells = book.read(stale=False).cells
    assert [cell.status for cell in cells] == ["ok", "died"], "at once, with no run in between"
    (done,) = book.run(["c0"])
    assert done.status == "ok"
    assert any("lost" in note for note in done.notes), "the state of the dead kernel"
    assert "outside" not in [kind for kind, _ in kinds(book)]


@pytest.mark.timeout(120)
def test_whoever_is_killed_before_short_cells_landed_is_told_which_run_was_lost(
    folder: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "600")
    last = "import pathlib, time\npathlib.Path('reached').touch()\ntime.sleep(600)"
    make_notebook(folder, "print('zero')", "print('one')", "print('two')", last, name="long.ipynb")
    path = folder / "long.ipynb"
    path.write_text(path.read_text().replace('"script"', '"python"'))
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=folder)
    book = workspace.open("long.ipynb")
    try:
        wait = threading.Event()
        while not (folder / "reached").exists():
            assert process.poll() is None
            wait.wait(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    nbformat.validate(nbformat.read(path, as_version=4))
    # The first of a kernel lands at once; the others were to land together, later.
    assert [texts(book, place) for place in range(4)] == ["zero\n", "", "", ""]
    cells = book.read(stale=False).cells
    assert [cell.status for cell in cells] == ["ok", "died", "never", "never"]
    done = book.run(["c0", "c1"])
    assert any("lost" in note for note in done[0].notes), "the state of the dead kernel"
    assert [texts(book, place) for place in range(2)] == ["zero\n", "one\n"]
