"""CPU time of a cold start, against an empty Python in the same environment."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.tables import judge

NOTHING = "python -c pass"
# What is installed, since `python -m` imports more.
COMMAND = str(Path(sys.executable).with_name("cellwright"))


def run(*, quick: bool = False) -> list[str]:
    """Print the table; returns the goals that were missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.ipynb"
        cells = [
            {
                "cell_type": "markdown",
                "id": f"cell{n:04}",
                "metadata": {},
                "source": ["# Title\n", "text"],
            }
            for n in range(20)
        ]
        notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
        os.environ["XDG_STATE_HOME"] = folder  # a journal of its own
        code = "-c"
        commands: dict[str, tuple[list[str], float | None]] = {
            NOTHING: ([code, "pass"], None),
            "import cellwright": ([code, "import cellwright"], 2.0),
            "import and read 20 cells": (
                [code, f"import cellwright; cellwright.read({str(path)!r}).cells[19].source"],
                6.0,
            ),
            "cellwright --help": ([COMMAND, "--help"], 4.0),
            "cellwright read, 20 cells": ([COMMAND, "read", str(path)], 6.0),
            "import nbformat and read": (
                [code, f"import nbformat; nbformat.read({str(path)!r}, as_version=4)"],
                None,
            ),
        }
        return _measure(commands, 5 if quick else 15, folder)


def _measure(
    commands: dict[str, tuple[list[str], float | None]], rounds: int, folder: str
) -> list[str]:
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, (words, _) in commands.items():
            seconds = _cpu(words, folder)
            if turn:
                times[name].append(seconds)
    floor = statistics.median(times[NOTHING])
    print(f"\nCold start · CPU time · {rounds} rounds")
    missed: list[str] = []
    for name, (_, goal) in commands.items():
        value = statistics.median(times[name])
        line = f"  {name:28} {value * 1e3:7.1f} ms {value / floor:6.2f} ×"
        if goal:
            verdict, late = judge(f"CPU of {name}, × an empty Python", value / floor, goal)
            line += f"  goal {verdict}"
            missed += late
        print(line)
    return missed


def _cpu(words: list[str], folder: str) -> float:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # In a folder of its own: the settings of this project are not those of a user's.
    subprocess.run(
        [sys.executable, *words],
        check=True,
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
