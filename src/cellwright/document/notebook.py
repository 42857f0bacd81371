"""The notebook in memory: read from bytes, edited as data, written back losslessly."""

from __future__ import annotations

from cellwright.document._bytes.layout import Layout
from cellwright.document._bytes.slots import FileSlots
from cellwright.document._json.scan import decode
from cellwright.document.cells import Cells
from cellwright.document.change import Change, State
from cellwright.errors import InvalidNotebook, NeedsUpgrade, UnknownRevision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import CellRef, Snapshot

_NEW = b'{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n'


class Origin:
    """The last known content of a file: the path it was read by, its real path, and its bytes."""

    __slots__ = ("layout", "path", "real")

    def __init__(self, path: str, real: str, layout: Layout) -> None:
        self.path = path
        self.real = real
        self.layout = layout


class Notebook:
    """A notebook, with every byte of the file it came from.

    `apply` changes it and returns what it did. Cells that no edit touched keep their bytes.
    `path` is where it was read from or last written to. `state` is its content, which is never
    changed in place, and `origin` the last known content of its file; other modules use both to
    save, merge and remember.
    """

    __slots__ = ("origin", "path", "state")

    def __init__(self, data: bytes = _NEW, *, path: str | None = None) -> None:
        layout = Layout.of_file(data)
        self.origin: Origin | None = None
        self.path = path
        if layout.version[0] < 4:
            from cellwright.document.versions import convert_old_notebook

            self.state = State(Layout.of_file(convert_old_notebook(data, layout.version[0])), data)
            self.state.nbformat, self.state.nbformat_minor = layout.version
        elif layout.cut < 0:
            raise InvalidNotebook("There is no `cells` array", hint="Is this file a notebook?")
        else:
            self.state = State(layout)

    @classmethod
    def of_state(cls, state: State, *, path: str | None = None) -> Notebook:
        """A notebook with the content of another one, which stays independent of it."""
        notebook = cls.__new__(cls)
        notebook.origin, notebook.path, notebook.state = None, path, state
        return notebook

    @property
    def cells(self) -> Cells:
        """All cells in order; each is decoded when it is first needed."""
        return Cells(self.state.layout, self.state.snapshot.resolver)

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the notebook's metadata."""
        value = self._member("metadata")
        return value if isinstance(value, dict) else {}

    @property
    def revision(self) -> str:
        """A short name for the order, ids, types and sources of all cells."""
        return self.snapshot().revision

    def snapshot(self) -> Snapshot:
        """What a reader sees now; pass it as `base` of a later edit."""
        return self.state.snapshot

    def cell(self, ref: CellRef) -> Cell:
        """The cell with this id, `cell-N` or index."""
        return self.cells[self.snapshot().resolver.index(ref)]

    def apply(
        self,
        edits: Edit | Change | Mapping[str, Any] | Sequence[Edit | Mapping[str, Any]],
        *,
        base: Snapshot | str | None = None,
    ) -> Change:
        """Apply a list of edits, all or nothing, and return what changed.

        Args:
            edits: typed edits or their JSON shape; or a change, such as another's `inverse()`.
            base: what the caller had read. References mean the cells of that snapshot; changes
                made elsewhere since then stay.

        Raises:
            Conflict: a cell is not as the caller knew it; nothing was applied.
            UnknownRevision: `base` is a revision that is not the current one. Callers who
                remember its snapshot can pass that instead.
        """
        if self.needs_upgrade:
            raise NeedsUpgrade(self.version)
        if isinstance(base, str):
            if base != self.revision:
                raise UnknownRevision(base)
            base = None
        if isinstance(edits, Change):
            change = self._replay(edits)
        else:
            from cellwright.document._apply import apply_edits
            from cellwright.document.edits import Edit, parse_edit

            given: list[Any] = [edits] if isinstance(edits, (Edit, dict)) else list(edits)
            parsed = [parse_edit(edit, position) for position, edit in enumerate(given)]
            state = self.state
            layout, origins = apply_edits(state, self.nbformat_minor, parsed, base)
            after = state if layout is state.layout else State(layout)
            change = Change(state, after, origins, parsed)
        self.state = change.after
        return change

    def become(self, state: State) -> Change:
        """Take over another state, to the byte, and return the change."""
        if self.state.holds_the_same(state):
            return Change(self.state, self.state, range(len(self.state.layout.slots)))
        change = Change.between(self.state, state)
        self.state = state
        return change

    def to_bytes(self) -> bytes:
        """The exact bytes that would be written."""
        return self.state.to_bytes()

    def parts(self) -> Iterator[bytes | memoryview]:
        """The bytes of `to_bytes`, in pieces, without a copy."""
        return iter((self.state.old,)) if self.state.old is not None else self.state.layout.parts()

    @property
    def nbformat(self) -> int:
        """The major version of the file."""
        return self.state.nbformat

    @property
    def nbformat_minor(self) -> int:
        """The minor version of the file."""
        return self.state.nbformat_minor

    @property
    def version(self) -> str:
        """The format version of the file, such as `4.5`."""
        return f"{self.nbformat}.{self.nbformat_minor}"

    @property
    def needs_upgrade(self) -> bool:
        """Whether the file is too old to be edited."""
        return self.state.old is not None

    def upgrade(self) -> Change:
        """Upgrade it to nbformat 4.5, with an id for every cell; nothing else changes versions."""
        from cellwright.document.versions import upgrade_layout

        before = self.state
        layout = upgrade_layout(before.layout)
        if layout is not before.layout or before.old is not None:
            self.state = State(layout)
        return Change(before, self.state, range(len(layout.slots)))

    def validate(self) -> str | None:
        """The first problem that nbformat's own schema finds, or None."""
        from cellwright.document.versions import find_schema_problem

        return find_schema_problem(self.to_bytes())

    def _replay(self, change: Change) -> Change:
        """Apply a recorded change, and keep what happened since."""
        before = change.before
        if before.layout is self.state.layout or (
            before.snapshot.revision == self.revision
            and before.layout.to_bytes() == self.state.layout.to_bytes()
        ):
            return Change(self.state, _share_cells(self.state, change), change.origins)
        from cellwright.document.merge import replay_change

        return replay_change(change, self.state, self.nbformat_minor)

    def with_layout(self, layout: Layout) -> Notebook:
        """A copy of this notebook with another layout."""
        copy = object.__new__(Notebook)
        copy.path, copy.origin, copy.state = self.path, self.origin, State(layout)
        return copy

    def _member(self, key: str) -> Any:
        layout = self.state.layout
        member = layout.members.get(key)
        if member is None:
            return None
        return decode(layout.skeleton[member.start : member.end], f"`{key}`")

    def __repr__(self) -> str:
        return f"<Notebook {self.path or 'unsaved'} with {len(self.state.layout.slots)} cells>"


def _share_cells(here: State, change: Change) -> State:
    """The state after a change whose state before has the same bytes as the one here.

    Cells that it does not touch are those here: then comparing the two looks at few cells.
    """
    was, now = change.before.layout, change.after.layout
    if not isinstance(was.slots, FileSlots) or not isinstance(now.slots, FileSlots):
        return change.after
    places = was.slots.differ_at(now.slots)
    if not places or here.old is not None or change.after.old is not None:
        return change.after
    layout = here.layout.with_replaced({i: now.slots[i] for i in places})
    return State(layout if now.skeleton == layout.skeleton else layout.with_skeleton(now.skeleton))
