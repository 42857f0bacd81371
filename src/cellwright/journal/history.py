"""Entries of the log, backups and blame, and the queries that find them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from cellwright.document.change import CellChange, Change, State
from cellwright.errors import ChangeNotFound, NothingToUndo
from cellwright.journal import _changes, _states
from cellwright.journal._store import PieceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Self

    from cellwright.journal._changes import ChangeRow
    from cellwright.journal._recorder import NotebookRecord

# Undos, redos and runs cannot be undone themselves; outside changes only by their id.
_UNDO = (
    "notebook = ?1 AND number IS NOT NULL AND undone_by IS NULL"
    " AND kind NOT IN ('undo', 'redo', 'outside', 'run') AND (?2 IS NULL OR actor = ?2)"
    " ORDER BY number DESC LIMIT 1"
)
_REDO = (
    "id = (SELECT done.id FROM change AS done JOIN change AS undo ON undo.handle = done.undone_by"
    " WHERE done.notebook = ?1 AND (?2 IS NULL OR undo.actor = ?2) AND undo.number >"
    " (SELECT coalesce(max(number), 0) FROM change WHERE notebook = ?1"
    " AND kind NOT IN ('undo', 'redo', 'outside', 'run') AND (?2 IS NULL OR actor = ?2))"
    " ORDER BY undo.number DESC, done.number LIMIT 1)"
)
FIRST = "first"
"""The id of the state before the first recorded change."""


_CELL = ("kind", "handle", "type", "before", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change of a notebook, as it was recorded.

    `number` counts the changes of this notebook from 1, and is their order; `when` is the clock
    time (ISO 8601, UTC). `kind` is `edit`, `create`, `undo`, `redo`, `restore`, `outside` or
    `run`. `before` and `after` are revisions. `concerns` is the change that was undone, redone or
    restored (several ids, separated by spaces, if they were undone as one), and `undone_by` is
    the change that undid this one. `edits` are the JSON shapes of the edits, unless they are
    large. `path` is the name that the notebook had then, if it had another one.
    """

    id: str
    number: int
    kind: str
    actor: str
    label: str
    when: str
    before: str
    after: str
    cells: tuple[CellChange, ...] = field(compare=False)
    undone_by: str | None = None
    concerns: str | None = None
    edits: tuple[dict[str, Any], ...] = ()
    path: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON shape for all interfaces."""
        return {
            "id": self.id,
            "number": self.number,
            "kind": self.kind,
            "actor": self.actor,
            "label": self.label,
            "when": self.when,
            "before": self.before,
            "after": self.after,
            "cells": [{name: getattr(cell, name) for name in _CELL} for cell in self.cells],
            "undone_by": self.undone_by,
            "concerns": self.concerns,
            **({} if self.path is None else {"path": self.path}),
        }

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the entry that `to_json` made into data."""
        cells = tuple(CellChange(*(cell[name] for name in _CELL)) for cell in shape["cells"])
        return cls(**{**shape, "cells": cells})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A state that can be restored to the byte: after a change, or `first`, before all changes.

    `id` is what `Journal.state` takes.
    """

    id: str
    number: int
    kind: str
    actor: str
    label: str
    when: str
    revision: str

    def to_json(self) -> dict[str, Any]:
        """The JSON shape for all interfaces."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the backup that `to_json` made into data."""
        return cls(**shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    """A cell of the newest state, and the change that last changed its source or type.

    The fields of the change are None if the cell has not changed since before the first entry.
    """

    index: int
    handle: str
    change: str | None = None
    kind: str | None = None
    actor: str | None = None
    label: str | None = None
    when: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON shape for all interfaces."""
        return {name: getattr(self, name) for name in self.__slots__}


def format_time(milliseconds: int) -> str:
    """Milliseconds since 1970 as ISO 8601 text, in UTC."""
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"


def find_undo_target(
    connection: sqlite3.Connection,
    book: NotebookRecord | None,
    actor: str | None,
    handle: str | None,
) -> ChangeRow:
    """The change to undo."""
    if handle is not None:
        row = _changes.find_change(connection, book and book.id, handle)
        if row.kind == "run":
            raise NothingToUndo(
                f"undo: {row.handle} is a run, which cannot be undone",
                hint=f"Restore the state before it, {row.handle}^",
            )
        if row.undone_by:
            raise NothingToUndo(f"undo: {row.handle} was already undone by {row.undone_by}")
        return row
    rows = _changes.select_changes(
        connection, _UNDO, book and book.id, actor and _changes.storable_text(actor)
    )
    if not rows:
        newest = _changes.select_changes(connection, _UNDO, book and book.id, None)
        if newest:
            raise NothingToUndo(
                f"undo: none of the changes is yours; the newest, {newest[0].handle},"
                f" is by {newest[0].actor}"
            )
        raise NothingToUndo("undo")
    return rows[0]


def find_redo_target(
    connection: sqlite3.Connection,
    book: NotebookRecord | None,
    actor: str | None,
    handle: str | None,
) -> ChangeRow:
    """The change to redo: the one this actor undid last, if they have not edited since."""
    if handle is not None:
        row = _changes.find_change(connection, book and book.id, handle)
        if not row.undone_by:
            raise NothingToUndo(f"redo: {row.handle} is not undone")
        return row
    rows = _changes.select_changes(
        connection, _REDO, book and book.id, actor and _changes.storable_text(actor)
    )
    if not rows:
        raise NothingToUndo("redo")
    return rows[0]


def rebuild_change(
    connection: sqlite3.Connection, handle: str, here: State | None = None
) -> Change:
    """A change with both of its states; or as one of `here`, if that has the changed cells."""
    rows = _changes.select_changes(connection, "handle = ?", handle)
    if not rows:
        raise ChangeNotFound(handle)
    store = PieceStore(connection)
    both_states = (rows[0].before_state, rows[0].after_state)
    was, now = _states.load_states(connection, store, both_states)
    origins = _changes.decode_origins(rows[0].origins)
    stay = range(len(origins))  # no cell came, went or moved: that is then quick to see
    if here is not None and origins == [*stay]:
        both = _states.build_change_of(store, was, now, here)
        if both is not None:
            return Change(*both, stay)
    after = _states.build_state(store, now)
    before = _states.build_state_beside(store, was, after, now)
    return Change(before, after, stay if origins == [*stay] else origins)


def load_state_of(
    connection: sqlite3.Connection, book: NotebookRecord | None, handle: str, side: str
) -> State:
    """The state before or after a change, or before the first change."""
    if handle == FIRST:
        number = book.first_state if book else None
        if number is None:
            raise ChangeNotFound(FIRST)
    else:
        row = _changes.find_change(connection, book and book.id, handle)
        number = row.before_state if side == "before" else row.after_state
    store = PieceStore(connection)
    return _states.build_state(store, _states.load_state(connection, store, number))


def list_backups(connection: sqlite3.Connection, book: NotebookRecord) -> list[Backup]:
    """All states that can be restored, newest first."""
    found = [
        Backup(
            id=handle,
            number=number,
            kind=kind,
            actor=actor,
            label=label,
            when=format_time(made),
            revision=revision,
        )
        for handle, number, kind, actor, label, made, revision in connection.execute(
            "SELECT handle, number, kind, actor, label, made, after_revision FROM change"
            " WHERE notebook = ? AND number IS NOT NULL ORDER BY number DESC",
            (book.id,),
        )
    ]
    for begun, revision in connection.execute(
        "SELECT begun, first_revision FROM notebook WHERE id = ? AND first_state IS NOT NULL",
        (book.id,),
    ):
        found.append(
            Backup(
                id=FIRST,
                number=0,
                kind=FIRST,
                actor="",
                label="",
                when=format_time(begun),
                revision=revision,
            )
        )
    return found


def blame_cells(connection: sqlite3.Connection, book: NotebookRecord) -> list[BlameRow]:
    """For every cell of the newest state, the change that last changed its source or type."""
    if book.last_state is None:
        return []
    store = PieceStore(connection)
    newest = _states.build_state(store, _states.load_state(connection, store, book.last_state))
    found: dict[int, dict[str, str]] = {}
    # The place, after the change in question, of each cell whose last change is still unknown.
    places = {i: i for i in range(len(newest.layout.slots))}
    state = book.last_state
    for handle, kind, actor, label, made, origins, details, before, after in connection.execute(
        "SELECT handle, kind, actor, label, made, origins, details, before_state, after_state"
        " FROM change WHERE notebook = ? AND number IS NOT NULL ORDER BY number DESC",
        (book.id,),
    ):
        if not places or after != state:  # beyond a gap, places mean nothing
            break
        state = before
        cells, _ = _changes.decode_details(details)
        touched = {after for what, _, _, _, after in cells if what in ("edited", "inserted")}
        came = _changes.decode_origins(origins)
        about = {
            "change": handle,
            "kind": kind,
            "actor": actor,
            "label": label,
            "when": format_time(made),
        }
        found |= {i: about for i, place in places.items() if place in touched}
        places = {
            i: origin
            for i, place in places.items()
            if place not in touched and (origin := came[place]) is not None
        }
    resolver = newest.snapshot.resolver
    return [
        BlameRow(index=i, handle=resolver.handle(i), **found.get(i, {}))
        for i in range(len(newest.layout.slots))
    ]
