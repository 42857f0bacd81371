"""The notebook as text: a marker line for each cell, then its source; and the text parsed again.

A line that begins like a marker is one, or an error: never part of the cell above. A source line that
begins so is escaped with one more `%`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from cellwright.errors import InvalidCell, InvalidText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook

# Only a line feed ends a line, which is also how Python's `^` and `$` see it.
_escape = re.compile(r"^# %(%+ \[)", re.MULTILINE).sub
_unescape = re.compile(r"^# %(%%+ \[)", re.MULTILINE).sub
_MARKER = r"^# %% \[[^\n]*"
# Blanks at the end, and the end of a line of Windows, are what editors leave behind.
_marker = re.compile(r"# %% \[(code|markdown|raw)\](?: cell:([0-9]+))?[ \t]*\r?").fullmatch
# More digits than any number of cells has; Python refuses to parse thousands of digits.
_MOST_DIGITS = 18


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
        """The lines without their line feeds; none if there are no cells."""
        if self._lines is None:
            self._lines = self.text.split("\n") if self.cells else ()
        return self._lines

    def cell_at(self, line: int) -> CellLines | None:
        """The cell of a line, or None if there is no such line."""
        k = bisect_right(self.cells, line, key=lambda cell: cell.marker) - 1
        return self.cells[k] if k >= 0 and line <= self.cells[k].last else None

    def __repr__(self) -> str:
        return f"<TextView of {len(self.cells)} cells>"


def render_text(notebook: Notebook) -> TextView:
    """The text of a notebook, and the lines of its cells.

    Raises:
        InvalidCell: a cell is broken, so the text cannot show what it contains.
    """
    blocks: list[str] = []
    cells: list[CellLines] = []
    line = 1
    for index, cell in enumerate(notebook.cells):
        if cell.problem:
            raise InvalidCell(index, cell.problem)
        source = cell.source
        blocks.append(_marker_line(cell.type, index))
        last = line
        if source:
            blocks.append(_escape_markers(source))
            last += source.count("\n") + 1
        cells.append(CellLines(cell, line, last))
        line = last + 1
    return TextView("\n".join(blocks), cells)


def to_text(notebook: Notebook) -> str:
    """The text of a notebook: a marker line and the source of every cell.

    `from_text` reads it back. There is no line feed after the last cell; see `end_with_newline`.

    Raises:
        InvalidCell: a cell is broken, so the text cannot show what it contains.
    """
    return render_text(notebook).text


def end_with_newline(text: str) -> str:
    """The text of a file: with a line feed after the last cell."""
    return text + "\n" if text else text


def drop_last_newline(text: str) -> str:
    """The text without the line feed that ends a file.

    It removes what `end_with_newline`, or an editor, has added. Other line feeds at the end of
    the last source stay.
    """
    return text.removesuffix("\n")


def _marker_line(cell_type: str, index: int) -> str:
    """The line that begins a cell."""
    return f"# %% [{cell_type}] cell:{index}"


def _escape_markers(source: str) -> str:
    """Add one `%` to every line that begins like a marker, escaped or not."""
    return _escape(r"# %%\1", source) if "# %%" in source else source


def _unescape_markers(text: str) -> str:
    """Remove one `%` from every line that was escaped."""
    return _unescape(r"# \1", text) if "# %%%" in text else text


class TextCell(NamedTuple):
    """A cell in the text; `line` is the line of its marker, counted from 1.

    `number` is the N of `cell:N`, the index of the cell that it is made from. `id` and `metadata`
    are what a script in the percent format says; a text view has neither.
    """

    type: str
    number: int | None
    source: str
    line: int
    id: str | None = None
    metadata: dict[str, Any] | None = None


def parse_text(text: str) -> list[TextCell]:
    """The cells of a text; none if it is empty.

    Raises:
        InvalidText: the first line is not a marker, or a line begins like one and is none.
    """
    if not text:
        return []
    found = list(re.finditer(_MARKER, text, re.MULTILINE))
    if not found or found[0].start() > 0:
        first_line = text.partition("\n")[0]
        raise InvalidText(f"the first line must be a marker, but {_describe_line(first_line)}", 1)
    starts = [marker.start() for marker in found[1:]]
    cells = []
    line = 1
    for head, end in zip(found, [*starts, len(text) + 1], strict=True):
        marker = _marker(head[0])
        if marker is None:
            raise InvalidText(_describe_marker(head[0]), line)
        # The line feeds after the marker and before the next marker are not part of the source;
        # a cell without source has only one of them.
        source = _unescape_markers(text[head.end() + 1 : end - 1])
        cells.append(TextCell(marker[1], _number(marker[2]), source, line))
        line += text.count("\n", head.start(), end)
    return cells


def _number(digits: str | None) -> int | None:
    if digits is None:
        return None
    return int(digits.lstrip("0")[:_MOST_DIGITS] or "0")


def _describe_marker(line: str) -> str:
    """Say what is wrong with a line that begins like a marker."""
    shown = f"`{line[:60]}{'…' * (len(line) > 60)}`"
    return (
        f"{shown} begins like a marker, but a marker is `# %% [code]`, [markdown] or [raw], and "
        "perhaps ` cell:N`; as part of a source, write `# %%% [`"
    )


def _describe_line(line: str) -> str:
    """Say what is wrong with a line that should be a marker."""
    line = line.rstrip()  # what a marker is forgiven is not what is wrong
    if not line:
        return "it is blank"
    if line.startswith("\ufeff"):
        return "there is a byte order mark before it"
    if line.startswith("{"):
        return "this looks like the JSON of a notebook"
    return f"it is `{line[:60]}{'…' * (len(line) > 60)}`"
