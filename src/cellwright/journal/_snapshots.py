"""Revisions that were given out, so that a later edit can say what it was made against."""

from __future__ import annotations

import json

from cellwright.document.snapshot import Snapshot
from cellwright.journal import _states
from cellwright.journal._store import NAMES, Store, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

# As with states: where a stretch of cells ends depends on those cells alone. Hashes are hex
# digits, and four of 256 beginnings end a stretch.
_ENDS = frozenset({"00", "01", "02", "03"})
_LONGEST = 256


def is_fresh(connection: sqlite3.Connection, notebook: int, revision: str, kept: int) -> bool:
    """Whether a revision is remembered, and will be for a good while.

    Those that a recorded change led to need no memory of their own.
    """
    row = connection.execute(
        "SELECT count(*) FROM snapshot WHERE notebook = ? AND id >= ("
        "SELECT id FROM snapshot WHERE notebook = ? AND revision = ?)",
        (notebook, notebook, revision),
    ).fetchone()
    return 0 < row[0] <= kept // 2 or _state_of(connection, notebook, revision) is not None


def remember(
    connection: sqlite3.Connection, store: Store, notebook: int, snapshot: Snapshot
) -> None:
    """Remember a snapshot as the newest of its notebook."""
    forget(connection, store, notebook, snapshot.revision)
    stretches: list[list[tuple[str | None, str]]] = [[]]
    for id_, hash_ in zip(snapshot.ids, snapshot.hashes, strict=True):
        stretches[-1].append((id_, hash_))
        if hash_[:2] in _ENDS or len(stretches[-1]) == _LONGEST:
            stretches.append([])
    texts = [json.dumps(s, separators=(",", ":")).encode() for s in stretches if s]
    numbers = store.keep(texts, NAMES)
    store.mention(numbers)
    connection.execute(
        "INSERT INTO snapshot (notebook, revision, stretches) VALUES (?, ?, ?)",
        (notebook, snapshot.revision, pack(numbers)),
    )


def forget(connection: sqlite3.Connection, store: Store, notebook: int, revision: str) -> None:
    """Forget one snapshot, if it is remembered."""
    row = connection.execute(
        "SELECT id, stretches FROM snapshot WHERE notebook = ? AND revision = ?",
        (notebook, revision),
    ).fetchone()
    if row is not None:
        store.forget(unpack(row[1]))
        connection.execute("DELETE FROM snapshot WHERE id = ?", (row[0],))


def forget_oldest(connection: sqlite3.Connection, store: Store, notebook: int, kept: int) -> None:
    """Forget all but the newest snapshots of a notebook."""
    rows = connection.execute(
        "SELECT revision FROM snapshot WHERE notebook = ? ORDER BY id DESC LIMIT -1 OFFSET ?",
        (notebook, kept),
    ).fetchall()
    for (revision,) in rows:
        forget(connection, store, notebook, revision)


def recall(
    connection: sqlite3.Connection, store: Store, notebook: int, revision: str
) -> Snapshot | None:
    """The snapshot that a revision names, from memory or from a recorded state."""
    row = connection.execute(
        "SELECT stretches FROM snapshot WHERE notebook = ? AND revision = ?", (notebook, revision)
    ).fetchone()
    if row is None:
        state = _state_of(connection, notebook, revision)
        if state is None:
            return None
        content = _states.load(connection, store, state)
        return _states.build(store, content).snapshot
    numbers = unpack(row[0])
    loaded = store.load(numbers)
    cells = [cell for number in numbers for cell in json.loads(loaded[number])]
    return Snapshot(revision, [id_ for id_, _ in cells], [hash_ for _, hash_ in cells])


def _state_of(connection: sqlite3.Connection, notebook: int, revision: str) -> int | None:
    row = connection.execute(
        "SELECT CASE after_revision WHEN ? THEN after_state ELSE before_state END FROM change "
        "WHERE notebook = ? AND (after_revision = ? OR before_revision = ?) LIMIT 1",
        (revision, notebook, revision, revision),
    ).fetchone()
    return int(row[0]) if row is not None else None
