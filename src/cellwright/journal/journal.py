"""The journal for its callers: recording never fails, and questions are answered."""

from __future__ import annotations

import os

from cellwright.journal import _changes, _recorder, _states, pruning
from cellwright.journal._changes import ChangeInfo
from cellwright.journal._recorder import JournalRecorder, notebook_key
from cellwright.journal._store import PieceStore
from cellwright.journal.pruning import ForgottenHistory, JournalLimits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Literal, Self, TypeVar

    from cellwright.document.change import Change, State
    from cellwright.document.snapshot import Snapshot
    from cellwright.journal._changes import ChangeRow
    from cellwright.journal._recorder import NotebookRecord, Path
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.journal.history import Backup, BlameRow, Entry
    from cellwright.journal.repair import Repair

    Result = TypeVar("Result")


class Journal:
    """The history of all notebooks of a user, in one file that several processes may use.

    The methods that record (`begin`, `catch_up`, `remember`, `executed`) never raise: an edit must
    not fail because its history does. What went wrong is then in `warnings`, as text for the user,
    each once; the caller that shows them clears the list. The other methods raise
    `JournalUnavailable`.

    Notebooks are identified by their real path. An instance serves all threads of a process.
    `JournalLimits` says how much is kept.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        limits: JournalLimits | None = None,
        warnings: list[str] | None = None,
    ) -> None:
        self._recorder = JournalRecorder(path, limits or JournalLimits(), warnings)
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
        """Close the file; a later call opens it again."""
        self._recorder.close()

    @property
    def path(self) -> str:
        """The path of the journal; raises `JournalUnavailable` if there is no place for it."""
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
        """Record a change before the file is replaced; `finish` or `abandon` it afterwards.

        When this returns, the current content of the file is safe from a power cut, unless only
        the outputs of a run will replace it. If the process dies before it finishes or abandons
        the recording, the next `catch_up` sees from the file what happened. The caller holds the
        notebook's lock. If `before` of the change is not the last known state of the file, an
        `outside` entry comes first.

        Args:
            path: the notebook.
            change: what is about to be saved; its `before` is the content of the file.
            actor: who makes it, as `door:name`.
            label: why, in a few words of the caller.
            kind: `edit`, `create`, `undo`, `redo`, `restore` or `run`.
            concerns: the id of the change that is undone, redone or restored; several ids,
                separated by spaces, if they are undone as one.
        """
        facts = ChangeInfo(kind, actor, label, concerns)
        return Recording(self._recorder, notebook_key(path), change, facts)

    def catch_up(
        self,
        path: Path,
        state: State,
        signature: str | None = None,
        look_again: Callable[[], str | None] | None = None,
    ) -> Entry | None:
        """Compare a notebook with its last known state; returns the `outside` entry if they differ.

        Without a `signature`, the caller must hold the notebook's lock. With one, taken when the
        notebook was read, one that has changed again since is left for the next time, and one
        that has the last known signature is not compared. `look_again` returns the signature as
        it is now; by default that of the file.
        """
        return self._recorder.catch_up(path, state, signature, look_again)

    def remember(self, path: Path, snapshot: Snapshot) -> None:
        """Remember a revision that a reader got, so that it can be the base of a later edit."""
        self._recorder.remember(path, snapshot)

    def record_execution(self, path: Path, run: ExecutionRecord) -> None:
        """Record that a cell was run; never raises."""
        self._recorder.record_execution(path, run)

    def executions(self, path: Path) -> list[ExecutionRecord]:
        """All remembered executions of a notebook's cells, the oldest first."""
        from cellwright.journal import executions

        return self._answer(
            path,
            lambda connection, book: (
                executions.select_executions(connection, book.id) if book else []
            ),
        )

    def recall(self, path: Path, revision: str) -> Snapshot | None:
        """The snapshot of a revision of this notebook; None if it is not remembered."""

        def ask(connection: sqlite3.Connection, book: NotebookRecord | None) -> Snapshot | None:
            if book is None:
                return None
            name = _changes.storable_text(revision)
            return _states.recall_snapshot(connection, PieceStore(connection), book.id, name)

        return self._answer(path, ask)

    def log(self, path: Path, limit: int = 50, before: int | None = None) -> list[Entry]:
        """The newest changes first, at most `limit`; with `before`, those below that number."""
        where = "notebook = ? AND number < ? ORDER BY number DESC LIMIT ?"
        number = before if before is not None else 2**62

        def ask(connection: sqlite3.Connection, book: NotebookRecord | None) -> list[ChangeRow]:
            return (
                _changes.select_changes(connection, where, book.id, number, limit) if book else []
            )

        return [row.to_entry() for row in self._answer(path, ask)]

    def find_by_revision(self, revision: str) -> list[str]:
        """The notebooks whose last recorded state has this revision, the newest first."""
        rows = self._ask(
            lambda connection: connection.execute(
                "SELECT notebook.path FROM change JOIN notebook ON notebook.id = change.notebook"
                " WHERE after_revision = ? AND number = (SELECT max(number) FROM change AS newer"
                " WHERE newer.notebook = notebook.id) ORDER BY change.id DESC",
                (revision,),
            ).fetchall()
        )
        return [os.fsdecode(path) for (path,) in rows]

    def get(self, path: Path, change_id: str) -> Entry:
        """The entry whose id begins with `change_id`; raises `ChangeNotFound`."""
        return self._answer(
            path,
            lambda connection, book: _changes.find_change(connection, book and book.id, change_id),
        ).to_entry()

    def change(self, entry: Entry | str, here: State | None = None) -> Change:
        """A recorded change, to be applied again, or undone with its `inverse()`.

        With `here`, a notebook's state, other cells than the changed ones may be those of `here`:
        of a large notebook then only a few have to be read.
        """
        from cellwright.journal import history

        handle = entry if isinstance(entry, str) else entry.id
        return self._ask(
            lambda connection: history.rebuild_change(
                connection, _changes.storable_text(handle), here
            ),
            long=True,
        )

    def undo_target(
        self, path: Path, actor: str | None = None, change_id: str | None = None
    ) -> Entry:
        """The newest change of this actor (of any actor, if None) that is not undone.

        Runs and outside changes are skipped; the latter can be undone by their id.

        Raises:
            NothingToUndo: there is no such change, or the one with that id is already undone.
        """
        from cellwright.journal import history

        return self._answer(
            path,
            lambda connection, book: history.find_undo_target(connection, book, actor, change_id),
        ).to_entry()

    def redo_target(
        self, path: Path, actor: str | None = None, change_id: str | None = None
    ) -> Entry:
        """The change that this actor undid last, if they have not edited since; any, by id.

        Raises:
            NothingToUndo: there is no such change, or the one with that id is not undone.
        """
        from cellwright.journal import history

        return self._answer(
            path,
            lambda connection, book: history.find_redo_target(connection, book, actor, change_id),
        ).to_entry()

    def state(
        self, path: Path, change_id: str, side: Literal["before", "after"] = "after"
    ) -> State:
        """The notebook before or after a change, to the byte; `first` is an id too."""
        from cellwright.journal import history

        return self._answer(
            path,
            lambda connection, book: history.load_state_of(connection, book, change_id, side),
            long=True,
        )

    def first(self, path: Path) -> State:
        """The notebook before the first recorded change; raises `ChangeNotFound`."""
        return self.state(path, "first")

    def backups(self, path: Path) -> list[Backup]:
        """All states that `state` can return, newest first; `first` is the last of them."""
        from cellwright.journal import history

        return self._answer(
            path, lambda connection, book: history.list_backups(connection, book) if book else []
        )

    def blame(self, path: Path) -> list[BlameRow]:
        """For every cell of the newest state, the change that last changed its source or type."""
        from cellwright.journal import history

        return self._answer(
            path,
            lambda connection, book: history.blame_cells(connection, book) if book else [],
            long=True,
        )

    def forget(
        self,
        path: Path | None = None,
        *,
        root: str | None = None,
        before: float | None = None,
        dry_run: bool = False,
    ) -> ForgottenHistory:
        """Delete the history of a notebook, or of all of them, for good.

        When this returns, no byte of it is in the file or in its log.

        Args:
            path: the notebook; None for all.
            root: of all notebooks, only those in this folder, which has no links.
            before: only what is older, in seconds since 1970.
            dry_run: delete nothing; count what would be.

        Raises:
            JournalUnavailable: with the reason. What was deleted stays deleted; called again,
                this removes the bytes that are left.
        """
        database = self._recorder.database
        oldest = None if before is None else int(before * 1000)
        top = b"" if root is None else os.fsencode(root).rstrip(b"/") + b"/"

        def work(connection: sqlite3.Connection) -> ForgottenHistory:
            rows = connection.execute("SELECT id, path FROM notebook").fetchall()
            key = None if path is None else notebook_key(path)
            chosen = [
                number
                for number, name in rows
                if (name.startswith(top) if key is None else name == key)
            ]
            found = pruning.forget(connection, chosen, oldest)
            if dry_run:
                raise _NotMeant(found)
            return found

        try:
            found = database.run(work, write=True, durable=True)
        except _NotMeant as counted:
            return counted.found
        database.compact()
        if path is None and root is None and before is None:
            from cellwright.journal.repair import remove_set_aside

            remove_set_aside(database.path)
        return found

    def describe(self) -> str:
        """The path and the size of the journal, in a line for people."""
        path = self._recorder.database.path
        return f"{path}: {self._ask(pruning.describe)}"

    def find_problems(self) -> list[str]:
        """What is wrong with the file, and which damaged journals lie beside it, in words."""
        from cellwright.journal.repair import find_problems

        path = self._recorder.database.path
        return self._ask(lambda connection: find_problems(connection, path))

    def repair(self) -> Repair:
        """Bring back what is readable of damaged journals; raises `JournalUnavailable`."""
        from cellwright.journal.repair import repair_journal

        return repair_journal(self._recorder.database)

    def _answer(
        self,
        path: Path,
        question: Callable[[sqlite3.Connection, NotebookRecord | None], Result],
        *,
        long: bool = False,
    ) -> Result:
        key = notebook_key(path)
        return self._ask(
            lambda connection: question(connection, _recorder.find_notebook(connection, key)),
            long=long,
        )

    def _ask(self, work: Callable[[sqlite3.Connection], Result], *, long: bool = False) -> Result:
        """Answer a question; a `long` one reads whole states."""
        return self._recorder.database.run(work, write=False, aside=True, long=long)


class _NotMeant(Exception):
    """Takes a transaction back that only counts."""

    def __init__(self, found: ForgottenHistory) -> None:
        super().__init__()
        self.found = found


class Recording:
    """A change that was recorded and is about to be saved."""

    def __init__(
        self, recorder: JournalRecorder, key: bytes, change: Change, facts: ChangeInfo
    ) -> None:
        self._recorder = recorder
        self._about = (key, change, facts)
        self._announced = recorder.announce(*self._about)

    def finish(
        self, signature: str | None = None, runs: Sequence[ExecutionRecord] = ()
    ) -> Entry | None:
        """Confirm that it was saved, with the current signature of the file.

        Returns None if it changed nothing or could not be recorded. `runs` are the executions whose
        outputs it contains; see `Journal.record_execution`.
        """
        return self._recorder.confirm(*self._about, self._announced, signature, runs=runs)

    def abandon(self) -> None:
        """Remove it again, because it was not saved and the file is as it was."""
        if self._announced.row is not None:
            self._recorder.withdraw(self._announced.row)
