"""Apply a list of edits to a layout, all or nothing."""

from __future__ import annotations

from cellwright.document._draft import Draft
from cellwright.document._json.style import split_lines
from cellwright.document._skeleton import set_notebook_metadata
from cellwright.document._slots import Slot
from cellwright.document.edits import (
    ClearOutputs,
    Delete,
    Insert,
    Merge,
    Move,
    Replace,
    ReplaceText,
    SetMetadata,
    SetOutputs,
    SetType,
    Splice,
    Split,
)
from cellwright.document.validity import is_valid_id
from cellwright.errors import (
    Conflict,
    InvalidCell,
    InvalidEdit,
    TextMismatch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from cellwright.document._layout import Layout
    from cellwright.document.change import State
    from cellwright.document.edits import Edit
    from cellwright.document.revision import Snapshot


def apply(
    state: State,
    minor: int,
    edits: Sequence[Edit],
    base: Snapshot | None = None,
) -> tuple[Layout, Sequence[int | None]]:
    """The layout after the edits, and for each of its cells the index it had before.

    With `base`, references are as they were in that snapshot; if a cell that an edit touches has
    changed since, nothing is applied and `Conflict` tells what it holds now.
    """
    draft = _Edited(state, minor, base)
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


class _Edited(Draft):
    """A draft that knows what each kind of edit does."""

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
            case SetOutputs():
                self._set_outputs(edit)
            case ClearOutputs():
                self._clear_outputs(edit)
            case Splice():
                self._splice(edit)
            case _:
                raise InvalidEdit(f"cannot apply {type(edit).__name__}")

    def _replace(self, edit: Replace) -> None:
        i = self._readable(edit.cell, edit.expect, edit.source)
        if i is None:
            return
        if edit.type is not None:
            self._retype(i, edit.type)
        self._resource(i, edit.source)
        if edit.outputs == "clear" and self._slot(i).facts.type == "code":
            self._set(i, self.surgeon.clear_outputs(self._slot(i).raw, i))

    def _replace_text(self, edit: ReplaceText) -> None:
        i = self._readable(edit.cell, edit.expect)
        if i is None:
            return
        source = self._slot(i).facts.source
        found = source.count(edit.old)
        if found != edit.count:
            raise TextMismatch(self.state.snapshot.resolver.handle(i), found, edit.count)
        self._resource(i, source.replace(edit.old, edit.new))

    def _insert(self, edit: Insert) -> None:
        place = self.view.place(edit)
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

    def _move(self, edit: Move) -> None:
        if edit.after is None and edit.before is None and edit.at is None:
            raise InvalidEdit("`move` needs one of `after`, `before`, `at`")
        i = self._existing(edit.cell, touch=False)
        if i is None:
            return
        if i in self.moved or i in self.split:
            raise InvalidEdit(f"cell {edit.cell} is moved or split by the same list")
        place = self.view.place(edit)
        self.moved.add(i)
        self.arrivals.setdefault(place, []).append((None, i))

    def _split(self, edit: Split) -> None:
        i = self._readable(edit.cell, edit.expect)
        if i is None:
            return
        if i in self.moved or i in self.split:
            raise InvalidEdit(f"cell {edit.cell} is moved or split by the same list")
        self.split.add(i)
        lines = split_lines(self._slot(i).facts.source)
        if edit.line >= len(lines):
            raise InvalidEdit(f"the cell has {len(lines)} lines; `line` must be less")
        second = self.surgeon.set_source(self._slot(i).raw, "".join(lines[edit.line :]), i)
        if self._slot(i).facts.type == "code":
            second = self.surgeon.clear_outputs(second, i)
        if self.minor >= 5:
            second = self.surgeon.set_id(second, self._new_id(), i)
        second = self.surgeon.complete(second, self._slot(i).facts.type, i, self._new_id)
        self._resource(i, "".join(lines[: edit.line]).removesuffix("\n"))
        self.arrivals.setdefault(i + 1, []).append((Slot.of(second), None))

    def _merge(self, edit: Merge) -> None:
        found = [self._readable(ref, None) for ref in edit.cells]
        if None in found:
            return
        order = sorted(i for i in found if i is not None)
        if len(order) < 2 or order != list(range(order[0], order[0] + len(order))):
            raise InvalidEdit("`merge` takes two or more different cells that are neighbours")
        if not (self.moved | self.split).isdisjoint(order):
            raise InvalidEdit("a cell is moved or split, and merged, by the same list")
        sources = [self._slot(i).facts.source for i in order]
        self._resource(order[0], "\n".join(sources))
        if self._slot(order[0]).facts.type != "code":
            raws = [self._slot(i).raw for i in order]
            self._set(order[0], self.surgeon.join_attachments(raws, order[0]))
        self.gone.update(order[1:])

    def _set_metadata(self, edit: SetMetadata) -> None:
        if edit.cell is not None:
            i = self._readable(edit.cell, None)
            if i is not None:
                slot = self._slot(i)
                self._set(
                    i,
                    self.surgeon.set_metadata(
                        slot.raw, edit.metadata, slot.facts.type, i, merge=edit.merge
                    ),
                )
            return
        self.frame = set_notebook_metadata(self.frame, edit.metadata, self.minor, merge=edit.merge)

    def _clear_outputs(self, edit: ClearOutputs) -> None:
        if edit.cells is None:
            wanted = [i for i in range(self.count) if i not in self.gone]
        else:
            # Outputs are no part of a cell's hash, so that clearing them cannot conflict.
            found = [self._existing(ref, touch=False, must_exist=False) for ref in edit.cells]
            wanted = [i for i in found if i is not None]
        for i in wanted:
            facts = self._slot(i).facts
            if facts.type == "code" and not facts.problem:
                self._set(i, self.surgeon.clear_outputs(self._slot(i).raw, i))

    def _set_outputs(self, edit: SetOutputs) -> None:
        i = self._existing(edit.cell, touch=False)
        if i is None:
            return
        facts = self._slot(i).facts
        if facts.problem or facts.type != "code":
            raise InvalidCell(i, facts.problem or "only code has outputs")
        raw = self._slot(i).raw
        self._set(i, self.surgeon.set_outputs(raw, edit.outputs, edit.execution_count, i))

    def _splice(self, edit: Splice) -> None:
        count = self.view.count
        if edit.start + edit.delete_count > count:
            raise InvalidEdit(
                f"start {edit.start} + delete_count {edit.delete_count} is past the "
                f"{count} cells there are"
            )
        # An id stays with the cells that bring it, also if the cell that had it goes now.
        going = [self._existing(k) for k in range(edit.start, edit.start + edit.delete_count)]
        self.gone.update(i for i in going if i is not None)
        stay = {id_ for i, id_ in enumerate(self.state.snapshot.ids) if i not in self.gone}
        for i in going:
            if i is not None and self._slot(i).facts.id not in stay:
                self.ids.discard(self._slot(i).facts.id)
        place = self.view.place_now(edit.start)
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
