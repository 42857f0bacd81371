"""The verbs on notebooks of every size: through a warm engine, on 10,000 cells, and as they grow.

A verb on 10,000 cells is held against what every program pays that reads a notebook: `json.load` of
the file, with none of our code in it. Until November 2026 the goal was twice our own lazy read
instead. That read decodes no cell, and takes a quarter of `json.load`, so that no answer with
every source in it could ever be within twice of it: the goal was put on another row, and is easier
to meet there. The old ratio is still printed in each line.

Run as a script, it does one verb in a process of its own and prints what that took.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.methods import floor_edit, new_source, peak_memory
from benchmarks.replace_cell import Sample, build_floor
from benchmarks.tables import compare, judge

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 10_000
SIZES = (100, 1_000, 10_000)
MOST_OF_FLOOR = 6.0
MOST_OF_READING = 2.0
MOST_EXPONENT = 1.05
FLOOR = "floor: scan, splice, fsync"
LOADING = "json.load of the file"
READING = "read and parse the file"
READING_CELLS = "the same, and all its cells"
READING_ALONE = "the same, own process"
SHOW = "show, first screen"


def _edit(book: Any, turn: int) -> object:
    return book.edit([{"op": "replace", "cell": 3, "source": new_source(turn)}])


VERBS: dict[str, Callable[[Any, int], object]] = {
    "read": lambda book, _: book.read(),
    "outline": lambda book, _: book.select("outline"),
    "stale": lambda book, _: book.stale(),
    "log": lambda book, _: book.log(),
    "edit": _edit,
    "undo": lambda book, _: book.undo(),
}


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    from benchmarks.engine import engine_in

    with tempfile.TemporaryDirectory(prefix="cw") as name:
        folder = Path(name)
        floor = build_floor(folder)
        with engine_in(folder) as workspace:
            missed = _small(folder, workspace, floor, 30 if quick else 200)
            missed += _many(folder, workspace, 2 if quick else 7)
        missed += _growth(folder, 2 if quick else 5)
    return missed


def _small(folder: Path, workspace: Any, floor: Path | None, rounds: int) -> list[str]:
    """One edit of 20 cells with journal, diff and answer, beside the compiled floor."""
    if floor is None:
        print("No C compiler: the edit through the engine is not judged")
        return []
    Sample("", 20, 300, 0, None, None).write(folder / "small.ipynb")
    book = workspace.open("small.ipynb")
    methods: dict[str, Callable[[int], object]] = {
        FLOOR: lambda turn: floor_edit(str(folder / "small.ipynb"), 10, turn, str(floor)),
        "edit, warm engine": lambda turn: _edit(book, turn),
    }
    rows = _interleave(methods, rounds)
    title = f"One edit of 20 cells through a warm engine · {rounds} rounds"
    return compare(title, rows, FLOOR, {"edit, warm engine": (FLOOR, MOST_OF_FLOOR)})


def _many(folder: Path, workspace: Any, rounds: int) -> list[str]:
    """Every verb on 10,000 cells, beside `json.load` of the file and our own read of it.

    Our own read decodes no cell; the row after it decodes all of them.
    """
    import cellwright

    path = folder / "many.ipynb"
    Sample("", MANY, 300, 0, None, None).write(path)
    book = workspace.open("many.ipynb")
    reading = ["-c", "import cellwright, sys; cellwright.read(sys.argv[1]).revision", str(path)]
    methods: dict[str, Callable[[int], object]] = {
        LOADING: lambda _: _load_json(path),
        READING: lambda _: cellwright.read(path).revision,
        READING_CELLS: lambda _: _read_cells(path),
        "read": lambda _: book.read(),
        "outline": lambda _: book.select("outline"),
        "log": lambda _: book.log(),
        "edit": lambda turn: _edit(book, turn),
        "stale, after an edit": lambda _: book.stale(),  # of another source in every round
        "stale, again": lambda _: book.stale(),
        "undo": lambda _: book.undo(),
        READING_ALONE: lambda _: subprocess.run([sys.executable, *reading], check=True),
        SHOW: lambda _: _show(path),
    }
    rows = _interleave(methods, rounds, fixed=True)
    names = ("read", "stale, after an edit", "stale, again", "log", "undo")
    goals = dict.fromkeys(names, (LOADING, MOST_OF_READING))
    goals[SHOW] = (READING_ALONE, MOST_OF_READING)  # both start a process
    title = f"Verbs on {MANY:,} cells, warm engine · {rounds} rounds"
    return compare(title, rows, LOADING, goals, also=READING)


def _load_json(path: Path) -> object:
    """Load the file as any program does."""
    with path.open(encoding="utf-8") as file:
        return json.load(file)


def _read_cells(path: Path) -> list[object]:
    """Decode what a program gets that reads a notebook, as it does with nbformat."""
    import cellwright

    cells = cellwright.read(path).cells
    return [(cell.source, cell.outputs, cell.execution_count, cell.metadata) for cell in cells]


def _show(path: Path) -> None:
    """Run `show` until its first screen is there."""
    words = [sys.executable, "-m", "cellwright", "show", str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        for _ in range(40):
            process.stdout.readline()
        process.kill()


def _interleave(
    methods: dict[str, Callable[[int], object]], rounds: int, *, fixed: bool = False
) -> dict[str, list[float]]:
    """Milliseconds of each method; in a random order, unless one needs the one before it."""
    rows: dict[str, list[float]] = {name: [] for name in methods}
    order = list(methods)
    for turn in range(rounds + 1):
        if not fixed:
            random.Random(turn).shuffle(order)
        for place, name in enumerate(order):
            began = time.perf_counter()
            methods[name](turn * len(order) + place)
            if turn:  # the first round imports and warms
                rows[name].append((time.perf_counter() - began) * 1000)
    return rows


def _growth(folder: Path, rounds: int) -> list[str]:
    """CPU time and memory of each verb at 1, 10 and 100 times the size, each in a new process."""
    print(f"\nGrowth, {' / '.join(f'{size:,}' for size in SIZES)} cells · {rounds} rounds, least")
    missed = []
    for name in VERBS:
        found = [[_alone(folder, name, size) for _ in range(rounds)] for size in SIZES]
        seconds = [min(each["seconds"] for each in rows) for rows in found]
        memory = [min(each["memory"] for each in rows) for rows in found]
        times = " / ".join(f"{each * 1000:.1f}" for each in seconds)
        sizes = " / ".join(f"{each / 1e6:.1f}" for each in memory)
        # A constant part hides in the small ones; growth is judged where there is most of it.
        exponent = math.log10(seconds[2] / seconds[1])
        more = math.log10(max(memory[2], 1e6) / max(memory[1], 1e6))
        verdict, late = judge(f"Growth of {name}: time, the power", exponent, MOST_EXPONENT)
        print(f"  {name:10} {times:>22} ms CPU, {sizes:>18} MB   time {verdict}", end="")
        missed += late
        verdict, late = judge(f"Growth of {name}: memory, the power", more, MOST_EXPONENT)
        print(f"   memory {verdict}")
        missed += late
    return missed


def _alone(folder: Path, verb: str, cells: int) -> dict[str, float]:
    path = folder / f"growth-{cells}.ipynb"
    if not path.exists():
        Sample("", cells, 300, 0, None, None).write(path)
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "XDG_STATE_HOME": state, "CELLWRIGHT_ENGINE": "never"}
        words = [sys.executable, "-m", "benchmarks.verbs", verb, str(path)]
        root = Path(__file__).parent.parent
        done = subprocess.run(words, check=True, env=environment, cwd=root, capture_output=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _perform(verb: str, path: str) -> dict[str, float]:
    """Do a verb once, after a small one has imported what it needs."""
    from cellwright import Workspace

    small = Path(path).with_name("warm.ipynb")
    Sample("", 20, 300, 0, None, None).write(small)
    with Workspace(os.path.dirname(path)) as workspace:  # noqa: PTH120  # beside the file
        for name in (str(small), path):
            book = workspace.open(name)
            if verb in ("undo", "log"):
                _edit(book, 1)
            before, began = peak_memory(), time.process_time()
            VERBS[verb](book, 2)
            seconds = time.process_time() - began
            memory = peak_memory() - before
    return {"seconds": seconds, "memory": memory}


if __name__ == "__main__":
    print(json.dumps(_perform(*sys.argv[1:])))
