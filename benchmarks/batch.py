"""Overhead of a batch for each notebook, beside papermill, with kernels of the same environment."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tables import judge

NOTEBOOKS = 16
GOAL = 0.3
BIN = Path(__file__).resolve().parent.parent / ".dev" / "rivals" / "bin"


def run(*, quick: bool = False) -> list[str]:
    """Print the table; returns the goals that were missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(NOTEBOOKS):
            cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": []}
            cell["execution_count"] = None
            sources = enumerate(("x = 1", "print(x + 1)"))
            shape = {
                "cells": [{**cell, "id": f"c{at}", "source": source} for at, source in sources],
                "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
            (folder / f"n{number:02}.ipynb").write_text(json.dumps(shape), encoding="utf-8")
        return _measure(folder, 1 if quick else 3)


def _measure(folder: Path, rounds: int) -> list[str]:
    environ = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(folder / "state"),
        "CELLWRIGHT_ENGINE": "never",
    }
    cores = str(len(os.sched_getaffinity(0)))
    one = f"{BIN / 'papermill'} --no-progress-bar {{}} out-{{}}"
    ours = [sys.executable, "-m", "cellwright", "batch", "n*.ipynb", "--out", "out", "--quiet"]
    commands = {
        "papermill, one by one": ["sh", "-c", f"ls n*.ipynb | xargs -I{{}} {one}"],
        f"papermill, xargs -P {cores}": [
            "sh",
            "-c",
            f"ls n*.ipynb | xargs -P {cores} -I{{}} {one}",
        ],
        "cellwright batch": [*ours, "--kernel", str(BIN / "python")],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, words in commands.items():
            for old in folder.glob("out*"):
                subprocess.run(["rm", "-r", str(old)], check=True)
            began = time.perf_counter()
            subprocess.run(words, cwd=folder, env=environ, check=True, capture_output=True)
            times[name].append((time.perf_counter() - began) / NOTEBOOKS)
            assert len(list(folder.glob("out*/n*.ipynb" if "cell" in name else "out-*"))) == 16
    base = statistics.median(times["papermill, one by one"])
    print(f"\nBatch · {NOTEBOOKS} short notebooks · seconds for each · {rounds} rounds")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"  {name:26} {middle:6.2f} s   {middle / base:5.2f} ×")
    ratio = statistics.median(times["cellwright batch"]) / base
    verdict, missed = judge("Batch: for each notebook, × papermill", ratio, GOAL)
    print(f"  goal × papermill {verdict}")
    return missed
