"""The connection to the journal's file, its tables, and what happens if the file is damaged."""

# Every edit runs this code, and pathlib is slow to import.
# ruff: noqa: PTH104, PTH116, PTH120
from __future__ import annotations

import contextlib
import os
import threading
import time

from cellwright.config.directories import lock_file
from cellwright.errors import JournalUnavailable
from cellwright.journal.place import is_network, make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Final, TypeVar

    Result = TypeVar("Result")

PATIENCE = 5.0
"""Seconds to wait for another process that is writing."""
IMPATIENCE = 0.05
"""The same after a process has held the journal for too long, until it is free again."""
_WAL_KEPT = 16 * 2**20
# Primary result codes of SQLite.
_BUSY: Final = frozenset({5, 6})
_DAMAGED: Final = frozenset({11, 26})
_FULL: Final = frozenset({13})
_FAILED: Final = frozenset({10, 14})
_inherited: list[sqlite3.Connection] = []


class JournalDamaged(Exception):
    """Some rows contradict each other, or cannot be read; the others are not affected."""


class _Replaced(Exception):
    """Another process has put another file in this one's place."""


class JournalDatabase:
    """The journal's file: opened when first used, and again when another file replaces it.

    `generation` counts the times it was opened; what is known about the rows of one generation
    is not valid in the next. Threads take turns.
    """

    def __init__(self, path: str, notice: Callable[[str], None]) -> None:
        self.path = path
        self.generation = 0
        self._notice = notice
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] = (0, 0)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._is_patient = True
        self._is_durable: bool | None = None
        self._is_wal = False

    def run(
        self,
        work: Callable[[sqlite3.Connection], Result],
        *,
        write: bool,
        durable: bool = False,
        again: bool = False,
        aside: bool = False,
        long: bool = False,
    ) -> Result:
        """Do `work` in one transaction.

        Args:
            work: gets the connection; it may be called twice.
            write: whether it changes anything.
            durable: return only when the result survives a power cut.
            again: if the file is damaged, start a new one and do the work there.
            aside: it only looks, and need not wait for another thread that writes.
            long: it only looks, and other threads need not wait for it.

        Raises:
            JournalUnavailable: with the reason; nothing was changed.
        """
        self._leave_parent()
        is_open = self._connection is not None and self._is_wal
        if is_open and (long or (aside and self._is_busy)):
            with contextlib.suppress(Exception):  # in its turn it is judged
                return self._look_aside(work)
        with self._lock:
            # What fails once may be a slip of the disk: nothing is judged before a second look.
            looks = 2
            while True:
                try:
                    return self._run(work, write=write, durable=durable)
                except _Replaced:
                    self.close()
                except Exception as error:
                    looks -= 1
                    if looks > 0 and _deserves_second_look(error):
                        self.close()
                        continue
                    place = self._recover(error)
                    if place is None:
                        raise
                    if not again:
                        raise JournalUnavailable(f"it was damaged, and is now {place}") from error
                    again = False

    def compact(self) -> None:
        """Rewrite the file, so that no byte of what was deleted is left in it or in its log.

        Raises:
            JournalUnavailable: with the reason; what was deleted stays deleted.
        """
        self._leave_parent()
        with self._lock:
            try:
                connection = self._open_current()
                connection.execute("VACUUM")
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except Exception as error:
                self._recover(error)
                raise
        if busy:
            raise JournalUnavailable("another process keeps it locked")

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._leave_parent()
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _run(
        self, work: Callable[[sqlite3.Connection], Result], *, write: bool, durable: bool
    ) -> Result:
        connection = self._open_current()
        # Without a sync at every commit, WAL can lose the last commits, and nothing else.
        durable = durable or not self._is_wal
        if write and durable is not self._is_durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_durable = durable
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            if write:
                self._require_current_file()
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if not self._is_patient:
            self._is_patient = True
            connection.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")
        return result

    @property
    def _is_busy(self) -> bool:
        """Whether another thread uses the file."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return False
        return True

    def _look_aside(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do work that only looks on a connection of its own."""
        import sqlite3

        with contextlib.closing(
            sqlite3.connect(self.path, timeout=IMPATIENCE, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            return work(connection)

    def _open_current(self) -> sqlite3.Connection:
        connection = self._connection
        if connection is not None:
            if self._has_current_file():
                return connection
            # Another process has deleted or moved the file that is open here.
            self.close()
        self._connection = self._open()
        self.generation += 1
        return self._connection

    def _require_current_file(self) -> None:
        if not self._has_current_file():
            raise _Replaced  # while this process waited for its turn

    def _has_current_file(self) -> bool:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) == self._file

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        make_private(self.path)
        status = os.stat(self.path)
        self._file = (status.st_dev, status.st_ino)
        self._is_durable = None
        connection = sqlite3.connect(
            self.path,
            timeout=PATIENCE if self._is_patient else IMPATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        stored, found = _schema_version(connection)
        newest = len(MIGRATIONS)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application not in (0, _APPLICATION):
            raise JournalUnavailable(f"{self.path} is a database of another program")
        if found > newest:
            raise JournalUnavailable(
                f"{self.path} is from a newer version of Cellwright (format {found}, not {newest})"
            )
        if not found:
            # Only an empty file accepts this setting.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._choose_mode(connection)
        if stored != newest:
            _migrate(connection)
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT}")

    def _choose_mode(self, connection: sqlite3.Connection) -> None:
        import sqlite3

        folder = os.path.realpath(os.path.dirname(self.path))
        wanted = "delete" if is_network(folder) else "wal"
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != wanted:
            try:
                connection.execute(f"PRAGMA journal_mode = {wanted}")
            except sqlite3.OperationalError as error:
                # Other processes have it open: it works in its mode, and changes another time.
                if not _has_code(error, _BUSY):
                    raise
        self._is_wal = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"

    def _recover(self, error: Exception) -> str | None:
        """Move a damaged file; returns its new path.

        For other known errors, raises `JournalUnavailable`; for unknown ones, returns None.
        """
        import sqlite3

        if isinstance(error, JournalDamaged):
            # Other notebooks, and the rest of this one, are as they were.
            raise JournalUnavailable(f"{error} ({self.path})") from error
        if _has_code(error, _DAMAGED):
            self.close()
            damage = find_damage(self.path)
            if damage is None:
                raise JournalUnavailable(f"it could not be read ({self.path})") from error
            return self._move_aside()
        if _has_code(error, _BUSY):
            self._is_patient = False
            if self._connection is not None:
                self._connection.execute(f"PRAGMA busy_timeout = {int(IMPATIENCE * 1000)}")
            raise JournalUnavailable("another process keeps it locked") from error
        if isinstance(error, (sqlite3.Error, OSError)):
            self.close()
            raise JournalUnavailable(f"{self._explain(error)} ({self.path})") from error
        return None

    def _explain(self, error: Exception) -> str:
        """The cause in words; SQLite calls a full disk an I/O error at some places."""
        import errno

        number = error.errno if isinstance(error, OSError) else None
        if number == errno.ENOSPC or _has_code(error, _FULL):
            return "the disk is full"
        if number is None and _has_code(error, _FAILED):
            try:
                if not os.statvfs(os.path.dirname(self.path)).f_bavail:
                    return "the disk is full"
            except OSError:
                pass
        return (isinstance(error, OSError) and error.strerror) or str(error)

    def _move_aside(self) -> str:
        """Rename the damaged file, unless another process has done so; returns its new path."""
        self.close()
        place = name_aside(self.path)
        folder = -1
        try:
            folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_CLOEXEC)
            if not lock_file(folder):
                return "being replaced"
            status = os.stat(self.path)
            if (status.st_dev, status.st_ino) != self._file:
                return "replaced"
            rename_with_logs(self.path, place)
        except OSError as error:
            raise JournalUnavailable(f"it is damaged and cannot be moved: {error}") from error
        finally:
            if folder >= 0:
                os.close(folder)
        self._notice(
            f"The journal was damaged and moved to {place}; a new one was started. `doctor` with"
            " `repair` brings back what is readable"
        )
        return place

    def _leave_parent(self) -> None:
        """After a fork, use a connection of our own and never touch the parent's."""
        if self._process != os.getpid():
            if self._connection is not None:
                # Closing it would remove a log that the parent still writes to.
                _inherited.append(self._connection)
                self._connection = None
            self._process = os.getpid()
            self._lock = threading.RLock()


def name_aside(path: str) -> str:
    """A new name for a journal that is put aside."""
    now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return f"{path}.broken-{now}-{os.getpid()}"


def rename_with_logs(path: str, place: str) -> None:
    """Rename a database; raises `OSError`."""
    # The log first: beside a new file, it would be taken for the log of that file.
    for suffix in ("-wal", "-shm", "-journal", ""):
        try:
            os.rename(path + suffix, place + suffix)
        except FileNotFoundError:
            continue


def find_damage(path: str) -> str | None:
    """What is wrong with a database, in words of SQLite; None if nothing is, or it cannot be said.

    It reads the whole file.
    """
    import sqlite3

    try:
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as error:
        return str(error) if _has_code(error, _DAMAGED) else None
    return None if found == "ok" else found.splitlines()[-1]


def _deserves_second_look(error: Exception) -> bool:
    return isinstance(error, (OSError, JournalDamaged)) or _has_code(error, _DAMAGED | _FAILED)


def _has_code(error: Exception, codes: frozenset[int]) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in codes


_APPLICATION = 0x63656C6C
"""The application id in the header of the file."""
# Ids are never used twice (AUTOINCREMENT), because other processes may still use an old one.
_FIRST = (
    # `path` is a real path in the bytes of the file system. `last_state` is the last known state
    # of the file, with its `signature` if known; `first_state` is the state before the first
    # recorded change. `touched` orders the notebooks by their last use, independent of the clock.
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
    # A piece is bytes that are stored once: `size` bytes from `start` of a pack. `refs` counts
    # the states, snapshots and lists that use it. The bytes are in a table of their own, so that
    # counting does not rewrite them.
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
"""The statements that lead from version N to version N + 1."""


def _schema_version(connection: sqlite3.Connection) -> tuple[int, int]:
    """The stored version of the tables, and the true one; 0 if there are none."""
    stored = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if stored > 0:
        return stored, stored
    # A damaged number must not make new tables of those that are there.
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    return stored, 2 if "execution" in names else int("notebook" in names)


def _migrate(connection: sqlite3.Connection) -> None:
    """Migrate the tables to the newest version, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have done it while this one waited.
    for number in range(_schema_version(connection)[1], len(MIGRATIONS)):
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")
