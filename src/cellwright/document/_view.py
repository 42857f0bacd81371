"""What the caller of an edit had in view, and where that is now."""

from __future__ import annotations

from cellwright.document.align import align
from cellwright.errors import InvalidEdit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.change import State
    from cellwright.document.edits import Insert, Move
    from cellwright.document.refs import CellRef
    from cellwright.document.revision import Snapshot


class View:
    """The cells as the caller knew them: the base it had read, or the notebook as it is.

    An index is one of the base ("then") or of the notebook ("now"); without a base both are one.
    """

    def __init__(self, state: State, base: Snapshot | None) -> None:
        self._state = state
        self._base = base
        self._pairs = align(base, state.snapshot) if base is not None else None
        self.count = len(state.layout.slots) if base is None else len(base.ids)

    def index(self, ref: CellRef) -> int:
        """The index then of the cell meant."""
        if self._base is not None:
            return self._base.resolver.index(ref)
        if type(ref) is int and -self.count <= ref < self.count:
            return ref % self.count  # a position needs no look at any id
        return self._state.snapshot.resolver.index(ref)

    def now(self, then: int) -> int | None:
        """The index now of a cell, or None if it is gone."""
        return then if self._pairs is None else self._pairs.get(then)

    def hash(self, then: int) -> str | None:
        """What the caller knew a cell to hold; None if it did not say."""
        return None if self._base is None else self._base.hashes[then]

    def handle(self, then: int) -> str:
        """What the caller would call a cell."""
        snapshot = self._state.snapshot if self._base is None else self._base
        return snapshot.resolver.handle(then)

    def place(self, edit: Insert | Move) -> int:
        """The index now before which a cell shall stand."""
        if sum(place is not None for place in (edit.after, edit.before, edit.at)) > 1:
            raise InvalidEdit("give only one of `after`, `before`, `at`")
        if edit.after is not None:
            return self.place_now(self.index(edit.after) + 1)
        if edit.before is not None:
            then = self.index(edit.before)
            now = self.now(then)
            return self.place_now(then) if now is None else now
        if edit.at is None:
            return len(self._state.layout.slots)
        if edit.at > self.count:
            raise InvalidEdit(f"`at` is {edit.at}, but there are {self.count} cells")
        return self.place_now(edit.at)

    def place_now(self, then: int) -> int:
        """Where a place between cells is now: after its nearest predecessor that is left."""
        if self._pairs is None:
            return then
        return next((self._pairs[i] + 1 for i in range(then - 1, -1, -1) if i in self._pairs), 0)
