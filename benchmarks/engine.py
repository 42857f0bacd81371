"""What a cell costs through the engine: its socket, its durable save, its process, a large file."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.raw_client import RawClient
from benchmarks.tables import compare
from cellwright.engine import connect
from cellwright.engine.client import EngineApi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cellwright import Workspace

CELL = "1+1"
RAW = "raw jupyter_client"
NOTHING = "python -c pass"
PLACES = ("CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR", "STATE_HOME")
MOST_SECONDS = 0.5


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    with tempfile.TemporaryDirectory(prefix="cw") as name, engine_in(Path(name)) as workspace:
        folder = Path(name)
        missed = _cells(folder, workspace, 30 if quick else 200)
        missed += _first(folder, workspace, 3 if quick else 10)
        missed += _processes(folder, workspace, 5 if quick else 15)
        missed += _large(folder, workspace, 3 if quick else 7)
    return missed


@contextlib.contextmanager
def engine_in(folder: Path) -> Iterator[Workspace]:
    """An engine of its own, in places of its own."""
    for place in PLACES:
        (folder / place).mkdir(mode=0o700)
        os.environ[f"XDG_{place}"] = str(folder / place)
    os.environ |= {"CELLWRIGHT_ENGINE": "always", "IPYTHONDIR": str(folder)}
    os.environ["JUPYTER_DATA_DIR"] = str(folder / "jupyter")  # with no notary, at first
    os.environ.pop("CELLWRIGHT_RUNTIME_DIR", None)
    before = Path.cwd()
    os.chdir(folder)
    workspace = connect(actor="bench:engine")
    assert workspace is not None
    try:
        yield workspace
    finally:
        assert isinstance(workspace.api, EngineApi)
        workspace.api.call_engine("stop")
        workspace.close()
        os.chdir(before)


def _notebook(path: Path, *cells: dict[str, Any], indent: int | None = 1) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(content, indent=indent) + "\n", encoding="utf-8")


def _code(name: str, source: str, outputs: Any = ()) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {},
        "outputs": list(outputs),
        "source": source.splitlines(keepends=True),
    }


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _cells(folder: Path, workspace: Workspace, rounds: int) -> list[str]:
    _notebook(folder / "small.ipynb", *(_code(f"c{number}", CELL) for number in range(20)))
    book = workspace.open("small.ipynb")
    raw = RawClient(str(folder))

    def evaluate(**how: Any) -> None:
        answer = workspace.eval([CELL], **how)
        assert answer.cells[0].text == "2\n", answer

    def save() -> None:
        (done,) = book.run(["c7"])
        assert done.saved, done

    methods: dict[str, Callable[[], Any]] = {
        RAW: lambda: raw.run(CELL),
        "eval, ipykernel": lambda: evaluate(kernel="python3", session="jupyter"),
        "eval, runner": lambda: evaluate(session="runner"),
        "run, saved": save,
    }
    rows: dict[str, list[float]] = {name: [] for name in methods}
    for work in methods.values():
        for _ in range(5):
            work()
    order = list(methods)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            rows[name].append(_timed(methods[name]))
    raw.close()
    _have_notary(folder)
    for _ in range(rounds // 2):
        rows.setdefault("run, saved, with a notary", []).append(_timed(save))
    shutil.rmtree(folder / "jupyter")
    goals = {
        "eval, ipykernel": (RAW, 1.2),
        "eval, runner": (RAW, 1.2),
        "run, saved": (RAW, 2.0),
    }
    title = f"One cell `{CELL}` through the engine's socket · {rounds} rounds"
    return compare(title, rows, RAW, goals)


def _have_notary(folder: Path) -> None:
    """Jupyter's, which is asked after every run whether the user trusts the notebook."""
    from nbformat import v4
    from nbformat.sign import NotebookNotary

    (folder / "jupyter").mkdir()
    notary: Any = NotebookNotary(data_dir=str(folder / "jupyter"))
    notary.sign(v4.new_notebook())
    notary.store.close()


def _first(folder: Path, workspace: Workspace, rounds: int) -> list[str]:
    rows: dict[str, list[float]] = {"a warm cell": [], "first cell, spare": []}
    for number in range(rounds):
        path = folder / f"new-{number}.ipynb"
        _notebook(path, _code("a", CELL))
        time.sleep(2.5)  # for the spare to be ready
        book = workspace.open(path)
        rows["first cell, spare"].append(_timed(partial(book.run, ["a"])))
        for _ in range(5):
            rows["a warm cell"].append(_timed(partial(book.run, ["a"])))
        workspace.kernel("shutdown", str(path))
    goals = {"first cell, spare": ("a warm cell", 5.0)}
    return compare(f"The first cell of a notebook · {rounds} rounds", rows, "a warm cell", goals)


def _processes(folder: Path, workspace: Workspace, rounds: int) -> list[str]:
    _notebook(folder / "process.ipynb", _code("a", CELL))
    workspace.open("process.ipynb").run(["a"])
    module = ["-m", "cellwright"]
    commands = {
        NOTHING: ["-c", "pass"],
        "cellwright run NB CELL": [*module, "run", "process.ipynb", "a"],
        "cellwright eval CODE": [*module, "eval", CELL],
    }
    rows: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, words in commands.items():
            milliseconds = _cpu(words)
            if turn:
                rows[name].append(milliseconds)
    goals = dict.fromkeys(list(commands)[1:], (NOTHING, 10.0))
    return compare(f"A command, warm engine · CPU time · {rounds} rounds", rows, NOTHING, goals)


def _cpu(words: list[str]) -> float:
    """CPU time of a process; what the engine does meanwhile is not its own."""
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def _large(folder: Path, workspace: Workspace, rounds: int) -> list[str]:
    picture = {"data": {"image/png": "A" * 500_000}, "metadata": {}, "output_type": "display_data"}
    path = folder / "large.ipynb"
    _notebook(path, *(_code(f"c{number}", CELL, [picture]) for number in range(100)))
    book = workspace.open("large.ipynb")
    book.run(["c50"])
    times = []
    for number in range(rounds):
        edit = {"op": "replace", "cell": "c50", "source": f"{number} + 1"}
        times.append(_timed(partial(book.edit, [edit], run="changed")) / 1000)
    assert book.read().cells[50].source == f"{rounds - 1} + 1"
    median = statistics.median(times)
    size = path.stat().st_size / 1e6
    print(f"\nA notebook of {size:.0f} MB · {rounds} rounds")
    print(f"edit and run one cell        {median:9.2f} s   (min {min(times):.2f})", end="")
    print(f"   goal {median:.2f} ≤ {MOST_SECONDS} s")
    if median > MOST_SECONDS:
        return [f"{size:.0f} MB: edit and run takes {median:.2f} s, more than {MOST_SECONDS}"]
    return []
