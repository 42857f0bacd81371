"""From a notebook to its text."""

from __future__ import annotations

from bisect import bisect_right

from cellwright.errors import InvalidCell
from cellwright.text._markers import escape, marker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook


class CellLines:
    """The lines of one cell, counted from 1.

    `marker` is the line that begins it, `first` and `last` are those of its source. A cell with
    an empty source is its marker alone: `last` is then the line of the marker.
    """

    __slots__ = ("cell", "last", "marker")

    def __init__(self, cell: Cell, marker: int, last: int) -> None:
        self.cell = cell
        self.marker = marker
        self.last = last

    @property
    def first(self) -> int:
        """The line after the marker."""
        return self.marker + 1

    def __repr__(self) -> str:
        return f"<{self.cell.handle}: lines {self.marker} to {self.last}>"


class TextView:
    """A notebook as text, and which of its lines belong to which cell."""

    __slots__ = ("_lines", "cells", "text")

    def __init__(self, text: str, cells: Sequence[CellLines]) -> None:
        self.text = text
        self.cells = cells
        self._lines: Sequence[str] | None = None

    @property
    def lines(self) -> Sequence[str]:
        """The lines without their line feeds; a text without cells has none."""
        if self._lines is None:
            self._lines = self.text.split("\n") if self.cells else ()
        return self._lines

    def cell_at(self, line: int) -> CellLines | None:
        """The cell that a line belongs to, or None if there is no such line."""
        k = bisect_right(self.cells, line, key=lambda cell: cell.marker) - 1
        return self.cells[k] if k >= 0 and line <= self.cells[k].last else None

    def __repr__(self) -> str:
        return f"<TextView of {len(self.cells)} cells>"


def render(notebook: Notebook) -> TextView:
    """The text of a notebook, and where its cells are in it.

    Raises:
        InvalidCell: some cell is broken, so that there is no text which says what it holds.
    """
    blocks: list[str] = []
    cells: list[CellLines] = []
    line = 1
    for index, cell in enumerate(notebook.cells):
        if cell.problem:
            raise InvalidCell(index, cell.problem)
        source = cell.source
        blocks.append(marker(cell.type, index))
        last = line
        if source:
            blocks.append(escape(source))
            last += source.count("\n") + 1
        cells.append(CellLines(cell, line, last))
        line = last + 1
    return TextView("\n".join(blocks), cells)


def to_text(notebook: Notebook) -> str:
    """The text of a notebook: for every cell a marker line and the source.

    `from_text` turns it back. No line feed follows the last cell; see `terminated`.

    Raises:
        InvalidCell: some cell is broken, so that there is no text which says what it holds.
    """
    return render(notebook).text


def terminated(text: str) -> str:
    """The text as a file has it: with a line feed after the last cell."""
    return text + "\n" if text else text


def unterminated(text: str) -> str:
    """The text of a file, without the one line feed that ends it.

    Takes back what `terminated` added, and what an editor adds to a file that has none. Line
    feeds at the end of the last source stay.
    """
    return text.removesuffix("\n")
