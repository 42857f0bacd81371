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

NOTHING = "pass"


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
        commands = {
            "python -c pass": (NOTHING, None),
            "import cellwright": ("import cellwright", 2.0),
            "import and read 20 cells": (
                f"import cellwright; [c.source for c in cellwright.read({str(path)!r}).cells]",
                6.0,
            ),
            "import nbformat and read": (
                f"import nbformat; nbformat.read({str(path)!r}, as_version=4)",
                None,
            ),
        }
        return _measure(commands, 5 if quick else 15)


def _measure(commands: dict[str, tuple[str, float | None]], rounds: int) -> list[str]:
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, (code, _) in commands.items():
            seconds = _cpu(code)
            if turn:
                times[name].append(seconds)
    floor = statistics.median(times["python -c pass"])
    print(f"\nCold start · CPU time · {rounds} rounds")
    missed = []
    for name, (_, goal) in commands.items():
        value = statistics.median(times[name])
        print(
            f"  {name:28} {value * 1e3:7.1f} ms {value / floor:6.2f} ×"
            + (f"  goal {goal:g} ×" if goal else "")
        )
        if goal and value > goal * floor:
            missed.append(f"{name}: {value / floor:.2f} × an empty Python, goal {goal:g}")
    return missed


def _cpu(code: str) -> float:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
