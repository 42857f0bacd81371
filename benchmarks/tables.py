"""How measured times are printed, each beside what it is compared with."""

from __future__ import annotations

import statistics


def compare(
    title: str, rows: dict[str, list[float]], base: str, goals: dict[str, tuple[str, float]]
) -> list[str]:
    """Print medians beside that of `base`, and return the goals that are missed.

    A goal is the name of another row, and the most that a median may be of its.
    """
    medians = {name: statistics.median(values) for name, values in rows.items()}
    print(f"\n{title}")
    missed = []
    for name, median in medians.items():
        line = f"{name:28} {median:9.2f} ms  (min {min(rows[name]):.2f})"
        line += f"  {median / medians[base]:7.2f} × {base}"
        if name in goals:
            other, most = goals[name]
            ratio = median / medians[other]
            word = "MISSED" if ratio > most else "met"
            line += f"   goal {word}: {ratio:.2f} ≤ {most} × {other}"
            if ratio > most:
                missed.append(f"{title}: {name} is {ratio:.2f} × {other}, more than {most}")
        print(line)
    return missed
