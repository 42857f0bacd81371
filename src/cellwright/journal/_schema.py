"""The tables of the journal, and the way from each version of them to the next."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

APPLICATION = 0x63656C6C
"""Says in the file's header that it is a journal of ours."""

# Ids are never used twice (AUTOINCREMENT), because other processes may still know an old one.
_FIRST = (
    # `path` is a real path in the bytes of the file system. `last_state` is what the file held
    # when it was last seen, with `signature` if one is known; `first_state` what it held before
    # our first change. `touched` orders the notebooks by their last use, whatever the clock says.
    """CREATE TABLE notebook (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path BLOB NOT NULL UNIQUE,
        changes INTEGER NOT NULL DEFAULT 0,
        touched INTEGER NOT NULL DEFAULT 0,
        begun INTEGER NOT NULL,
        first_state INTEGER,
        first_revision TEXT,
        last_state INTEGER,
        signature TEXT)""",
    "CREATE INDEX notebook_by_use ON notebook (touched)",
    # A change without a number is announced, and perhaps not yet made.
    """CREATE TABLE change (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        handle TEXT NOT NULL UNIQUE,
        notebook INTEGER NOT NULL,
        number INTEGER,
        kind TEXT NOT NULL,
        actor TEXT NOT NULL,
        label TEXT NOT NULL,
        made INTEGER NOT NULL,
        before_revision TEXT NOT NULL,
        after_revision TEXT NOT NULL,
        before_state INTEGER NOT NULL,
        after_state INTEGER NOT NULL,
        concerns TEXT,
        undone_by TEXT,
        origins TEXT NOT NULL,
        details BLOB NOT NULL,
        UNIQUE (notebook, number))""",
    # `stretches` are the cells: numbers of pieces that are lists of pieces.
    """CREATE TABLE state (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        notebook INTEGER NOT NULL,
        skeleton INTEGER NOT NULL,
        gaps INTEGER NOT NULL,
        old INTEGER NOT NULL,
        stretches BLOB NOT NULL)""",
    "CREATE INDEX state_by_notebook ON state (notebook, id)",
    """CREATE TABLE snapshot (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        notebook INTEGER NOT NULL,
        revision TEXT NOT NULL,
        stretches BLOB NOT NULL,
        UNIQUE (notebook, revision))""",
    "CREATE INDEX snapshot_by_notebook ON snapshot (notebook, id)",
    # A piece is bytes that are kept once: `size` of them from `start` of a pack. `refs` counts
    # the states, snapshots and lists that mention it. The bytes are in a table of their own,
    # so that counting does not rewrite them.
    """CREATE TABLE piece (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        hash BLOB NOT NULL UNIQUE,
        kind INTEGER NOT NULL,
        refs INTEGER NOT NULL,
        pack INTEGER NOT NULL,
        start INTEGER NOT NULL,
        size INTEGER NOT NULL)""",
    "CREATE INDEX piece_by_pack ON piece (pack)",
    "CREATE INDEX piece_unused ON piece (id) WHERE refs = 0",
    """CREATE TABLE pack (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        codec INTEGER NOT NULL,
        data BLOB NOT NULL)""",
)

_SECOND = (
    # `began` is in milliseconds since 1970; the order of runs is that of their ids.
    """CREATE TABLE execution (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        notebook INTEGER NOT NULL,
        cell TEXT NOT NULL,
        cell_index INTEGER NOT NULL,
        hash TEXT NOT NULL,
        source TEXT,
        kernel TEXT NOT NULL,
        status TEXT NOT NULL,
        count INTEGER,
        began INTEGER NOT NULL,
        seconds REAL NOT NULL,
        actor TEXT NOT NULL)""",
    "CREATE INDEX execution_by_notebook ON execution (notebook, id)",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND)
"""Statement by statement, from version N to version N + 1."""


def version(connection: sqlite3.Connection) -> int:
    """The version of the tables there are; 0 if there are none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables to the newest version, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    # Somebody else may have done it while we waited.
    for number in range(version(connection), len(MIGRATIONS)):
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")
