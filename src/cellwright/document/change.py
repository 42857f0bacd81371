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


class Pieces:
    """A notebook as bytes: the file with an empty `cells` array, the cells, and their gaps.

    `gaps` has one more than `cells`. Of a notebook too old to be edited there is only `old`.
    """

    __slots__ = ("cells", "gaps", "old", "skeleton")

    def __init__(
        self,
        skeleton: bytes,
        cells: Sequence[bytes],
        gaps: Sequence[bytes],
        old: bytes | None = None,
    ) -> None:
        self.skeleton = skeleton
        self.cells = cells
        self.gaps = gaps
        self.old = old


class State:
    """What a notebook holds at one moment: a layout, and the snapshot that names its cells.

    Of an nbformat 2 or 3 notebook, `old` is the file as it is, and the layout its conversion.
    """

    __slots__ = ("_snapshot", "layout", "nbformat", "nbformat_minor", "old")

    def __init__(self, layout: Layout, old: bytes | None = None) -> None:
        self.layout = layout
        self.old = old
        self.nbformat, self.nbformat_minor = layout.version
        self._snapshot: Snapshot | None = None

    @classmethod
    def of_pieces(cls, pieces: Pieces) -> State:
        """The state that was taken to pieces, byte for byte."""
        from cellwright.document._layout import Layout
        from cellwright.document._slots import Slot

        if pieces.old is not None:
            from cellwright.document.notebook import Notebook

            return Notebook(pieces.old).state
        slots = [Slot.of(raw) for raw in pieces.cells]
        return cls(Layout(pieces.skeleton, slots, pieces.gaps))

    def to_bytes(self) -> bytes:
        """The whole file."""
        return self.old if self.old is not None else self.layout.to_bytes()

    def holds_the_same(self, other: State) -> bool:
        """Whether both are the same bytes."""
        return self is other or self.to_bytes() == other.to_bytes()

    def pieces(self) -> Pieces:
        """Everything there is to keep of this state, in pieces that other states share."""
        layout = self.layout
        if self.old is not None:
            return Pieces(b"", (), (), self.old)
        return Pieces(layout.skeleton, [slot.raw for slot in layout.slots], layout.gaps)

    @property
    def snapshot(self) -> Snapshot:
        """Ids and hashes, worked out when first asked for."""
        if self._snapshot is None:
            from cellwright.document.revision import Snapshot

            self._snapshot = Snapshot.of(self.layout.slots)
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

    @classmethod
    def between(cls, before: State, after: State) -> Change:
        """The step between any two states, with cells paired as a merge would."""
        from cellwright.document.align import align

        pairs = align(before.snapshot, after.snapshot)
        origins: list[int | None] = [None] * len(after.layout.slots)
        for i, j in pairs.items():
            origins[j] = i
        return cls(before, after, origins)

    def __bool__(self) -> bool:
        return self.before is not self.after

    def then(self, other: Change) -> Change:
        """This one and `other`, which was made right after it, as one."""
        origins = [None if i is None else self.origins[i] for i in other.origins]
        return Change(self.before, other.after, origins, (*self.edits, *other.edits))

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
        old, new = self.before.layout.slots, self.after.layout.slots
        origins = self.origins
        kept = set(origins)
        found = [
            CellChange("deleted", self._handle(self.before, i), old[i].facts.type, i, None)
            for i in range(len(old))
            if i not in kept
        ]
        in_order = longest_increasing([i for i in origins if i is not None])
        for j, i in enumerate(origins):
            if i is None:
                kind = "inserted"
            elif i in in_order and (new[j] is old[i] or new[j].raw == old[i].raw):
                continue
            elif new[j].hash != old[i].hash:
                kind = "edited"
            else:
                kind = "updated" if i in in_order else "moved"
            found.append(CellChange(kind, self._handle(self.after, j), new[j].facts.type, i, j))
        return found

    def _handle(self, state: State, index: int) -> str:
        return state.snapshot.resolver.handle(index)

    def diff(
        self, path: str = "notebook.ipynb", other: str | None = None, *, context: int = 3
    ) -> str:
        """A unified diff, cell by cell; empty if nothing changed.

        `path` and `other` are the names for before and after, one if it is one file.
        """
        from cellwright.document.diff import unified

        return unified(self, path, other or path, context)


def longest_increasing(values: list[int]) -> set[int]:
    """The values that need not be called moved: a longest run that is already in order."""
    from bisect import bisect_left
    from operator import lt

    if all(map(lt, values, values[1:])):
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
