"""The cells of a notebook while a list of edits is applied to them."""

from __future__ import annotations

from cellwright.document._gaps import place_gaps
from cellwright.document._slots import Slot
from cellwright.document._surgery import Surgeon, new_id
from cellwright.document._view import View
from cellwright.document.validity import cell_problem
from cellwright.errors import CellConflict, InvalidCell, InvalidEdit, InvalidMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document._layout import Layout
    from cellwright.document.change import State
    from cellwright.document.refs import CellRef
    from cellwright.document.revision import Snapshot


class Draft:
    """The cells while edits are applied: those there were, by their old index, and new ones.

    `frame` is the notebook around the cells as the edits so far have left it. `arrivals[k]` are
    the cells that now stand before the cell that had index k, in order; each with the index it
    had before, or None if it is new.
    """

    def __init__(self, state: State, minor: int, base: Snapshot | None) -> None:
        layout = state.layout
        self.layout = layout
        self.frame = layout
        self.minor = minor
        self.state = state
        self.view = View(state, base)
        self.surgeon = Surgeon(layout, minor)
        self.count = len(layout.slots)
        self.replaced: dict[int, Slot] = {}
        self.gone: set[int] = set()
        self.moved: set[int] = set()
        self.split: set[int] = set()
        self.arrivals: dict[int, list[tuple[Slot | None, int | None]]] = {}
        self._ids: set[str | None] | None = None
        self.conflicts: list[CellConflict] = []

    def finish(self) -> tuple[Layout, Sequence[int | None]]:
        """Put the cells in order, and the separators between them."""
        layout = self.frame
        if not self.arrivals and not self.gone:
            return layout.with_replaced(self.replaced) if self.replaced else layout, range(
                self.count
            )
        slots: list[Slot] = []
        origins: list[int | None] = []
        for i in range(self.count + 1):
            for slot, origin in self.arrivals.get(i, ()):
                # A moved cell may have been edited, or deleted, after it was moved.
                if slot is not None:
                    slots.append(slot)
                    origins.append(None)
                elif origin is not None and origin not in self.gone:
                    slots.append(self._slot(origin))
                    origins.append(origin)
            if i < self.count and i not in self.gone and i not in self.moved:
                slots.append(self._slot(i))
                origins.append(i)
        if origins == list(range(self.count)):  # moved to where it was
            return layout.with_replaced(self.replaced) if self.replaced else layout, origins
        return layout.with_cells(slots, place_gaps(self.layout, origins)), origins

    @property
    def ids(self) -> set[str | None]:
        """The ids that are taken; asked for only when a new one is needed."""
        if self._ids is None:
            self._ids = set(self.state.snapshot.ids)
        return self._ids

    def _new_id(self) -> str:
        id_ = new_id(self.ids)
        self.ids.add(id_)
        return id_

    def _slot(self, i: int) -> Slot:
        """A cell as the edits so far have left it."""
        return self.replaced.get(i) or self.layout.slots[i]

    # -- references -------------------------------------------------------------------------

    def _existing(
        self,
        ref: CellRef,
        expect: str | None = None,
        *,
        touch: bool = True,
        must_exist: bool = True,
        other: str | None = None,
    ) -> int | None:
        """The index of a cell; None, and a conflict noted, if it is not as the caller knew it.

        Without `touch` it may hold something else by now; without `must_exist` it may be gone.
        `other` is what the edit would have made of it.
        """
        then = self.view.index(ref)
        i = self.view.now(then)
        if i is None:
            if must_exist:
                self.conflicts.append(
                    CellConflict(self.view.handle(then), None, "it was deleted", other=other)
                )
            return None
        known = expect or self.view.hash(then)
        if i in self.gone:
            raise InvalidEdit(f"cell {ref} is deleted by the same list")
        if touch and known is not None and self.layout.slots[i].hash != known:
            self.conflicts.append(
                CellConflict(
                    self.state.snapshot.resolver.handle(i),
                    i,
                    "it was edited",
                    current=self.layout.slots[i].facts.source,
                    other=other,
                )
            )
            return None
        return i

    def _readable(self, ref: CellRef, expect: str | None, other: str | None = None) -> int | None:
        i = self._existing(ref, expect, other=other)
        if i is not None:
            problem = self._slot(i).facts.problem
            if problem:
                raise InvalidCell(i, problem)
        return i

    # -- what edits do to cells ----------------------------------------------------------------

    def _set(self, i: int, raw: bytes) -> None:
        """Keep the new bytes of a cell, completed to a valid cell, if they differ."""
        if raw != self._slot(i).raw:
            raw = self.surgeon.complete(raw, Slot.of(raw).facts.type, i, self._new_id)
            self.replaced[i] = Slot.of(raw)

    def _resource(self, i: int, source: str) -> None:
        if source != self._slot(i).facts.source:
            self._set(i, self.surgeon.set_source(self._slot(i).raw, source, i))

    def _retype(self, i: int, cell_type: str) -> None:
        facts = self._slot(i).facts
        if facts.problem and facts.type in ("code", "markdown", "raw", "unknown"):
            raise InvalidCell(i, facts.problem)
        if facts.type != cell_type:
            self._set(i, self.surgeon.set_type(self._slot(i).raw, cell_type, i))

    def _arrive(self, place: int, cell: dict[str, Any]) -> None:
        """Write a new cell to stand at a place."""
        if self.minor >= 5:
            cell["id"] = cell.get("id") or self._new_id()
            self.ids.add(cell["id"])
        problem = cell_problem(cell, min(self.minor, 5))
        if problem:
            raise InvalidEdit(problem)
        try:
            slot = Slot.of(self.surgeon.write_cell(cell, place))
        except InvalidMetadata as error:
            raise InvalidEdit(error.message) from None
        self.arrivals.setdefault(place, []).append((slot, None))
