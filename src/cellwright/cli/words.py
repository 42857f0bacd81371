"""Colour a diff, and in lines that were rewritten the words that differ."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_word = re.compile(r"\w+|\s+|[^\w\s]")


def highlight(diff: str) -> Iterator[str]:
    """The lines of a diff with colours; neighbouring - and + lines are compared word by word."""
    removed: list[str] = []
    added: list[str] = []
    lines = diff.split("\n")
    rows = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    if rows[:1] and rows[0].startswith("--- ") and rows[1:2] and rows[1].startswith("+++ "):
        # The names of the files; further down, such a line is a line of a cell.
        yield from (click.style(line, bold=True) for line in rows[:2])
        rows = rows[2:]
    for line in rows:
        if line.startswith("-") and not added:
            removed.append(line)
        elif line.startswith("+"):
            added.append(line)
        else:
            yield from _block(removed, added)
            removed, added = ([line], []) if line.startswith("-") else ([], [])
            if not removed:
                yield click.style(line, fg="cyan") if line.startswith("@@") else line
    yield from _block(removed, added)


def _block(removed: list[str], added: list[str]) -> Iterator[str]:
    if len(removed) != len(added):
        yield from (click.style(line, fg="red") for line in removed)
        yield from (click.style(line, fg="green") for line in added)
        return
    pairs = [_compare(old, new) for old, new in zip(removed, added, strict=True)]
    yield from (old for old, _ in pairs)
    yield from (new for _, new in pairs)


def _compare(old: str, new: str) -> tuple[str, str]:
    """Two lines, with what differs shown in reverse."""
    one, two = _word.findall(old[1:]), _word.findall(new[1:])
    left_words, right_words = ([w for w in line if not w.isspace()] for line in (one, two))
    if SequenceMatcher(None, left_words, right_words, autojunk=False).ratio() < 0.4:
        # Hardly the same line: marking every word helps nobody.
        return click.style(old, fg="red"), click.style(new, fg="green")
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    left, right = click.style("-", fg="red"), click.style("+", fg="green")
    for kind, a, b, c, d in matcher.get_opcodes():
        differs = kind != "equal"
        left += click.style("".join(one[a:b]), fg="red", reverse=differs) if a < b else ""
        right += click.style("".join(two[c:d]), fg="green", reverse=differs) if c < d else ""
    return left, right
