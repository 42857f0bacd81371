"""`%timeit`: how long a statement takes."""

# Why not: see the package's docstring.

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .cells import Cells

REPEATS = 7
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def timeit(text: str, body: str | None, cells: Cells, status: Callable[..., Any]) -> None:
    """Time a line, or a cell whose first line is then the setup. `-n` loops, `-r` repeats."""
    from statistics import mean, stdev
    from timeit import Timer

    loops, repeats, rest = _options(text)
    statement, setup = (rest, "pass") if body is None else (body, rest or "pass")
    timer = Timer(statement, setup, globals=cells.names)
    if not loops:
        loops, _ = timer.autorange()
    each = [total / loops for total in timer.repeat(repeats, loops)]
    spread = stdev(each) if len(each) > 1 else 0.0
    print(  # noqa: T201
        f"{_in_words(mean(each))} ± {_in_words(spread)} per loop"
        f" (mean ± std. dev. of {repeats} runs, {loops:,} loops each)"
    )
    status("timeit", mean=mean(each), best=min(each), loops=loops, repeats=repeats)


def _options(text: str) -> tuple[int, int, str]:
    loops, repeats = 0, REPEATS
    rest = text.strip()
    while rest[:2] in {"-n", "-r"}:
        option, _, value = rest.partition(" ") if rest[2:3] == " " else (rest[:2], "", rest[2:])
        number, _, rest = value.strip().partition(" ")
        if option == "-n":
            loops = int(number)
        else:
            repeats = int(number)
        rest = rest.strip()
    return loops, repeats, rest


def _in_words(seconds: float) -> str:
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
