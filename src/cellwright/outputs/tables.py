"""Tables of texts: cells that span rows and columns laid out, and rendered as aligned text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDEST = 60  # characters of a cell; a longer one is cut
_MOST_ROWS = 200
# More than any table for people; a hostile one can ask for billions.
_MOST_SPANNED = 100
_MOST_COLUMNS = 1000
_MOST_CELLS = 1_000_000
_MOST_HEADERS = 20
_number = re.compile(r"[-+]?[$€£]?(\d[\d,_ ]*)?(\.\d*)?(e[-+]?\d+)?\s?%?", re.IGNORECASE)
_NOTHING = frozenset(
    {"", "...", "…", "-", "nan", "NaN", "NaT", "None", "null", "<NA>", "inf", "-inf"}
)


@dataclass(slots=True)
class TableRow:
    """A row of a table; its first `labels` cells are headings."""

    cells: list[str]
    labels: int
    is_header: bool


@dataclass(slots=True)
class Grid:
    """A table whose rows have the same number of cells; `more_rows` were not read."""

    rows: list[TableRow]
    more_rows: int = 0

    @property
    def characters(self) -> int:
        """The length of all its texts."""
        return sum(len(cell) for row in self.rows for cell in row.cells)


@dataclass(slots=True)
class SpanningCell:
    """A cell of HTML, which may span rows and columns."""

    columns: int
    rows: int
    is_label: bool
    text: str = ""


@dataclass(slots=True)
class OpenTable:
    """A table that is being read."""

    rows: list[tuple[list[SpanningCell], bool]] = field(default_factory=list)
    in_head: bool = False
    is_layout: bool = False  # it contains another table

    def add_row(self) -> None:
        """Start a row."""
        self.rows.append(([], self.in_head))

    def add_cell(self, columns: str | None, rows: str | None, *, is_label: bool) -> None:
        """Start a cell, in a new row if there is none."""
        if not self.rows:
            self.add_row()
        self.rows[-1][0].append(SpanningCell(_span(columns), _span(rows), is_label))

    @property
    def cell(self) -> SpanningCell | None:
        """The cell started last."""
        return self.rows[-1][0][-1] if self.rows and self.rows[-1][0] else None

    def turn_into_layout(self) -> list[str]:
        """Treat it as layout, because it contains a table; returns the texts of its cells."""
        texts = [cell.text for cells, _ in self.rows for cell in cells if cell.text]
        self.is_layout = True
        self.rows.clear()
        return texts

    def close(self) -> Grid | None:
        """The table with a text in every place, or None if it is empty.

        The text of a cell that spans several places is in the first. Rows beyond a million cells
        are only counted.
        """
        rows: list[TableRow] = []
        columns = 0
        taken: dict[int, int] = {}  # columns that a cell above spans, and for how many rows
        number = 0
        for number, (cells, in_head) in enumerate(self.rows):  # noqa: B007  # used below
            above = rows[-1].labels if rows else 0
            texts, labels = _lay_out(cells, taken, above)
            all_labels = bool(cells) and all(cell.is_label for cell in cells)
            above_are_headers = not rows or rows[-1].is_header
            is_header = in_head or (all_labels and above_are_headers)
            is_header = is_header and len(rows) < _MOST_HEADERS
            if texts:
                rows.append(TableRow(texts, 0 if is_header else labels, is_header))
                columns = max(columns, len(texts))
                if len(rows) * columns > _MOST_CELLS:
                    break
        if not any(any(row.cells) for row in rows):
            return None
        for row in rows:
            row.cells.extend([""] * (columns - len(row.cells)))
        more_rows = sum(bool(cells) for cells, _ in self.rows[number + 1 :])
        return Grid(rows, more_rows)


def _lay_out(
    cells: list[SpanningCell], taken: dict[int, int], labels_above: int
) -> tuple[list[str], int]:
    """The texts of one row, and how many of the first are labels."""
    texts: list[str] = []
    labels = 0
    waiting = iter(cells)
    cell = next(waiting, None)
    while len(texts) < _MOST_COLUMNS:
        column = len(texts)
        if column in taken:
            taken[column] -= 1
            if not taken[column]:
                del taken[column]
            texts.append("")
            labels += labels == column < labels_above
        elif cell is not None:
            if cell.is_label and labels == column:
                labels += cell.columns
            texts += [cell.text, *[""] * (cell.columns - 1)]
            if cell.rows > 1:
                taken.update(dict.fromkeys(range(column, column + cell.columns), cell.rows - 1))
            cell = next(waiting, None)
        else:
            break
    return texts, labels


def _span(value: str | None) -> int:
    is_number = value is not None and value.isascii() and value.isdigit()
    return max(1, min(int(value[:6]), _MOST_SPANNED)) if is_number and value else 1


def render_table(grid: Grid, most_rows: int = _MOST_ROWS, widest: int = _WIDEST) -> str:
    """A table in columns, with numbers to the right and a line below the header.

    Of a long table, the first and last rows are kept and the others counted.
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
    widths = [max(text_width(row[column]) for row in rows) for column in range(count)]
    right = [are_numbers([row.cells[column] for row in shown]) for column in range(count)]
    lines = [
        "  ".join(
            _pad(text, size, is_right=is_right)
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
    """Whether a column has only numbers and empty cells."""
    filled = [text for text in texts if text not in _NOTHING]
    return bool(filled) and all(_number.fullmatch(text) for text in filled)


def text_width(text: str) -> int:
    """Approximately how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )


def _cell(text: str, widest: int) -> str:
    text = one_line(text)
    return text if len(text) <= widest else f"{text[: widest - 1]}…"


def _pad(text: str, size: int, *, is_right: bool) -> str:
    room = " " * (size - text_width(text))
    return room + text if is_right else text + room
