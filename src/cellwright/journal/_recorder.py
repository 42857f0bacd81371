"""The side of the journal that writes: whatever goes wrong here ends as a warning."""

# Every edit passes here, and pathlib is slow to import.
# ruff: noqa: PTH100
from __future__ import annotations

import os
import threading
from typing import NamedTuple

from cellwright.document.disk.paths import RealPath
from cellwright.errors import CellwrightError, JournalUnavailable
from cellwright.journal import _changes, _ledger, _snapshots, place, pruning
from cellwright.journal._database import Database
from cellwright.journal._ledger import Known, Writer
from cellwright.journal._store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import TypeVar

    from cellwright.document.change import Change, State
    from cellwright.document.snapshot import Snapshot
    from cellwright.journal._changes import Facts, Row
    from cellwright.journal.entry import Entry
    from cellwright.journal.executions import Executed
    from cellwright.journal.pruning import Limits

    Path = str | os.PathLike[str]
    Result = TypeVar("Result")

# States in memory that need no look at their bytes when they are edited next.
_MOST_KNOWN = 4


class Written(NamedTuple):
    """The change that was written, if any, and how much it brought."""

    row: Row | None
    brought: int


NOTHING = Written(None, 0)


def key_of(path: Path) -> bytes:
    """What a notebook is known by: its real path, in the bytes of the file system."""
    name = os.fspath(path)
    try:
        if not isinstance(name, RealPath):
            name = os.path.realpath(name)
        return os.fsencode(name)
    except (OSError, ValueError):
        return name.encode("utf-8", "surrogatepass")  # no such file can be; nothing to find


class Recorder:
    """Writes changes and snapshots, and keeps what it knows about states in memory."""

    def __init__(
        self, path: Path | None, limits: Limits, warnings: list[str] | None = None
    ) -> None:
        self.warnings: list[str] = [] if warnings is None else warnings
        self.limits = limits
        self._path = path
        self._opened: Database | None = None
        self._known: dict[bytes, tuple[int, Known]] = {}
        self._lock = threading.Lock()

    @property
    def database(self) -> Database:
        """The file; raises `JournalUnavailable` if nobody knows where it should be."""
        if self._opened is None:
            try:
                path = os.path.abspath(self._path) if self._path else place.default_path()
            except CellwrightError as error:
                raise JournalUnavailable(error.message) from error
            self._opened = Database(path, self._warn)
        return self._opened

    def close(self) -> None:
        """Let go of the file and of what is known about it."""
        self._known.clear()
        if self._opened is not None:
            self._opened.close()

    def announce(self, key: bytes, change: Change, facts: Facts) -> Written:
        """Write down a change that is about to be made, so that a power cut leaves it there.

        That of a run it may take: outputs can be had again, and every cell would wait for the
        disk once more.
        """
        durable = facts.kind != "run"
        return self._write(key, lambda writer: writer.announce(change, facts), durable=durable)

    def confirm(
        self,
        key: bytes,
        change: Change,
        facts: Facts,
        announced: Written,
        signature: str | None,
        *,
        run: Executed | None = None,
    ) -> Entry | None:
        """Write down that a change was made, all of it if it was not announced.

        `run` is the run whose outputs it brought, if there was one.
        """
        is_untidy = False

        def work(writer: Writer) -> Row | None:
            nonlocal is_untidy
            connection = writer.connection
            if run is not None:
                from cellwright.journal import executions

                executions.add(connection, _ledger.find_or_add(connection, key).id, run)
            is_untidy = pruning.needs_work(connection, self.limits)
            told = announced.row
            rows = _changes.select(connection, "id = ?", told.id) if told is not None else []
            row = rows[0] if rows else writer.announce(change, facts)
            # If somebody else looked at the file before us, it has its number already.
            if row is None or row.number is not None:
                return row
            return _changes.confirm(connection, row, signature)

        row, brought = self._write(key, work)
        if row is not None and is_untidy:
            self._tidy(row.notebook, announced.brought + brought)
        return row and row.entry()

    def withdraw(self, announced: Row) -> None:
        """Drop a change that was announced and not made."""

        def work(connection: sqlite3.Connection) -> None:
            for row in _changes.select(connection, "id = ? AND number IS NULL", announced.id):
                store = Store(connection)
                _ledger.drop(connection, store, row)
                store.flush()

        self._attempt(work)

    def catch_up(self, path: Path, state: State, signature: str | None) -> Entry | None:
        """Compare a file with what was last seen of it."""
        key = key_of(path)

        def look(connection: sqlite3.Connection) -> bool:
            book = _ledger.find(connection, key)
            if book is None or book.last_state is None:
                return False  # nothing was ever recorded, so nothing can be missing
            if signature is None or signature != book.signature:
                return True
            if _ledger.announced(connection, book):
                return True
            self._learn(key, self.database.generation, Known.of(state, book.last_state))
            return False

        def work(writer: Writer) -> Row | None:
            if signature is not None and signature != place.signature(path):
                return None  # what was read is history by now
            return writer.settle(state, signature)

        if not self._attempt(look, write=False):
            return None
        row, _ = self._write(key, work)
        return row and row.entry()

    def remember(self, path: Path, snapshot: Snapshot) -> None:
        """Remember a snapshot, unless it is remembered already."""
        key, kept = key_of(path), self.limits.snapshots

        def look(connection: sqlite3.Connection) -> bool:
            book = _ledger.find(connection, key)
            return book is not None and _snapshots.is_fresh(
                connection, book.id, snapshot.revision, kept
            )

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            book = _ledger.find_or_add(connection, key)
            store = Store(connection)
            _snapshots.remember(connection, store, book.id, snapshot)
            _snapshots.forget_oldest(connection, store, book.id, kept)
            store.flush()
            return book.id, store.brought

        if self._attempt(look, write=False) is False:
            book, brought = self._attempt(work) or (0, 0)
            if book and self._attempt(lambda c: pruning.needs_work(c, self.limits), write=False):
                self._tidy(book, brought)

    def executed(self, path: Path, run: Executed) -> None:
        """Write down that a cell was run."""
        from cellwright.journal import executions

        key = key_of(path)

        def work(connection: sqlite3.Connection) -> None:
            executions.add(connection, _ledger.find_or_add(connection, key).id, run)

        self._attempt(work, otherwise="this run is not in the history")

    def _write(
        self, key: bytes, act: Callable[[Writer], Row | None], *, durable: bool = False
    ) -> Written:
        """Let a writer act in one transaction; what it wrote, and what that brought."""

        def work(connection: sqlite3.Connection) -> tuple[Row | None, Writer, int]:
            writer = Writer(connection, key, self._knows(key))
            row = act(writer)
            writer.store.flush()
            return row, writer, self.database.generation

        result = self._attempt(work, durable=durable)
        if result is None:
            return NOTHING
        row, writer, generation = result
        if writer.known is not None:
            self._learn(key, generation, writer.known)
        return Written(row, writer.store.brought)

    def _attempt(
        self,
        work: Callable[[sqlite3.Connection], Result],
        *,
        write: bool = True,
        durable: bool = False,
        otherwise: str = "this is not in the history",
    ) -> Result | None:
        """Do what may fail without harm to anything but the history; `otherwise` says the harm."""
        try:
            return self.database.run(work, write=write, durable=durable, again=True)
        except JournalUnavailable as error:
            self._warn(f"{error.message}; {otherwise}")
        except Exception as error:  # noqa: BLE001  # whatever it is, it must not stop an edit
            self._warn(f"The journal failed ({error!r}); {otherwise}")
        return None

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _knows(self, key: bytes) -> Known | None:
        generation, known = self._known.get(key, (0, None))
        return known if generation == self.database.generation else None

    def _learn(self, key: bytes, generation: int, known: Known) -> None:
        """Note what is known about a state that is written for good."""
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = (generation, known)
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def _tidy(self, book: int, brought: int) -> None:
        """Bring the file back to its limits, a little after every change."""
        limits = self.limits
        harm = "it may grow beyond its limit"
        self._attempt(lambda c: pruning.work(c, limits, book, brought), otherwise=harm)
