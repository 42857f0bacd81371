"""`./dev bench`: what our promises cost, against rivals and floors in the same run.

Every table prints ratios; the absolute numbers are this machine's. Methods take turns in a random
order, so that what the machine is doing besides hits all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import (
    batch,
    cold_start,
    context,
    engine,
    fidelity,
    kernels,
    live,
    manipulator,
    mcp,
    pytest_plugin,
    replace_cell,
    verbs,
)
from benchmarks.agents import evaluation
from benchmarks.tables import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.tables import Verdict

BENCHES = {
    "replace": replace_cell.run,
    "verbs": verbs.run,
    "cold": cold_start.run,
    "kernels": kernels.run,
    "engine": engine.run,
    "mcp": mcp.run,
    "manipulator": manipulator.run,
    "context": context.run,
    "batch": batch.run,
    "pytest": pytest_plugin.run,
    "live": live.run,
    "fidelity": fidelity.run,
    "agents": evaluation.run,
}
# Too long for every run: they are named.
LONG = {"agents", "fidelity", "live", "pytest"}
_BUSY = "from time import time\nend = time() + 4 * 3600\nwhile time() < end: pass"


def main() -> int:
    """Run the benches named, or all but the long ones; exit 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "bench",
        nargs="*",
        choices=[*BENCHES, []],
        help="which; default all but agents, fidelity, live and pytest",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument(
        "--busy", type=int, default=0, metavar="N", help="then once more beside N busy processes"
    )
    parser.add_argument("--write", metavar="FILE", help="also write the tables as a page")
    options = parser.parse_args()
    chosen = options.bench or [name for name in BENCHES if name not in LONG]
    idle = Measured(chosen, quick=options.quick)
    busy = None
    if options.busy:
        with busy_processes(options.busy):
            busy = Measured(chosen, quick=options.quick)
    if options.write:
        page = write_page(idle, busy, options.busy, sys.argv[1:])
        Path(options.write).write_text(page, encoding="utf-8")
    idle.print_goals("")
    if busy is not None:
        busy.print_goals(f" beside {options.busy} busy processes")
    return 1 if idle.missed or (busy is not None and busy.missed) else 0


class Measured:
    """What one pass over the benches has printed and judged."""

    def __init__(self, chosen: list[str], *, quick: bool) -> None:
        self.tables: dict[str, str] = {}
        self.missed: list[str] = []
        VERDICTS.clear()
        places = dict(os.environ)  # a bench sets some for itself
        for name in chosen:
            screen = _Screen()
            began = time.perf_counter()
            with contextlib.redirect_stdout(screen):
                self.missed += BENCHES[name](quick=quick)
            self.tables[name] = screen.getvalue()
            print(f"\n({name} took {time.perf_counter() - began:.0f} s)")
        os.environ.clear()
        os.environ.update(places)
        self.verdicts: list[Verdict] = list(VERDICTS)
        self.load = os.getloadavg()[0]

    @property
    def others(self) -> list[str]:
        """The goals missed that are not numbers."""
        numbers = {verdict.sentence for verdict in self.verdicts}
        return [goal for goal in self.missed if goal not in numbers]

    def print_goals(self, where: str) -> None:
        """Print every goal, and whether it is met."""
        print()
        for verdict in self.verdicts:
            word = "met" if verdict.is_met else "MISSED"
            print(f"{word:6}  {verdict.value:>12} ≤ {verdict.most:<10} {verdict.what}")
        for goal in self.others:
            print(f"MISSED  {goal}")
        count = f"{len(self.missed)} goals are missed" if self.missed else "Every goal is met"
        print(f"{count}{where}")


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Let that many processes work all the time, at most four hours."""
    processes = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


class _Screen(io.StringIO):
    """Shows what is printed, and keeps it."""

    def write(self, text: str) -> int:
        """Print a text, and keep it."""
        screen = sys.__stdout__
        assert screen is not None
        screen.write(text)
        screen.flush()
        return super().write(text)


def write_page(idle: Measured, busy: Measured | None, count: int, words: list[str]) -> str:
    """A page of documentation with the tables of one run."""
    beside = f"beside {count} busy processes"
    second = {} if busy is None else {each.what: each for each in busy.verdicts}
    titles = ["what", "measured", *([beside] if busy is not None else []), "goal", ""]
    rows = []
    for each in idle.verdicts:
        other = second.get(each.what)
        found = "" if other is None else other.value + ("" if other.is_met else ", missed")
        verdict = "met" if each.is_met else "missed"
        more = [found] if busy is not None else []
        rows.append([each.what, each.value, *more, f"≤ {each.most}", verdict])
    rows += [[goal, *([""] * (len(titles) - 2)), "missed"] for goal in idle.others]
    missed = f"Goals that this run missed: {len(idle.missed)} of {len(idle.verdicts)}"
    if busy is not None:
        missed += f"; {beside}: {len(busy.missed)}. The tables below are of the run without them"
    lines = [
        "# Performance",
        "",
        "<!-- Written by `./dev bench --write docs/performance.md`; do not edit it. -->",
        "",
        (
            "What our promises cost, beside other libraries and compiled floors in one run: "
            f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores, "
            f"a load of {idle.load:.1f} at the end. Ratios carry over to other machines; absolute "
            "numbers, and what waits for a disk, do not. Every method takes its turn in a random order."
        ),
        "",
        "To repeat it:",
        "",
        "```sh",
        f"./dev bench {' '.join(words)}",
        "```",
        "",
        f"{missed}.",
        "",
        *(f"| {' | '.join(row)} |" for row in (titles, ["---"] * len(titles), *rows)),
    ]
    for name, table in idle.tables.items():
        about = (sys.modules[BENCHES[name].__module__].__doc__ or "").partition("\n")[0]
        lines += [
            "",
            f"## `./dev bench {name}`",
            "",
            about,
            "",
            "```text",
            table.strip("\n"),
            "```",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
