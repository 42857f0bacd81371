"""Apply a list of edits to a layout, all or nothing."""

from __future__ import annotations

from itertools import pairwise

from cellwright.document._json.objects import change_members, is_object, merge_patch
from cellwright.document._json.style import Style, split_lines
from cellwright.document._layout import Slot
from cellwright.document._surgery import Surgeon, decode, new_id, replace_value
from cellwright.document.align import align
from cellwright.document.edits import (
    ClearOutputs,
    Delete,
    Insert,
    Merge,
    Move,
    Replace,
    ReplaceText,
    SetMetadata,
    SetType,
    Splice,
    Split,
)
from cellwright.document.validity import cell_problem, is_valid_id, notebook_metadata_problem
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

    from cellwright.document._layout import Layout
    from cellwright.document.edits import Edit
    from cellwright.document.refs import CellRef
    from cellwright.document.revision import Snapshot


def apply(
    layout: Layout,
    minor: int,
    edits: Sequence[Edit],
    current: Snapshot,
    base: Snapshot | None = None,
) -> tuple[Layout, list[int | None]]:
    """The layout after the edits, and for each of its cells the index it had before.

    With `base`, references are as they were in that snapshot; if a cell that an edit touches has
    changed since, nothing is applied and `Conflict` tells what it holds now.
    """
    draft = Draft(layout, minor, current, base)
    for position, edit in enumerate(edits):
        try:
            draft.take(edit)
        except InvalidEdit as error:
            if error.position is not None:
                raise
            raise InvalidEdit(error.message, position=position, hint=error.hint) from None
    if draft.conflicts:
        names = ", ".join(conflict.handle for conflict in draft.conflicts)
        raise Conflict(f"Changed since it was read: {names}", cells=draft.conflicts)
    return draft.finish()


class Draft:
    """The cells while edits are applied: those there were, by their old index, and new ones.

    `arrivals[k]` are the cells that now stand before the cell that had index k, in order; each
    with the index it had before, or None if it is new.
    """

    def __init__(
        self, layout: Layout, minor: int, current: Snapshot, base: Snapshot | None
    ) -> None:
        self.layout = layout
        self.minor = minor
        self.current = current
        self.base = base
        self.pairs = align(base, current) if base is not None else None
        self.surgeon = Surgeon(layout, minor)
        self.slots: list[Slot] = list(layout.slots)
        self.gone: set[int] = set()
        self.moved: set[int] = set()
        self.split: set[int] = set()
        self.arrivals: dict[int, list[tuple[Slot | None, int | None]]] = {}
        self.ids = {id_ for id_ in current.ids if id_ is not None}
        self.skeleton = layout.skeleton
        self.conflicts: list[CellConflict] = []

    def take(self, edit: Edit) -> None:
        """Apply one edit."""
        match edit:
            case Replace():
                self._replace(edit)
            case ReplaceText():
                self._replace_text(edit)
            case Insert():
                self._insert(edit)
            case Delete():
                i = self._existing(edit.cell, edit.expect)
                if i is not None:
                    self.gone.add(i)
            case Move():
                self._move(edit)
            case Split():
                self._split(edit)
            case Merge():
                self._merge(edit)
            case SetType():
                i = self._existing(edit.cell, edit.expect)
                if i is not None:
                    self._retype(i, edit.type)
            case SetMetadata():
                self._set_metadata(edit)
            case ClearOutputs():
                self._clear_outputs(edit)
            case Splice():
                self._splice(edit)
            case _:
                raise InvalidEdit(f"cannot apply {type(edit).__name__}")

    def finish(self) -> tuple[Layout, list[int | None]]:
        """Put the cells in order, and the separators between them."""
        slots: list[Slot] = []
        origins: list[int | None] = []
        for i in range(len(self.slots) + 1):
            for slot, origin in self.arrivals.get(i, ()):
                # A moved cell may have been edited after it was moved.
                if origin is not None and origin not in self.gone:
                    slots.append(self.slots[origin])
                    origins.append(origin)
                elif slot is not None:
                    slots.append(slot)
                    origins.append(None)
            if i < len(self.slots) and i not in self.gone and i not in self.moved:
                slots.append(self.slots[i])
                origins.append(i)
        layout = self.layout
        if self.skeleton is not layout.skeleton:
            layout = layout.with_skeleton(self.skeleton)
        same = len(slots) == len(self.layout.slots) and all(
            a is b for a, b in zip(slots, self.layout.slots, strict=True)
        )
        if same:
            return layout, origins
        return layout.with_cells(slots, place_gaps(self.layout, origins)), origins

    # -- references -------------------------------------------------------------------------

    def _existing(
        self, ref: CellRef, expect: str | None = None, *, touch: bool = True
    ) -> int | None:
        """The index of a cell; None, and a conflict noted, if it is not as the caller knew it."""
        source = self.current if self.base is None else self.base
        i = source.resolver.index(ref)
        known = expect
        if self.base is not None and self.pairs is not None:
            known = expect or self.base.hashes[i]
            handle = self.base.resolver.handle(i)
            if i not in self.pairs:
                if touch:
                    self.conflicts.append(CellConflict(handle, None, "it was deleted"))
                return None
            i = self.pairs[i]
        if i in self.gone:
            raise InvalidEdit(f"cell {ref} is deleted by the same list")
        if touch and known is not None and self.current.hashes[i] != known:
            self.conflicts.append(
                CellConflict(
                    self.current.resolver.handle(i),
                    i,
                    "it was edited",
                    current=self.layout.slots[i].facts.source,
                )
            )
            return None
        return i

    def _readable(self, ref: CellRef, expect: str | None) -> int | None:
        i = self._existing(ref, expect)
        if i is not None:
            problem = self.slots[i].facts.problem
            if problem:
                raise InvalidCell(i, problem)
        return i

    def _place(self, edit: Insert | Move) -> int:
        """The index before which a cell shall stand."""
        if sum(place is not None for place in (edit.after, edit.before, edit.at)) > 1:
            raise InvalidEdit("give only one of `after`, `before`, `at`")
        then = self.current if self.base is None else self.base
        if edit.after is not None:
            return self._now(then.resolver.index(edit.after) + 1)
        if edit.before is not None:
            i = then.resolver.index(edit.before)
            return self.pairs[i] if self.pairs is not None and i in self.pairs else self._now(i)
        if edit.at is None:
            return len(self.slots)
        if edit.at > len(then.ids):
            raise InvalidEdit(f"`at` is {edit.at}, but there are {len(then.ids)} cells")
        return self._now(edit.at)

    def _now(self, place: int) -> int:
        """Where a place between the cells of the base is now: after its nearest predecessor."""
        if self.pairs is None:
            return place
        return next((self.pairs[i] + 1 for i in range(place - 1, -1, -1) if i in self.pairs), 0)

    # -- edits ------------------------------------------------------------------------------

    def _set(self, i: int, raw: bytes) -> None:
        """Keep the new bytes of a cell, completed to a valid cell, if they differ."""
        old = self.slots[i]
        if raw == old.raw:
            return
        facts = Slot.of(raw).facts
        raw = self.surgeon.complete(raw, facts.type, i, self.ids)
        self.slots[i] = Slot.of(raw)
        id_ = self.slots[i].facts.id
        if id_ is not None:
            self.ids.add(id_)

    def _resource(self, i: int, source: str) -> None:
        if source != self.slots[i].facts.source:
            self._set(i, self.surgeon.set_source(self.slots[i].raw, source, i))

    def _retype(self, i: int, cell_type: str) -> None:
        facts = self.slots[i].facts
        if facts.problem and facts.type in ("code", "markdown", "raw", "unknown"):
            raise InvalidCell(i, facts.problem)
        if facts.type != cell_type:
            self._set(i, self.surgeon.set_type(self.slots[i].raw, cell_type, i))

    def _replace(self, edit: Replace) -> None:
        i = self._readable(edit.cell, edit.expect)
        if i is None:
            return
        if edit.type is not None:
            self._retype(i, edit.type)
        self._resource(i, edit.source)
        if edit.outputs == "clear" and self.slots[i].facts.type == "code":
            self._set(i, self.surgeon.clear_outputs(self.slots[i].raw, i))

    def _replace_text(self, edit: ReplaceText) -> None:
        i = self._readable(edit.cell, edit.expect)
        if i is None:
            return
        source = self.slots[i].facts.source
        found = source.count(edit.old)
        if found != edit.count:
            raise TextMismatch(self.current.resolver.handle(i), found, edit.count)
        self._resource(i, source.replace(edit.old, edit.new))

    def _insert(self, edit: Insert) -> None:
        place = self._place(edit)
        cell = self._new_cell(edit.type, edit.source, dict(edit.metadata or {}), edit.id)
        self._arrive(place, cell)

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

    def _arrive(self, place: int, cell: dict[str, Any]) -> None:
        """Write a new cell to stand at a place."""
        if self.minor >= 5:
            cell["id"] = cell.get("id") or new_id(self.ids)
            self.ids.add(cell["id"])
        problem = cell_problem(cell, min(self.minor, 5))
        if problem:
            raise InvalidEdit(problem)
        slot = Slot.of(self.surgeon.write_cell(cell, place))
        self.arrivals.setdefault(place, []).append((slot, None))

    def _move(self, edit: Move) -> None:
        if edit.after is None and edit.before is None and edit.at is None:
            raise InvalidEdit("`move` needs one of `after`, `before`, `at`")
        i = self._existing(edit.cell, touch=False)
        if i is None:
            self.conflicts.append(CellConflict(str(edit.cell), None, "it was deleted"))
            return
        if i in self.moved or i in self.split:
            raise InvalidEdit(f"cell {edit.cell} is moved or split by the same list")
        place = self._place(edit)
        self.moved.add(i)
        self.arrivals.setdefault(place, []).append((None, i))

    def _split(self, edit: Split) -> None:
        i = self._readable(edit.cell, edit.expect)
        if i is None:
            return
        if i in self.moved or i in self.split:
            raise InvalidEdit(f"cell {edit.cell} is moved or split by the same list")
        self.split.add(i)
        lines = split_lines(self.slots[i].facts.source)
        if edit.line >= len(lines):
            raise InvalidEdit(f"the cell has {len(lines)} lines; `line` must be less")
        second = self.surgeon.set_source(self.slots[i].raw, "".join(lines[edit.line :]), i)
        if self.slots[i].facts.type == "code":
            second = self.surgeon.clear_outputs(second, i)
        if self.minor >= 5:
            id_ = new_id(self.ids)
            self.ids.add(id_)
            second = self.surgeon.set_id(second, id_, i)
        second = self.surgeon.complete(second, self.slots[i].facts.type, i, self.ids)
        self._resource(i, "".join(lines[: edit.line]).removesuffix("\n"))
        self.arrivals.setdefault(i + 1, []).append((Slot.of(second), None))

    def _merge(self, edit: Merge) -> None:
        found = [self._readable(ref, None) for ref in edit.cells]
        if None in found:
            return
        order = sorted(i for i in found if i is not None)
        if len(order) < 2 or order != list(range(order[0], order[0] + len(order))):
            raise InvalidEdit("`merge` takes two or more different cells that are neighbours")
        if self.moved.intersection(order):
            raise InvalidEdit("a cell is moved and merged by the same list")
        sources = [self.slots[i].facts.source for i in order]
        self._resource(order[0], "\n".join(sources))
        if self.slots[order[0]].facts.type != "code":
            raws = [self.slots[i].raw for i in order]
            self._set(order[0], self.surgeon.join_attachments(raws, order[0]))
        self.gone.update(order[1:])

    def _set_metadata(self, edit: SetMetadata) -> None:
        if edit.cell is not None:
            i = self._readable(edit.cell, None)
            if i is not None:
                slot = self.slots[i]
                self._set(
                    i,
                    self.surgeon.set_metadata(
                        slot.raw, edit.metadata, slot.facts.type, i, merge=edit.merge
                    ),
                )
            return
        self.skeleton = _notebook_metadata(self.layout, self.skeleton, edit, self.minor)

    def _clear_outputs(self, edit: ClearOutputs) -> None:
        if edit.cells is None:
            wanted = [i for i in range(len(self.slots)) if i not in self.gone]
        else:
            # Outputs are no part of a cell's hash, so that clearing them cannot conflict.
            found = [self._existing(ref, touch=False) for ref in edit.cells]
            wanted = [i for i in found if i is not None]
        for i in wanted:
            facts = self.slots[i].facts
            if facts.type == "code" and not facts.problem:
                self._set(i, self.surgeon.clear_outputs(self.slots[i].raw, i))

    def _splice(self, edit: Splice) -> None:
        count = len(self.current.ids if self.base is None else self.base.ids)
        if edit.start + edit.delete_count > count:
            raise InvalidEdit(
                f"start {edit.start} + delete_count {edit.delete_count} is past the "
                f"{count} cells there are"
            )
        # An id stays with the cells that bring it, also if the cell that had it goes now.
        for k in range(edit.start, edit.start + edit.delete_count):
            i = self._existing(k)
            if i is not None:
                self.gone.add(i)
                self.ids.discard(self.current.ids[i] or "")
        place = self._now(edit.start)
        for value in edit.cells:
            self._arrive(place, self._given_cell(value))

    def _given_cell(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A cell in nbformat's shape, completed, without explicit nulls."""
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


def _notebook_metadata(layout: Layout, skeleton: bytes, edit: SetMetadata, minor: int) -> bytes:
    now = layout if skeleton is layout.skeleton else layout.with_skeleton(skeleton)
    style = now.outer_style()
    member = now.members.get("metadata")
    old = skeleton[member.start : member.end] if member else b"{}"
    if edit.merge:
        old = old if is_object(old) else b"{}"
        own = Style.of_object(old, layout.escapes_unicode) or style
        new = merge_patch(old, edit.metadata, own, style.unit * 2)
    else:
        new = replace_value(old, dict(edit.metadata), style, style.unit)
    metadata = decode(new, "The metadata")
    problem = notebook_metadata_problem(metadata, minor, edit.metadata)
    if problem:
        raise InvalidMetadata(problem)
    if member:
        return skeleton if new == old else skeleton[: member.start] + new + skeleton[member.end :]
    start = skeleton.index(b"{")
    end = skeleton.rindex(b"}") + 1
    whole = change_members(
        skeleton[start:end], {"metadata": new}, style, style.unit, "the notebook"
    )
    return skeleton[:start] + whole + skeleton[end:]


def place_gaps(layout: Layout, origins: Sequence[int | None]) -> list[bytes]:
    """What stands between cells that come from those old places, or are new (None).

    Neighbours that were neighbours keep their separator; others get the one that stood before
    the second of them, or one like its neighbours'.
    """
    gaps = layout.gaps
    count = len(layout.slots)
    if not origins:
        return [b""]
    if not count:
        style = layout.outer_style()
        line = style.newline + style.unit * 2 if style.newline else b""
        between = b"," + line if style.newline else style.comma
        end = style.newline + style.unit if style.newline else b""
        return [line, *[between] * (len(origins) - 1), end]
    usual = b"," + gaps[0] if gaps[0] else layout.outer_style().comma
    usual = gaps[1] if count > 1 else usual
    placed = [gaps[0]]
    for before, after in pairwise(origins):
        if after:
            placed.append(gaps[after])
        elif before is not None and before + 1 < count:
            placed.append(gaps[before + 1])
        else:
            placed.append(usual)
    return [*placed, gaps[-1]]
