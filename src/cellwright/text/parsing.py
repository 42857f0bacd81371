"""From text to the cells that it describes."""

from __future__ import annotations

import re
from typing import NamedTuple

from cellwright.errors import InvalidText
from cellwright.text._markers import unescape

_markers = re.compile(r"^# %% \[(code|markdown|raw)\](?: cell:([0-9]+))?$", re.MULTILINE).finditer
# More digits than any count of cells has; Python refuses to read numbers of some thousand.
_MOST_DIGITS = 18


class TextCell(NamedTuple):
    """A cell as the text has it; `line` is that of its marker, counted from 1.

    `number` is the N of `cell:N`: the index of the cell that this one is made from.
    """

    type: str
    number: int | None
    source: str
    line: int


def parse(text: str) -> list[TextCell]:
    """The cells of a text; none if it is empty.

    Raises:
        InvalidText: the first line is no marker.
    """
    if not text:
        return []
    found = list(_markers(text))
    if not found or found[0].start() > 0:
        first_line = text.partition("\n")[0]
        raise InvalidText(f"the first line must be a marker, but {_described(first_line)}", 1)
    starts = [marker.start() for marker in found[1:]]
    cells = []
    line = 1
    for marker, end in zip(found, [*starts, len(text) + 1], strict=True):
        # The line feed after the marker and the one before the next are no part of the source;
        # a cell without source has only one of them.
        source = unescape(text[marker.end() + 1 : end - 1])
        cells.append(TextCell(marker[1], _number(marker[2]), source, line))
        line += text.count("\n", marker.start(), end)
    return cells


def _number(digits: str | None) -> int | None:
    if digits is None:
        return None
    return int(digits.lstrip("0")[:_MOST_DIGITS] or "0")


def _described(line: str) -> str:
    """What is wrong with a line that should be a marker."""
    if not line.strip():
        return "it is blank"
    if line.endswith("\r"):
        return "it ends in a carriage return; lines must end in a line feed alone"
    if line.startswith("\ufeff"):
        return "a byte order mark stands before it"
    if line.startswith("{"):
        return "this looks like the JSON of a notebook"
    return f"it is `{line[:60]}{'…' * (len(line) > 60)}`"
