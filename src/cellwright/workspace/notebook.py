"""One notebook as verbs see it: read through its host, changed on record.

Every change is announced to the journal before the host stores it, so that a crash between the
two is found out and every stored state has an entry.
"""

from __future__ import annotations

from contextvars import copy_context

from cellwright.document.files import report_saved
from cellwright.errors import (
    AlreadyExists,
    CellwrightError,
    DurabilityUnconfirmed,
    EditorSilent,
    EditorUnfit,
    NotSaved,
    UnknownRevision,
)
from cellwright.workspace.api.answers import EditAnswer, describe_change
from cellwright.workspace.hosts.host import SaveHooks
from cellwright.workspace.paths import confine, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from cellwright.document.change import Change, State
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.journal import Entry, Recording
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.hosts.host import NotebookHost
    from cellwright.workspace.hosts.plain import PlainFileHost


class OpenNotebook:
    """A notebook of one caller.

    `name` is what the caller calls it, `path` where that is, `real` the path without links, which
    its history, its session and its lock are kept under. `host` is where it lives, fixed for the
    length of one call.
    """

    def __init__(self, caller: Caller, name: str) -> None:
        self.caller = caller
        self.name = name
        self.path = resolve(name, caller.cwd)
        self.real = confine(self.path, caller.root)
        self.origin = f"notebook:{self.real}"  # on the record of what it made
        self.hub = caller.hub
        self.journal = caller.hub.journal
        self.host: NotebookHost = caller.hub.find_host(self)
        self.current: Notebook | None = None  # as the last change of this call left it

    @property
    def is_notebook(self) -> bool:
        """Whether its name, or that of the file it leads to, says that it is a notebook."""
        return any(path.lower().endswith(".ipynb") for path in (self.name, self.real))

    def open_as_text(self) -> PlainFileHost:
        """See it as a text file from now on, and not as a notebook."""
        from cellwright.workspace.hosts.plain import PlainFileHost

        self.host = host = PlainFileHost(
            self.path,
            self.real,
            root=self.caller.root,
            name=self.name,
            settings=self.caller.settings,
        )
        return host

    def open_as_recorded(self) -> Self:
        """See it as the text file that its newest change was made to, if there is one."""
        if not self.is_notebook:
            host = self.host
            newest = self.journal.log(self.real, limit=1)
            text = self.open_as_text()
            if not any(cell.handle == text.cell for entry in newest for cell in entry.cells):
                self.host = host
        return self

    def load(self) -> Notebook:
        """Read the notebook, and remember its revision, to serve as a base."""
        notebook = self.host.read()
        self.journal.remember(self.real, notebook.snapshot())
        return notebook

    def find_base(self, notebook: Notebook, revision: str | None) -> Snapshot | None:
        """Return the snapshot that a revision names; None if it is the notebook as it is.

        Raises:
            UnknownRevision: it was never given out, or is forgotten.
        """
        if revision is None or revision == notebook.revision:
            return None
        snapshot = self.journal.recall(self.real, revision)
        if snapshot is None:
            raise UnknownRevision(revision)
        return snapshot

    def list_executions(self) -> list[ExecutionRecord]:
        """Return the runs of the cells on record; none where the journal cannot be read."""
        try:
            return self.journal.executions(self.real)
        except CellwrightError:
            return []  # reading must not fail for want of a history

    def change(
        self,
        make: Callable[[Notebook], Change],
        *,
        create: bool = False,
        dry_run: bool = False,
        backup: bool = False,
        label: str = "",
        kind: str = "edit",
        concerns: Sequence[Entry] = (),
        save: bool = True,
    ) -> EditAnswer:
        """Change the notebook through its host, on record before it is stored.

        Without `save`, an editor that has it open does not save it.
        """
        if not dry_run:
            self.caller.require_harmless(self.name, self.real)
        host, journal, actor = self.host, self.journal, self.caller.actor
        recordings: list[Recording] = []
        entries: list[Entry | None] = []
        copies: list[str] = []
        made: list[Notebook] = []
        stored: list[bool] = []
        is_new = created = not host.exists()

        def catch_up_and_make(notebook: Notebook) -> Change:
            nonlocal is_new
            before, known = notebook.state, host.signature()
            is_new = known is None
            if kind == "create" and not is_new:
                raise AlreadyExists(self.name)  # another caller was faster
            if not is_new and not dry_run:  # a dry run does not hold the lock
                journal.catch_up(self.real, before, known, host.signature)
            change = make(notebook)
            made[:] = [notebook]
            if change and not dry_run and backup and not is_new:
                copies.append(self._back_up(before))
            return change

        def announce(change: Change) -> None:
            if change:
                recordings.append(
                    journal.begin(
                        self.real,
                        change,
                        actor=actor,
                        label=label,
                        kind="create" if is_new and kind not in ("undo", "redo") else kind,
                        concerns=" ".join(entry.id for entry in concerns) or None,
                    )
                )

        def confirm() -> None:
            stored.append(True)
            now = host.signature()
            entries.extend(recording.finish(now) for recording in recordings)
            recordings.clear()

        def abandon() -> None:
            for recording in recordings:
                recording.abandon()
            recordings.clear()

        if dry_run:
            change = catch_up_and_make(self._read_or_create(create=create))
        else:
            try:
                # In another thread, too, the journal has to know for which client it works.
                context = copy_context()
                hooks = SaveHooks(lambda change: context.run(announce, change), confirm, abandon)
                change = host.change(catch_up_and_make, create=create, hooks=hooks)
            except CellwrightError:
                raise
            except Exception as error:
                if not stored:
                    raise
                raise report_saved(self.name, error, made[0].revision) from error
            self.current = made[0]
        is_saved = save and not dry_run and self._save()
        try:
            return self._answer_change(
                change,
                entries[-1] if entries else None,
                kind=kind,
                backup=copies[-1] if copies else None,
                created=created,
                is_saved=is_saved,
                dry_run=dry_run,
            )
        except Exception as error:
            if dry_run:
                raise
            # The file has changed: no other error may suggest that it has not.
            raise report_saved(self.name, error, made[0].revision) from error

    def _answer_change(
        self,
        change: Change,
        entry: Entry | None,
        *,
        kind: str,
        backup: str | None,
        created: bool,
        is_saved: bool,
        dry_run: bool,
    ) -> EditAnswer:
        """Tell others of a change, and describe it to its caller."""
        actor = self.caller.actor
        if change and not dry_run:
            self.hub.actors.note(self.real, actor, kind)
            self.hub.events.publish(
                self.real,
                "changed",
                kind=kind,
                actor=actor,
                change=entry and entry.id,
                revision=change.after.snapshot.revision,
                cells=[cell.handle for cell in change.cells],
                inserted=[cell.handle for cell in change.cells if cell.kind == "inserted"],
            )
        return EditAnswer.extend(
            describe_change(change, self.name),
            change=entry.id if entry is not None else None,
            changed=bool(change) or created,
            saved=is_saved,
            host=self.host.kind,
            backup=backup,
            others=self.hub.actors.list_others(self.real, actor),
            warnings=self.take_warnings(),
        )

    def catch_up(self) -> None:
        """Put on record what other programs changed."""
        host = self.host
        for _ in range(2):  # an editor says only when it is read that it has changed
            before = host.signature()
            try:
                notebook = host.read()
            except CellwrightError:
                return  # the history of a notebook that is gone, or broken, is still there to see
            if before is not None and before == host.signature():
                self.journal.catch_up(self.real, notebook.state, before, host.signature)
                return

    def take_warnings(self) -> list[str]:
        """Return what the journal could not do since this was last asked."""
        found = list(self.journal.warnings)
        self.journal.warnings.clear()
        return found

    def _back_up(self, before: State) -> str:
        """Have the host copy what an edit is about to change; without the copy, it does not."""
        try:
            return self.host.back_up(before)
        except DurabilityUnconfirmed as error:  # its words are about the copy
            raise NotSaved(self.name, "back up", error.message) from None

    def _save(self) -> bool:
        """Have the host store the notebook; returns whether it did."""
        try:
            self.host.save()
        except (EditorSilent, EditorUnfit) as error:  # it is changed, and still open
            self.journal.warnings.append(error.message)
            return False
        return True

    def _read_or_create(self, *, create: bool) -> Notebook:
        from cellwright.document.notebook import Notebook
        from cellwright.errors import NotebookNotFound

        try:
            return self.host.read()
        except NotebookNotFound:
            if create:
                return Notebook(path=self.path)
            raise
