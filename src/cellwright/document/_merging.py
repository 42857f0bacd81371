"""One merge while it is made: which cells pair, what becomes of each, and in which order."""

from __future__ import annotations

from cellwright.document._gaps import place_gaps
from cellwright.document._merge_objects import merge_objects
from cellwright.document._slots import Slot
from cellwright.document._surgery import Surgeon, new_id
from cellwright.document.align import align
from cellwright.document.change import longest_increasing
from cellwright.errors import CellConflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cellwright.document._layout import Layout
    from cellwright.document.change import State


class Merging:
    """What `other` made of `base`, merged into `current`; `to_other` pairs base and other.

    With `whole_cells`, a cell of which `current` has the source of `base` becomes that of `other`,
    outputs and all.
    """

    def __init__(
        self,
        base: State,
        current: State,
        other: State,
        to_other: dict[int, int],
        minor: int,
        *,
        whole_cells: bool = False,
    ) -> None:
        self.base, self.current, self.other = base, current, other
        self.to_current = align(base.snapshot, current.snapshot)
        self.to_other = to_other
        self.whole_cells = whole_cells
        self.surgeon = Surgeon(current.layout, minor)
        self.conflicts: list[CellConflict] = []
        self.slots: list[Slot] = list(current.layout.slots)
        self.deleted: set[int] = set()
        self.added_ids: dict[str, int] = {}
        self.added_here: dict[tuple[int | None, str], list[int]] = {}
        self.from_current = {j: i for i, j in self.to_current.items()}
        self.from_other = {k: i for i, k in to_other.items()}
        self._survey_added()

    def run(self) -> tuple[Layout, list[int | None]]:
        """The merged layout, and the index in `current` of each of its cells."""
        for i in range(len(self.base.layout.slots)):
            self._merge_cell(i, self.to_current.get(i), self.to_other.get(i))
        slots: list[Slot] = []
        origins: list[int | None] = []
        for side, index in self._order():
            slots.append(self.slots[index] if side == "current" else self.other.layout.slots[index])
            origins.append(index if side == "current" else None)
        layout = self._merge_skeleton()
        if layout.version[1] >= 5:
            self._give_ids(slots, origins, layout)
        return layout.with_cells(slots, place_gaps(self.current.layout, origins)), origins

    def _give_ids(self, slots: list[Slot], origins: list[int | None], layout: Layout) -> None:
        """Give an id to cells that come from a version without ids into one that needs them."""
        upgraded, came_old = self.current.nbformat_minor < 5, self.other.nbformat_minor < 5
        if not (upgraded or came_old):
            return  # a cell that lacks its id lacked it before: it stays as its side has it
        surgeon = Surgeon(layout, layout.version[1])
        ids = {slot.facts.id for slot in slots}
        for i, (slot, origin) in enumerate(zip(slots, origins, strict=True)):
            new_here = upgraded or origin is None or slot is not self.current.layout.slots[origin]
            if new_here and slot.facts.id is None and not slot.facts.problem:
                id_ = new_id(ids)
                ids.add(id_)
                slots[i] = Slot.of(surgeon.set_id(slot.raw, id_, i))

    def _merge_cell(self, i: int, j: int | None, k: int | None) -> None:
        """Decide about one cell of the base, by its index on all three sides."""
        was = self.base.layout.slots[i]
        now = self.current.layout.slots[j] if j is not None else None
        then = self.other.layout.slots[k] if k is not None else None
        if j is None or now is None:
            if then is not None and then.hash != was.hash:
                self._disagree(i, None, then, "deleted here, edited there", was)
        elif then is None:
            if now.hash != was.hash:
                self._disagree(i, j, None, "edited here, deleted there", was)
            else:
                self.deleted.add(j)
        elif then is was or then.raw == was.raw:
            pass
        elif now is was or now.raw == was.raw or (self.whole_cells and now.hash == was.hash):
            self.slots[j] = then
        elif then.raw != now.raw:
            self._merge_contents(i, j, was, now, then)

    def _merge_contents(self, i: int, j: int, was: Slot, now: Slot, then: Slot) -> None:
        if was.facts.problem or now.facts.problem or then.facts.problem or self.whole_cells:
            self._disagree(i, j, then, "edited on both sides", was)
            return
        style, indent = self.surgeon.style(now.raw)
        raw, clashes = merge_objects(was.raw, now.raw, then.raw, style, indent)
        if clashes:
            self._disagree(i, j, then, f"both sides changed {', '.join(clashes)}", was)
            return
        # One side may have made text of a cell whose outputs or metadata the other renewed.
        merged = Slot.of(raw).facts
        if now.facts.type != merged.type or then.facts.type != merged.type:
            raw = self.surgeon.fit_metadata(raw, merged.type, j)
        ids = set(self.current.snapshot.ids) | set(self.other.snapshot.ids)
        self.slots[j] = Slot.of(self.surgeon.complete(raw, merged.type, j, lambda: new_id(ids)))

    def _order(self) -> Iterable[tuple[str, int]]:
        """The cells of the result in order, each as a side and an index there."""
        moved = self._moved_by_other()
        count = len(self.current.layout.slots)
        kept = [j for j in range(count) if j not in self.deleted and j not in moved]
        placed = {("current", j) for j in kept}
        # What comes right after each cell, or (None) first of all, besides what is there.
        following: dict[tuple[str, int] | None, list[tuple[str, int]]] = {}
        before: tuple[str, int] | None = None
        for k in range(len(self.other.layout.slots)):
            i = self.from_other.get(k)
            if i is None:
                here = self._added_here(k)
                item = ("other", k) if here is None else ("current", here)
            elif i in self.to_current and self.to_current[i] not in self.deleted:
                item = ("current", self.to_current[i])
            else:
                continue
            if item not in placed:
                placed.add(item)
                following.setdefault(before, []).append(item)
            before = item
        order: list[tuple[str, int]] = []
        stack = [("current", j) for j in reversed(kept)]
        stack += reversed(following.get(None, []))
        while stack:
            item = stack.pop()
            order.append(item)
            stack += reversed(following.get(item, []))
        return order

    def _moved_by_other(self) -> set[int]:
        """Cells of `current` that the other side moved and this side did not."""
        there = [self.from_other[k] for k in sorted(self.from_other)]
        here = [self.from_current[j] for j in sorted(self.from_current)]
        moved = set(there) - longest_increasing(there)
        moved -= set(here) - longest_increasing(here)
        return {self.to_current[i] for i in moved if i in self.to_current}

    def _added_here(self, k: int) -> int | None:
        """The cell that this side added as the other did; None if only the other has it."""
        id_, hash_ = self.other.snapshot.ids[k], self.other.snapshot.hashes[k]
        if id_ is None:
            # One cell here stands for one cell of the other side, not for two.
            same = self.added_here.get((self._base_before(k), hash_), [])
            return same.pop(0) if same else None
        j = self.added_ids.pop(id_, None)
        if j is not None and self.current.snapshot.hashes[j] != hash_:
            self._disagree(None, j, self.other.layout.slots[k], "added on both sides", None)
        return j

    def _survey_added(self) -> None:
        """Note the cells that this side added, by id or by place and content."""
        before = None
        snapshot = self.current.snapshot
        for j, (id_, hash_) in enumerate(zip(snapshot.ids, snapshot.hashes, strict=True)):
            if j in self.from_current:
                before = self.from_current[j]
            elif id_ is not None:
                self.added_ids[id_] = j
            else:
                self.added_here.setdefault((before, hash_), []).append(j)

    def _base_before(self, k: int) -> int | None:
        """The cell of the base that a cell of the other side comes after."""
        return next(
            (self.from_other[n] for n in range(k - 1, -1, -1) if n in self.from_other), None
        )

    def _merge_skeleton(self) -> Layout:
        base, current, other = (
            state.layout.skeleton for state in (self.base, self.current, self.other)
        )
        if other in (base, current):
            return self.current.layout
        start, end = current.index(b"{"), current.rindex(b"}") + 1
        style = self.current.layout.outer_style()
        merged, clashes = merge_objects(
            base[base.index(b"{") : base.rindex(b"}") + 1],
            current[start:end],
            other[other.index(b"{") : other.rindex(b"}") + 1],
            style,
            style.unit,
        )
        if clashes:
            names = ", ".join(clashes)
            self.conflicts.append(CellConflict("the notebook", None, f"both sides changed {names}"))
            return self.current.layout
        return self.current.layout.with_skeleton(current[:start] + merged + current[end:])

    def _disagree(
        self, i: int | None, j: int | None, then: Slot | None, reason: str, was: Slot | None
    ) -> None:
        if j is not None:
            handle = self.current.snapshot.resolver.handle(j)
        else:
            handle = self.base.snapshot.resolver.handle(i or 0)
        now = self.current.layout.slots[j] if j is not None else None
        self.conflicts.append(
            CellConflict(
                handle,
                j,
                reason,
                base=was.facts.source if was else None,
                current=now.facts.source if now else None,
                other=then.facts.source if then else None,
            )
        )
