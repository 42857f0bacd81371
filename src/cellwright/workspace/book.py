"""One notebook and the verbs on it: read, edit, write as text, and its history."""

from __future__ import annotations

import os

from cellwright.document import files
from cellwright.errors import (
    AlreadyExists,
    CellwrightError,
    InvalidEdit,
    NotebookNotFound,
    UnknownRevision,
)
from cellwright.workspace.answers import describe_change, describe_notebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from cellwright.document.change import Change, State
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.refs import CellRef
    from cellwright.document.revision import Snapshot
    from cellwright.journal import Entry, Recording
    from cellwright.journal.executions import Executed
    from cellwright.text.selection import Selection
    from cellwright.workspace.running import Execution
    from cellwright.workspace.workspace import Effect, Workspace


_ALL = 2**31


class Book:
    """A notebook of a workspace, named by its path; it holds nothing but that."""

    def __init__(self, workspace: Workspace, path: str, name: str) -> None:
        self.workspace = workspace
        self.path = path
        self.name = name
        self.real = os.path.realpath(path)

    # -- reading ----------------------------------------------------------------------------

    def load(self) -> Notebook:
        """The notebook as it is now; its revision is remembered, to serve as a base."""
        self.workspace.require("read", "read a notebook")
        notebook = self._read()
        self.workspace.journal.remember(self.real, notebook.snapshot())
        return notebook

    def read(self) -> dict[str, Any]:
        """The cells, the revision and the text view."""
        from cellwright.text.view import to_text

        notebook = self.load()
        return {**describe_notebook(notebook, self.name), "text": to_text(notebook)}

    def select(self, selector: str) -> dict[str, Any]:
        """Some lines of the text view, a cell, a section, the outline, or the file as it is."""
        from cellwright.text.selection import select, select_raw
        from cellwright.text.selectors import parse_selector
        from cellwright.text.view import render

        wanted = parse_selector(selector)
        if wanted.raw:
            text = self.raw().decode("utf-8", "surrogateescape")
            found = select_raw(text, wanted)
            described = _describe_selection(selector, found)
            return {"path": self.name, **described, "total_cells": None}  # it may be no notebook
        notebook = self.load()
        found = select(render(notebook), wanted)
        described = _describe_selection(selector, found)
        return {"path": self.name, "revision": notebook.revision, **described}

    def outputs(
        self, cells: Sequence[CellRef] | None = None, *, max_tokens: int = 8000
    ) -> dict[str, Any]:
        """What cells printed, showed and raised, as compact text within a budget of tokens."""
        from cellwright.workspace.outputs import describe_outputs

        return {"path": self.name, **describe_outputs(self._read(), cells, max_tokens)}

    def run(
        self,
        cells: Sequence[CellRef] | None = None,
        *,
        above: CellRef | None = None,
        below: CellRef | None = None,
        stale: bool = False,
        **options: Any,
    ) -> list[Execution]:
        """Run cells in the notebook's kernel; their outputs are then in the file.

        All code cells unless `cells` names some; `above` means those before that cell, `below`
        that cell and those after it, `stale` those whose results do not stand. They run in the order of the notebook, and the first that
        fails is the last unless `keep_going`. Other options: `kernel`, `timeout` (seconds for
        each cell), `restart`, `answers` and `ask` for `input()`, `progress`.
        """
        from cellwright.workspace.running import choose_cells

        self.workspace.require("run", "run cells")
        notebook = self._read()
        if stale:
            from cellwright.workspace.staleness import stale_cells

            if cells is not None:
                raise InvalidEdit(
                    "only one of cells and stale", hint="Name cells, or the stale ones"
                )
            kernel = self.workspace.kernels.life(self.real)
            cells = stale_cells(notebook, self.workspace.journal.executions(self.real), kernel)
        chosen = choose_cells(notebook, cells, above, below)
        return self.workspace.kernels.run(self, notebook, chosen, **options)

    def stale(self) -> dict[str, Any]:
        """Which cells are fresh, stale or never run, and why, by their runs that are on record.

        What was run by other programs is not on record; such cells count as never run.
        """
        from cellwright.workspace.staleness import describe_staleness

        runs = self.workspace.journal.executions(self.real)
        return {"path": self.name, "cells": describe_staleness(self._read(), runs)}

    def record_run(self, make: Callable[[Notebook], Change], *, label: str) -> None:
        """Put the outputs of a run into the file; on record, but nothing that is undone."""
        self._change(make, kind="run", label=label, effect="run")

    def record_execution(self, run: Executed) -> None:
        """Remember that a cell was run, by which kernel and with which source."""
        self.workspace.journal.executed(self.real, run)

    def executions(self) -> list[dict[str, Any]]:
        """The runs of this notebook's cells that are remembered, the oldest first."""
        return [run.to_json() for run in self.workspace.journal.executions(self.real)]

    def raw(self) -> bytes:
        """The file as it is, be it a notebook or not."""
        self.workspace.require("read", "read a file")
        return files.read_bytes(self.path, max_bytes=self.workspace.settings.max_file_bytes)

    # -- editing ----------------------------------------------------------------------------

    def edit(
        self,
        edits: Sequence[Edit | Mapping[str, Any]],
        *,
        base: str | None = None,
        create: bool = False,
        dry_run: bool = False,
        backup: bool = False,
        label: str = "",
        kind: str = "edit",
        run: Literal["changed", "stale"] | None = None,
        **how: Any,
    ) -> dict[str, Any]:
        """Apply a list of edits, all or nothing, and save; then perhaps run cells.

        Args:
            edits: typed edits or their JSON shape.
            base: the revision the caller had read; references mean the cells it saw.
            create: make the notebook if there is none.
            dry_run: change nothing; the answer shows the diff that would be.
            backup: also write a copy of the file as it was, beside it.
            label: a few words for the log.
            kind: what the log calls it.
            run: the cells to run after it: those that were changed, or all that are stale then.
                The answer has their `executions` and what is `stale` after that; the edit
                stands however they end.
            how: options of `run`, such as `timeout`.
        """
        if run not in (None, "changed", "stale"):
            raise InvalidEdit(f"`run` is {run!r}", hint="One of changed, stale")
        if run is not None:
            self.workspace.require("run", "run cells")

        def make(notebook: Notebook) -> Change:
            return notebook.apply(edits, base=self._base(notebook, base))

        answer = self._change(
            make, create=create, dry_run=dry_run, backup=backup, label=label, kind=kind
        )
        if run is not None and not dry_run:
            changed = [
                cell["after"]
                for cell in answer["cells"]
                if cell["type"] == "code" and cell["kind"] in ("edited", "inserted")
            ]
            done = self.run(stale=True, **how) if run == "stale" else self.run(changed, **how)
            answer["executions"] = [execution.to_json() for execution in done]
            answer["stale"] = [
                {"cell": cell["cell"], "index": cell["index"], "reason": cell["stale_reason"]}
                for cell in self.stale()["cells"]
                if cell["state"] == "stale"
            ]
            answer["warnings"] += self.warnings()
        return answer

    def write(
        self,
        text: str,
        *,
        base: str | None = None,
        dry_run: bool = False,
        backup: bool = False,
        label: str = "",
    ) -> dict[str, Any]:
        """Make the notebook say what an edited text view says; a missing one is created."""
        from cellwright.text.combine import edits_for
        from cellwright.text.parsing import parse

        cells = parse(text)

        def make(notebook: Notebook) -> Change:
            return notebook.apply(edits_for(cells, notebook, self._base(notebook, base)))

        return self._change(make, create=True, dry_run=dry_run, backup=backup, label=label)

    def upgrade(self, *, dry_run: bool = False, backup: bool = False) -> dict[str, Any]:
        """Make it nbformat 4.5, with an id for every cell."""
        return self._change(
            lambda notebook: notebook.upgrade(), dry_run=dry_run, backup=backup, label="upgrade"
        )

    # -- history ----------------------------------------------------------------------------

    def undo(self, change: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Take back the caller's newest change, or the one named; outputs come back with it."""
        return self._step("undo", change, dry_run=dry_run)

    def redo(self, change: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Make a change again that was undone."""
        return self._step("redo", change, dry_run=dry_run)

    def restore(self, change: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Bring back a state to the byte: after a change, or `first` for before our first one."""
        from cellwright.workspace.history import find_state

        state = find_state(self, change)

        def make(notebook: Notebook) -> Change:
            return notebook.become(state)

        # A file that was deleted can be brought back too: that is when it is needed most.
        return self._change(
            make, create=True, dry_run=dry_run, label=f"restore {change}", kind="restore"
        )

    def log(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The changes of this notebook, the newest first, also those made without us."""
        self._catch_up()
        entries = self.workspace.journal.log(self.real, limit=_ALL if limit is None else limit)
        return [entry.to_json() for entry in entries]

    def blame(self) -> list[dict[str, Any]]:
        """For every cell, the change that last touched its source or type."""
        self._catch_up()
        notebook = self._read()
        rows = [row.to_json() for row in self.workspace.journal.blame(self.real)]
        nobody = {"change": None, "kind": None, "actor": None, "when": None, "label": None}
        rows += [nobody] * (len(notebook.cells) - len(rows))
        return [
            {"index": cell.index, "handle": cell.handle, "type": cell.type, **row}
            for cell, row in zip(notebook.cells, rows, strict=False)
        ]

    def backups(self) -> list[dict[str, Any]]:
        """The states that can be restored to the byte, the newest first."""
        return [entry.to_json() for entry in self.workspace.journal.backups(self.real)]

    def diff(self, before: str | None = None, after: str | None = None) -> dict[str, Any]:
        """What changed between two states: change ids, `ID^`, `first`, `now`, or another file."""
        from cellwright.workspace.history import compare, is_file

        self.workspace.require("read", "compare notebooks")
        other = after if after is not None and is_file(self, after) else None
        return describe_change(compare(self, before, after), self.name, other)

    # -- inside -----------------------------------------------------------------------------

    def _step(self, kind: str, name: str | None, *, dry_run: bool) -> dict[str, Any]:
        journal, actor = self.workspace.journal, self.workspace.actor
        found: list[Entry] = []

        def make(notebook: Notebook) -> Change:
            target = journal.undo_target if kind == "undo" else journal.redo_target
            entry = target(self.real, actor=actor, change_id=name)
            found[:] = [entry]
            change = journal.change(entry)
            return notebook.apply(change.inverse() if kind == "undo" else change)

        answer = self._change(make, dry_run=dry_run, kind=kind, concerns=found)
        return {**answer, "concerns": found[0].id}

    def _base(self, notebook: Notebook, revision: str | None) -> Snapshot | None:
        """The snapshot that a revision names, among those given out by a read."""
        if revision is None or revision == notebook.revision:
            return None
        snapshot = self.workspace.journal.recall(self.real, revision)
        if snapshot is None:
            raise UnknownRevision(revision)
        return snapshot

    def _change(
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
                        concerns=concerns[0].id if concerns else None,
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
                change = make_and_announce(self._load_or_new(create=create))
            else:
                _, change = files.update(
                    self.path,
                    make_and_announce,
                    create=create,
                    saved=saved,
                    failed=failed,
                    max_bytes=settings.max_file_bytes,
                    lock_timeout=settings.lock_timeout,
                )
        except NotebookNotFound:
            raise NotebookNotFound(self.name) from None
        entry = entries[-1] if entries else None
        return {
            **describe_change(change, self.name),
            "change": entry.id if entry is not None else None,
            "changed": bool(change) or created,
            "saved": not dry_run,
            "host": "file",
            "backup": copies[-1] if copies else None,
            "warnings": self.warnings(),
        }

    def warnings(self) -> list[str]:
        """What the journal could not do since it was last asked."""
        found = list(self.workspace.journal.warnings)
        self.workspace.journal.warnings.clear()
        return found

    def _read(self) -> Notebook:
        try:
            return files.read(self.path, max_bytes=self.workspace.settings.max_file_bytes)
        except NotebookNotFound:
            raise NotebookNotFound(self.name) from None

    def _load_or_new(self, *, create: bool) -> Notebook:
        from cellwright.document.notebook import Notebook

        try:
            return self._read()
        except NotebookNotFound:
            if create:
                return Notebook(path=self.path)
            raise

    def _back_up(self, state: State) -> str:
        from cellwright.document.notebook import Notebook
        from cellwright.workspace.backup import write_backup

        copy = Notebook()
        copy.become(state)
        return write_backup(self.path, copy)

    def _catch_up(self) -> None:
        from cellwright.journal.place import signature

        before = signature(self.real)
        try:
            notebook = self._read()
        except CellwrightError:
            return  # the history of a file that is gone, or broken, is still there to see
        if before is not None and before == signature(self.real):
            self.workspace.journal.catch_up(self.real, notebook.state, before)


def _describe_selection(selector: str, found: Selection) -> dict[str, Any]:
    return {
        "selector": selector,
        "total_lines": found.total_lines,
        "total_cells": found.total_cells,
        "lines": [line._asdict() for line in found.lines],
        "outline": [entry.to_json() for entry in found.outline],
        "text": found.text,
    }
