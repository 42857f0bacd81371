"""The journal as the rest of the house sees it: it records without ever standing in the way."""

from __future__ import annotations

from cellwright.journal import _changes, _ledger, _snapshots, pruning
from cellwright.journal._changes import Facts
from cellwright.journal._recorder import NOTHING, Recorder, key_of
from cellwright.journal._store import Store
from cellwright.journal.pruning import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from types import TracebackType
    from typing import Literal, Self, TypeVar

    from cellwright.document.change import Change, State
    from cellwright.document.snapshot import Snapshot
    from cellwright.journal._changes import Row
    from cellwright.journal._ledger import Book
    from cellwright.journal._recorder import Path
    from cellwright.journal.entry import Backup, BlameRow, Entry
    from cellwright.journal.executions import Executed

    Result = TypeVar("Result")


class Journal:
    """The history of all notebooks of a user, in one file that several processes may use.

    What records (`begin`, `record`, `catch_up`, `remember`, `executed`) never raises: an edit must not fail
    because its history does. What went wrong is then in `warnings`, in words for the user, each
    once; whoever shows them clears the list. What has to answer raises `JournalUnavailable`.

    Notebooks are known by their real path. An instance serves all threads of a process. `Limits`
    says how much is kept.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        limits: Limits | None = None,
        warnings: list[str] | None = None,
    ) -> None:
        self._recorder = Recorder(path, limits or Limits(), warnings)
        self.warnings = self._recorder.warnings

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; a later call opens it again."""
        self._recorder.close()

    @property
    def path(self) -> str:
        """Where the journal is; raises `JournalUnavailable` if no place can be found for it."""
        return self._recorder.database.path

    def begin(
        self,
        path: Path,
        change: Change,
        *,
        actor: str,
        label: str = "",
        kind: str = "edit",
        concerns: str | None = None,
    ) -> Recording:
        """Write down a change before the file is replaced; `finish` or `abandon` it after that.

        When this returns, what the file holds now survives a power cut, unless it is only the
        outputs of a run that will replace it. If the process dies
        before it says how the save went, the next `catch_up` finds out from the file. Call it
        with the notebook's lock held.

        Args:
            path: the notebook.
            change: what is about to be saved; its `before` is what the file holds.
            actor: who, as `door:name`.
            label: why, in a few words of the caller.
            kind: `edit`, `create`, `undo`, `redo`, `restore` or `run`.
            concerns: the id of the change that is undone, redone or restored; of several that are
                undone as one, their ids with spaces between.
        """
        facts = Facts(kind, actor, label, concerns)
        return Recording(self._recorder, key_of(path), change, facts)

    def record(
        self,
        path: Path,
        change: Change,
        *,
        actor: str,
        label: str = "",
        kind: str = "edit",
        concerns: str | None = None,
        signature: str | None = None,
    ) -> Entry | None:
        """Write down a change that has been saved; None if it changed nothing or cannot be kept.

        If its `before` is not what was last seen of the file, an `outside` entry comes first.
        `signature` is that of the file now. See `begin` for the rest.
        """
        facts = Facts(kind, actor, label, concerns)
        return self._recorder.confirm(key_of(path), change, facts, NOTHING, signature)

    def catch_up(self, path: Path, state: State, signature: str | None = None) -> Entry | None:
        """Compare the file with what was last seen of it; the `outside` entry, if they differ.

        Without a `signature`, only who holds the notebook's lock may call this. With one, taken
        when the file was read, a file that has changed again since then is left for the next
        time; and one that has not changed since it was last seen costs no comparison.
        """
        return self._recorder.catch_up(path, state, signature)

    def remember(self, path: Path, snapshot: Snapshot) -> None:
        """Remember a revision that was given to somebody, so that it can be a base later."""
        self._recorder.remember(path, snapshot)

    def executed(self, path: Path, run: Executed) -> None:
        """Write down that a cell was run; never raises."""
        self._recorder.executed(path, run)

    def executions(self, path: Path) -> list[Executed]:
        """All runs of a notebook's cells that are remembered, the oldest first."""
        from cellwright.journal import executions

        return self._answer(
            path, lambda connection, book: executions.select(connection, book.id) if book else []
        )

    def recall(self, path: Path, revision: str) -> Snapshot | None:
        """The snapshot that a revision of this notebook names; None if nobody remembers it."""

        def ask(connection: sqlite3.Connection, book: Book | None) -> Snapshot | None:
            if book is None:
                return None
            name = _changes.plain(revision)
            return _snapshots.recall(connection, Store(connection), book.id, name)

        return self._answer(path, ask)

    def log(self, path: Path, limit: int = 50, before: int | None = None) -> list[Entry]:
        """The newest changes first, at most `limit`; `before` goes on below that number."""
        where = "notebook = ? AND number < ? ORDER BY number DESC LIMIT ?"
        number = before if before is not None else 2**62

        def ask(connection: sqlite3.Connection, book: Book | None) -> list[Row]:
            return _changes.select(connection, where, book.id, number, limit) if book else []

        return [row.entry() for row in self._answer(path, ask)]

    def get(self, path: Path, change_id: str) -> Entry:
        """The entry with that id, or with the one id that begins so; raises `ChangeNotFound`."""
        return self._answer(
            path, lambda connection, book: _changes.by_id(connection, book and book.id, change_id)
        ).entry()

    def change(self, entry: Entry | str) -> Change:
        """A recorded change, to be applied again, or taken back by its `inverse()`."""
        from cellwright.journal import _history

        handle = entry if isinstance(entry, str) else entry.id
        return self._ask(lambda connection: _history.rebuild(connection, _changes.plain(handle)))

    def undo_target(
        self, path: Path, actor: str | None = None, change_id: str | None = None
    ) -> Entry:
        """The newest change of this actor (of anybody, if None) that is not undone.

        Runs and changes made outside are passed over; the latter can be named by their id.

        Raises:
            NothingToUndo: there is none, or the one that was named is undone already.
        """
        from cellwright.journal import _history

        return self._answer(
            path, lambda connection, book: _history.undo_target(connection, book, actor, change_id)
        ).entry()

    def redo_target(
        self, path: Path, actor: str | None = None, change_id: str | None = None
    ) -> Entry:
        """The change that this actor undid last, if no edit of his came after; by id, any.

        Raises:
            NothingToUndo: there is none, or the one that was named is not undone.
        """
        from cellwright.journal import _history

        return self._answer(
            path, lambda connection, book: _history.redo_target(connection, book, actor, change_id)
        ).entry()

    def state(
        self, path: Path, change_id: str, side: Literal["before", "after"] = "after"
    ) -> State:
        """What the notebook held before or after a change, byte for byte; `first` is an id too."""
        from cellwright.journal import _history

        return self._answer(
            path, lambda connection, book: _history.state(connection, book, change_id, side)
        )

    def first(self, path: Path) -> State:
        """What the notebook held before our first change; raises `ChangeNotFound`."""
        return self.state(path, "first")

    def backups(self, path: Path) -> list[Backup]:
        """All states that `state` can give back, newest first; `first` is the last of them."""
        from cellwright.journal import _history

        return self._answer(
            path, lambda connection, book: _history.backups(connection, book) if book else []
        )

    def blame(self, path: Path) -> list[BlameRow]:
        """For every cell of the newest state, the change that last touched its source or type."""
        from cellwright.journal import _history

        return self._answer(
            path, lambda connection, book: _history.blame(connection, book) if book else []
        )

    def describe(self) -> str:
        """Where the journal is and how much is in it, in a line for people."""
        path = self._recorder.database.path
        return f"{path}: {self._ask(pruning.describe)}"

    def _answer(
        self, path: Path, question: Callable[[sqlite3.Connection, Book | None], Result]
    ) -> Result:
        key = key_of(path)
        return self._ask(lambda connection: question(connection, _ledger.find(connection, key)))

    def _ask(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        return self._recorder.database.run(work, write=False)


class Recording:
    """A change that is written down and about to be saved."""

    def __init__(self, recorder: Recorder, key: bytes, change: Change, facts: Facts) -> None:
        self._recorder = recorder
        self._about = (key, change, facts)
        self._announced = recorder.announce(*self._about)

    def finish(self, signature: str | None = None, run: Executed | None = None) -> Entry | None:
        """Say that it was saved, with the signature of the file now; None as for `record`.

        `run` is the run whose outputs it brought; see `Journal.executed`.
        """
        return self._recorder.confirm(*self._about, self._announced, signature, run=run)

    def abandon(self) -> None:
        """Say that it was not saved, and the file is as it was."""
        if self._announced.row is not None:
            self._recorder.withdraw(self._announced.row)
