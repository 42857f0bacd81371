"""The cells of a run on a card: how each stands, and what it has put out."""

from __future__ import annotations

from rich.text import Text

from cellwright.cli.render.ansi import styled_lines
from cellwright.cli.render.cards.answers import pieces_of
from cellwright.cli.render.cards.frame import BAD, GUTTER, Frame
from cellwright.cli.render.cards.general import general_parts
from cellwright.cli.render.cards.headline import cell_name, find_cells
from cellwright.cli.render.cards.sources import source_parts
from cellwright.cli.render.cards.statuses import FAILED, human_seconds, sign_of
from cellwright.cli.render.layout import BOLD, DIM, Lines, Notice, clip, shorten
from cellwright.cli.render.outputs import text_parts
from cellwright.outputs.sanitize import fold_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from cellwright.cli.render.cards.card import Card, CellRow
    from cellwright.document.cells import Cell
    from cellwright.document.outputs import Output

_LIVE_LINES = 6


def run_parts(card: Card, frame: Frame) -> Iterator[RenderableType]:
    """Every cell with its status; while it runs the end of what it says, then its outputs."""
    rows = list(card.rows.values())
    limits = frame.view.limits
    clipped = clip([row.handle for row in rows], limits.output_lines)
    widest = max((len(_name(row)) for row in rows), default=0)
    for row, _ in zip(rows, clipped.head, strict=False):
        if len(rows) > 1:
            yield _line(row, widest)
        if card.answer is None:
            yield from _live(row, frame)
        else:
            yield from _outputs(card, row, frame)
    if clipped.hidden:
        yield frame.ruled(Notice(clipped.hidden, "cells"))
    if card.answer is not None and "session" in card.answer.data:
        yield from general_parts(card.answer, frame)
    elif card.answer is not None and card.status == "error" and not _is_told(card):
        for piece in pieces_of(card.answer.text):
            if piece.name is None:
                yield frame.words(piece.text, BAD)


def _line(row: CellRow, widest: int) -> Text:
    sign, style = sign_of(row.status)
    line = Text(no_wrap=True, overflow="ellipsis").append(f"{sign:>{GUTTER + 1}} ", style)
    number = f"cell {row.index + 1}" if row.index is not None else "cell"
    line.append(number, BOLD).append(f"  {_name(row):{widest}}" if widest else "").append("  ")
    line.append(row.status, style)
    if row.seconds is not None and row.status != "not run":
        line.append(f"  {human_seconds(row.seconds)}", DIM)
    return line


def _name(row: CellRow) -> str:
    """The cell's own name; code that belongs to no notebook may have a title."""
    if row.title or row.handle == str(row.index):
        return cell_name(row.title)
    return cell_name(row.handle)


def _live(row: CellRow, frame: Frame) -> Iterator[RenderableType]:
    """The last lines of what a cell has said; a cell that waits has said nothing."""
    lines = fold_lines(row.text.rstrip("\n"))[-_LIVE_LINES:] if row.text else []
    if lines:
        shown = styled_lines(shorten(line, frame.view.limits) for line in lines)
        yield frame.ruled(Lines(shown))


def _outputs(card: Card, row: CellRow, frame: Frame) -> Iterator[RenderableType]:
    if card.answer is not None and "session" in card.answer.data:
        return  # the answer tells of all of them
    found = find_cells(row.handle, card.after)
    if not found:
        yield from _said(card, row, frame)
        return
    (cell,) = found
    outputs = _kept(cell) if row.status != "not run" else ()
    if frame.view.expanded:
        yield from source_parts(cell.source, cell.type, card.language, frame)
        if outputs:
            yield frame.part(Text("outputs", DIM))
    yield from frame.outputs(outputs)


def _kept(cell: Cell) -> Sequence[Output]:
    return cell.outputs if cell.type == "code" else ()


def _said(card: Card, row: CellRow, frame: Frame) -> Iterator[RenderableType]:
    """What a cell has put out by the tool's answer, where the notebook does not tell."""
    if card.answer is None:
        return
    name = one_line(f"outputs of {row.handle}")
    for piece in pieces_of(card.answer.text):
        if piece.name is not None and (piece.name == name or len(card.rows) == 1):
            for part in text_parts(piece.text, frame.view, frame.view.limits.output_lines // 3):
                yield frame.ruled(part)


def _is_told(card: Card) -> bool:
    """Whether one of the cells says why the call failed."""
    return any(row.status in FAILED for row in card.rows.values())
