"""Tables as aligned text."""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.outputs.grid import Grid

_WIDEST = 60  # a cell in characters; what is longer is cut
_MOST_ROWS = 200
_number = re.compile(r"[-+]?[$€£]?(\d[\d,_ ]*)?(\.\d*)?(e[-+]?\d+)?\s?%?", re.IGNORECASE)
_NOTHING = frozenset(
    {"", "...", "…", "-", "nan", "NaN", "NaT", "None", "null", "<NA>", "inf", "-inf"}
)


def table_text(grid: Grid, most_rows: int = _MOST_ROWS, widest: int = _WIDEST) -> str:
    """A table in columns, two spaces apart; numbers stand to the right, a line below the head.

    Of a long table the first and last rows are kept, and the others counted.
    """
    head = [row for row in grid.rows if row.is_header]
    body = [row for row in grid.rows if not row.is_header]
    hidden = max(0, len(body) - most_rows)
    shown = [*body[: most_rows - most_rows // 3], *body[len(body) - most_rows // 3 :]]
    if not hidden:
        shown = body
    first = most_rows - most_rows // 3

    rows = [[_cell(text, widest) for text in row.cells] for row in (*head, *shown)]
    count = len(rows[0]) if rows else 0
    widths = [max(width(row[column]) for row in rows) for column in range(count)]
    right = [are_numbers([row.cells[column] for row in shown]) for column in range(count)]
    lines = [
        "  ".join(
            _padded(text, size, is_right=is_right)
            for text, size, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    if hidden:
        lines.insert(len(head) + first, f"[{hidden:,} rows left out]")
    if head:
        lines.insert(len(head), "  ".join("─" * size for size in widths))
    if grid.more_rows:
        lines.append(f"[{grid.more_rows:,} more rows]")
    return "\n".join(lines)


def are_numbers(texts: Sequence[str]) -> bool:
    """Whether a column holds numbers, and nothing else but gaps."""
    filled = [text for text in texts if text not in _NOTHING]
    return bool(filled) and all(_number.fullmatch(text) for text in filled)


def width(text: str) -> int:
    """How many columns of a terminal a text takes, about."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )


def _cell(text: str, widest: int) -> str:
    text = one_line(text)
    return text if len(text) <= widest else f"{text[: widest - 1]}…"


def _padded(text: str, size: int, *, is_right: bool) -> str:
    room = " " * (size - width(text))
    return room + text if is_right else text + room
