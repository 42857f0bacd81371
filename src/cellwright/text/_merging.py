"""A text that was made from an older state of the notebook, merged with what it holds now.

The base is known only by the ids and hashes of its cells, which is enough to tell what each side
changed. The rules are those of `cellwright.document.merge`, with the text as the other side.
"""

from __future__ import annotations

from cellwright.document.change import longest_increasing
from cellwright.document.snapshot import align, hash_cell
from cellwright.errors import CellConflict, Conflict
from cellwright.text.combine import numbered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.text.combine import Target
    from cellwright.text.parsing import TextCell


def merged(cells: Sequence[TextCell], notebook: Notebook, base: Snapshot) -> list[Target]:
    """The cells of the merged notebook in order; raises `Conflict`."""
    merging = _Merging(cells, notebook, base)
    conflicts = [c for i in range(len(base.ids)) if (c := merging.decide(i)) is not None]
    if conflicts:
        names = ", ".join(conflict.handle for conflict in conflicts)
        raise Conflict(f"Changed since the text was read: {names}", cells=conflicts)
    return merging.order()


class _Merging:
    """Indices are of the base (`i`), of the notebook now (`j`) and of the text (`k`)."""

    def __init__(self, cells: Sequence[TextCell], notebook: Notebook, base: Snapshot) -> None:
        self.cells = cells
        self.base = base
        self.now = notebook.cells
        self.hashes = notebook.snapshot().hashes
        self.from_text = numbered(cells, len(base.ids))
        self.in_text = {i: cells[k] for k, i in enumerate(self.from_text) if i is not None}
        self.to_now = align(base, notebook.snapshot())
        self._pair_by_text()
        self.from_now = {j: i for i, j in self.to_now.items()}
        self.edited: dict[int, TextCell] = {}
        self.deleted: set[int] = set()

    def _pair_by_text(self) -> None:
        """Pair cells that hold by now what the text made of them, where no id tells it."""
        taken = set(self.to_now.values())
        places: dict[str, list[int]] = {}
        for j, hash_ in enumerate(self.hashes):
            if j not in taken:
                places.setdefault(hash_, []).append(j)
        for i, text in self.in_text.items() if places else ():
            if i not in self.to_now and self.base.ids[i] is None:
                found = places.get(_hash(text), [])
                if len(found) == 1:
                    self.to_now[i] = found.pop()

    def decide(self, i: int) -> CellConflict | None:
        """Settle what becomes of one cell of the base, or tell why it cannot be."""
        j, text, was = self.to_now.get(i), self.in_text.get(i), self.base.hashes[i]
        said = None if text is None else _hash(text)
        if j is None:
            if text is None or said == was:
                return None
            handle = self.base.resolver.handle(i)
            reason = "deleted from the notebook, edited in the text"
            return CellConflict(handle, None, reason, other=text.source)
        if said in (was, self.hashes[j]):
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
        """The current order; what the text moved or added follows what it follows there."""
        moved = self._moved_by_text()
        additions = self._additions()
        arrivals: dict[int | None, list[Target]] = {}
        anchor: int | None = None  # the cell that stays in its place and was met last
        before: int | None = None  # the cell that all three have and was met last
        for k, i in enumerate(self.from_text):
            if i is None:
                cell = self.cells[k]
                same = additions.get((before, _hash(cell)))
                if same:  # somebody added the same cell at the same place
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
        """Cells that the text moved and nobody else did."""
        there = [i for i in self.from_text if i is not None]
        here = [self.from_now[j] for j in sorted(self.from_now)]
        moved = set(there) - longest_increasing(there)
        moved -= set(here) - longest_increasing(here)
        return {self.to_now[i] for i in moved if i in self.to_now}

    def _additions(self) -> dict[tuple[int | None, str], list[int]]:
        """Cells that were added since, by the cell of the base before them and their hash."""
        found: dict[tuple[int | None, str], list[int]] = {}
        before: int | None = None
        for j, hash_ in enumerate(self.hashes):
            i = self.from_now.get(j)
            if i is None:
                found.setdefault((before, hash_), []).append(j)
            elif i in self.in_text:
                before = i
        return found


def _hash(cell: TextCell) -> str:
    """The hash that the cell has in a notebook."""
    return hash_cell(cell.type, cell.source)
