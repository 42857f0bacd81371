"""The tally of the promises, as `./dev promises` prints it.

./dev promises                  how many are kept, per document
./dev promises --list           every row
./dev promises --list S3 D      the rows of some documents
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path

if __name__ == "__main__":  # as a script, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.behaviour.manifest import PROMISES
from tests.behaviour.promise import TITLES, TOPICS, Done, Measured, NotOurs, NotYet, Promise, Source

NAME = 32  # width of the column of names


def tally(rows: tuple[Promise, ...]) -> str:
    """How many promises of each document are kept, and which work will bring the others."""
    lines = [f"{'':{NAME}}{'promises':>9}{'done':>9}{'not yet':>9}{'not ours':>9}"]
    for source, title in TITLES.items():
        named = f"{source:4}{title}"
        lines.append(_counts(named, [row for row in rows if row.source == source]))
    lines += [_counts("all", list(rows)), ""]

    waiting = Counter(
        (row.status.topic, row.source) for row in rows if isinstance(row.status, NotYet)
    )
    if waiting:
        heading = "".join(f"{source:>6}" for source in TITLES)
        lines.append(f"{'not yet, by topic':{NAME}}{heading}{'all':>6}")
    for topic in TOPICS:
        counts = [waiting[topic, source] for source in TITLES]
        if any(counts):
            cells = "".join(f"{count or '':>6}" for count in (*counts, sum(counts)))
            lines.append(f"    {topic:{NAME - 4}}{cells}")
    return "\n".join(lines).rstrip()


def _counts(name: str, rows: list[Promise]) -> str:
    kinds = Counter(type(row.status) for row in rows)
    done = kinds[Done] + kinds[Measured]
    return f"{name:{NAME}}{len(rows):>9}{done:>9}{kinds[NotYet]:>9}{kinds[NotOurs]:>9}"


def listing(rows: tuple[Promise, ...], width: int) -> str:
    """Every row: its id, its place, how it stands, and the claim under it."""
    lines = []
    for row in rows:
        lines.append(f"{row.id}  {_status(row)}  ({_place(row)})")
        lines += textwrap.wrap(
            row.claim, max(width, 40), initial_indent="    ", subsequent_indent="    "
        )
    return "\n".join(lines)


def _status(row: Promise) -> str:
    match row.status:
        case Done() as done:
            return f"done: {', '.join(done.tests)}" + (
                " (only with --all)" if done.only_all else ""
            )
        case Measured(benchmark):
            return f"measured: {benchmark}"
        case NotYet(topic):
            return f"not yet: {topic}"
        case NotOurs(why):
            return f"not ours: {why}"


def _place(row: Promise) -> str:
    if row.lines == "-":
        return f"an edge that {row.source} leaves open"
    if not row.lines[0].isdigit():
        return row.lines
    return f"line{'s' if '-' in row.lines or ',' in row.lines else ''} {row.lines}"


def main(arguments: list[str] | None = None) -> None:
    """Print the tally, or the rows."""
    parser = argparse.ArgumentParser(prog="./dev promises", description="What was promised")
    sources = ", ".join(TITLES)
    parser.add_argument(
        "--list",
        nargs="*",
        choices=list(TITLES),
        metavar="DOCUMENT",
        help=f"print the rows, of all documents or of those named ({sources})",
    )
    chosen: list[Source] | None = parser.parse_args(arguments).list
    if chosen is None:
        print(tally(PROMISES))
    else:
        rows = tuple(row for row in PROMISES if not chosen or row.source in chosen)
        print(listing(rows, min(shutil.get_terminal_size().columns, 100)))


if __name__ == "__main__":
    main()
