"""Three-way merge, cell by cell: what two sides made of one base.

Cells are paired by `align`. The order is the current one; cells that the other side moved or
added follow the cell they follow there. Deleting what the other side edited is a conflict, and so
is editing one cell on both sides. Outputs never conflict: the side that changed them has its way,
and the current one if both did.
"""

from __future__ import annotations

from dataclasses import dataclass

from cellwright.document._merging import Merging
from cellwright.document.align import align
from cellwright.document.change import Change, State
from cellwright.errors import Conflict, NeedsUpgrade

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.errors import CellConflict


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge: the notebook, in which cells in conflict are as in `current`, and the conflicts."""

    notebook: Notebook
    conflicts: tuple[CellConflict, ...]

    def with_markers(self, here: str = "current", there: str = "other", size: int = 7) -> Notebook:
        """The notebook with both sides of every cell in conflict, marked as git marks lines.

        A cell that one side deleted is there too; it has nothing between two of the markers.
        """
        from cellwright.document.edits import Insert, Replace

        edits: list[Edit] = []
        for conflict in self.conflicts:
            if conflict.current is None and conflict.other is None:
                continue  # the notebook's metadata, which have no place for both
            sides = ["" if side is None else side for side in (conflict.current, conflict.other)]
            source = "\n".join(
                line
                for line in (
                    f"{'<' * size} {here}",
                    *sides[0].split("\n"),
                    "=" * size,
                    *sides[1].split("\n"),
                    f"{'>' * size} {there}",
                )
                if line
            )
            if conflict.index is None:
                edits.append(Insert(source))
            else:
                place = self.notebook.snapshot().resolver.index(conflict.handle)
                edits.append(Replace(place, source))
        marked = self.notebook.with_layout(self.notebook.state.layout)
        marked.apply(edits)
        return marked

    def raise_for_conflicts(self) -> Merged:
        """Raise `Conflict` if any cell is in conflict."""
        if self.conflicts:
            names = ", ".join(conflict.handle for conflict in self.conflicts)
            raise Conflict(f"Both sides changed {names}", cells=self.conflicts)
        return self


def merge(base: Notebook, current: Notebook, other: Notebook) -> Merged:
    """Merge what `other` made of `base` into `current`; neither is changed."""
    for notebook in (base, current, other):
        if notebook.needs_upgrade:
            raise NeedsUpgrade(notebook.version)
    if current.to_bytes() == other.to_bytes():  # also where cells cannot be told apart
        return Merged(current.with_layout(current.state.layout), ())
    to_other = align(base.snapshot(), other.snapshot())
    merging = Merging(base.state, current.state, other.state, to_other, current.nbformat_minor)
    layout, _ = merging.run()
    return Merged(current.with_layout(layout), tuple(merging.conflicts))


def follow(change: Change, state: State, minor: int) -> Change:
    """Make a recorded change to a notebook that has changed since; raises `Conflict`.

    A cell that holds the source the change found gets the cell that the change left, outputs and
    all: this is how an undo brings outputs back.
    """
    pairs = {i: j for j, i in enumerate(change.origins) if i is not None}
    merging = Merging(change.before, state, change.after, pairs, minor, whole_cells=True)
    layout, origins = merging.run()
    if merging.conflicts:
        names = ", ".join(conflict.handle for conflict in merging.conflicts)
        raise Conflict(f"Changed since: {names}", cells=merging.conflicts)
    return Change(state, State(layout), origins)
