"""One connection to the journal's file, and what to do when that file is not as it should be."""

# Every edit passes here, and pathlib is slow to import.
# ruff: noqa: PTH104, PTH116, PTH120
from __future__ import annotations

import os
import threading
import time

from cellwright.errors import JournalUnavailable
from cellwright.journal import _schema
from cellwright.journal.place import is_network, make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Final, TypeVar

    Result = TypeVar("Result")

PATIENCE = 5.0
"""How long to wait for another process that is writing."""

IMPATIENCE = 0.05
"""The same after somebody has held the journal for too long, until it can be had again."""

_WAL_KEPT = 16 * 2**20

# Primary result codes of SQLite; `sqlite3` names them only from the code of an error on.
_BUSY: Final = frozenset({5, 6})
_DAMAGED: Final = frozenset({11, 26})

_inherited: list[sqlite3.Connection] = []


class Damaged(Exception):
    """The tables contradict each other."""


class Database:
    """The journal's file: opened when first used, and anew when another one takes its place.

    `generation` counts the times it was opened; what was remembered about the rows of one
    generation is worth nothing in the next. Threads take turns.
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
    ) -> Result:
        """Do `work` in one transaction.

        Args:
            work: gets the connection; must bear to be called again.
            write: whether it changes anything.
            durable: return only when a power cut cannot take it back.
            again: if the file turns out to be damaged, start a new one and go on there.

        Raises:
            JournalUnavailable: with the reason; nothing was changed.
        """
        self._leave_parent()
        with self._lock:
            while True:
                try:
                    return self._run(work, write=write, durable=durable)
                except Exception as error:
                    place = self._recover(error)
                    if place is None:
                        raise
                    if not again:
                        raise JournalUnavailable(f"it was damaged, and is now {place}") from error
                    again = False

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        self._leave_parent()
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _run(
        self, work: Callable[[sqlite3.Connection], Result], *, write: bool, durable: bool
    ) -> Result:
        connection = self._opened()
        # Without a sync at every commit WAL may lose the last of them, and nothing else.
        durable = durable or not self._is_wal
        if write and durable is not self._is_durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_durable = durable
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
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

    def _opened(self) -> sqlite3.Connection:
        connection = self._connection
        if connection is not None:
            try:
                status = os.stat(self.path)
                if (status.st_dev, status.st_ino) == self._file:
                    return connection
            except FileNotFoundError:
                pass
            # Deleted, or moved aside by another process: what we have open is nobody's.
            self.close()
        self._connection = self._open()
        self.generation += 1
        return self._connection

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
        found = _schema.version(connection)
        newest = len(_schema.MIGRATIONS)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application not in (0, _schema.APPLICATION):
            raise JournalUnavailable(f"{self.path} is a database of another program")
        if found > newest:
            raise JournalUnavailable(
                f"{self.path} is from a newer version of Cellwright (format {found}, not {newest})"
            )
        if not found:
            # Only a file without any page takes this setting.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._choose_mode(connection)
        if found < newest:
            _schema.migrate(connection)
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT}")

    def _choose_mode(self, connection: sqlite3.Connection) -> None:
        import sqlite3

        folder = os.path.realpath(os.path.dirname(self.path))
        wanted = "delete" if is_network(folder) else "wal"
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != wanted:
            try:
                connection.execute(f"PRAGMA journal_mode = {wanted}")
            except sqlite3.OperationalError as error:
                # Others have it open: it works in the mode it is in, and changes another time.
                if not _has_code(error, _BUSY):
                    raise
        self._is_wal = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"

    def _recover(self, error: Exception) -> str | None:
        """Where a damaged file went; otherwise None or, for what can be put in words, raises."""
        import sqlite3

        if isinstance(error, Damaged) or _has_code(error, _DAMAGED):
            return self._move_aside()
        if _has_code(error, _BUSY):
            self._is_patient = False
            if self._connection is not None:
                self._connection.execute(f"PRAGMA busy_timeout = {int(IMPATIENCE * 1000)}")
            raise JournalUnavailable("another process keeps it locked") from error
        if isinstance(error, (sqlite3.Error, OSError)):
            self.close()
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise JournalUnavailable(f"{reason} ({self.path})") from error
        return None

    def _move_aside(self) -> str:
        """Rename the damaged file, unless another process has done so; tell where it is."""
        import fcntl

        self.close()
        now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        place = f"{self.path}.broken-{now}-{os.getpid()}"
        folder = -1
        try:
            folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.stat(self.path)
            if (status.st_dev, status.st_ino) != self._file:
                return "replaced"
            # The log goes first: beside a new file it would be taken for that file's.
            for suffix in ("-wal", "-shm", "-journal", ""):
                try:
                    os.rename(self.path + suffix, place + suffix)
                except FileNotFoundError:
                    continue
        except BlockingIOError:
            return "being replaced"
        except OSError as error:
            raise JournalUnavailable(f"it is damaged and cannot be moved: {error}") from error
        finally:
            if folder >= 0:
                os.close(folder)
        self._notice(f"The journal was damaged; it is now {place}, and a new one was begun")
        return place

    def _leave_parent(self) -> None:
        """After a fork, use a connection of our own and never touch the parent's."""
        if self._process != os.getpid():
            if self._connection is not None:
                # Closing it would drop a log that the parent is still writing to.
                _inherited.append(self._connection)
                self._connection = None
            self._process = os.getpid()
            self._lock = threading.RLock()


def _has_code(error: Exception, codes: frozenset[int]) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in codes
