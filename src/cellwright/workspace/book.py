"""One notebook and the verbs on it: read, edit, write as text, and its history."""

from __future__ import annotations

from cellwright.errors import InvalidEdit
from cellwright.workspace.answers import describe_change, describe_notebook
from cellwright.workspace.notebook_file import NotebookFile
from cellwright.workspace.statuses import on_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from cellwright.document.change import Change
    from cellwright.document.disk.paths import RealPath
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import CellRef
    from cellwright.journal import Entry
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.text.selection import Selection
    from cellwright.workspace.executions import Executions
    from cellwright.workspace.workspace import Workspace


_ALL = 2**31


class Book:
    """A notebook of a workspace, named by its path; it holds nothing but that."""

    def __init__(self, workspace: Workspace, path: str, name: str, real: RealPath) -> None:
        self.workspace = workspace
        self.name = name
        self.file = NotebookFile(workspace, path, name, real)
        self.path, self.real = path, real

    # -- reading ----------------------------------------------------------------------------

    def load(self) -> Notebook:
        """The notebook as it is now; its revision is remembered, to serve as a base."""
        notebook = self.file.read()
        self.workspace.journal.remember(self.real, notebook.snapshot())
        return notebook

    def read(self, *, stale: bool = False, text: bool = True) -> dict[str, Any]:
        """The cells, how each stands, the revision, the text view, and who else is at work.

        With `stale` also which results do not stand any more, and why; without `text` no text
        view, so that a notebook with a broken cell can be read, too.
        """
        hub, actor = self.workspace.hub, self.workspace.actor
        notebook = self.load()
        runs = on_record(self.workspace.journal, self.real)
        described = describe_notebook(notebook, self.name, runs, hub.now(self.real), stale=stale)
        others = hub.presence.others(self.real, actor)
        found = {**described, "others": others}
        if text:
            from cellwright.text.view import to_text

            found["text"] = to_text(notebook)
        return found

    def select(self, selector: str) -> dict[str, Any]:
        """Some lines of the text view, a cell, a section, the outline, or the file as it is."""
        from cellwright.text.selection import select, select_raw
        from cellwright.text.selectors import parse_selector
        from cellwright.text.view import render_text

        wanted = parse_selector(selector)
        if wanted.raw:
            text = self.raw().decode("utf-8", "surrogateescape")
            found = select_raw(text, wanted)
            described = _describe_selection(selector, found)
            return {"path": self.name, **described, "total_cells": None}  # it may be no notebook
        notebook = self.load()
        found = select(render_text(notebook), wanted)
        described = _describe_selection(selector, found)
        return {"path": self.name, "revision": notebook.revision, **described}

    def outputs(
        self, cells: Sequence[CellRef] | None = None, *, max_tokens: int = 8000
    ) -> dict[str, Any]:
        """What cells printed, showed and raised, as compact text within a budget of tokens."""
        from cellwright.workspace.outputs import describe_outputs

        return {"path": self.name, **describe_outputs(self.file.read(), cells, max_tokens)}

    def run(
        self,
        /,
        cells: Sequence[CellRef] | None = None,
        *,
        above: CellRef | None = None,
        below: CellRef | None = None,
        stale: bool = False,
        replay: CellRef | None = None,
        **options: Any,
    ) -> Executions:
        """Run cells in the notebook's kernel; their outputs are then in the file.

        They run in the order of the notebook, and the first that fails is the last unless
        `keep_going`.

        Args:
            cells: references and ranges such as `2-5`; all code cells by default.
            above: the cells before this one.
            below: this cell and those after it.
            stale: those whose results do not stand.
            replay: this cell, after the cells above that give it what it needs.
            options: `kernel`, `timeout` (seconds for each cell), `time_limit` (for all), `restart`,
                `keep_going`, `check` (compare and write nothing), `parameters`, `answers` and
                `ask` for `input()`, `progress`, and `detach`: seconds after which the answer
                comes although the run, whose id it has, goes on.
        """
        from cellwright.workspace.choosing import choose_in

        notebook, chosen = choose_in(
            self, cells, above=above, below=below, stale=stale, replay=replay
        )
        return self.workspace.kernels.run(self, notebook, chosen, **options)

    def stale(self) -> dict[str, Any]:
        """Which cells are fresh, stale or never run, and why, by their runs that are on record.

        What was run by other programs is not on record; such cells count as never run.
        """
        from cellwright.workspace.staleness import describe_staleness

        runs = self.workspace.journal.executions(self.real)
        return {"path": self.name, "cells": describe_staleness(self.file.read(), runs)}

    def record_execution(self, run: ExecutionRecord) -> None:
        """Remember that a cell was run, by which kernel and with which source."""
        self.workspace.journal.executed(self.real, run)

    def executions(self) -> list[dict[str, Any]]:
        """The runs of this notebook's cells that are remembered, the oldest first."""
        return [run.to_json() for run in self.workspace.journal.executions(self.real)]

    def raw(self) -> bytes:
        """The file as it is, be it a notebook or not."""
        return self.file.raw()

    # -- editing ----------------------------------------------------------------------------

    def edit(
        self,
        /,
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
                The answer has their `executions`, their `outputs` as text within a budget, and
                what is `stale` after that; the edit stands however they end.
            how: options of `run`, such as `timeout`.
        """
        if run not in (None, "changed", "stale"):
            raise InvalidEdit(f"`run` is {run!r}", hint="One of changed, stale")
        if run is not None:
            self.workspace.require("run", "run cells")

        def make(notebook: Notebook) -> Change:
            return notebook.apply(edits, base=self.file.base(notebook, base))

        answer = self.file.change(
            make, create=create, dry_run=dry_run, backup=backup, label=label, kind=kind
        )
        if run is not None and not dry_run:
            changed = [
                cell["after"]
                for cell in answer["cells"]
                if cell["type"] == "code" and cell["kind"] in ("edited", "inserted")
            ]
            from cellwright.workspace.outputs import describe_executions

            done = self.run(stale=True, **how) if run == "stale" else self.run(changed, **how)
            answer |= done.to_json()
            answer["outputs"] = describe_executions(done)
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
        from cellwright.text.view import parse_text

        cells = parse_text(text)

        def make(notebook: Notebook) -> Change:
            return notebook.apply(edits_for(cells, notebook, self.file.base(notebook, base)))

        return self.file.change(make, create=True, dry_run=dry_run, backup=backup, label=label)

    def upgrade(self, *, dry_run: bool = False, backup: bool = False) -> dict[str, Any]:
        """Make it nbformat 4.5, with an id for every cell."""
        return self.file.change(
            lambda notebook: notebook.upgrade(), dry_run=dry_run, backup=backup, label="upgrade"
        )

    # -- history ----------------------------------------------------------------------------

    def undo(
        self, change: str | Sequence[str] | None = None, *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Take back the caller's newest change, or the one named; outputs come back with it.

        Several that are named are taken back as one, or none of them is; whichever of them had
        been taken back before is passed over.
        """
        from cellwright.workspace.history import take_back

        return self._step("undo", lambda book: take_back(self, book, change), dry_run=dry_run)

    def redo(self, change: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Make a change again that was undone."""
        from cellwright.workspace.history import make_again

        return self._step("redo", lambda book: make_again(self, book, change), dry_run=dry_run)

    def restore(self, change: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Bring back a state to the byte: after a change, or `first` for before our first one."""
        from cellwright.workspace.history import find_state

        state = find_state(self, change)

        def make(notebook: Notebook) -> Change:
            return notebook.become(state)

        # A file that was deleted can be brought back too: that is when it is needed most.
        return self.file.change(
            make, create=True, dry_run=dry_run, label=f"restore {change}", kind="restore"
        )

    def log(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The changes of this notebook, the newest first, also those made without us."""
        self.file.catch_up()
        entries = self.workspace.journal.log(self.real, limit=_ALL if limit is None else limit)
        return [entry.to_json() for entry in entries]

    def blame(self) -> list[dict[str, Any]]:
        """For every cell, the change that last touched its source or type."""
        self.file.catch_up()
        notebook = self.file.read()
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

    def _step(
        self, kind: str, take: Callable[[Notebook], tuple[Change, list[Entry]]], *, dry_run: bool
    ) -> dict[str, Any]:
        found: list[Entry] = []

        def make(notebook: Notebook) -> Change:
            change, found[:] = take(notebook)
            return change

        answer = self.file.change(make, dry_run=dry_run, kind=kind, concerns=found)
        return {**answer, "concerns": " ".join(entry.id for entry in found)}

    def warnings(self) -> list[str]:
        """What the journal could not do since it was last asked."""
        return self.file.warnings()


def _describe_selection(selector: str, found: Selection) -> dict[str, Any]:
    return {
        "selector": selector,
        "total_lines": found.total_lines,
        "total_cells": found.total_cells,
        "lines": [line._asdict() for line in found.lines],
        "outline": [entry.to_json() for entry in found.outline],
        "text": found.text,
    }
