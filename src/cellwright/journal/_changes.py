"""Changes as rows of a table: inserted, confirmed, found by id, and marked as undone."""

from __future__ import annotations

import json
import os
import time
import zlib
from typing import Any, NamedTuple

from cellwright.errors import ChangeNotFound
from cellwright.journal._database import JournalDamaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from cellwright.document.change import CellChange, Change
    from cellwright.journal.history import Entry

OUTSIDE = "outside"

# Larger lists of edits are not kept, because the states contain what they did.
_MOST_EDITS = 8 * 1024

_CELL_FACTS = 5


class ChangeRow(NamedTuple):
    """A row of the table of changes; without a number it is only announced."""

    id: int
    handle: str
    notebook: int
    number: int | None
    kind: str
    actor: str
    label: str
    made: int
    before_revision: str
    after_revision: str
    before_state: int
    after_state: int
    concerns: str | None
    undone_by: str | None
    origins: str
    details: bytes

    def to_entry(self) -> Entry:
        """The entry that callers see."""
        from cellwright.document.change import CellChange
        from cellwright.journal.history import Entry, format_time

        try:
            cells, edits = decode_details(self.details)
        except JournalDamaged:
            cells, edits = [], []  # what it did is in its states; the log must not end here
        return Entry(
            id=self.handle,
            number=self.number or 0,
            kind=self.kind,
            actor=self.actor,
            label=self.label,
            when=format_time(self.made),
            before=self.before_revision,
            after=self.after_revision,
            cells=tuple(CellChange(*cell) for cell in cells),
            undone_by=self.undone_by,
            concerns=self.concerns,
            edits=tuple(edits),
        )


class ChangeInfo(NamedTuple):
    """Kind, actor, label and concerned changes, as the caller gives them."""

    kind: str
    actor: str
    label: str
    concerns: str | None


_SELECT = f"SELECT {', '.join(ChangeRow._fields)} FROM change"  # noqa: S608
_INSERT = (
    f"INSERT INTO change ({', '.join(ChangeRow._fields[1:])})"  # noqa: S608
    f" VALUES ({', '.join('?' * len(ChangeRow._fields[1:]))})"
)


def select_changes(connection: sqlite3.Connection, where: str, *values: object) -> list[ChangeRow]:
    """The changes that match a condition; it may also order and limit them."""
    return [ChangeRow(*row) for row in connection.execute(f"{_SELECT} WHERE {where}", values)]


def find_change(connection: sqlite3.Connection, notebook: int | None, handle: str) -> ChangeRow:
    """The one change whose id begins with `handle`; raises `ChangeNotFound`."""
    rows = []
    if notebook is not None and handle:
        where = "notebook = ? AND number IS NOT NULL AND substr(handle, 1, ?) = ? LIMIT 4"
        rows = select_changes(
            connection, where, notebook, len(handle), storable_text(handle.lower())
        )
    if len(rows) == 1:
        return rows[0]
    error = ChangeNotFound(handle)
    if rows:
        found = ", ".join(row.handle for row in rows)
        error.hint = f"Several ids begin like this: {found}; give more characters"
    raise error


def insert_change(
    connection: sqlite3.Connection,
    notebook: int,
    change: Change,
    facts: ChangeInfo,
    *,
    cells: Sequence[CellChange],
    states: tuple[int, int],
) -> ChangeRow:
    """Insert a change as announced."""
    handle = os.urandom(4).hex()
    while connection.execute("SELECT 1 FROM change WHERE handle = ?", (handle,)).fetchone():
        handle = os.urandom(4).hex()
    shown = [[c.kind, c.handle, c.type, c.before, c.after] for c in cells]
    row = ChangeRow(
        id=0,
        handle=handle,
        notebook=notebook,
        number=None,
        kind=facts.kind,
        actor=storable_text(facts.actor),
        label=storable_text(facts.label),
        made=int(time.time() * 1000),
        before_revision=change.before.snapshot.revision,
        after_revision=change.after.snapshot.revision,
        before_state=states[0],
        after_state=states[1],
        concerns=facts.concerns and storable_text(facts.concerns),
        undone_by=None,
        origins=encode_origins(change.origins),
        details=encode_details(shown, _shapes(change)),
    )
    inserted = connection.execute(_INSERT, row[1:])
    return row._replace(id=inserted.lastrowid or 0)


def confirm_change(
    connection: sqlite3.Connection, row: ChangeRow, signature: str | None
) -> ChangeRow:
    """Give an announced change its number, because the file has its result."""
    connection.execute(
        "UPDATE notebook SET changes = changes + 1, last_state = ?, signature = ?,"
        " touched = (SELECT max(touched) + 1 FROM notebook) WHERE id = ?",
        (row.after_state, signature, row.notebook),
    )
    connection.execute(
        "UPDATE change SET number = (SELECT changes FROM notebook WHERE id = ?) WHERE id = ?",
        (row.notebook, row.id),
    )
    if row.concerns and row.kind in ("undo", "redo"):
        for handle in row.concerns.split():
            _mark(connection, row.notebook, handle, row.handle if row.kind == "undo" else None)
    return select_changes(connection, "id = ?", row.id)[0]


def _mark(connection: sqlite3.Connection, notebook: int, handle: str, by: str | None) -> None:
    """Mark a change as undone by another, or as done again.

    If that change was an undo or redo itself, the changes it concerned are reversed with it.
    """
    connection.execute(
        "UPDATE change SET undone_by = ? WHERE notebook = ? AND handle = ?", (by, notebook, handle)
    )
    row = connection.execute(
        "SELECT kind, concerns FROM change WHERE notebook = ? AND handle = ?", (notebook, handle)
    ).fetchone()
    if row is None or row[0] not in ("undo", "redo"):
        return
    # Every step goes to an older change, so this ends.
    for concerned in (row[1] or "").split():
        _mark(connection, notebook, concerned, by if row[0] == "redo" else None if by else handle)


def encode_origins(origins: Iterable[int | None]) -> str:
    """Encode where each cell came from, as runs of cells that stayed neighbours."""
    if isinstance(origins, range):
        return json.dumps([[origins.start, len(origins)]])
    runs: list[list[int | None]] = []
    start: int | None = None
    count = 0
    for origin in origins:
        if count and origin == (None if start is None else start + count):
            count += 1
            continue
        if count:
            runs.append([start, count])
        start, count = origin, 1
    if count:
        runs.append([start, count])
    return json.dumps(runs, separators=(",", ":"))


def decode_origins(text: str) -> list[int | None]:
    """Decode where each cell came from; raises `JournalDamaged`."""
    origins: list[int | None] = []
    try:
        for start, count in json.loads(text):
            origins += [None] * count if start is None else range(start, start + count)
    except (ValueError, TypeError):
        raise JournalDamaged("a change in this history is damaged") from None
    return origins


def encode_details(cells: Sequence[Any], edits: Sequence[Any]) -> bytes:
    """Encode the cells that a change touched, and its edits."""
    details = json.dumps({"cells": cells, "edits": edits}, separators=(",", ":"))
    return zlib.compress(details.encode(), 1)


def decode_details(data: bytes) -> tuple[list[Any], list[Any]]:
    """Decode the cells that a change touched, and its edits; raises `JournalDamaged`."""
    try:
        details = json.loads(zlib.decompress(data))
        cells, edits = details["cells"], details["edits"]
        if all(len(cell) == _CELL_FACTS for cell in cells):
            return cells, list(edits)
    except (zlib.error, ValueError, TypeError, LookupError):
        pass
    raise JournalDamaged("a change in this history is damaged")


def storable_text(text: str) -> str:
    """A text that SQLite accepts: without lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()


def count_characters(value: Any, enough: int) -> int:
    """Count the characters in the strings of a value; stops when they are more than `enough`."""
    found, left = 0, [value]
    while left and found <= enough:
        each = left.pop()
        if isinstance(each, str):
            found += len(each)
        elif isinstance(each, dict):
            left += each.keys()
            left += each.values()
        elif isinstance(each, (list, tuple)):
            left += each
        else:
            found += 1
    return found


def _shapes(change: Change) -> Sequence[dict[str, Any]]:
    shapes = [edit.to_json() for edit in change.edits]
    if count_characters(shapes, _MOST_EDITS) > _MOST_EDITS:
        return ()  # to write all of it down would keep other users of the journal waiting
    try:
        size = len(json.dumps(shapes))
    except (TypeError, ValueError, RecursionError):
        return ()  # metadata may contain what JSON cannot express
    return shapes if size <= _MOST_EDITS else ()
