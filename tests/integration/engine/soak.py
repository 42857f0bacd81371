"""`./dev soak`: an engine works for hours, in minutes, and shall be as it was.

    python -m tests.integration.engine.soak [--scale 0.01]

Executions, restarts and edits through the engine's socket; now and then its descriptors, threads
and memory are looked at. Prints a report; exit code 1 if something grows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.engine import connect
from tests.engines import ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cellwright import Workspace

EXECUTIONS, RESTARTS, EDITS = 20_000, 500, 2_000
LOOKS = 40
PLACES = ("CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR", "STATE_HOME")
# What the first part of the work warms up: caches, threads, a spare kernel.
WARM = 0.25
MOST_SLOPE = 1.0


@dataclass
class Report:
    """What was done, and what the engine had at each look: executions, fds, threads, kilobytes."""

    executions: int = 0
    restarts: int = 0
    edits: int = 0
    seconds: float = 0.0
    looks: list[tuple[int, int, int, int]] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)

    @property
    def settled(self) -> list[tuple[int, int, int, int]]:
        """The looks after the engine had warmed up."""
        return self.looks[int(len(self.looks) * WARM) :]

    @property
    def slope(self) -> float:
        """Megabytes that it grows in 10,000 executions, by a line through the settled looks."""
        done = [look[0] for look in self.settled]
        memory = [look[3] / 1024 for look in self.settled]
        if len(set(done)) < 2:
            return 0.0
        return statistics.linear_regression(done, memory).slope * 10_000

    def growth(self, column: int) -> int:
        """How much the least of the last third is above the least of the first settled third."""
        values = [look[column] for look in self.settled]
        third = max(1, len(values) // 3)
        return min(values[-third:]) - min(values[:third])

    def problems(self, *, judges_memory: bool = True) -> list[str]:
        """What should not be."""
        found = [f"left behind: {each}" for each in self.left_behind]
        if self.growth(1) > 0:
            found.append(f"{self.growth(1)} more descriptors than after warming up")
        if self.growth(2) > 0:
            found.append(f"{self.growth(2)} more threads than after warming up")
        if judges_memory and self.slope >= MOST_SLOPE:
            found.append(f"{self.slope:.2f} MB more in 10,000 executions")
        return found

    def __str__(self) -> str:
        work = f"{self.executions:,} executions, {self.restarts:,} restarts, {self.edits:,} edits"
        lines = [
            f"{work} in {self.seconds:.0f} s",
            f"{'executions':>12} {'fds':>6} {'threads':>8} {'MB':>8}",
        ]
        for done, files, threads, memory in self.looks:
            lines.append(f"{done:>12,} {files:>6} {threads:>8} {memory / 1024:>8.1f}")
        lines.append(
            f"descriptors {self.growth(1):+d}, threads {self.growth(2):+d},"
            f" memory {self.slope:+.2f} MB in 10,000 executions"
        )
        return "\n".join(lines)


def soak(folder: Path, scale: float = 1.0) -> Report:
    """Work through an engine that is there, on notebooks in `folder`."""
    workspace = connect(actor="soak:one")
    assert workspace is not None
    with workspace:
        return _work(workspace, folder, scale)


def _work(workspace: Workspace, folder: Path, scale: float) -> Report:
    report = Report()
    executions, restarts, edits = (
        max(1, round(number * scale)) for number in (EXECUTIONS, RESTARTS, EDITS)
    )
    books = []
    for number in range(2):
        path = folder / f"soak-{number}.ipynb"
        _notebook(path)
        books.append(workspace.open(path))
    pid = ask("status")["pid"]
    for number, book in enumerate(books):
        book.run(["c0"])
        workspace.eval(["0"], session=f"soak-{number}", timeout=0)
    _settle(pid)
    every = max(1, executions // LOOKS)
    began = time.monotonic()
    while report.executions < executions:
        number = report.executions
        book = books[number % 2]
        # In turn: an eval in the runner, a cell of a notebook with its save.
        if number % 4:
            answer = workspace.eval([f"print({number})"], session=f"soak-{number % 3}", timeout=0)
            assert answer.cells[0].text == f"{number}\n", answer
        else:
            (done,) = book.run([f"c{number // 4 % 5}"])
            assert done.status == "ok", done
        report.executions += 1
        if report.executions * edits // executions > report.edits:
            cell = f"c{report.edits % 5}"
            edit = {"op": "replace", "cell": cell, "source": f"print({report.edits})"}
            book.edit([edit])
            report.edits += 1
        if report.executions * restarts // executions > report.restarts:
            names = [f"soak-{number}" for number in range(3)]
            name = names[report.restarts % 3] if report.restarts % 4 else str(book.real)
            with contextlib.suppress(LookupError):
                workspace.kernel("restart", name)
            report.restarts += 1
        if report.executions % every == 0:
            report.looks.append((report.executions, *_look(pid)))
    report.seconds = time.monotonic() - began
    return report


def _settle(pid: int) -> None:
    """Wait until the spare kernel is there, which takes as long as a short soak."""
    deadline = time.monotonic() + 20
    count, since = _look(pid)[0], time.monotonic()
    while time.monotonic() < min(deadline, since + 2):
        now = _look(pid)[0]
        if now != count:
            count, since = now, time.monotonic()
        time.sleep(0.05)


def _notebook(path: Path) -> None:
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
            "source": [f"print({number})"],
        }
        for number in range(5)
    ]
    content: dict[str, Any] = {
        "cells": cells,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _look(pid: int) -> tuple[int, int, int]:
    """Descriptors, threads and kilobytes of a process."""
    files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return files, int(facts["Threads"]), int(facts["VmRSS"].split()[0])


@contextlib.contextmanager
def _places() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cw") as name:
        folder = Path(name)
        for place in PLACES:
            (folder / place).mkdir(mode=0o700)
            os.environ[f"XDG_{place}"] = str(folder / place)
        os.environ["CELLWRIGHT_ENGINE"] = "always"
        os.environ.pop("CELLWRIGHT_RUNTIME_DIR", None)
        yield folder


def main() -> int:
    """Soak an engine of its own, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the whole; default 1")
    options = parser.parse_args()
    with _places() as folder:
        os.chdir(folder)
        try:
            report = soak(folder, options.scale)
        finally:
            with contextlib.suppress(ConnectionError):
                ask("stop")
        os.chdir("/")
    print(report)  # noqa: T201
    problems = report.problems(judges_memory=options.scale >= 1)
    for problem in problems:
        print(f"FAILED  {problem}")  # noqa: T201
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
