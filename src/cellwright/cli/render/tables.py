"""Tables that fit the terminal, and HTML as styled texts and tables."""

from __future__ import annotations

from typing import TypeAlias

from rich import box
from rich.cells import cell_len
from rich.style import Style
from rich.table import Table
from rich.text import Text

from cellwright.cli.render.layout import BOLD, DIM, Notice
from cellwright.outputs import html
from cellwright.outputs.sanitize import one_line
from cellwright.outputs.tables import Grid, are_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.outputs.tables import TableRow


HtmlBlock: TypeAlias = Text | Grid

_STYLES = {
    "bold": BOLD,
    "italic": Style(italic=True),
    "code": Style(color="cyan"),
    "strike": Style(strike=True),
    "dim": DIM,
}
_GAP = 2
# How wide a column may be, from the best to the least.
_WIDTHS = (60, 40, 24, 16)


def make_table(*, show_header: bool = True) -> Table:
    """Make an empty table: no box, a line below the head."""
    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        show_header=show_header,
        pad_edge=False,
        collapse_padding=True,
        border_style=DIM,
        header_style=BOLD,
    )


def render_table(grid: Grid, width: int, most_rows: int) -> list[Table | Notice]:
    """Render a table of data, such as a data frame: cells are cut, never wrapped."""
    head = [row for row in grid.rows if row.is_header]
    body = [row for row in grid.rows if not row.is_header]
    hidden_rows = grid.more_rows
    if len(body) - most_rows > 1:
        hidden_rows += len(body) - most_rows
        body = body[:most_rows]
    labels = max((row.labels for row in body), default=0)
    chosen, widest = _choose_columns([*head, *body], labels, width)

    table = make_table(show_header=bool(head))
    for column in chosen:
        texts = [] if column is None else [row.cells[column] for row in body]
        table.add_column(
            Text("\n").join(_render_cell(row, column) for row in head),
            justify="right" if are_numbers(texts) else "left",
            style=Style(bold=column is not None and column < labels),
            no_wrap=True,
            overflow="ellipsis",
            max_width=widest,
        )
    for row in body:
        table.add_row(*(_render_cell(row, column) for column in chosen))
    parts: list[Table | Notice] = [table]
    if hidden_rows:
        parts.append(Notice(hidden_rows, "rows"))
    hidden_columns = len(grid.rows[0].cells) - sum(column is not None for column in chosen)
    if hidden_columns:
        parts.append(Notice(hidden_columns, "columns", "--width shows them"))
    return parts


def _render_cell(row: TableRow, column: int | None) -> Text:
    return Text("…", DIM) if column is None else Text(one_line(row.cells[column]))


def _choose_columns(
    rows: Sequence[TableRow], labels: int, room: int
) -> tuple[list[int | None], int]:
    """The columns to show, None for those left out, and the width of each."""
    count = len(rows[0].cells)
    natural = [max(cell_len(row.cells[column]) for row in rows) for column in range(count)]
    for widest in _WIDTHS:
        if sum(min(size, widest) + _GAP for size in natural) - _GAP <= room:
            return list(range(count)), widest
    left: list[int] = list(range(min(labels, count)))
    right: list[int] = []
    used = sum(min(natural[column], widest) + _GAP for column in left) + len("…")
    first, last = len(left), count - 1
    while first <= last:
        takes_left = len(left) - labels <= len(right)
        used += min(natural[first if takes_left else last], widest) + _GAP
        if used > room and (left or right):
            break
        if takes_left:
            left.append(first)
            first += 1
        else:
            right.insert(0, last)
            last -= 1
    return [*left, *([None] if first <= last else []), *right], max(1, min(widest, room))


def read_html(source: str, most_characters: int) -> list[HtmlBlock]:
    """The paragraphs and tables of HTML, without its own styles and scripts.

    At most `most_characters` are read; rows of a table beyond that are counted.
    """
    return [
        block if isinstance(block, Grid) else _style_paragraph(block)
        for block in html.read_html(source, most_characters)
    ]


def is_mostly_table(blocks: list[HtmlBlock]) -> bool:
    """Whether there is a table, and not more text beside it than in it."""
    beside = sum(len(block) for block in blocks if isinstance(block, Text))
    inside = sum(block.characters for block in blocks if isinstance(block, Grid))
    return inside > 0 and beside <= max(40, inside)


def _style_paragraph(paragraph: html.Paragraph) -> Text:
    text = Text()
    for run, names in paragraph.runs:
        text.append(run, Style.combine(_STYLES[name] for name in names) if names else None)
    return text
