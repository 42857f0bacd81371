"""The side of the journal that writes; everything that goes wrong here becomes a warning.

A change is announced before the file is replaced and confirmed afterwards. If its author dies in
between, the next look at the file shows which of the two states it has.
"""

# Every edit runs this code, and pathlib is slow to import.
# ruff: noqa: PTH100
from __future__ import annotations

import os
import threading
import time
from typing import NamedTuple

from cellwright.document.disk.paths import RealPath
from cellwright.errors import CellwrightError, JournalUnavailable
from cellwright.journal import _changes, _states, place, pruning
from cellwright.journal._changes import ChangeInfo, ChangeRow
from cellwright.journal._database import JournalDamaged, JournalDatabase
from cellwright.journal._store import PieceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from cellwright.document._bytes.layout import Layout
    from cellwright.document._bytes.slots import Slot
    from cellwright.document.change import Change, State
    from cellwright.document.snapshot import Snapshot
    from cellwright.journal._states import StateContent
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.journal.history import Entry
    from cellwright.journal.pruning import JournalLimits

    Path = str | os.PathLike[str]
    Result = TypeVar("Result")

# States that are kept in memory, so that their bytes need not be compared at the next edit.
_MOST_KNOWN = 4
# A state of this many bytes takes more than one transaction, and others write in between.
_LARGE = 4 * 2**20
_TURN = 0.001


class WrittenChange(NamedTuple):
    """The change that was written, if any, and how many bytes it added."""

    row: ChangeRow | None
    added: int


NOTHING = WrittenChange(None, 0)


def notebook_key(path: Path) -> bytes:
    """The key of a notebook: its real path, in the bytes of the file system."""
    name = os.fspath(path)
    try:
        if not isinstance(name, RealPath):
            name = os.path.realpath(name)
        return os.fsencode(name)
    except (OSError, ValueError):
        return name.encode("utf-8", "surrogatepass")  # no such file can exist


class JournalRecorder:
    """Writes changes, snapshots and executions, and keeps the last states in memory."""

    def __init__(
        self, path: Path | None, limits: JournalLimits, warnings: list[str] | None = None
    ) -> None:
        self.warnings: list[str] = [] if warnings is None else warnings
        self.limits = limits
        self._path = path
        self._opened: JournalDatabase | None = None
        self._known: dict[bytes, tuple[int, KnownState]] = {}
        self._lock = threading.Lock()

    @property
    def database(self) -> JournalDatabase:
        """The database; raises `JournalUnavailable` if there is no place for it."""
        if self._opened is None:
            try:
                path = os.path.abspath(self._path) if self._path else place.default_path()
            except CellwrightError as error:
                raise JournalUnavailable(error.message) from error
            self._opened = JournalDatabase(path, self._warn)
        return self._opened

    def close(self) -> None:
        """Close the file and forget what is known about it."""
        self._known.clear()
        if self._opened is not None:
            self._opened.close()

    def announce(self, key: bytes, change: Change, facts: ChangeInfo) -> WrittenChange:
        """Record a change that is about to be made, so that it survives a power cut.

        A run need not survive one: its outputs can be computed again, and otherwise every cell
        would wait for the disk once more.
        """
        # Now: once the file is replaced, nothing may be opened that can fail.
        import cellwright.journal.history  # noqa: F401

        durable = facts.kind != "run"
        # What takes long is done before the transaction, for which others have to wait.
        _ = change.before.snapshot.revision, change.after.snapshot.revision
        ahead = self._store_ahead(key, change.before, durable=durable)
        if change.after.old is None:
            slots = change.after.layout.slots
            new = [slots[cell.after] for cell in change.cells if cell.after is not None]
            ahead += self._store_slots(new, durable=durable)
        row, added = self._write(
            key, lambda writer: writer.announce(change, facts), durable=durable
        )
        return WrittenChange(row, added + ahead)

    def _store_ahead(self, key: bytes, state: State, *, durable: bool) -> int:
        """Store the bytes of a large state in several transactions, with turns for others between.

        They belong to nothing yet; what is removed meanwhile is stored again with the change.
        Returns how many bytes that added.
        """
        if state.old is not None or sum(map(len, state.layout.parts())) < _LARGE:
            return 0
        known = self._knows(key)
        if known is not None and known.is_of(state):
            return 0
        return self._store_slots(state.layout.slots, durable=durable)

    def _store_slots(self, slots: Sequence[Slot], *, durable: bool) -> int:
        if sum(slot.end - slot.start for slot in slots) < _LARGE:
            return 0
        added = 0
        budget: int | None = None
        for pieces in _states.list_pieces(slots, _LARGE):

            def work(
                connection: sqlite3.Connection,
                pieces: list[memoryview] = pieces,
                budget: int | None = budget,
            ) -> tuple[int, int]:
                store = PieceStore(connection, budget)
                store.keep(pieces)
                store.flush()
                return store.added, store.budget

            brought, budget = self._attempt(work, durable=durable) or (0, budget)
            added += brought
            time.sleep(_TURN)
        return added

    def confirm(
        self,
        key: bytes,
        change: Change,
        facts: ChangeInfo,
        announced: WrittenChange,
        signature: str | None,
        *,
        runs: Sequence[ExecutionRecord] = (),
    ) -> Entry | None:
        """Record that a change was made; the whole change, if it could not be announced.

        `runs` are the executions whose outputs it contains.
        """
        is_untidy = False

        def work(writer: ChangeWriter) -> ChangeRow | None:
            nonlocal is_untidy
            connection = writer.connection
            if runs:
                from cellwright.journal import executions

                for run in runs:
                    executions.add_execution(connection, writer.book.id, run)
            is_untidy = pruning.needs_pruning(connection, self.limits)
            rows = []
            if announced.row is not None:
                rows = _changes.select_changes(connection, "id = ?", announced.row.id)
            row = rows[0] if rows else writer.announce(change, facts)
            # If another process looked at the file before us, the change has its number already.
            if row is None or row.number is not None:
                return row
            return _changes.confirm_change(connection, row, signature)

        row, brought = self._write(key, work)
        if row is not None and is_untidy:
            self._tidy(row.notebook, announced.added + brought)
        return row and row.to_entry()

    def withdraw(self, announced: ChangeRow) -> None:
        """Remove a change that was announced and not made."""

        def work(connection: sqlite3.Connection) -> None:
            for row in _changes.select_changes(
                connection, "id = ? AND number IS NULL", announced.id
            ):
                store = PieceStore(connection)
                drop_announced(connection, store, row)
                store.flush()

        self._attempt(work)

    def catch_up(
        self,
        path: Path,
        state: State,
        signature: str | None,
        look_again: Callable[[], str | None] | None,
    ) -> Entry | None:
        """Compare a notebook with its last known state."""
        key = notebook_key(path)
        find_signature = look_again or (lambda: place.signature(path))

        def look(connection: sqlite3.Connection) -> bool:
            book = find_notebook(connection, key)
            if book is None or book.last_state is None:
                return False  # nothing was recorded, so nothing can be missing
            if signature is None or signature != book.signature:
                return True
            if select_announced(connection, book):
                return True
            known = self._knows(key)
            content = known.content if known and known.state == book.last_state else None
            found = KnownState.of(state, book.last_state, content)
            self._learn(key, self.database.generation, found)
            return False

        def work(writer: ChangeWriter) -> ChangeRow | None:
            if signature is not None and signature != find_signature():
                return None  # it has changed again since it was read
            return writer.settle(state, signature)

        if not self._attempt(look, write=False, aside=True):
            return None
        self._store_ahead(key, state, durable=False)
        row, _ = self._write(key, work)
        return row and row.to_entry()

    def remember(self, path: Path, snapshot: Snapshot) -> None:
        """Remember a snapshot, unless it is remembered already."""
        key, kept = notebook_key(path), self.limits.snapshots

        def look(connection: sqlite3.Connection) -> bool:
            book = find_notebook(connection, key)
            return book is not None and _states.is_snapshot_fresh(
                connection, book.id, snapshot.revision, kept
            )

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            book = find_or_add_notebook(connection, key)
            store = PieceStore(connection)
            _states.remember_snapshot(connection, store, book.id, snapshot)
            _states.forget_oldest_snapshots(connection, store, book.id, kept)
            store.flush()
            return book.id, store.added

        if self._attempt(look, write=False, aside=True) is False:
            _ = snapshot.hashes  # of a large notebook that takes a while, and others would wait
            book, brought = self._attempt(work) or (0, 0)
            if book and self._attempt(lambda c: pruning.needs_pruning(c, self.limits), write=False):
                self._tidy(book, brought)

    def record_execution(self, path: Path, run: ExecutionRecord) -> None:
        """Record that a cell was run."""
        from cellwright.journal import executions

        key = notebook_key(path)

        def work(connection: sqlite3.Connection) -> None:
            executions.add_execution(connection, find_or_add_notebook(connection, key).id, run)

        self._attempt(work, otherwise="this run is not in the history")

    def _write(
        self, key: bytes, act: Callable[[ChangeWriter], ChangeRow | None], *, durable: bool = False
    ) -> WrittenChange:
        """Let a writer act in one transaction; returns what it wrote and how much that added."""

        def work(connection: sqlite3.Connection) -> tuple[ChangeRow | None, ChangeWriter, int]:
            writer = ChangeWriter(connection, key, self._knows(key))
            row = act(writer)
            writer.store.flush()
            return row, writer, self.database.generation

        result = self._attempt(work, durable=durable)
        if result is None:
            return NOTHING
        row, writer, generation = result
        if writer.has_found_damage:
            self._warn("A part of this notebook's history is damaged; new changes are recorded")
        if writer.known is not None:
            self._learn(key, generation, writer.known)
        return WrittenChange(row, writer.store.added)

    def _attempt(
        self,
        work: Callable[[sqlite3.Connection], Result],
        *,
        write: bool = True,
        durable: bool = False,
        aside: bool = False,
        otherwise: str = "this is not in the history",
    ) -> Result | None:
        """Do work that may fail with only a warning; `otherwise` says what is then missing."""
        try:
            return self.database.run(work, write=write, durable=durable, again=True, aside=aside)
        except JournalUnavailable as error:
            self._warn(f"{error.message}; {otherwise}")
        except Exception as error:  # noqa: BLE001  # no error of the journal may stop an edit
            self._warn(f"The journal failed ({error!r}); {otherwise}")
        return None

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _knows(self, key: bytes) -> KnownState | None:
        generation, known = self._known.get(key, (0, None))
        return known if generation == self.database.generation else None

    def _learn(self, key: bytes, generation: int, known: KnownState) -> None:
        """Remember a state that has been committed."""
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = (generation, known)
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def _tidy(self, book: int, brought: int) -> None:
        """Bring the file back to its limits, in a small step after every change."""
        limits = self.limits
        harm = "it may grow beyond its limit"
        self._attempt(lambda c: pruning.prune(c, limits, book, brought), otherwise=harm)


class KnownState(NamedTuple):
    """A state in memory, and the number and content of the same state in the journal."""

    layout: Layout
    old: bytes | None
    state: int
    content: StateContent | None

    @classmethod
    def of(cls, state: State, number: int, content: StateContent | None = None) -> KnownState:
        """Make one for a state that was found or written."""
        return cls(state.layout, state.old, number, content)

    def is_of(self, state: State) -> bool:
        """Whether it is exactly this state object; other states have to be compared."""
        return self.layout is state.layout and self.old is state.old


class NotebookRecord(NamedTuple):
    """A row of the table of notebooks."""

    id: int
    first_state: int | None
    last_state: int | None
    signature: str | None


def find_notebook(connection: sqlite3.Connection, path: bytes) -> NotebookRecord | None:
    """The notebook at a path, if it is known."""
    row = connection.execute(
        "SELECT id, first_state, last_state, signature FROM notebook WHERE path = ?", (path,)
    ).fetchone()
    return NotebookRecord(*row) if row is not None else None


def find_or_add_notebook(connection: sqlite3.Connection, path: bytes) -> NotebookRecord:
    """The notebook at a path, which is added if it is new."""
    book = find_notebook(connection, path)
    if book is not None:
        return book
    row = connection.execute(
        "INSERT INTO notebook (path, begun, touched)"
        " SELECT ?, ?, coalesce(max(touched), 0) + 1 FROM notebook",
        (path, int(time.time() * 1000)),
    )
    return NotebookRecord(row.lastrowid or 0, None, None, None)


def select_announced(connection: sqlite3.Connection, book: NotebookRecord) -> list[ChangeRow]:
    """Changes that were announced and not confirmed yet."""
    return _changes.select_changes(
        connection, "notebook = ? AND number IS NULL ORDER BY id", book.id
    )


class ChangeWriter:
    """Writes one change, inside one transaction."""

    def __init__(
        self, connection: sqlite3.Connection, path: bytes, known: KnownState | None
    ) -> None:
        self.connection = connection
        self.store = PieceStore(connection)
        self.book = find_or_add_notebook(connection, path)
        self.known = known if known and known.state == self.book.last_state else None
        self.has_found_damage = False
        self._waiting: list[ChangeRow] = []

    def settle(self, state: State, signature: str | None) -> ChangeRow | None:
        """Record the current state of the file; returns the `outside` change if there was one."""
        last = self.book.last_state
        waiting = self._waiting = select_announced(self.connection, self.book)
        if last is None or (self.known and self.known.is_of(state) and not waiting):
            self._sign(signature)
            return None
        # If all its pieces are stored already, this adds nothing.
        content = _states.keep_state(self.store, state)
        try:
            before = self._load(last)
        except JournalDamaged:
            self._begin_again(content, state, signature)
            return None
        if content == before:
            self._sign(signature)
            self.known = KnownState.of(state, last, content)
            return None
        for row in waiting:
            if row.before_state == last and self._is_state(row.after_state, content):
                _changes.confirm_change(self.connection, row, signature)
                waiting.remove(row)
                self.known = KnownState.of(state, row.after_state, content)
                self.book = self.book._replace(last_state=row.after_state)
                return None
        return self._outside(before, content, state, signature)

    def announce(self, change: Change, facts: ChangeInfo) -> ChangeRow | None:
        """Record a change that is about to be made; None if it changes nothing."""
        cells = change.cells
        if facts.kind != "create" and _states.changes_nothing(change, cells):
            return None
        if self.book.last_state is None:
            self._begin(change.before)
        else:
            self.settle(change.before, None)
            self.withdraw()
        assert self.known is not None  # noqa: S101  # set by both branches
        before = self.known.content
        if before is None:
            try:
                before = self._load(self.known.state)
            except JournalDamaged:
                before = _states.keep_state(self.store, change.before)
                self._begin_again(before, change.before, None)
        after = _states.keep_changed_state(self.store, before, change, cells)
        if after == before and facts.kind != "create":
            return None
        number = _states.save_state(self.connection, self.store, self.book.id, after)
        row = _changes.insert_change(
            self.connection,
            self.book.id,
            change,
            facts,
            cells=cells,
            states=(self.known.state, number),
        )
        self.known = KnownState.of(change.after, number, after)
        return row

    def withdraw(self) -> None:
        """Remove changes that `settle` has found announced and not made.

        The caller holds the notebook's lock.
        """
        while self._waiting:
            drop_announced(self.connection, self.store, self._waiting.pop())

    def _begin(self, state: State) -> None:
        """Keep the first state of the notebook."""
        content = _states.keep_state(self.store, state)
        number = _states.save_state(self.connection, self.store, self.book.id, content)
        self.connection.execute(
            "UPDATE notebook SET first_state = ?1, last_state = ?1, first_revision = ?2, begun = ?3"
            " WHERE id = ?4",
            (number, state.snapshot.revision, int(time.time() * 1000), self.book.id),
        )
        self.known = KnownState.of(state, number, content)
        self.book = self.book._replace(first_state=number, last_state=number)

    def _begin_again(self, content: StateContent, state: State, signature: str | None) -> None:
        """Go on from the state of the file, because the last known state cannot be read."""
        self.has_found_damage = True
        self.withdraw()
        number = _states.save_state(self.connection, self.store, self.book.id, content)
        self.connection.execute(
            "UPDATE notebook SET last_state = ?, signature = ? WHERE id = ?",
            (number, signature, self.book.id),
        )
        self.known = KnownState.of(state, number, content)
        self.book = self.book._replace(last_state=number, signature=signature)

    def _is_state(self, number: int, content: StateContent) -> bool:
        try:
            return self._load(number) == content
        except JournalDamaged:
            return False

    def _outside(
        self, before: StateContent, content: StateContent, state: State, signature: str | None
    ) -> ChangeRow:
        from cellwright.document.change import Change

        self.withdraw()
        then = _states.build_state_beside(self.store, before, state, content)
        number = _states.save_state(self.connection, self.store, self.book.id, content)
        change = Change.between(then, state)
        row = _changes.insert_change(
            self.connection,
            self.book.id,
            change,
            ChangeInfo(_changes.OUTSIDE, _changes.OUTSIDE, "", None),
            cells=change.cells,
            states=(self.book.last_state or 0, number),
        )
        self.known = KnownState.of(state, number, content)
        self.book = self.book._replace(last_state=number)
        return _changes.confirm_change(self.connection, row, signature)

    def _load(self, state: int) -> StateContent:
        if self.known is not None and self.known.state == state and self.known.content is not None:
            return self.known.content
        return _states.load_state(self.connection, self.store, state)

    def _sign(self, signature: str | None) -> None:
        if signature is not None and signature != self.book.signature:
            self.connection.execute(
                "UPDATE notebook SET signature = ? WHERE id = ?", (signature, self.book.id)
            )


def drop_announced(connection: sqlite3.Connection, store: PieceStore, row: ChangeRow) -> None:
    """Remove an announced change, with the state after it."""
    connection.execute("DELETE FROM change WHERE id = ?", (row.id,))
    _states.delete_state(connection, store, row.after_state)
