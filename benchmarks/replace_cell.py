"""Replace one cell of a notebook file: us with every promise on, rivals, and a compiled floor."""

from __future__ import annotations

import cProfile
import gc
import json
import os
import pstats
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.methods import cellwright_edit
from benchmarks.tables import judge

HERE = Path(__file__).parent
RIVALS = os.environ.get("CELLWRIGHT_BENCH_RIVALS") or sys.executable
OURS = ("cellwright", "floor")


@dataclass(frozen=True)
class Sample:
    """A notebook to edit, and what we promise there: most of the floor, least of nbformat."""

    name: str
    cells: int
    output_bytes: int
    rounds: int
    most_of_floor: float | None
    least_of_nbformat: float | None

    def write(self, path: Path) -> int:
        """Write the notebook as Jupyter would; returns its size."""
        cells = [self._cell(number) for number in range(self.cells)]
        metadata = {"kernelspec": {"display_name": "Python 3", "name": "python3"}}
        value = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path.stat().st_size

    def _cell(self, number: int) -> dict[str, Any]:
        dice = random.Random(number)
        picture = "".join(dice.choices("ABCDEFabcdef0123456789+/", k=self.output_bytes))
        data = {"image/png": picture, "text/plain": ["<Figure size 640x480>"]}
        output = {"data": data, "metadata": {}, "output_type": "display_data"}
        lines = [f"value_{number} = {number}\n", "print('grüße', value)\n", "plot(value)"]
        return {
            "cell_type": "code",
            "execution_count": number,
            "id": f"{number:08x}",
            "metadata": {"tags": ["bench"]},
            "outputs": [output] if self.output_bytes else [],
            "source": lines,
        }


SAMPLES = (
    Sample("20 cells", 20, 300, 30, 2.5, None),
    Sample("5 MB, 200 cells", 200, 24_600, 15, 1.6, 5),
    Sample("50 MB, 1,000 cells", 1_000, 50_000, 8, 1.4, 4),
    Sample("10,000 cells", 10_000, 300, 8, 2.2, 50),
)


class Worker:
    """A process that edits files and tells how long it took."""

    def __init__(self, python: str, floor: Path) -> None:
        environment = {**os.environ, "CELLWRIGHT_BENCH_FLOOR": str(floor)}
        self.process = subprocess.Popen(
            [python, str(HERE / "methods.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def edit(self, **order: object) -> dict[str, float]:
        """Carry out one order, and tell what it took."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(order), file=self.process.stdin, flush=True)
        answer: dict[str, float] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        """Let the process end."""
        self.process.communicate()


def build_floor(folder: Path) -> Path | None:
    """Compile the floor; None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "floor.so"
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "-o", library, HERE / "floor.c"], check=True
    )
    return library


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    missed: list[str] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("CELLWRIGHT_BENCH_FOLDER")) as name:
        folder = Path(name)
        floor = build_floor(folder)
        methods = ["cellwright", "nbformat", "json", "orjson"] + (["floor"] if floor else [])
        if floor is None:
            print("No C compiler: the floor is left out, and goals against it are not judged")
        for sample in SAMPLES:
            missed += _measure(sample, methods, floor or folder, folder, quick=quick)
        _profile(folder / "profile.ipynb", 100 if quick else 300)
    return missed


def _profile(path: Path, rounds: int) -> None:
    """Show where the time of a small edit goes, by the functions that have it."""
    SAMPLES[0].write(path)
    for turn in range(5):  # import, and warm
        cellwright_edit(str(path), 10, turn)
    profile = cProfile.Profile()
    profile.enable()
    for turn in range(rounds):
        cellwright_edit(str(path), 10, turn)
    profile.disable()
    found: Any = pstats.Stats(profile)  # what it has is not in its type
    calls, total = found.total_calls / rounds, found.total_tt / rounds
    print(f"\nProfile of one edit of 20 cells · {rounds} rounds")
    print(f"  {calls:,.0f} calls of functions, {total * 1e3:.2f} ms while they are counted")
    rows = sorted(found.stats.items(), key=lambda item: -item[1][2])
    for (file, _, function), (_, count, own, _, _) in rows[:10]:
        name = function if file == "~" else f"{Path(file).stem}.{function}"
        share = own / found.total_tt
        print(f"  {share:5.0%} {own / rounds * 1e3:6.3f} ms  {count / rounds:5.0f} × {name}")


def _measure(
    sample: Sample, methods: list[str], floor: Path, folder: Path, *, quick: bool
) -> list[str]:
    original, target = folder / "original.ipynb", folder / "edited.ipynb"
    size = sample.write(original)
    workers = {
        method: Worker(sys.executable if method in OURS else RIVALS, floor) for method in methods
    }
    times: dict[str, list[float]] = {method: [] for method in methods}
    rounds = max(3, sample.rounds // 3) if quick else sample.rounds
    for turn in range(rounds + 1):
        order = methods.copy()
        random.Random(turn).shuffle(order)
        for method in order:
            shutil.copyfile(original, target)
            os.sync()  # dirty pages of one method must not land in another's fsync
            gc.collect()
            answer = workers[method].edit(
                method=method, path=str(target), cell=sample.cells // 2, turn=turn
            )
            if turn:  # the first round imports and warms
                times[method].append(answer["seconds"])
    for worker in workers.values():
        worker.close()
    memory = {method: _memory(method, sample, floor, original, target) for method in methods}
    return _report(sample, size, times, memory)


def _memory(method: str, sample: Sample, floor: Path, original: Path, target: Path) -> float:
    """Peak memory that one edit adds, in a process that has done a small one before."""
    small = target.with_name("small.ipynb")
    Sample("", sample.cells // 2 + 1, 0, 0, None, None).write(small)
    shutil.copyfile(original, target)
    worker = Worker(sys.executable if method in OURS else RIVALS, floor)
    answer = worker.edit(
        method=method, path=str(target), cell=sample.cells // 2, turn=1, warm=str(small)
    )
    worker.close()
    return answer["memory"]


def _report(
    sample: Sample, size: int, times: dict[str, list[float]], memory: dict[str, float]
) -> list[str]:
    median = {method: statistics.median(values) for method, values in times.items()}
    ours = median["cellwright"]
    print(
        f"\nReplace one cell · {sample.name} · {size:,} bytes · {len(times['cellwright'])} rounds"
    )
    print(
        f"  {'':12} {'median':>10} {'fastest':>10} {'× floor':>8} {'ours is':>12} {'+ memory':>12}"
    )
    for method, value in sorted(median.items(), key=lambda item: item[1]):
        of_floor = f"{value / median['floor']:.2f}" if "floor" in median else "–"
        against = "" if method == "cellwright" else f"{value / ours:.1f} × faster"
        print(
            f"  {method:12} {value * 1e3:8.2f} ms {min(times[method]) * 1e3:7.2f} ms {of_floor:>8}"
            f" {against:>14} {memory[method] / size:6.2f} × file"
        )
    missed: list[str] = []
    floor = median.get("floor")
    if sample.most_of_floor and floor:
        words, late = judge(
            f"Replace one cell, {sample.name}: × the floor", ours / floor, sample.most_of_floor
        )
        print(f"  goal × floor {words}")
        missed += late
    if sample.least_of_nbformat:
        of_nbformat, most = ours / median["nbformat"], 1 / sample.least_of_nbformat
        words, late = judge(f"Replace one cell, {sample.name}: × nbformat", of_nbformat, most)
        print(f"  goal × nbformat {words}")
        missed += late
    if sample.cells > 20:
        words, late = judge(
            f"Replace one cell, {sample.name}: memory × the file", memory["cellwright"] / size, 2
        )
        print(f"  goal memory × file {words}")
        missed += late
    return missed
