"""`./dev bench`: what our promises cost, against rivals and floors in the same run.

Every table prints ratios; the absolute numbers are this machine's. Methods take turns in a random
order, so that what the machine is doing besides hits all of them.
"""

from __future__ import annotations

import argparse

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
    replace_cell,
)
from benchmarks.agents import evaluation

BENCHES = {
    "replace": replace_cell.run,
    "cold": cold_start.run,
    "kernels": kernels.run,
    "engine": engine.run,
    "mcp": mcp.run,
    "manipulator": manipulator.run,
    "context": context.run,
    "batch": batch.run,
    "live": live.run,
    "fidelity": fidelity.run,
    "agents": evaluation.run,
}
# Too long for every run: they are named.
LONG = {"agents", "fidelity", "live"}


def main() -> int:
    """Run the benches named, or all but the long ones; exit 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "bench",
        nargs="*",
        choices=[*BENCHES, []],
        help="which; default all but agents, fidelity and live",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    chosen = options.bench or [name for name in BENCHES if name not in LONG]
    missed = [goal for name in chosen for goal in BENCHES[name](quick=options.quick)]
    print()
    for goal in missed:
        print(f"MISSED  {goal}")
    print("Every goal is met" if not missed else f"{len(missed)} goals are missed")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
