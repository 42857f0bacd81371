"""From a text and the notebook it was made from to the edits that make them agree."""

from __future__ import annotations

from cellwright.document.change import longest_increasing
from cellwright.document.edits import Delete, Insert, Move, Replace, SetType
from cellwright.document.notebook import Notebook
from cellwright.errors import InvalidCell
from cellwright.text.parsing import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import Snapshot
    from cellwright.text.parsing import TextCell

    # One cell of the notebook to be: the index it has now, or None if it is new; and what the
    # text says of it, or None if it shall stay as it is.
    Target = tuple[int | None, TextCell | None]


def from_text(text: str, base: Notebook | None = None) -> Notebook:
    """The notebook that a text describes, made from `base` or from an empty one.

    A marker `cell:N` means cell N of `base`, which keeps its id, metadata, attachments and
    outputs, and every byte if the text did not change it. `base` itself is not changed.

    Raises:
        InvalidText: the first line is no marker.
    """
    base = Notebook() if base is None else base
    edits = edits_for(parse(text), base)
    made = base.with_layout(base.state.layout)
    made.state = base.state  # which also knows the bytes of a file too old to be edited
    if edits:
        made.apply(edits)
    return made


def edits_for(
    cells: Sequence[TextCell], notebook: Notebook, base: Snapshot | None = None
) -> list[Edit]:
    """The edits that make a notebook say what a text says, to be applied to it at once.

    Nothing is done to cells that the text leaves as they are. A cell that it leaves out is
    deleted; a marker without a number, with one that was used before, or with one that no cell
    has makes a new cell.

    Args:
        cells: what `parse` found in the text.
        notebook: as it is now. The edits are about this state and no other.
        base: what the writer of the text had read, if that may be something else. Numbers mean
            the cells of that snapshot, and what was changed since then stays.

    Raises:
        Conflict: the text and somebody else changed the same cell since `base`.
        InvalidCell: the text speaks of a cell that is broken in the notebook.
    """
    if base is None:
        numbers = numbered(cells, len(notebook.cells))
        return _edits(list(zip(numbers, cells, strict=True)), notebook)
    from cellwright.text._merging import merged

    return _edits(merged(cells, notebook, base), notebook)


def numbered(cells: Sequence[TextCell], count: int) -> list[int | None]:
    """Which of `count` cells each cell of a text is made from; None for a new one."""
    used: set[int] = set()
    numbers: list[int | None] = []
    for cell in cells:
        number = cell.number
        if number is None or number >= count or number in used:
            numbers.append(None)
        else:
            used.add(number)
            numbers.append(number)
    return numbers


def _edits(targets: Sequence[Target], notebook: Notebook) -> list[Edit]:
    """Delete what is not among the targets, and bring the rest about in their order.

    Cells that are in order already stay where they are. Whatever stands between two of them is
    put after the first, in list order, which is the order that edits at one place keep.
    """
    now = notebook.cells
    kept = [i for i, _ in targets if i is not None]
    gone = set(range(len(now))).difference(kept)
    edits: list[Edit] = [Delete(now[i].handle) for i in sorted(gone)]
    staying = longest_increasing(kept)
    after: str | None = None
    for i, text in targets:
        start = 0 if after is None else None
        if i is not None:
            cell = now[i]
            if text is not None:
                edits += _difference(cell, text)
            if i in staying:
                after = cell.handle
            else:
                edits.append(Move(cell.handle, after=after, at=start))
        elif text is not None:
            edits.append(Insert(text.source, text.type, after=after, at=start))
    return edits


def _difference(cell: Cell, text: TextCell) -> list[Edit]:
    if cell.problem:
        raise InvalidCell(cell.index, cell.problem)
    kind = text.type if text.type != cell.type else None
    if text.source != cell.source:
        return [Replace(cell.handle, text.source, kind)]
    return [SetType(cell.handle, kind)] if kind else []
