"""A notebook that is a file: read as it is, and changed under its lock, on record.

The bytes on disk are the truth. Every change is announced to the journal before it is saved, so
that a crash between the two is found out and nothing on disk goes unexplained.
"""

from __future__ import annotations

import os

from cellwright.errors import AlreadyExists, CellwrightError, NotebookNotFound, UnknownRevision
from cellwright.workspace.answers import describe_change
from cellwright.workspace.paths import reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from cellwright.document.change import Change, State
    from cellwright.document.disk.paths import PinnedPath, RealPath
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.journal import Entry, Recording
    from cellwright.workspace.workspace import Effect, Workspace


class NotebookFile:
    """The file of one notebook, for one caller.

    `path` is where it is, `name` what the caller calls it, `real` what its history is kept under.
    """

    def __init__(self, workspace: Workspace, path: str, name: str, real: RealPath) -> None:
        self.workspace = workspace
        self.path = path
        self.name = name
        self.real = real

    def read(self) -> Notebook:
        """The notebook as it is now."""
        from cellwright.document import files  # a client of the engine reads none

        self.workspace.require("read", "read a notebook")
        most = self.workspace.settings.max_file_bytes
        try:
            with self.reached() as reached:
                return files.read(
                    self.path, max_bytes=most, reached=reached, recent=self.workspace.hub.recent
                )
        except NotebookNotFound:
            raise NotebookNotFound(self.name) from None

    def raw(self) -> bytes:
        """The file as it is, be it a notebook or not."""
        from cellwright.document import files

        self.workspace.require("read", "read a file")
        most = self.workspace.settings.max_file_bytes
        with self.reached() as reached:
            return files.read_bytes(self.path, max_bytes=most, reached=reached)

    def base(self, notebook: Notebook, revision: str | None) -> Snapshot | None:
        """The snapshot that a revision names, among those given out by a read.

        Raises:
            UnknownRevision: nobody remembers it.
        """
        if revision is None or revision == notebook.revision:
            return None
        snapshot = self.workspace.journal.recall(self.real, revision)
        if snapshot is None:
            raise UnknownRevision(revision)
        return snapshot

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
        effect: Effect = "edit",
    ) -> dict[str, Any]:
        """Change the file under its lock, on record before it is saved."""
        self.workspace.require(effect, f"{effect} a notebook")
        journal, actor = self.workspace.journal, self.workspace.actor
        from cellwright.document import files
        from cellwright.journal.place import signature

        recordings: list[Recording] = []
        entries: list[Entry | None] = []
        copies: list[str] = []

        def make_and_announce(notebook: Notebook) -> Change:
            before, is_new = notebook.state, notebook.origin is None
            if kind == "create" and not is_new:
                raise AlreadyExists(self.name)  # somebody was faster
            if not is_new and not dry_run:  # a dry run does not hold the lock
                journal.catch_up(self.real, before, signature(self.real))
            change = make(notebook)
            if change and not dry_run:
                if backup and not is_new:
                    copies.append(self._back_up(before))
                recordings.append(
                    journal.begin(
                        self.real,
                        change,
                        actor=actor,
                        label=label,
                        kind="create" if is_new else kind,
                        concerns=" ".join(entry.id for entry in concerns) or None,
                    )
                )
            return change

        def saved() -> None:
            now = signature(self.real)
            entries.extend(recording.finish(now) for recording in recordings)
            recordings.clear()

        def failed() -> None:
            for recording in recordings:
                recording.abandon()
            recordings.clear()

        settings = self.workspace.settings
        created = not os.path.lexists(self.path)
        try:
            if dry_run:
                change = make_and_announce(self._read_or_new(create=create))
            else:
                leases = self.workspace.hub.leases
                with leases.writing(self.real), self.reached() as reached:
                    _, change = files.update(
                        self.path,
                        make_and_announce,
                        create=create,
                        saved=saved,
                        failed=failed,
                        max_bytes=settings.max_file_bytes,
                        lock_timeout=settings.lock_timeout,
                        reached=reached,
                        recent=self.workspace.hub.recent,
                    )
        except NotebookNotFound:
            raise NotebookNotFound(self.name) from None
        entry = entries[-1] if entries else None
        if change and not dry_run:
            self.workspace.hub.presence.note(self.real, actor, kind)
            self.workspace.hub.events.publish(
                self.real,
                "changed",
                kind=kind,
                actor=actor,
                change=entry and entry.id,
                revision=change.after.snapshot.revision,
                cells=[cell.handle for cell in change.cells],
            )
        return {
            **describe_change(change, self.name),
            "change": entry.id if entry is not None else None,
            "changed": bool(change) or created,
            "saved": not dry_run,
            "host": "file",
            "backup": copies[-1] if copies else None,
            "others": self.workspace.hub.presence.others(self.real, actor),
            "warnings": self.warnings(),
        }

    def warnings(self) -> list[str]:
        """What the journal could not do since it was last asked."""
        found = list(self.workspace.journal.warnings)
        self.workspace.journal.warnings.clear()
        return found

    def catch_up(self) -> None:
        """Put on record what was changed without us."""
        from cellwright.journal.place import signature

        before = signature(self.real)
        try:
            notebook = self.read()
        except CellwrightError:
            return  # the history of a file that is gone, or broken, is still there to see
        if before is not None and before == signature(self.real):
            self.workspace.journal.catch_up(self.real, notebook.state, before)

    def reached(self) -> AbstractContextManager[PinnedPath | None]:
        """The file itself, whatever somebody makes of its path meanwhile."""
        return reached(self.path, self.workspace.root, self.name)

    def _read_or_new(self, *, create: bool) -> Notebook:
        from cellwright.document.notebook import Notebook

        try:
            return self.read()
        except NotebookNotFound:
            if create:
                return Notebook(path=self.path)
            raise

    def _back_up(self, state: State) -> str:
        from cellwright.document.notebook import Notebook
        from cellwright.workspace.backup import write_backup

        copy = Notebook()
        copy.become(state)
        return write_backup(self.path, copy, self.workspace.root)
