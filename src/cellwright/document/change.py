"""What one list of edits did to a notebook: kept whole, shown, and taken back."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document._layout import Layout
    from cellwright.document.edits import Edit
    from cellwright.document.revision import Snapshot


class CellChange:
    """What happened to one cell.

    `kind` is `inserted`, `deleted`, `edited` (source or type), `moved`, or `updated` (outputs or
    metadata). `before` and `after` are its index then and now, None where it did not exist;
    `handle` names it now, or named it before it was deleted.
    """

    __slots__ = ("after", "before", "handle", "kind", "type")

    def __init__(
        self, kind: str, handle: str, type_: str, before: int | None, after: int | None
    ) -> None:
        self.kind = kind
        self.handle = handle
        self.type = type_
        self.before = before
        self.after = after

    def __repr__(self) -> str:
        return f"<{self.kind} {self.handle}: {self.before} -> {self.after}>"


class State:
    """A layout with the snapshot that names its cells."""

    __slots__ = ("_snapshot", "layout")

    def __init__(self, layout: Layout, snapshot: Snapshot | None = None) -> None:
        self.layout = layout
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """Ids and hashes, worked out when first asked for."""
        if self._snapshot is None:
            from cellwright.document.revision import Snapshot

            slots = self.layout.slots
            ids = [slot.facts.id for slot in slots]
            self._snapshot = Snapshot(ids, [slot.hash for slot in slots])
        return self._snapshot


class Change:
    """The step from one state of a notebook to another.

    `origins` has, for every cell after the change, the index it had before, or None if it is new.
    """

    __slots__ = ("after", "before", "edits", "origins")

    def __init__(
        self,
        before: State,
        after: State,
        origins: Sequence[int | None],
        edits: Sequence[Edit] = (),
    ) -> None:
        self.before = before
        self.after = after
        self.origins = origins
        self.edits = tuple(edits)

    def __bool__(self) -> bool:
        return self.before.layout is not self.after.layout

    def inverse(self) -> Change:
        """The change that takes this one back, outputs and bytes included.

        Apply it to the notebook: what was edited elsewhere since then stays, and a cell that was
        edited again is a `Conflict`.
        """
        back: list[int | None] = [None] * len(self.before.layout.slots)
        for after, before in enumerate(self.origins):
            if before is not None:
                back[before] = after
        return Change(self.after, self.before, back)

    @property
    def cells(self) -> list[CellChange]:
        """What happened to each cell concerned, in the new order, deleted ones first."""
        old, new = self.before.snapshot, self.after.snapshot
        kept = {i for i in self.origins if i is not None}
        found = [
            CellChange("deleted", old.resolver.handle(i), slot.facts.type, i, None)
            for i, slot in enumerate(self.before.layout.slots)
            if i not in kept
        ]
        in_order = longest_increasing([i for i in self.origins if i is not None])
        for j, (slot, i) in enumerate(zip(self.after.layout.slots, self.origins, strict=True)):
            if i is None:
                kind = "inserted"
            elif slot.hash != self.before.layout.slots[i].hash:
                kind = "edited"
            elif i not in in_order:
                kind = "moved"
            elif slot is not self.before.layout.slots[i]:
                kind = "updated"
            else:
                continue
            found.append(CellChange(kind, new.resolver.handle(j), slot.facts.type, i, j))
        return found

    def diff(self, path: str = "notebook.ipynb", context: int = 3) -> str:
        """A unified diff, cell by cell; empty if nothing changed."""
        from cellwright.document.diff import unified

        return unified(self, path, context)


def longest_increasing(values: list[int]) -> set[int]:
    """The values that need not be called moved: a longest run that is already in order."""
    from bisect import bisect_left

    if values == sorted(values):
        return set(values)
    tails: list[int] = []
    places: list[int] = []
    previous: dict[int, int | None] = {}
    for value in values:
        at = bisect_left(places, value)
        previous[value] = tails[at - 1] if at else None
        if at == len(places):
            places.append(value)
            tails.append(value)
        else:
            places[at] = value
            tails[at] = value
    chosen = set()
    last: int | None = tails[-1] if tails else None
    while last is not None:
        chosen.add(last)
        last = previous[last]
    return chosen
