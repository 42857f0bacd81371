"""A table of texts, with cells that span rows and columns laid out."""

from __future__ import annotations

from dataclasses import dataclass, field

# More than any table that is read by people; a hostile one can ask for billions.
_MOST_SPANNED = 100
_MOST_COLUMNS = 1000
_MOST_CELLS = 1_000_000
_MOST_HEADERS = 20


@dataclass(slots=True)
class Row:
    """A row of a table; the first `labels` of its cells are its headings."""

    cells: list[str]
    labels: int
    is_header: bool


@dataclass(slots=True)
class Grid:
    """A table: every row has as many cells; `more_rows` were not read."""

    rows: list[Row]
    more_rows: int = 0

    @property
    def characters(self) -> int:
        """How much text it holds."""
        return sum(len(cell) for row in self.rows for cell in row.cells)


@dataclass(slots=True)
class SpanningCell:
    """A cell as HTML has it."""

    columns: int
    rows: int
    is_label: bool
    text: str = ""


@dataclass(slots=True)
class OpenTable:
    """A table while it is read."""

    rows: list[tuple[list[SpanningCell], bool]] = field(default_factory=list)
    in_head: bool = False
    is_layout: bool = False  # it holds another table

    def add_row(self) -> None:
        """Start a row."""
        self.rows.append(([], self.in_head))

    def add_cell(self, columns: str | None, rows: str | None, *, is_label: bool) -> None:
        """Start a cell, in a row of its own if there is none."""
        if not self.rows:
            self.add_row()
        self.rows[-1][0].append(SpanningCell(_span(columns), _span(rows), is_label))

    @property
    def cell(self) -> SpanningCell | None:
        """The cell started last."""
        return self.rows[-1][0][-1] if self.rows and self.rows[-1][0] else None

    def turn_into_layout(self) -> list[str]:
        """There is a table in it: its cells are no data, and their texts stand alone."""
        texts = [cell.text for cells, _ in self.rows for cell in cells if cell.text]
        self.is_layout = True
        self.rows.clear()
        return texts

    def close(self) -> Grid | None:
        """The table with a text in every place, or None if it holds nothing.

        The text of a cell that spans several places stands in the first. Rows beyond a million
        cells are only counted.
        """
        rows: list[Row] = []
        columns = 0
        taken: dict[int, int] = {}  # columns that a cell above reaches into, and how far
        number = 0
        for number, (cells, in_head) in enumerate(self.rows):  # noqa: B007  # used below
            above = rows[-1].labels if rows else 0
            texts, labels = _lay_out(cells, taken, above)
            all_labels = bool(cells) and all(cell.is_label for cell in cells)
            above_are_headers = not rows or rows[-1].is_header
            is_header = in_head or (all_labels and above_are_headers)
            is_header = is_header and len(rows) < _MOST_HEADERS
            if texts:
                rows.append(Row(texts, 0 if is_header else labels, is_header))
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
