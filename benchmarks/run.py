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
import sys
import time
from pathlib import Path

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
    parser.add_argument("--write", metavar="FILE", help="also write the tables as a page")
    options = parser.parse_args()
    chosen = options.bench or [name for name in BENCHES if name not in LONG]
    tables: dict[str, str] = {}
    missed = []
    for name in chosen:
        screen = _Screen()
        began = time.perf_counter()
        with contextlib.redirect_stdout(screen):
            missed += BENCHES[name](quick=options.quick)
        tables[name] = screen.getvalue()
        print(f"\n({name} took {time.perf_counter() - began:.0f} s)")
    if options.write:
        page = write_page(tables, missed, sys.argv[1:])
        Path(options.write).write_text(page, encoding="utf-8")
    print()
    for verdict in VERDICTS:
        word = "met" if verdict.is_met else "MISSED"
        print(f"{word:6}  {verdict.value:>12} ≤ {verdict.most:<10} {verdict.what}")
    for goal in list_others(missed):
        print(f"MISSED  {goal}")
    print("Every goal is met" if not missed else f"{len(missed)} goals are missed")
    return 1 if missed else 0


def list_others(missed: list[str]) -> list[str]:
    """The goals missed that are not numbers."""
    numbers = {verdict.sentence for verdict in VERDICTS}
    return [goal for goal in missed if goal not in numbers]


class _Screen(io.StringIO):
    """Shows what is printed, and keeps it."""

    def write(self, text: str) -> int:
        """Print a text, and keep it."""
        screen = sys.__stdout__
        assert screen is not None
        screen.write(text)
        screen.flush()
        return super().write(text)


def write_page(tables: dict[str, str], missed: list[str], words: list[str]) -> str:
    """A page of documentation with the tables of one run."""
    load = os.getloadavg()[0]
    lines = [
        "# Performance",
        "",
        "<!-- Written by `./dev bench --write docs/performance.md`; do not edit it. -->",
        "",
        (
            "What our promises cost, beside other libraries and compiled floors in one run: "
            f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores, "
            f"a load of {load:.1f} at the end. Ratios carry over to other machines; absolute numbers, "
            "and what waits for a disk, do not. Every method takes its turn in a random order."
        ),
        "",
        "To repeat it:",
        "",
        "```sh",
        f"./dev bench {' '.join(words)}",
        "```",
        "",
        f"Goals that this run missed: {len(missed)} of {len(VERDICTS)}.",
        "",
        "| what | measured | goal | |",
        "|---|---|---|---|",
        *(
            f"| {each.what} | {each.value} | ≤ {each.most} | {'met' if each.is_met else 'missed'} |"
            for each in VERDICTS
        ),
        *(f"| {goal} | | | missed |" for goal in list_others(missed)),
    ]
    for name, table in tables.items():
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
