"""Three-way merge, cell by cell, of two notebooks that were made from one base.

Cells are paired by `align`. The order is that of `current`; a cell that `other` moved or added
comes after the cell it comes after there. If one side deletes a cell that the other edited, or
both edit it, that is a conflict. Outputs never conflict: those of the side that changed them are
kept, and those of `current` if both did.
"""

from __future__ import annotations

from dataclasses import dataclass

from cellwright.document._bytes.cell_writer import CellWriter, new_id
from cellwright.document._bytes.layout import place_gaps
from cellwright.document._bytes.slots import Slot
from cellwright.document._json.scan import decode
from cellwright.document._json.writing import change_members, is_object, read_members
from cellwright.document.change import Change, State, longest_increasing
from cellwright.document.snapshot import align
from cellwright.errors import CellConflict, Conflict, NeedsUpgrade

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cellwright.document._bytes.layout import Layout
    from cellwright.document._json.writing import Style
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook

# What a run writes; the other side's is used only if this side did not run the cell.
_WRITTEN_BY_RUNS = frozenset({"outputs", "execution_count"})
# What frontends write by themselves; never a conflict.
_WRITTEN_BY_FRONTENDS = frozenset({"execution", "ExecuteTime", "collapsed", "scrolled"})


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged notebook, in which cells in conflict are as in `current`, and the conflicts."""

    notebook: Notebook
    conflicts: tuple[CellConflict, ...]

    def with_markers(self, here: str = "current", there: str = "other", size: int = 7) -> Notebook:
        """The notebook with both sides of every cell in conflict, marked as git marks lines.

        It also has the cells that one side deleted, with nothing between two of the markers.
        """
        from cellwright.document.edits import Insert, Replace

        edits: list[Edit] = []
        for conflict in self.conflicts:
            if conflict.current is None and conflict.other is None:
                continue  # the notebook's metadata, which cannot show both sides
            here_lines, there_lines = (
                side.split("\n") if side else [] for side in (conflict.current, conflict.other)
            )
            source = "\n".join(
                [
                    f"{'<' * size} {here}",
                    *here_lines,
                    "=" * size,
                    *there_lines,
                    f"{'>' * size} {there}",
                ]
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
    """Merge the changes from `base` to `other` into `current`; no argument is changed."""
    for notebook in (base, current, other):
        if notebook.needs_upgrade:
            raise NeedsUpgrade(notebook.version)
    if current.to_bytes() == other.to_bytes():  # also if cells cannot be distinguished
        return Merged(current.with_layout(current.state.layout), ())
    to_other = align(base.snapshot(), other.snapshot())
    merging = _ThreeWayMerge(
        base.state, current.state, other.state, to_other, current.nbformat_minor
    )
    layout, _ = merging.run()
    return Merged(current.with_layout(layout), tuple(merging.conflicts))


def replay_change(change: Change, state: State, minor: int) -> Change:
    """Apply a recorded change to a notebook that has changed since; raises `Conflict`.

    A cell that still has the source from before the change becomes the whole cell from after it,
    with outputs: so an undo brings outputs back.
    """
    pairs = {i: j for j, i in enumerate(change.origins) if i is not None}
    merging = _ThreeWayMerge(change.before, state, change.after, pairs, minor, whole_cells=True)
    layout, origins = merging.run()
    if merging.conflicts:
        names = ", ".join(conflict.handle for conflict in merging.conflicts)
        raise Conflict(f"Changed since: {names}", cells=merging.conflicts)
    return Change(state, State(layout), origins)


class _ThreeWayMerge:
    """One merge of the changes from `base` to `other` into `current`; `to_other` pairs those two.

    Indices are of the base (`i`), of `current` (`j`) and of `other` (`k`). With `whole_cells`, a
    cell that has the same source in `base` and `current` becomes that of `other`, with outputs.
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
        self.writer = CellWriter(current.layout, minor)
        self.conflicts: list[CellConflict] = []
        self.slots: list[Slot] = list(current.layout.slots)
        self.deleted: set[int] = set()
        self.added_ids: dict[str, int] = {}
        self.added_here: dict[tuple[int | None, str], list[int]] = {}
        self.from_current = {j: i for i, j in self.to_current.items()}
        self.from_other = {k: i for i, k in to_other.items()}
        self._collect_added()

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
            return  # a cell without an id had none before, and stays as it is
        writer = CellWriter(layout, layout.version[1])
        ids = {slot.facts.id for slot in slots}
        for i, (slot, origin) in enumerate(zip(slots, origins, strict=True)):
            new_here = upgraded or origin is None or slot is not self.current.layout.slots[origin]
            if new_here and slot.facts.id is None and not slot.facts.problem:
                id_ = new_id(ids)
                ids.add(id_)
                slots[i] = Slot.of(writer.set_id(slot.raw, id_, i))

    def _merge_cell(self, i: int, j: int | None, k: int | None) -> None:
        """Decide what becomes of one cell of the base, by its index on all three sides."""
        was = self.base.layout.slots[i]
        now = self.current.layout.slots[j] if j is not None else None
        then = self.other.layout.slots[k] if k is not None else None
        if j is None or now is None:
            if then is not None and then.hash != was.hash:
                self._add_conflict(i, None, then, "deleted here, edited there", was)
        elif then is None:
            if now.hash != was.hash:
                self._add_conflict(i, j, None, "edited here, deleted there", was)
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
            self._add_conflict(i, j, then, "edited on both sides", was)
            return
        style, indent = self.writer.style(now.raw)
        raw, clashes = _merge_objects(was.raw, now.raw, then.raw, style, indent)
        if clashes:
            self._add_conflict(i, j, then, f"both sides changed {', '.join(clashes)}", was)
            return
        # One side may have turned a cell into text while the other changed outputs or metadata.
        merged = Slot.of(raw).facts
        if now.facts.type != merged.type or then.facts.type != merged.type:
            raw = self.writer.fit_metadata(raw, merged.type, j)
        ids = set(self.current.snapshot.ids) | set(self.other.snapshot.ids)
        self.slots[j] = Slot.of(self.writer.complete(raw, merged.type, j, lambda: new_id(ids)))

    def _order(self) -> Iterable[tuple[str, int]]:
        """The cells of the result in order, each as a side and an index there."""
        moved = self._moved_by_other()
        count = len(self.current.layout.slots)
        kept = [j for j in range(count) if j not in self.deleted and j not in moved]
        placed = {("current", j) for j in kept}
        # The cells to add right after each cell, or at the beginning (None).
        following: dict[tuple[str, int] | None, list[tuple[str, int]]] = {}
        before: tuple[str, int] | None = None
        for k in range(len(self.other.layout.slots)):
            i = self.from_other.get(k)
            if i is None:
                here = self._find_added(k)
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

    def _find_added(self, k: int) -> int | None:
        """The same new cell in `current`; None if only the other side has it."""
        id_, hash_ = self.other.snapshot.ids[k], self.other.snapshot.hashes[k]
        if id_ is None:
            # A cell here matches one cell of the other side, not two.
            same = self.added_here.get((self._base_before(k), hash_), [])
            return same.pop(0) if same else None
        j = self.added_ids.pop(id_, None)
        if j is not None and self.current.snapshot.hashes[j] != hash_:
            self._add_conflict(None, j, self.other.layout.slots[k], "added on both sides", None)
        return j

    def _collect_added(self) -> None:
        """Collect the cells that this side added, by id or by place and hash."""
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
        """The nearest cell of the base before a cell of the other side."""
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
        merged, clashes = _merge_objects(
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

    def _add_conflict(
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


def _merge_objects(
    base: bytes, current: bytes, other: bytes, style: Style, indent: bytes
) -> tuple[bytes, list[str]]:
    """The merged object, and the keys (as paths) that both sides changed in different ways."""
    was, now, then = (_values(raw) for raw in (base, current, other))
    changes: dict[str, bytes | None] = {}
    clashes: list[str] = []
    ran_here = any(not _same_value(was.get(key), now.get(key)) for key in _WRITTEN_BY_RUNS)
    for key in {**was, **now, **then}:
        before, here, there = was.get(key), now.get(key), then.get(key)
        if _same_value(there, before) or _same_value(there, here):
            continue
        if key in _WRITTEN_BY_RUNS and ran_here:
            continue
        if _same_value(here, before):
            changes[key] = there
        elif key in _WRITTEN_BY_FRONTENDS:
            continue
        elif here and there and is_object(here) and is_object(there):
            inner = before if before and is_object(before) else b"{}"
            changes[key], deeper = _merge_objects(inner, here, there, style, indent + style.unit)
            clashes += [f"{key}.{path}" for path in deeper]
        else:
            clashes.append(key)
    return change_members(current, changes, style, indent, "the notebook"), clashes


def _values(raw: bytes) -> dict[str, bytes]:
    return {
        key: raw[member.start : member.end]
        for key, member in read_members(raw, "the notebook").items()
    }


def _same_value(one: bytes | None, two: bytes | None) -> bool:
    """Whether two values are the same, even if they are spelled differently."""
    if one == two:
        return True
    if one is None or two is None:
        return False
    first, second = decode(one, "A value"), decode(two, "A value")
    if isinstance(first, list) and isinstance(second, str):
        first, second = second, first
    if isinstance(first, str) and isinstance(second, list):
        # A text may be written as one string or as a list of lines.
        return all(isinstance(line, str) for line in second) and "".join(second) == first
    return repr(first) == repr(second)
