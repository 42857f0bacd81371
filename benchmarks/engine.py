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

from benchmarks.cold_start import COMMAND
from benchmarks.raw_client import RawClient
from benchmarks.tables import compare, judge
from cellwright.engine import connect
from cellwright.engine.client import EngineApi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cellwright import Workspace

CELL = "1+1"
MANY = 300
HERE = Path(__file__).parent.parent
RAW = "raw jupyter_client"
NOTHING = "python -c pass"
PLACES = ("CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR", "STATE_HOME")
MOST_SECONDS = 0.5
MOST_MEGABYTES = 64


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    with tempfile.TemporaryDirectory(prefix="cw") as name, engine_in(Path(name)) as workspace:
        folder = Path(name)
        missed = _cells(folder, workspace, 30 if quick else 200)
        missed += _many(folder, workspace, 2 if quick else 5)
        missed += _first(folder, workspace, 3 if quick else 10)
        missed += _processes(folder, workspace, 5 if quick else 15)
        missed += _large(folder, workspace, 3 if quick else 7)
        missed += _prints(folder, workspace, 100 if quick else 1000)
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
        "eval, ipykernel": (RAW, 1.0),
        "eval, runner": (RAW, 1.0),
        "run, saved": (RAW, 1.6),
    }
    title = f"One cell `{CELL}` through the engine's socket · {rounds} rounds"
    return compare(title, rows, RAW, goals)


def _many(folder: Path, workspace: Workspace, rounds: int) -> list[str]:
    """Many short cells in one run, each saved in the end, against nbclient, which saves nothing."""
    path = folder / "many.ipynb"
    _notebook(path, *(_code(f"c{number}", CELL) for number in range(MANY)))
    book = workspace.open("many.ipynb")
    rows: dict[str, list[float]] = {"nbclient": [], "run, saved": []}

    def save() -> None:
        assert all(done.saved for done in book.run())

    words = [os.environ["CELLWRIGHT_BENCH_RIVALS"], "-m", "benchmarks.nbclient_rival", str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE
    ) as rival:
        assert rival.stdin is not None
        assert rival.stdout is not None
        rival.stdout.readline()  # its kernel is there
        book.run(["c0"])
        for _ in range(rounds):
            print(file=rival.stdin, flush=True)
            rows["nbclient"].append(float(rival.stdout.readline()) / MANY)
            rows["run, saved"].append(_timed(save) / MANY)
        rival.stdin.close()
    counts = {cell["execution_count"] for cell in json.loads(path.read_bytes())["cells"]}
    assert len(counts) == MANY, "a cell is not in the file"
    goals = {"run, saved": ("nbclient", 1.1)}
    return compare(f"Each of {MANY} cells of one run · {rounds} rounds", rows, "nbclient", goals)


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
    goals = {"first cell, spare": ("a warm cell", 2.0)}
    return compare(f"The first cell of a notebook · {rounds} rounds", rows, "a warm cell", goals)


def _processes(folder: Path, workspace: Workspace, rounds: int) -> list[str]:
    _notebook(folder / "process.ipynb", _code("a", CELL))
    workspace.open("process.ipynb").run(["a"])
    commands = {
        NOTHING: ["-c", "pass"],
        "cellwright run NB CELL": [COMMAND, "run", "process.ipynb", "a"],
        "cellwright eval CODE": [COMMAND, "eval", CELL],
    }
    rows: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, words in commands.items():
            milliseconds = _cpu(words)
            if turn:
                rows[name].append(milliseconds)
    goals = {"cellwright run NB CELL": (NOTHING, 6.0), "cellwright eval CODE": (NOTHING, 10.0)}
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


def _prints(folder: Path, workspace: Workspace, megabytes: int) -> list[str]:
    """A flood of output: in the runner beside a pipe, in a notebook beside jupyter_client."""
    assert isinstance(workspace.api, EngineApi)
    engine = workspace.api.call_engine("status")["pid"]
    code = f"line = 'x' * 99\nfor _ in range({megabytes * 10_000}): print(line)"
    _notebook(folder / "flood.ipynb", _code("a", "print('x' * 200_000)"), _code("b", code))
    book = workspace.open("flood.ipynb")
    book.run(["a"])
    workspace.eval(["print('x' * 200_000)"], session="flood")
    raw = RawClient(str(folder))
    rows: dict[str, list[float]] = {}
    missed: list[str] = []

    def drain() -> None:
        words = [sys.executable, "-c", code]
        with subprocess.Popen(words, stdout=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout is not None
            while process.stdout.read(2**16):
                pass

    def evaluate() -> None:
        (cell,) = workspace.eval([code], session="flood", timeout=0).cells
        assert cell.total_bytes == megabytes * 1_000_000, cell

    def save() -> None:
        (done,) = book.run(["b"])
        assert done.saved, done

    methods: dict[str, Callable[[], Any]] = {
        "a raw pipe": drain,
        "eval, runner": evaluate,
        RAW: lambda: raw.run(code),
        "run, saved": save,
    }
    for name, work in methods.items():
        before = _peak(engine)
        rows[name] = [_timed(work)]
        if name in ("eval, runner", "run, saved"):
            what = f"{megabytes} MB of prints: {name}, memory of the engine"
            words, late = judge(what, _peak(engine) - before, MOST_MEGABYTES, " MB")
            print(f"{what}   goal + {words}")
            missed += late
    raw.close()
    goals = {"eval, runner": ("a raw pipe", 1.1), "run, saved": (RAW, 1.0)}
    return missed + compare(f"{megabytes} MB of prints", rows, "a raw pipe", goals)


def _peak(pid: int) -> float:
    """The most memory that a process ever had, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError


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
    words, late = judge(f"{size:.0f} MB: edit and run one cell", median, MOST_SECONDS, " s")
    print(f"edit and run one cell        {median:9.2f} s   (min {min(times):.2f})   goal {words}")
    return late
