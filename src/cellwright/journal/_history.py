"""Questions to the history: what to undo or redo, which change touched a cell last, backups."""

from __future__ import annotations

import json
import zlib

from cellwright.document.change import Change, State
from cellwright.errors import ChangeNotFound, NothingToUndo
from cellwright.journal import _changes, _states
from cellwright.journal._store import Store
from cellwright.journal.entry import Backup, BlameRow, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from cellwright.journal._changes import Row
    from cellwright.journal._ledger import Book

# Undos and redos are no steps themselves; runs are records; what was done outside is undone only
# by its id.
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
"""Names the state before our first change where an id of a change is asked for."""


def undo_target(
    connection: sqlite3.Connection, book: Book | None, actor: str | None, handle: str | None
) -> Row:
    """The change to take back."""
    if handle is not None:
        row = _changes.by_id(connection, book and book.id, handle)
        if row.kind == "run":
            raise NothingToUndo(f"undo: {row.handle} is a run, which is no step")
        if row.undone_by:
            raise NothingToUndo(f"undo: {row.handle} is undone already, by {row.undone_by}")
        return row
    rows = _changes.select(connection, _UNDO, book and book.id, actor and _changes.plain(actor))
    if not rows:
        raise NothingToUndo("undo")
    return rows[0]


def redo_target(
    connection: sqlite3.Connection, book: Book | None, actor: str | None, handle: str | None
) -> Row:
    """The change to make again: the one that this actor undid last, and has not edited since."""
    if handle is not None:
        row = _changes.by_id(connection, book and book.id, handle)
        if not row.undone_by:
            raise NothingToUndo(f"redo: {row.handle} is not undone")
        return row
    rows = _changes.select(connection, _REDO, book and book.id, actor and _changes.plain(actor))
    if not rows:
        raise NothingToUndo("redo")
    return rows[0]


def rebuild(connection: sqlite3.Connection, handle: str) -> Change:
    """A change with both of its states."""
    rows = _changes.select(connection, "handle = ?", handle)
    if not rows:
        raise ChangeNotFound(handle)
    store = Store(connection)
    was, now = (
        _states.load(connection, store, state)
        for state in (rows[0].before_state, rows[0].after_state)
    )
    after = _states.build(store, now)
    before = _states.build_beside(store, was, after, now)
    return Change(before, after, _changes.decode_origins(rows[0].origins))


def state(connection: sqlite3.Connection, book: Book | None, handle: str, side: str) -> State:
    """One side of a change, or what there was before our first."""
    if handle == FIRST:
        number = book.first_state if book else None
        if number is None:
            raise ChangeNotFound(FIRST)
    else:
        row = _changes.by_id(connection, book and book.id, handle)
        number = row.before_state if side == "before" else row.after_state
    store = Store(connection)
    return _states.build(store, _states.load(connection, store, number))


def backups(connection: sqlite3.Connection, book: Book) -> list[Backup]:
    """All states that can be had, newest first."""
    found = [
        Backup(
            id=handle,
            number=number,
            kind=kind,
            actor=actor,
            label=label,
            when=iso(made),
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
                when=iso(begun),
                revision=revision,
            )
        )
    return found


def blame(connection: sqlite3.Connection, book: Book) -> list[BlameRow]:
    """For every cell of the newest state, the change that last touched its source or type."""
    if book.last_state is None:
        return []
    store = Store(connection)
    newest = _states.build(store, _states.load(connection, store, book.last_state))
    found: dict[int, dict[str, str]] = {}
    # Where each cell that nobody has been found for stood after the change looked at.
    places = {i: i for i in range(len(newest.layout.slots))}
    for handle, kind, actor, label, made, origins, details in connection.execute(
        "SELECT handle, kind, actor, label, made, origins, details FROM change"
        " WHERE notebook = ? AND number IS NOT NULL ORDER BY number DESC",
        (book.id,),
    ):
        if not places:
            break
        cells = json.loads(zlib.decompress(details))["cells"]
        touched = {after for what, _, _, _, after in cells if what in ("edited", "inserted")}
        came = _changes.decode_origins(origins)
        about = {"change": handle, "kind": kind, "actor": actor, "label": label, "when": iso(made)}
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
