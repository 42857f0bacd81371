"""Notebooks to chat about, in the language of the kernel in memory and in Python."""

from __future__ import annotations

from tests.unit.cli import samples

SALES = samples.write(
    samples.markdown("intro", "# Sales\n\nWhat we sold."),
    samples.code("load", "print 42", samples.STREAM, count=1),
    samples.code("sum", "result 42", samples.RESULT, count=3),
    samples.markdown("results", "## Results"),
    samples.code("plot", "raise NameError y", samples.FAILURE, count=4),
    samples.code("later", "print later"),
    samples.raw("notes", "as is"),
)
"""Seven cells; one has failed, one has never run."""

PYTHON = samples.write(
    samples.code("load", "import math\ntotal = math.floor(42.5)"),
    samples.code("double", "twice = total * 2\ntwice"),
    samples.markdown("end", "The end."),
)


def many(count: int, source: str = "print {}") -> bytes:
    """So many code cells `c0`, `c1` …; the number of each is in its source."""
    return samples.write(
        *(samples.code(f"c{at}", source.format(at)) for at in range(count)), indent=None
    )
