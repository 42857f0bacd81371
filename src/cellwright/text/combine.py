"""Turn a text, and the notebook it was made from, into the edits that make them agree.

If the text was made from an older state of the notebook, the two are merged. Of that state only
the ids and hashes of its cells are known, which is enough to see what each side changed. The
rules are those of `cellwright.document.merge`, with the text as the other side.
"""

from __future__ import annotations

import re

from cellwright.document.change import longest_increasing
from cellwright.document.edits import Delete, Insert, Move, Replace, SetMetadata, SetType
from cellwright.document.notebook import Notebook
from cellwright.document.snapshot import align, hash_cell
from cellwright.errors import CellConflict, Conflict, InvalidCell
from cellwright.text.view import parse_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import Snapshot
    from cellwright.text.view import TextCell

    # One cell of the resulting notebook: the index it has now, or None if it is new; and its cell
    # in the text, or None if it stays as it is.
    Target = tuple[int | None, TextCell | None]


def from_text(text: str, base: Notebook | None = None) -> Notebook:
    """The notebook that a text describes, made from `base` or from an empty one.

    A marker `cell:N` means cell N of `base`, which keeps its id, metadata, attachments and
    outputs, and every byte if the text did not change it. `base` itself is not changed.

    Raises:
        InvalidText: the first line is not a marker.
    """
    base = Notebook() if base is None else base
    edits = edits_for(parse_text(text), base)
    made = base.with_layout(base.state.layout)
    made.state = base.state  # which also knows the bytes of a file too old to be edited
    if edits:
        made.apply(edits)
    return made


def edits_for(
    cells: Sequence[TextCell], notebook: Notebook, base: Snapshot | None = None
) -> list[Edit]:
    """The edits that make a notebook agree with a text, to be applied to it at once.

    Cells that the text does not change are not touched. A cell that it leaves out is deleted. A
    marker without a number, with a number used before, or with one that no cell has, makes a new
    cell.

    Args:
        cells: what `parse_text` found in the text.
        notebook: its current state, which the edits apply to.
        base: what the writer of the text had read, if it may be older. Numbers mean the cells of
            that snapshot, and what was changed since then stays.

    Raises:
        Conflict: the text and another writer changed the same cell since `base`.
        InvalidCell: the text changes a cell that is broken in the notebook.
    """
    if base is None:
        numbers = _number_cells(cells, len(notebook.cells))
        return _edits_to_targets(list(zip(numbers, cells, strict=True)), notebook)

    return _edits_to_targets(_merge_text(cells, notebook, base), notebook)


def _number_cells(cells: Sequence[TextCell], count: int) -> list[int | None]:
    """The index, below `count`, of the cell that each cell of a text is made from; None if new."""
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


def _edits_to_targets(targets: Sequence[Target], notebook: Notebook) -> list[Edit]:
    """The edits that delete all other cells, and put the targets into their order.

    Cells that are already in order stay in place. What comes between two of them is put after the
    first, in list order, which edits at one place keep.
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
            edits.append(
                Insert(
                    text.source,
                    text.type,
                    id=_usable_id(text, notebook),
                    metadata=text.metadata or None,
                    after=after,
                    at=start,
                )
            )
    return edits


def _usable_id(text: TextCell, notebook: Notebook) -> str | None:
    """The id that the text gives a new cell, if the notebook has ids, and not this one."""
    cells = notebook.cells
    if text.id is None or any(cell.id is None or cell.id == text.id for cell in cells):
        return None
    return text.id if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text.id) else None


def _difference(cell: Cell, text: TextCell) -> list[Edit]:
    if cell.problem:
        raise InvalidCell(cell.index, cell.problem)
    kind = text.type if text.type != cell.type else None
    edits: list[Edit] = []
    if text.source != cell.source:
        edits.append(Replace(cell.handle, text.source, kind))
    elif kind:
        edits.append(SetType(cell.handle, kind))
    if text.metadata is not None:
        had = cell.metadata
        gone = {} if text.metadata.get("tags") or not had.get("tags") else {"tags": None}
        new = {name: value for name, value in text.metadata.items() if had.get(name) != value}
        if new or gone:
            edits.append(SetMetadata({**new, **gone}, cell=cell.handle))
    return edits


def _merge_text(cells: Sequence[TextCell], notebook: Notebook, base: Snapshot) -> list[Target]:
    """The cells of the merged notebook in order; raises `Conflict`."""
    merging = _TextMerge(cells, notebook, base)
    conflicts = [c for i in range(len(base.ids)) if (c := merging.decide(i)) is not None]
    if conflicts:
        names = ", ".join(conflict.handle for conflict in conflicts)
        raise Conflict(f"Changed since the text was read: {names}", cells=conflicts)
    return merging.order()


class _TextMerge:
    """Indices are of the base (`i`), of the notebook now (`j`) and of the text (`k`)."""

    def __init__(self, cells: Sequence[TextCell], notebook: Notebook, base: Snapshot) -> None:
        self.cells = cells
        self.base = base
        self.now = notebook.cells
        self.hashes = notebook.snapshot().hashes
        self.from_text = _number_cells(cells, len(base.ids))
        self.in_text = {i: cells[k] for k, i in enumerate(self.from_text) if i is not None}
        self.to_now = align(base, notebook.snapshot())
        self._pair_by_text()
        self.from_now = {j: i for i, j in self.to_now.items()}
        self.edited: dict[int, TextCell] = {}
        self.deleted: set[int] = set()

    def _pair_by_text(self) -> None:
        """Pair cells without an id that already have the source that the text gives them."""
        taken = set(self.to_now.values())
        places: dict[str, list[int]] = {}
        for j, hash_ in enumerate(self.hashes):
            if j not in taken:
                places.setdefault(hash_, []).append(j)
        for i, text in self.in_text.items() if places else ():
            if i not in self.to_now and self.base.ids[i] is None:
                found = places.get(_hash_text(text), [])
                if len(found) == 1:
                    self.to_now[i] = found.pop()

    def decide(self, i: int) -> CellConflict | None:
        """Decide what becomes of one cell of the base; returns the conflict if there is one."""
        j, text, was = self.to_now.get(i), self.in_text.get(i), self.base.hashes[i]
        wanted = None if text is None else _hash_text(text)
        if j is None:
            if text is None or wanted == was:
                return None
            handle = self.base.resolver.handle(i)
            reason = "deleted from the notebook, edited in the text"
            return CellConflict(handle, None, reason, other=text.source)
        if wanted in (was, self.hashes[j]):
            return None
        if self.hashes[j] == was:
            if text is None:
                self.deleted.add(j)
            else:
                self.edited[j] = text
            return None
        now = self.now[j]
        if text is None:
            reason = "edited in the notebook, left out of the text"
            return CellConflict(now.handle, j, reason, current=now.source)
        reason = "edited in the notebook and in the text"
        return CellConflict(now.handle, j, reason, current=now.source, other=text.source)

    def order(self) -> list[Target]:
        """The current order; a cell that the text moved or added follows the one it follows there."""
        moved = self._moved_by_text()
        additions = self._additions()
        arrivals: dict[int | None, list[Target]] = {}
        anchor: int | None = None  # the last cell so far that stays in its place
        before: int | None = None  # the last cell so far that all three versions have
        for k, i in enumerate(self.from_text):
            if i is None:
                cell = self.cells[k]
                same = additions.get((before, _hash_text(cell)))
                if same:  # the same cell was added at the same place
                    anchor = same.pop(0)
                else:
                    arrivals.setdefault(anchor, []).append((None, cell))
            elif i in self.to_now:
                j, before = self.to_now[i], i
                if j in moved:
                    arrivals.setdefault(anchor, []).append((j, self.edited.get(j)))
                else:
                    anchor = j
        targets = arrivals.get(None, [])
        for j in range(len(self.now)):
            if j not in self.deleted and j not in moved:
                targets.append((j, self.edited.get(j)))
                targets += arrivals.get(j, ())
        return targets

    def _moved_by_text(self) -> set[int]:
        """Cells that only the text moved."""
        there = [i for i in self.from_text if i is not None]
        here = [self.from_now[j] for j in sorted(self.from_now)]
        moved = set(there) - longest_increasing(there)
        moved -= set(here) - longest_increasing(here)
        return {self.to_now[i] for i in moved if i in self.to_now}

    def _additions(self) -> dict[tuple[int | None, str], list[int]]:
        """Cells added to the notebook since, by the cell of the base before them and their hash."""
        found: dict[tuple[int | None, str], list[int]] = {}
        before: int | None = None
        for j, hash_ in enumerate(self.hashes):
            i = self.from_now.get(j)
            if i is None:
                found.setdefault((before, hash_), []).append(j)
            elif i in self.in_text:
                before = i
        return found


def _hash_text(cell: TextCell) -> str:
    """The hash that a cell of the text would have in a notebook."""
    return hash_cell(cell.type, cell.source)
