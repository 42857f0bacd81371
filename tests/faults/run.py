"""The whole crash test with its report; `./dev faults` runs it.

Every operation on three sizes of file: killed at each system call, and each call made to fail in
the ways it can. Then the faults around a save, and a small client beside a greedy one. Ends with
status 1 if anything was found, or if too little was tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.faults.harness import FALSE_SUCCESS, KINDS, STRAY, TORN, Outcome, Scenario
from tests.faults.surroundings import PROMISED, SURROUNDINGS
from tests.faults.worker import OPERATIONS, SIZES, WAYS
from tests.integration.engine import neighbours

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.faults.surroundings import Surrounding

LEAST_KILLS, LEAST_ERRORS = 300, 150


def main() -> int:
    """Run what the command line asks for, and print the report."""
    parser = argparse.ArgumentParser(prog="./dev faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--operation", choices=[*OPERATIONS, *WAYS], action="append")
    parser.add_argument("--size", choices=SIZES, action="append")
    parser.add_argument("--around", action="store_true", help="only the faults around a save")
    chosen = parser.parse_args()
    if shutil.which("strace") is None:
        print("error: strace is not installed")
        return 2
    scenarios = [
        Scenario(operation, size)
        for operation in chosen.operation or ([] if chosen.around else [*OPERATIONS, *WAYS])
        for size in chosen.size or ([WAYS[operation]] if operation in WAYS else SIZES)
    ]
    started = time.monotonic()
    found: dict[Scenario, list[Outcome]] = {}
    with tempfile.TemporaryDirectory(prefix="cellwright-faults-") as runtime:
        os.environ["CELLWRIGHT_RUNTIME_DIR"] = runtime
        print(HEADING)
        for scenario in scenarios:
            found[scenario] = run_scenario(scenario)
            print(row(str(scenario), found[scenario]), flush=True)
    everything = [outcome for outcomes in found.values() for outcome in outcomes]
    print(row("all", everything))
    print_problems(found)
    is_whole = not (chosen.operation or chosen.size or chosen.around)
    around: list[Surrounding] = []
    status = 0
    if is_whole or chosen.around:
        print("\naround a save")
        for fault in SURROUNDINGS:
            around.append(fault())
            print(around[-1], flush=True)
        print("\na small client beside a greedy one", flush=True)
        status = neighbours.main()
    points = len(everything) + sum(each.points for each in around)
    print(f"\n{points} runs in {time.monotonic() - started:.0f} s: {summarize(everything, around)}")
    status = max(status, int(any(each.problems for each in around)))
    return max(verdict(everything, whole=is_whole), status)


def run_scenario(scenario: Scenario) -> list[Outcome]:
    """Every fault of one scenario, on all cores."""
    kills, errors = scenario.faults()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(scenario.run, kills + errors))


HEADING = (
    f"{'':24}|  killed at           | call failed                        "
    f"|{'':8}|       false         other\n"
    f"{'operation, size':24}| points   old    new | points     ok   error  unconfirmed"
    f" | missed | torn  success  stray problem"
)


def row(title: str, outcomes: Iterable[Outcome]) -> str:
    """One line of the report; what was missed is counted as missed and nothing else."""
    outcomes = list(outcomes)
    kills = [outcome for outcome in outcomes if outcome.hit and outcome.fault.kills]
    errors = [outcome for outcome in outcomes if outcome.hit and not outcome.fault.kills]
    holds = Counter(outcome.holds for outcome in kills)
    codes = Counter(outcome.code for outcome in errors)
    refused = len(errors) - codes["ok"] - codes["DURABILITY_UNCONFIRMED"]
    missed = sum(not outcome.hit for outcome in outcomes)
    # A run counts once for each kind of problem that it has.
    kinds = Counter(kind for outcome in outcomes for kind in {p.kind for p in outcome.problems})
    other = sum(kinds.values()) - kinds[TORN] - kinds[FALSE_SUCCESS] - kinds[STRAY]
    return (
        f"{title:24}| {len(kills):6} {holds['old']:5} {holds['new']:6} "
        f"| {len(errors):6} {codes['ok']:6} {refused:7} {codes['DURABILITY_UNCONFIRMED']:12} "
        f"| {missed:6} "
        f"| {kinds[TORN]:4} {kinds[FALSE_SUCCESS]:8} {kinds[STRAY]:6} {other:7}"
    )


def print_problems(found: dict[Scenario, list[Outcome]]) -> None:
    """Say what was found, worst first, and what is the same in several runs once."""
    places: dict[tuple[int, str], list[str]] = {}
    for scenario, outcomes in found.items():
        for outcome in outcomes:
            for kind, text in outcome.problems:
                # Without the names and numbers that are different in every run.
                what = re.sub(r"\S*(cellwright-faults-|\.cellwright-)[^\s:,]*", "…", text)
                problem = f"{kind}: {outcome.fault.call} {outcome.fault.action}: {what}"
                places.setdefault((KINDS.index(kind), problem), []).append(
                    f"{scenario}: {outcome.fault}"
                )
    if places:
        print("\nproblems")
    for (_, problem), where in sorted(places.items()):
        more = f", and {len(where) - 1} more" if len(where) > 1 else ""
        print(f"  {problem}\n      {where[0]}{more}")


def summarize(outcomes: Iterable[Outcome], around: Iterable[Surrounding]) -> str:
    """Count what must never happen, over all runs."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        kinds = {problem.kind for problem in outcome.problems}
        counts["false successes"] += FALSE_SUCCESS in kinds
        counts["lost acknowledged edits"] += TORN in kinds
    for each in around:
        for problem, count in each.problems.items():
            counts.update({name: count for name in PROMISED if problem.startswith(name)})
    return ", ".join(f"{counts[name]} {name}" for name in PROMISED)


def verdict(outcomes: list[Outcome], *, whole: bool) -> int:
    """The status to exit with, and why."""
    kills = sum(outcome.hit and outcome.fault.kills for outcome in outcomes)
    errors = sum(outcome.hit and not outcome.fault.kills for outcome in outcomes)
    bad = sum(bool(outcome.problems) for outcome in outcomes)
    if whole and (kills < LEAST_KILLS or errors < LEAST_ERRORS):
        print(f"too little: {LEAST_KILLS} kills and {LEAST_ERRORS} errors are the least")
        return 1
    print(f"{bad} runs with a problem" if bad else "no problem found")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
