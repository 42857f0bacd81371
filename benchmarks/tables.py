"""How measured times are printed, each beside what it is compared with."""

from __future__ import annotations

import statistics
from typing import NamedTuple


class Verdict(NamedTuple):
    """One goal: what was measured, its value, the most that it may be, and whether it is met."""

    what: str
    value: str
    most: str
    is_met: bool

    @property
    def sentence(self) -> str:
        """How it is told if it is missed."""
        return f"{self.what} {self.value}, goal {self.most}"


VERDICTS: list[Verdict] = []
"""Every goal that this run has judged, in order."""


def judge(what: str, value: float, most: float, unit: str = "") -> tuple[str, list[str]]:
    """Say whether a goal is met, in words, and return it as well if it is missed."""
    met = value <= most
    verdict = Verdict(what.rstrip(":"), f"{value:,.2f}{unit}", f"{most:,g}{unit}", met)
    VERDICTS.append(verdict)
    words = f"{verdict.value} ≤ {verdict.most} {'met' if met else 'MISSED'}"
    return words, [] if met else [verdict.sentence]


def compare(
    title: str,
    rows: dict[str, list[float]],
    base: str,
    goals: dict[str, tuple[str, float]],
    also: str | None = None,
) -> list[str]:
    """Print medians beside that of `base` and of `also`, and return the goals that are missed.

    A goal is the name of another row, and the most that a median may be of its.
    """
    about = title.partition(" · ")[0]
    medians = {name: statistics.median(values) for name, values in rows.items()}
    print(f"\n{title}")
    missed = []
    for name, median in medians.items():
        line = f"{name:28} {median:9.2f} ms  (min {min(rows[name]):.2f})"
        for other in (base, also):
            if other is not None:
                line += f"  {median / medians[other]:7.2f} × {other}"
        if name in goals:
            other, most = goals[name]
            ratio = median / medians[other]
            words, late = judge(f"{about}: {name}, × {other}", ratio, most)
            line += f"   goal × {other} {words}"
            missed += late
        print(line)
    return missed
