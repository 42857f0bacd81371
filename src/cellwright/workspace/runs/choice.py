"""Which cells a run is for: named ones, ranges, those above or below, stale ones, a replay."""

from __future__ import annotations

import re
from typing import NamedTuple

from cellwright.errors import AmbiguousCell, CellNotFound, InvalidCell, InvalidEdit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import CellRef
    from cellwright.journal.executions import ExecutionRecord

_SKIPPED = "skip-execution"
_RAISES = "raises-exception"
_numbers = re.compile(r"\d+-\d*", re.ASCII).fullmatch


class Choice(NamedTuple):
    """The code cells that a run is for, and those that it leaves out because of their tag."""

    cells: list[Cell]
    skipped: list[Cell]


def choose_code(
    notebook: Notebook,
    cells: Sequence[CellRef] | None = None,
    *,
    above: CellRef | None = None,
    below: CellRef | None = None,
    stale: bool = False,
    replay: CellRef | None = None,
    executions: Callable[[], Sequence[ExecutionRecord]] = lambda: (),
    life: Callable[[], str | None] = lambda: None,
) -> Choice:
    """Choose the code cells that are meant, in the order of the notebook; all of them by default.

    A cell with the tag `skip-execution` runs only if it is named itself, as in JupyterLab.

    Args:
        notebook: as it is now.
        cells: references and ranges: `A-B` is the code cells from A to B, both included, and
            `A-` those from A on.
        above: those before this cell.
        below: this cell and those after it.
        stale: those whose results are stale.
        replay: this cell, after the cells above that give it what it needs.
        executions: asks for the runs on record, for `stale` and `replay`.
        life: asks which life of a kernel the notebook has now.

    Raises:
        CellNotFound, AmbiguousCell: a cell is not there, or not the only one.
        InvalidCell: a cell that was named is not code.
        InvalidEdit: the choice was made twice.
    """
    given = [value for value in (cells, above, below, stale or None, replay) if value is not None]
    if len(given) > 1:
        raise InvalidEdit(
            "only one of cells, above, below, stale and replay", hint="Run the rest after it"
        )
    if stale:
        from cellwright.workspace.staleness import find_stale_cells

        cells = find_stale_cells(notebook, executions(), life())
    elif replay is not None:
        from cellwright.workspace.staleness import find_replay_cells

        target = _require_code(notebook.cell(replay))
        needed = _find_named(notebook, find_replay_cells(notebook, executions(), target, life()))
        return _leave_out([*needed, target], {target.index})
    if cells is not None:
        named = () if stale else [ref for ref in cells if not _is_range(notebook, ref)]
        found = _find_named(notebook, cells)
        return _leave_out(found, {notebook.cell(ref).index for ref in named})
    every: Iterable[Cell] = notebook.cells
    if above is not None:
        every = notebook.cells[: notebook.cell(above).index]
    elif below is not None:
        every = notebook.cells[notebook.cell(below).index :]
    return _leave_out([cell for cell in every if cell.type == "code"])


def choose_unfinished(
    notebook: Notebook, executions: Sequence[ExecutionRecord], life: str, since: float
) -> tuple[list[Cell], dict[str, ExecutionRecord]]:
    """Choose the code cells from the first on that has not ended well in that life of a kernel.

    Returns them, and the executions of those before them, by handle. What was run before `since`
    does not count.
    """
    newest = {
        run.cell: run for run in executions if run.kernel == life and run.began >= since and life
    }
    cells = choose_code(notebook).cells
    done: dict[str, ExecutionRecord] = {}
    for place, cell in enumerate(cells):
        run = newest.get(cell.handle)
        tags = cell.metadata.get("tags")
        may_fail = isinstance(tags, list) and _RAISES in tags
        ended = ("ok", "error") if may_fail else ("ok",)
        if run is None or run.hash != cell.hash or run.status not in ended:
            return cells[place:], done
        done[cell.handle] = run
    return [], done


def _leave_out(cells: Iterable[Cell], named: Collection[int] = ()) -> Choice:
    """Leave out what a tag says must not run, unless it was named."""
    choice = Choice([], [])
    for cell in cells:
        tags = cell.metadata.get("tags")
        is_tagged = isinstance(tags, list) and _SKIPPED in tags
        (choice.skipped if is_tagged and cell.index not in named else choice.cells).append(cell)
    return choice


def _is_range(notebook: Notebook, ref: CellRef) -> bool:
    return (
        isinstance(ref, str) and "-" in ref and _find_span(notebook, ref, notebook.cell) is not None
    )


def choose_cells(notebook: Notebook, refs: Sequence[CellRef], *, first: int = 0) -> list[Cell]:
    """Return the cells of any type that are named, one by one or as ranges, in order.

    `first` is the number of the first cell: a chat counts from 1.

    Raises:
        CellNotFound, AmbiguousCell: a cell is not there, or not the only one.
    """

    def find(ref: CellRef) -> Cell:
        return notebook.cell(_shift(notebook, ref, first))

    chosen: dict[int, Cell] = {}
    for ref in refs:
        found = _find_span(notebook, ref, find) if isinstance(ref, str) and "-" in ref else None
        cells = [find(ref)] if found is None else notebook.cells[found[0] : found[1] + 1]
        chosen.update((cell.index, cell) for cell in cells)
    return [chosen[index] for index in sorted(chosen)]


def _shift(notebook: Notebook, ref: CellRef, first: int) -> CellRef:
    """A reference with its number counted from 0; an id stays, also one that looks like a number."""
    if not (first and isinstance(ref, str) and ref.isascii() and ref.isdigit()):
        return ref
    if any(cell.id == ref for cell in notebook.cells):
        return ref
    if int(ref) < first:
        raise CellNotFound(ref, near=[cell.handle for cell in notebook.cells[:1]])
    return int(ref) - first


def _find_named(notebook: Notebook, refs: Sequence[CellRef]) -> list[Cell]:
    chosen: dict[int, Cell] = {}
    for ref in refs:
        found = _find_range(notebook, ref) if isinstance(ref, str) and "-" in ref else None
        cells = [_require_code(notebook.cell(ref))] if found is None else found
        chosen.update((cell.index, cell) for cell in cells)
    return [chosen[index] for index in sorted(chosen)]


def _require_code(cell: Cell) -> Cell:
    if cell.type != "code":
        raise InvalidCell(cell.index, f"it is {cell.type}, and only code can run")
    return cell


def _find_range(notebook: Notebook, text: str) -> list[Cell] | None:
    """The code cells of a range; None if the text is no range."""
    found = _find_span(notebook, text, notebook.cell)
    if found is None:
        return None
    return [cell for cell in notebook.cells[found[0] : found[1] + 1] if cell.type == "code"]


def _find_span(
    notebook: Notebook, text: str, find: Callable[[str], Cell]
) -> tuple[int, int] | None:
    """The first and the last index of a range; None if the text is a plain reference, or nothing.

    A text that is a cell's id, or names one cell otherwise, is no range. Ids may hold dashes, so
    that every one is tried as the dash of the range: if two make sense, it is ambiguous.
    """
    try:
        find(text)
    except AmbiguousCell:
        return None
    except CellNotFound:
        pass
    else:
        return None
    # Where ids look like this, it is more likely a cell that is gone.
    if _numbers(text) and any(_numbers(cell.id or "") for cell in notebook.cells):
        return None
    found: set[tuple[int, int]] = set()
    for at in (place for place, sign in enumerate(text) if sign == "-"):
        try:
            first = find(text[:at]).index
            last = find(text[at + 1 :]).index if text[at + 1 :] else None
        except CellNotFound:
            continue
        found.add((first, len(notebook.cells) - 1 if last is None else last))
    if not found:
        return None
    if len(found) > 1:
        raise InvalidEdit(
            f"`{text}` can be read as {len(found)} different ranges", hint="Use positions: 2-5"
        )
    first, last = found.pop()
    if first > last:
        raise InvalidEdit(
            f"the range `{text}` ends before it begins",
            hint="Write the upper cell first",
        )
    return first, last
