"""Ways to replace one cell's source in a notebook file, and a worker that times them.

Run as a script, it answers lines of JSON on stdin with lines of JSON on stdout, so that rivals
can live in an environment of their own and still be timed in turn with us.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from typing import Any

FLOOR_LIBRARY = os.environ.get("CELLWRIGHT_BENCH_FLOOR", "")


def new_source(turn: int) -> str:
    """A source that differs at every turn."""
    return f"y = {turn}\nprint(y, 'é')\nz = y + 1\n"


def cellwright_edit(path: str, cell: int, turn: int) -> None:
    """Every promise on: UTF-8 check, revisions before and after, lock, re-check, read-back."""
    import cellwright

    notebook = cellwright.read(path)
    change = notebook.apply(cellwright.Replace(cell, new_source(turn)))
    cellwright.write(notebook)
    if notebook.revision == change.before.snapshot.revision:
        raise AssertionError("the revision did not change")


def nbformat_edit(path: str, cell: int, turn: int) -> None:
    """The ordinary way: not lossless, not atomic, not durable."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.cells[cell].source = new_source(turn)
    nbformat.write(notebook, path)


def json_edit(path: str, cell: int, turn: int) -> None:
    """Load and dump with indent 1, as most agents' tools do."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        notebook = json.load(file)
    notebook["cells"][cell]["source"] = new_source(turn).splitlines(keepends=True)
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(notebook, file, indent=1, ensure_ascii=False)
        file.write("\n")


def orjson_edit(path: str, cell: int, turn: int) -> None:
    """The fastest JSON library; it cannot write indent 1."""
    import orjson  # type: ignore[import-not-found]  # lives in the rivals' environment

    with open(path, "rb") as file:  # noqa: PTH123
        notebook = orjson.loads(file.read())
    notebook["cells"][cell]["source"] = new_source(turn).splitlines(keepends=True)
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(orjson.dumps(notebook, option=orjson.OPT_INDENT_2))


def floor_edit(path: str, cell: int, turn: int, floor: str = FLOOR_LIBRARY) -> None:
    """A compiled scan, a splice, fsync and rename; it validates and checks nothing."""
    library = ctypes.CDLL(floor)
    library.find_source.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        data = file.read()
    span = (ctypes.c_size_t * 2)()
    if library.find_source(data, len(data), cell, span):
        raise AssertionError("the floor found no source")
    lines = [json.dumps(x, ensure_ascii=False) for x in new_source(turn).splitlines(keepends=True)]
    new = ("[\n    " + ",\n    ".join(lines) + "\n   ]").encode()
    view = memoryview(data)
    temp = path + ".tmp"
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.writev(descriptor, [view[: span[0]], new, view[span[1] :]])
    os.fsync(descriptor)
    os.close(descriptor)
    os.rename(temp, path)  # noqa: PTH104


METHODS = {
    "cellwright": cellwright_edit,
    "floor": floor_edit,
    "nbformat": nbformat_edit,
    "json": json_edit,
    "orjson": orjson_edit,
}


def peak_memory() -> int:
    """The most memory this process has had, in bytes."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def perform(order: dict[str, Any]) -> dict[str, float]:
    """Carry out one order: time an edit, and how much memory it needed beyond what there was."""
    method = METHODS[order["method"]]
    if order.get("warm"):
        method(order["warm"], order["cell"], 0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:  # noqa: PTH123
        reset.write("5")
    before = peak_memory()
    start = time.perf_counter()
    method(order["path"], order["cell"], order["turn"])
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": peak_memory() - before}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(perform(json.loads(line))), flush=True)
