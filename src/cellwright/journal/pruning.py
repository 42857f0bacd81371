"""How large the journal may become, and what is deleted first."""

from __future__ import annotations

from cellwright.journal import _states
from cellwright.journal._store import CELLS, PIECE_COSTS, PieceStore, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

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
    lists = store.load(number for number, kind, _, _ in rows if kind == CELLS)
    for data in lists.values():
        store.forget(unpack(data))
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
    _states.forget_oldest_snapshots(connection, store, row[0], 0)
    for (state,) in connection.execute("SELECT id FROM state WHERE notebook = ?", row).fetchall():
        _states.delete_state(connection, store, state)
    for table in ("change", "execution"):
        connection.execute(f"DELETE FROM {table} WHERE notebook = ?", row)  # noqa: S608
    connection.execute("DELETE FROM notebook WHERE id = ?", row)
    return True


def _has_much_free(connection: sqlite3.Connection) -> bool:
    return _pragma(connection, "freelist_count") > _FREE_PAGES


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
