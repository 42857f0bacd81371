"""The file of a notebook while its cells run: what they say gets there, on record as one change.

A cell that runs for long is saved now and then. Such a save is announced to the journal and not
confirmed, so that it is no entry of the history: the next save of the same cell takes its place.
If somebody else touches the notebook in between, or we die, whoever looks next finds the file as
it was announced, and only then it becomes an entry of its own.
"""

from __future__ import annotations

from cellwright.document import files
from cellwright.errors import CellwrightError
from cellwright.journal.place import signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.document.change import Change, State
    from cellwright.document.notebook import Notebook
    from cellwright.journal import Recording
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.workspace.book import Book

# A save that others follow does not stand in line behind another writer.
_SHORT_WAIT = 1.0


class RunFile:
    """Saves the outputs of one run; to be used by one thread at a time.

    `start` is what the notebook held when the run began; `is_only_ours` tells whether all that
    has changed since then is ours.
    """

    def __init__(self, book: Book, start: State) -> None:
        self._book = book
        self._start = start
        self.is_only_ours = True
        self.left: str | None = None  # the signature of the file as we left it
        self.written: State | None = None  # and what we had written
        self._before: State | None = None  # what it held before saves that are not confirmed
        self._newest: str | None = None  # the newest entry of its history then
        self._announced: tuple[Recording, Change, str] | None = None

    def save(
        self,
        make: Callable[[Notebook], Change],
        *,
        label: str,
        is_last: bool = True,
        run: ExecutionRecord | None = None,
    ) -> None:
        """Let `make` put outputs into the notebook, and save it; `is_last` puts it on record.

        With the change, `run` is put on record, which gave the outputs; without one, alone.

        Raises:
            CellwrightError: it could not be saved; the file is as it was, unless the error says
                otherwise.
        """
        workspace = self._book.workspace
        journal, settings = workspace.journal, workspace.settings
        real = self._book.real
        recordings: list[Recording] = []
        befores: list[State] = []
        newest: list[str | None] = []
        made: list[Change] = []

        def make_and_announce(notebook: Notebook) -> Change:
            now = signature(real)
            self._watch(notebook)
            if self._is_as_left(notebook, now):
                assert self._before is not None  # noqa: S101  # `_is_as_left` looked
                notebook.state = self._before  # the new outputs take the place of the earlier
            else:
                journal.catch_up(real, notebook.state, now)
            befores[:] = [notebook.state]
            if not is_last:
                newest[:] = [self._newest_entry()]
            change = make(notebook)
            if change:
                recordings.append(
                    journal.begin(real, change, actor=workspace.actor, label=label, kind="run")
                )
            elif self._announced is not None:
                self._announced[0].abandon()
            made[:] = [change]
            return change

        def saved() -> None:
            self.left, self.written = signature(real), made[0].after
            self._before = self._announced = None
            if is_last:
                workspace.hub.presence.note(real, workspace.actor, "run")
                for recording in recordings:
                    recording.finish(self.left, run)
                if not recordings and run is not None:
                    journal.executed(real, run)
            elif recordings:
                self._announced = (recordings[-1], made[0], label)
                self._before, self._newest = befores[0], newest[0]
            recordings.clear()

        def failed() -> None:
            for recording in recordings:
                recording.abandon()
            recordings.clear()
            if self._announced is not None and signature(real) == self.left:
                # The file holds the last save still, which the new one was to replace.
                _, change, before = self._announced
                again = journal.begin(real, change, actor=workspace.actor, label=before, kind="run")
                self._announced = (again, change, before)

        with self._book.file.reached() as reached:
            files.update(
                self._book.path,
                make_and_announce,
                saved=saved,
                failed=failed,
                max_bytes=settings.max_file_bytes,
                lock_timeout=settings.lock_timeout if is_last else _SHORT_WAIT,
                reached=reached,
                recent=workspace.hub.recent,
            )

    def _watch(self, notebook: Notebook) -> None:
        """Take note if the file is not as we know it."""
        if self.is_only_ours:
            self.is_only_ours = (self.written or self._start).holds_the_same(notebook.state)

    def _is_as_left(self, notebook: Notebook, now: str | None) -> bool:
        """Whether nobody has changed the file or its history since a save of this very cell."""
        return (
            self._before is not None
            and now is not None
            and now == self.left  # quick to tell, but somebody may have written right after us
            and self._newest_entry() == self._newest
            and self.written is not None
            and self.written.holds_the_same(notebook.state)
        )

    def _newest_entry(self) -> str | None:
        try:
            entries = self._book.workspace.journal.log(self._book.real, limit=1)
        except CellwrightError:
            return None
        return entries[0].id if entries else None
