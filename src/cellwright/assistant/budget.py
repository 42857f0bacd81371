"""How much of a notebook a model is told: few cells all, of many those around the selection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cellwright.assistant.rendering import render_cell, render_context, render_pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.assistant.context import CellContext, NotebookContext

ALL_BELOW = 20
"""A notebook with fewer cells is told whole."""

AROUND = 10
"""Of others, so many cells before and after the anchor."""

MOST_CHARACTERS = 50_000
"""The length of the message; only selected cells, which are never cut, can make it longer."""

MOST_OF_OTHERS = 2_000
"""Characters of a cell that is not selected, if not everything fits."""

CUT = "... [truncated]"


def window(count: int, anchor: int) -> range:
    """The indices of the cells to tell of."""
    if count < ALL_BELOW:
        return range(count)
    return range(max(0, anchor - AROUND), min(count, anchor + AROUND + 1))


def fit(context: NotebookContext, others: Sequence[CellContext]) -> NotebookContext:
    """The context with as many of its other cells as there is room for.

    Cells that are not selected are cut first, and then left out from the end.

    Args:
        context: with its selected cells, and no others.
        others: all cells that are to be told of, the selected ones among them.
    """
    selected = {cell.id for cell in context.selected_cells}
    frame = len(render_context(replace(context, nearby_cells=(), left_out=99)))
    room = MOST_CHARACTERS - frame

    def size(cell: CellContext) -> int:
        return 1 + len(render_pointer(cell) if cell.id in selected else render_cell(cell))

    told = list(others)
    sizes = [size(cell) for cell in told]
    if sum(sizes) > room:
        told = [cell if cell.id in selected else shorten(cell) for cell in told]
        sizes = [size(cell) for cell in told]
    total = sum(sizes)
    kept = [True] * len(told)
    for place in reversed(range(len(told))):
        if total <= room:
            break
        if told[place].id not in selected:
            kept[place] = False
            total -= sizes[place]
    found = tuple(cell for cell, is_kept in zip(told, kept, strict=True) if is_kept)
    left_out = len(told) - len(found)
    if context.cell_count < ALL_BELOW and not left_out:
        return replace(context, all_cells=found)
    return replace(context, nearby_cells=found, left_out=left_out)


def shorten(cell: CellContext) -> CellContext:
    """A cell with the beginning of a source that is long."""
    if len(cell.content) <= MOST_OF_OTHERS:
        return cell
    kept = cell.content[: MOST_OF_OTHERS - len(CUT)]
    return replace(cell, content=kept + CUT, length=len(cell.content))
