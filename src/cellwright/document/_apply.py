"""Apply a list of edits to a notebook, all or nothing."""

from __future__ import annotations

from cellwright.document._bytes.cell_writer import CellWriter, derive_id, new_id
from cellwright.document._bytes.layout import place_gaps
from cellwright.document._bytes.slots import Slot, SlotFacts
from cellwright.document._bytes.validity import cell_problem, is_valid_id, notebook_metadata_problem
from cellwright.document._json.scan import decode
from cellwright.document._json.writing import (
    Style,
    change_members,
    has_surrogates,
    is_object,
    merge_patch,
    replace_value,
    split_lines,
)
from cellwright.document.edits import (
    ClearOutputs,
    Delete,
    Insert,
    MergeCells,
    Move,
    Replace,
    ReplaceText,
    SetMetadata,
    SetOutputs,
    SetType,
    SetWidgets,
    Splice,
    Split,
)
from cellwright.document.snapshot import align
from cellwright.errors import (
    CellConflict,
    Conflict,
    InvalidCell,
    InvalidEdit,
    InvalidMetadata,
    TextMismatch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from cellwright.document._bytes.layout import Layout
    from cellwright.document.change import State
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import CellRef, Snapshot


def apply_edits(
    state: State,
    minor: int,
    edits: Sequence[Edit],
    base: Snapshot | None = None,
) -> tuple[Layout, Sequence[int | None]]:
    """The layout after the edits, and for each of its cells the index it had before.

    With `base`, references mean the cells of that snapshot. If a cell that an edit touches has
    changed since, nothing is applied and `Conflict` says what it holds now.
    """
    draft = Draft(state, minor, base)
    for position, edit in enumerate(edits):
        try:
            draft.apply(edit)
        except InvalidEdit as error:
            if error.position is not None:
                raise
            raise InvalidEdit(error.message, position=position, hint=error.hint) from None
    if draft.conflicts:
        names = ", ".join(conflict.handle for conflict in draft.conflicts)
        raise Conflict(f"Changed since it was read: {names}", cells=draft.conflicts)
    return draft.finish()


class Draft:
    """The cells while edits are applied: the old ones by their old index, and new ones.

    `frame` is the notebook around the cells after the edits so far. `arrivals[k]` are the cells
    that now come before the cell that had index k, in order: new cells, or the old indices of
    moved ones.
    """

    def __init__(self, state: State, minor: int, base: Snapshot | None) -> None:
        layout = state.layout
        self.layout = layout
        self.frame = layout
        self.minor = minor
        self.state = state
        self.view = CallerView(state, base)
        self.writer = CellWriter(layout, minor)
        self.count = len(layout.slots)
        self.replaced: dict[int, Slot] = {}
        self.deleted: set[int] = set()
        self.moved: set[int] = set()
        self.split: set[int] = set()
        self.arrivals: dict[int, list[tuple[Slot | None, int | None]]] = {}
        self._ids: set[str | None] | None = None
        self.conflicts: list[CellConflict] = []

    def apply(self, edit: Edit) -> None:
        """Apply one edit."""
        match edit:
            case Replace():
                self._replace(edit)
            case ReplaceText():
                self._replace_text(edit)
            case Insert():
                self._insert(edit)
            case Delete():
                i = self._resolve(edit.cell, edit.expect)
                if i is not None:
                    self.deleted.add(i)
            case Move():
                self._move(edit)
            case Split():
                self._split(edit)
            case MergeCells():
                self._merge(edit)
            case SetType():
                i = self._resolve(edit.cell, edit.expect)
                if i is not None:
                    self._set_cell_type(i, edit.type)
            case SetMetadata():
                self._set_metadata(edit)
            case SetWidgets():
                self.frame = _set_notebook_widgets(self.frame, edit.metadata)
            case SetOutputs():
                self._set_outputs(edit)
            case ClearOutputs():
                self._clear_outputs(edit)
            case Splice():
                self._splice(edit)
            case _:
                raise InvalidEdit(f"cannot apply {type(edit).__name__}")

    def _replace(self, edit: Replace) -> None:
        i = self._resolve_valid(edit.cell, edit.expect, edit.source)
        if i is None:
            return
        if edit.type is not None:
            self._set_cell_type(i, edit.type)
        self._set_source(i, edit.source)
        if edit.outputs == "clear" and self._slot(i).facts.type == "code":
            self._set_bytes(i, self.writer.clear_outputs(self._slot(i).raw, i))

    def _replace_text(self, edit: ReplaceText) -> None:
        i = self._resolve_valid(edit.cell, edit.expect)
        if i is None:
            return
        source = self._slot(i).facts.source
        found = source.count(edit.old)
        if found != edit.count:
            raise TextMismatch(self.state.snapshot.resolver.handle(i), found, edit.count)
        self._set_source(i, source.replace(edit.old, edit.new))

    def _insert(self, edit: Insert) -> None:
        place = self.view.place(edit)
        cell = self._new_cell(edit.type, edit.source, dict(edit.metadata or {}), edit.id)
        self._add_cell(place, cell)

    def _new_cell(
        self, cell_type: str, source: str, metadata: dict[str, Any], id_: str | None
    ) -> dict[str, Any]:
        cell: dict[str, Any] = {"cell_type": cell_type, "metadata": metadata, "source": source}
        if cell_type == "code":
            cell |= {"execution_count": None, "outputs": []}
        if id_ is not None:
            if self.minor < 5:
                raise InvalidEdit(
                    f"nbformat 4.{self.minor} has no cell ids", hint="Leave `id` out, or upgrade"
                )
            if not is_valid_id(id_):
                raise InvalidEdit("an id has 1 to 64 letters, digits, - and _")
            if id_ in self.ids:
                raise InvalidEdit(f"the id `{id_}` is taken")
            cell["id"] = id_
        return cell

    def _move(self, edit: Move) -> None:
        if edit.after is None and edit.before is None and edit.at is None:
            raise InvalidEdit("`move` needs one of `after`, `before`, `at`")
        i = self._resolve(edit.cell, touch=False)
        if i is None:
            return
        if i in self.moved or i in self.split:
            raise InvalidEdit(f"cell {edit.cell} is moved or split by the same list")
        place = self.view.place(edit)
        self.moved.add(i)
        self.arrivals.setdefault(place, []).append((None, i))

    def _split(self, edit: Split) -> None:
        i = self._resolve_valid(edit.cell, edit.expect)
        if i is None:
            return
        if i in self.moved or i in self.split:
            raise InvalidEdit(f"cell {edit.cell} is moved or split by the same list")
        self.split.add(i)
        lines = split_lines(self._slot(i).facts.source)
        if edit.line >= len(lines):
            raise InvalidEdit(f"the cell has {len(lines)} lines; `line` must be less")
        second = self.writer.set_source(self._slot(i).raw, "".join(lines[edit.line :]), i)
        if self._slot(i).facts.type == "code":
            second = self.writer.clear_outputs(second, i)
        if self.minor >= 5:
            second = self.writer.set_id(second, self._new_id(), i)
        second = self.writer.complete(second, self._slot(i).facts.type, i, self._new_id)
        self._set_source(i, "".join(lines[: edit.line]).removesuffix("\n"))
        self.arrivals.setdefault(i + 1, []).append((Slot.of(second), None))

    def _merge(self, edit: MergeCells) -> None:
        found = [self._resolve_valid(ref, None) for ref in edit.cells]
        if None in found:
            return
        order = sorted(i for i in found if i is not None)
        if len(order) < 2 or order != list(range(order[0], order[0] + len(order))):
            raise InvalidEdit("`merge` takes two or more different cells that are neighbours")
        if not (self.moved | self.split).isdisjoint(order):
            raise InvalidEdit("a cell is moved or split, and merged, by the same list")
        sources = [self._slot(i).facts.source for i in order]
        self._set_source(order[0], "\n".join(sources))
        if self._slot(order[0]).facts.type != "code":
            raws = [self._slot(i).raw for i in order]
            self._set_bytes(order[0], self.writer.join_attachments(raws, order[0]))
        self.deleted.update(order[1:])

    def _set_metadata(self, edit: SetMetadata) -> None:
        if edit.cell is not None:
            i = self._resolve_valid(edit.cell, None)
            if i is not None:
                slot = self._slot(i)
                self._set_bytes(
                    i,
                    self.writer.set_metadata(
                        slot.raw, edit.metadata, slot.facts.type, i, merge=edit.merge
                    ),
                )
            return
        self.frame = _set_notebook_metadata(self.frame, edit.metadata, self.minor, merge=edit.merge)

    def _clear_outputs(self, edit: ClearOutputs) -> None:
        if edit.cells is None:
            wanted = [i for i in range(self.count) if i not in self.deleted]
        else:
            # Outputs are not part of a cell's hash, so clearing them cannot conflict.
            found = [self._resolve(ref, touch=False, must_exist=False) for ref in edit.cells]
            wanted = [i for i in found if i is not None]
        for i in wanted:
            facts = self._slot(i).facts
            if facts.type == "code" and not facts.problem:
                self._set_bytes(i, self.writer.clear_outputs(self._slot(i).raw, i))

    def _set_outputs(self, edit: SetOutputs) -> None:
        i = self._resolve(edit.cell, touch=False)
        if i is None:
            return
        facts = self._slot(i).facts
        if facts.problem or facts.type != "code":
            raise InvalidCell(i, facts.problem or "only code has outputs")
        raw = self._slot(i).raw
        self._set_bytes(i, self.writer.set_outputs(raw, edit.outputs, edit.execution_count, i))

    def _splice(self, edit: Splice) -> None:
        count = self.view.count
        if edit.start + edit.delete_count > count:
            raise InvalidEdit(
                f"start {edit.start} + delete_count {edit.delete_count} is past the "
                f"{count} cells there are"
            )
        # A new cell may keep the id that it brings if the cell with that id is deleted here.
        replaced = [self._resolve(k) for k in range(edit.start, edit.start + edit.delete_count)]
        self.deleted.update(i for i in replaced if i is not None)
        stay = {id_ for i, id_ in enumerate(self.state.snapshot.ids) if i not in self.deleted}
        for i in replaced:
            if i is not None and self._slot(i).facts.id not in stay:
                self.ids.discard(self._slot(i).facts.id)
        place = self.view.place_now(edit.start)
        for value in edit.cells:
            self._add_cell(place, self._complete_cell(value))

    def _complete_cell(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A cell in nbformat's shape, with the members it needs, without explicit nulls."""
        cell = {key: item for key, item in value.items() if item is not None}
        metadata = cell.get("metadata", {})
        if isinstance(metadata, dict):
            cell["metadata"] = {key: item for key, item in metadata.items() if item is not None}
        id_ = cell.pop("id", None)
        if self.minor >= 5 and is_valid_id(id_) and id_ not in self.ids:
            cell["id"] = id_
        if cell.get("cell_type") == "code":
            cell = {"execution_count": None, "outputs": [], **cell}
        else:
            cell.pop("execution_count", None)
            cell.pop("outputs", None)
        return cell

    def finish(self) -> tuple[Layout, Sequence[int | None]]:
        """The cells in their new order, with the separators between them."""
        layout = self.frame
        if not self.arrivals and not self.deleted:
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
                elif origin is not None and origin not in self.deleted:
                    slots.append(self._slot(origin))
                    origins.append(origin)
            if i < self.count and i not in self.deleted and i not in self.moved:
                slots.append(self._slot(i))
                origins.append(i)
        if origins == list(range(self.count)):  # moved to where it was
            return layout.with_replaced(self.replaced) if self.replaced else layout, origins
        return layout.with_cells(slots, place_gaps(self.layout, origins)), origins

    @property
    def ids(self) -> set[str | None]:
        """The ids in use; read only when a new one is needed."""
        if self._ids is None:
            self._ids = set(self.state.snapshot.ids)
        return self._ids

    def _new_id(self) -> str:
        id_ = new_id(self.ids)
        self.ids.add(id_)
        return id_

    def _complete_id(self, i: int) -> str:
        """An id for a cell that has none that is valid; git takes a random one for a change."""
        id_ = derive_id(self.layout.slots[i].hash, self.ids)
        self.ids.add(id_)
        return id_

    def _slot(self, i: int) -> Slot:
        """A cell after the edits so far."""
        return self.replaced.get(i) or self.layout.slots[i]

    def _resolve(
        self,
        ref: CellRef,
        expect: str | None = None,
        *,
        touch: bool = True,
        must_exist: bool = True,
        other: str | None = None,
    ) -> int | None:
        """The index of a cell; None, with a conflict noted, if it is not as the caller knew it.

        Without `touch` its source may have changed; without `must_exist` it may be deleted.
        `other` is the source that the edit would have given it.
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
        if i in self.deleted:
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

    def _resolve_valid(
        self, ref: CellRef, expect: str | None, other: str | None = None
    ) -> int | None:
        i = self._resolve(ref, expect, other=other)
        if i is not None:
            problem = self._slot(i).facts.problem
            if problem:
                raise InvalidCell(i, problem)
        return i

    def _set_bytes(self, i: int, raw: bytes) -> None:
        """Keep the new bytes of a cell if they differ, completed to a valid cell."""
        if raw != self._slot(i).raw:
            slot = Slot.of(raw)
            whole = self.writer.complete(raw, slot.facts.type, i, lambda: self._complete_id(i))
            self.replaced[i] = slot if whole is raw else Slot.of(whole)

    def _set_source(self, i: int, source: str) -> None:
        slot = self._slot(i)
        facts = slot.facts
        if source != facts.source:
            raw = self.writer.set_source(
                slot.raw, source, i, (facts.type, lambda: self._complete_id(i))
            )
            # The new cell need not be decoded: only its source differs, unless it lacked an id.
            # Two halves of a character become one in the file.
            is_known = self.minor < 5 or is_valid_id(facts.id)
            is_known = is_known and not has_surrogates(source)
            known = SlotFacts(facts.id, facts.type, source, None) if is_known else None
            self.replaced[i] = Slot(raw, 0, len(raw), known)

    def _set_cell_type(self, i: int, cell_type: str) -> None:
        facts = self._slot(i).facts
        if facts.problem and facts.type in ("code", "markdown", "raw", "unknown"):
            raise InvalidCell(i, facts.problem)
        if facts.type != cell_type:
            self._set_bytes(i, self.writer.set_type(self._slot(i).raw, cell_type, i))

    def _add_cell(self, place: int, cell: dict[str, Any]) -> None:
        """Write a new cell at a place."""
        if self.minor >= 5:
            cell["id"] = cell.get("id") or self._new_id()
            self.ids.add(cell["id"])
        problem = cell_problem(cell, min(self.minor, 5))
        if problem:
            raise InvalidEdit(problem)
        try:
            slot = Slot.of(self.writer.write_cell(cell, place))
        except InvalidMetadata as error:
            raise InvalidEdit(error.message) from None
        self.arrivals.setdefault(place, []).append((slot, None))


def _set_notebook_metadata(
    layout: Layout, patch: Mapping[str, Any], minor: int, *, merge: bool
) -> Layout:
    """The notebook with a patch merged into its metadata, or put in place of them."""
    style, skeleton = layout.outer_style(), layout.skeleton
    member = layout.members.get("metadata")
    old = skeleton[member.start : member.end] if member else b"{}"
    if merge:
        old = old if is_object(old) else b"{}"
        own = Style.of_object(old, layout.escapes_unicode, style.comma) or style
        new = merge_patch(old, patch, own, style.unit * 2)
    else:
        new = replace_value(old, dict(patch), style, style.unit)
    metadata = decode(new, "The metadata")
    problem = notebook_metadata_problem(metadata, minor, patch)
    if problem:
        raise InvalidMetadata(problem)
    if member and new == skeleton[member.start : member.end]:
        return layout
    return layout.with_member("metadata", new)


def _set_notebook_widgets(layout: Layout, widgets: Mapping[str, Any]) -> Layout:
    """The notebook with other widgets in its metadata; the other members keep their bytes."""
    style, skeleton = layout.outer_style(), layout.skeleton
    member = layout.members.get("metadata")
    old = skeleton[member.start : member.end] if member else b"{}"
    old = old if is_object(old) else b"{}"
    own = Style.of_object(old, layout.escapes_unicode, style.comma) or style
    indent = style.unit * 2
    changes: dict[str, bytes | None] = {"widgets": own.encode(dict(widgets), indent)}
    return layout.with_member("metadata", change_members(old, changes, own, indent, "the metadata"))


class CallerView:
    """The cells as the caller knew them: those of the base, or of the notebook as it is.

    An index is one of the base ("then") or of the notebook ("now"); without a base they are equal.
    """

    def __init__(self, state: State, base: Snapshot | None) -> None:
        self._state = state
        self._base = base
        self._pairs = align(base, state.snapshot) if base is not None else None
        self.count = len(state.layout.slots) if base is None else len(base.ids)

    def index(self, ref: CellRef) -> int:
        """The index then of the cell that a reference means."""
        if self._base is not None:
            return self._base.resolver.index(ref)
        if type(ref) is int and -self.count <= ref < self.count:
            return ref % self.count  # a position can be found without any id
        return self._state.snapshot.resolver.index(ref)

    def now(self, then: int) -> int | None:
        """The index now of a cell, or None if it was deleted."""
        return then if self._pairs is None else self._pairs.get(then)

    def hash(self, then: int) -> str | None:
        """The hash that the caller knew for a cell; None without a base."""
        return None if self._base is None else self._base.hashes[then]

    def handle(self, then: int) -> str:
        """The caller's name for a cell."""
        snapshot = self._state.snapshot if self._base is None else self._base
        return snapshot.resolver.handle(then)

    def place(self, edit: Insert | Move) -> int:
        """The index now before which an edit puts a cell."""
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
        """The place now of a place between cells: after its nearest predecessor that is left."""
        if self._pairs is None:
            return then
        return next((self._pairs[i] + 1 for i in range(then - 1, -1, -1) if i in self._pairs), 0)
