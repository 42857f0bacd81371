"""How large the journal may become, what is deleted first, and what a user wants forgotten."""

from __future__ import annotations

from typing import NamedTuple

from cellwright.journal import _states
from cellwright.journal._store import LISTS, PIECE_COSTS, PieceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

# Small enough for a short batch, large enough to be worth a transaction.
_PIECES = 20
_CHANGES = 5
_VACUUM_PAGES = 512
_FREE_PAGES = 4096


class JournalLimits:
    """How much the journal keeps.

    Of every notebook, the newest `snapshots` revisions that readers got are remembered.

    When the file uses more than `total` bytes, history is deleted in this order until it fits;
    the notebooks that were not changed for longest come first, and their oldest changes first:

    1. changes beyond the newest `changes` of a notebook;
    2. all changes of other notebooks than the one in use, except their first state;
    3. those first states: such a notebook is then forgotten.

    The notebook in use keeps its newest `changes` and its first state, whatever their size. All
    this happens in small steps after a change was recorded: a step frees `step` bytes more than
    twice what that change added.
    """

    __slots__ = ("changes", "snapshots", "step", "total")

    def __init__(
        self,
        *,
        total: int = 2**30,
        changes: int = 50,
        snapshots: int = 200,
        step: int = 4 * 2**20,
    ) -> None:
        self.total = total
        self.changes = changes
        self.snapshots = snapshots
        self.step = step


def needs_pruning(connection: sqlite3.Connection, limits: JournalLimits) -> bool:
    """Whether there is anything to delete or to give back to the system; this is cheap."""
    unused = connection.execute("SELECT EXISTS (SELECT 1 FROM piece WHERE refs = 0)").fetchone()[0]
    return bool(unused) or _used_bytes(connection) > limits.total or _has_much_free(connection)


def prune(connection: sqlite3.Connection, limits: JournalLimits, in_use: int, added: int) -> None:
    """Do one step: free more bytes than were just `added`."""
    store = PieceStore(connection)
    left = limits.step + 2 * added
    while left > 0:
        freed = _collect(connection, store)
        left -= freed
        if not freed:
            if _used_bytes(connection) <= limits.total or not _prune(
                connection, store, limits, in_use
            ):
                break
            left -= PIECE_COSTS
    if _has_much_free(connection):
        for _ in range(_VACUUM_PAGES):  # sqlite3 always stops after one page
            connection.execute("PRAGMA incremental_vacuum(1)")


def describe(connection: sqlite3.Connection) -> str:
    """The content of the journal in one line."""
    notebooks, changes = connection.execute(
        "SELECT (SELECT count(*) FROM notebook),"
        " (SELECT count(*) FROM change WHERE number IS NOT NULL)"
    ).fetchone()
    size = _used_bytes(connection) / 2**20
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    return f"{notebooks} notebooks, {changes} changes, {size:.1f} MiB, {mode} mode"


def _collect(connection: sqlite3.Connection, store: PieceStore) -> int:
    """Delete some unused pieces; returns their cost."""
    rows = connection.execute(
        "SELECT id, kind, pack, size FROM piece WHERE refs = 0 LIMIT ?", (_PIECES,)
    ).fetchall()
    store.forget(store.list_members(number for number, kind, _, _ in rows if kind in LISTS))
    connection.executemany("DELETE FROM piece WHERE id = ?", [row[:1] for row in rows])
    connection.executemany(
        "DELETE FROM pack WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE pack = ?1)",
        [(pack,) for pack in {row[2] for row in rows}],
    )
    store.flush()
    return sum(max(size, PIECE_COSTS) for *_, size in rows)


def _prune(
    connection: sqlite3.Connection, store: PieceStore, limits: JournalLimits, in_use: int
) -> bool:
    """Delete the next batch of history; False if nothing may be deleted."""
    pruned = (
        _prune_changes(connection, store, limits.changes, None)
        or _prune_changes(connection, store, 0, in_use)
        or _forget_notebook(connection, store, in_use)
    )
    store.flush()
    return pruned


def _prune_changes(
    connection: sqlite3.Connection, store: PieceStore, kept: int, spared: int | None
) -> bool:
    row = connection.execute(
        "SELECT id, changes, first_state, last_state, oldest FROM (SELECT *,"
        " (SELECT min(number) FROM change WHERE notebook = notebook.id) AS oldest FROM notebook)"
        " WHERE oldest <= changes - ? AND id IS NOT ? ORDER BY touched LIMIT 1",
        (kept, spared),
    ).fetchone()
    if row is None:
        return False
    notebook, changes, first, last, oldest = row
    newest = min(oldest + _CHANGES - 1, changes - kept)
    connection.execute("DELETE FROM change WHERE notebook = ? AND number <= ?", (notebook, newest))
    # States are numbered in the order of the changes that lead from one to the next.
    needed = connection.execute(
        "SELECT coalesce(min(before_state), ?) FROM change WHERE notebook = ?", (last, notebook)
    ).fetchone()[0]
    for (state,) in connection.execute(
        "SELECT id FROM state WHERE notebook = ? AND id < ? AND id IS NOT ?",
        (notebook, needed, first),
    ).fetchall():
        _states.delete_state(connection, store, state)
    return True


def _forget_notebook(connection: sqlite3.Connection, store: PieceStore, in_use: int) -> bool:
    row = connection.execute(
        "SELECT id FROM notebook WHERE id IS NOT ? ORDER BY touched LIMIT 1", (in_use,)
    ).fetchone()
    if row is None:
        return False
    _delete_notebook(connection, store, row[0])
    return True


def _delete_notebook(connection: sqlite3.Connection, store: PieceStore, notebook: int) -> None:
    _states.forget_oldest_snapshots(connection, store, notebook, 0)
    _delete_states(connection, store, notebook, None)
    for table in ("change", "execution"):
        connection.execute(f"DELETE FROM {table} WHERE notebook = ?", (notebook,))  # noqa: S608
    connection.execute("DELETE FROM notebook WHERE id = ?", (notebook,))


def _delete_states(
    connection: sqlite3.Connection, store: PieceStore, notebook: int, needed: int | None
) -> None:
    """Delete the states before one that is needed; all, if none is."""
    for (state,) in connection.execute(
        "SELECT id FROM state WHERE notebook = ?1 AND (?2 IS NULL OR id < ?2)", (notebook, needed)
    ).fetchall():
        _states.delete_state(connection, store, state)


class ForgottenHistory(NamedTuple):
    """How much of the journal was deleted because a user asked for it."""

    notebooks: int = 0
    changes: int = 0
    revisions: int = 0
    executions: int = 0


def forget(
    connection: sqlite3.Connection, notebooks: Sequence[int], before: int | None
) -> ForgottenHistory:
    """Delete the history of notebooks, or what is older than `before`, in milliseconds since 1970.

    No byte of it is left in a pack. The state that the oldest kept change began with stays, and
    becomes the first one. Remembered revisions have no date and are all forgotten.
    """
    store = PieceStore(connection)
    counted = ForgottenHistory(*_count_history(connection))
    for notebook in notebooks:
        if before is None or not _forget_older(connection, store, notebook, before):
            _delete_notebook(connection, store, notebook)
    store.flush()
    while _collect(connection, store):
        pass
    store.drop_dead_bytes()
    left = _count_history(connection)
    return ForgottenHistory(*(then - now for then, now in zip(counted, left, strict=True)))


def _forget_older(
    connection: sqlite3.Connection, store: PieceStore, notebook: int, before: int
) -> bool:
    """Delete what is older; False if nothing is left."""
    _states.forget_oldest_snapshots(connection, store, notebook, 0)
    connection.execute("DELETE FROM execution WHERE notebook = ? AND began < ?", (notebook, before))
    connection.execute(
        "DELETE FROM change WHERE notebook = ?1 AND number <= ("
        "SELECT max(number) FROM change WHERE notebook = ?1 AND made < ?2)",
        (notebook, before),
    )
    oldest = connection.execute(
        "SELECT before_state, before_revision, made FROM change WHERE notebook = ?"
        " ORDER BY before_state LIMIT 1",
        (notebook,),
    ).fetchone()
    if oldest is None:
        _delete_states(connection, store, notebook, None)
        connection.execute(
            "UPDATE notebook SET first_state = NULL, first_revision = NULL, last_state = NULL,"
            " signature = NULL WHERE id = ?",
            (notebook,),
        )
        sql = "SELECT EXISTS (SELECT 1 FROM execution WHERE notebook = ?)"
        return bool(connection.execute(sql, (notebook,)).fetchone()[0])
    first, revision, made = oldest
    _delete_states(connection, store, notebook, first)
    connection.execute(
        "UPDATE notebook SET first_state = ?1, first_revision = ?2, begun = ?3"
        " WHERE id = ?4 AND first_state IS NOT ?1",
        (first, revision, made, notebook),
    )
    return True


def _count_history(connection: sqlite3.Connection) -> tuple[int, int, int, int]:
    found: tuple[int, int, int, int] = connection.execute(
        "SELECT (SELECT count(*) FROM notebook), (SELECT count(*) FROM change),"
        " (SELECT count(*) FROM snapshot),"
        # A run that took long has a row for each time it was put on record.
        " (SELECT count(*) FROM (SELECT DISTINCT notebook, cell, began, actor FROM execution))"
    ).fetchone()
    return found


def _has_much_free(connection: sqlite3.Connection) -> bool:
    return _pragma(connection, "freelist_count") > _FREE_PAGES


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
