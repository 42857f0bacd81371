"""One edit of one notebook, for the harness to run under strace.

    python -c "from tests.faults.worker import main; main()" OPERATION SIZE PATH

A `chdir` to a path that does not exist stands before and after the edit, so that the harness
finds the system calls of the edit among those of the interpreter. The last line of stdout is
`ok`, or the code of the error and its message; an error without a code is `UNNAMED`.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import thread
from contextlib import suppress
from pathlib import Path
from typing import Any

import cellwright
from cellwright.document import files

MARKER = "chdir"
START = "/cellwright-fault-marker/start"
END = "/cellwright-fault-marker/end"
SIZES = {"3 cells": 0, "200 kB": 200_000, "3 MB": 3_000_000}
OPERATIONS = ("replace", "insert", "delete", "metadata", "create")
WAYS = {"through a link": "3 cells", "short writes": "3 cells", "in a thread": "3 MB"}
IN_PLACE = "in place"  # how not to save: the harness must notice

_EDITS: dict[str, dict[str, Any]] = {
    "replace": {"op": "replace", "cell": 1, "source": "new = 'source'\nprint(new)"},
    "insert": {"op": "insert", "after": 0, "source": "# a new cell", "id": "inserted"},
    "delete": {"op": "delete", "cell": 1},
    "metadata": {"op": "set_metadata", "metadata": {"title": "Faults", "more": {"n": 1}}},
}


def edit_of(operation: str, size: int) -> dict[str, Any]:
    """The edit that an operation makes; the same one every time, so that its bytes are known."""
    if operation == "create":
        source = f"{'x = 1':79}\n" * max(1, size // 90)
        return {"op": "insert", "source": source, "id": "created"}
    return _EDITS.get(operation, _EDITS["replace"])


def main() -> None:
    """Do what the command line says, and report it."""
    operation, size, path = sys.argv[1:]
    edit = edit_of(operation, int(size))
    _warm_up(edit, path)
    if operation == "short writes":
        _write_little_at_a_time()
    if operation != "in a thread":
        # strace counts for each thread apart, and so cannot tell the third `openat` of one from
        # that of another; only calls that no other thread makes can be hit there.
        files._LARGE = sys.maxsize
    _mark(START)
    try:
        if operation == "create":
            cellwright.edit(path, edit, create=True)
        else:
            notebook = cellwright.read(path)
            notebook.apply([edit])
            if operation == IN_PLACE:
                Path(path).write_bytes(notebook.to_bytes())
            else:
                cellwright.write(notebook)
        said = "ok"
    except cellwright.CellwrightError as error:
        said = f"{error.code} {error}"
    except Exception as error:  # noqa: BLE001  # an error that slipped through is a finding
        said = f"UNNAMED {type(error).__name__}: {error}"
    _mark(END)
    print(said.replace("\n", "\\n"))


def _warm_up(edit: dict[str, Any], path: str) -> None:
    """Import all that the edit needs, so that no fault hits an import instead of the save."""
    file = Path(path)
    notebook = cellwright.Notebook(file.read_bytes()) if file.exists() else cellwright.Notebook()
    notebook.apply([edit])
    _ = cellwright.read, cellwright.write, cellwright.edit
    _ = notebook.revision, thread.ThreadPoolExecutor


def _write_little_at_a_time() -> None:
    """Make every write a short one that really writes; strace can only pretend to have written."""
    writev = os.writev

    def short(descriptor: int, buffers: list[memoryview]) -> int:
        first = memoryview(buffers[0])
        return writev(descriptor, [first[: max(1, len(first) // 2)]])

    os.writev = short  # type: ignore[assignment]


def _mark(path: str) -> None:
    with suppress(OSError):
        os.chdir(path)  # a call that nothing else here makes, and the same one everywhere
