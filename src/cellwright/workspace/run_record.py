"""What remains of a run: outputs in the file, executions in the journal, and the truth about both."""

from __future__ import annotations

import json
import time

from cellwright.errors import CellwrightError, DurabilityUnconfirmed
from cellwright.journal.executions import ExecutionRecord
from cellwright.kernel.environment import about_withheld
from cellwright.workspace.execution import Execution, failing_line, plain_traceback
from cellwright.workspace.run_file import RunFile
from cellwright.workspace.run_trust import RunTrust
from cellwright.workspace.staleness import PARAMETERS, language_of
from cellwright.workspace.statuses import on_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.change import Change
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.session import Ran
    from cellwright.workspace.book import Book
    from cellwright.workspace.going import Going, Said


class RunRecord:
    """Keeps what the cells of one run say; a check keeps nothing."""

    def __init__(self, book: Book, notebook: Notebook, *, is_check: bool = False) -> None:
        self._book = book
        self._notebook = notebook
        self._is_check = is_check
        self._file = RunFile(book, notebook.state)
        self._trust = RunTrust(self._file, notebook.state)
        self._told: set[int] = set()

    @property
    def may_sign(self) -> bool:
        """Whether there is anything to see to when the run is over."""
        return self._trust.may_sign

    def save_so_far(self, going: Going, said: Sequence[Said]) -> None:
        """Put what a cell has said until now into the file; no entry of the history."""
        if going.cell.index not in self._told:  # if we die now, somebody will want to know
            self._told.add(going.cell.index)
            seconds = time.time() - going.began
            self._record(self._executed(going, "running", kernel=going.life, seconds=seconds))
        self._trust.look(self._book.real)
        self._file.save(_maker(going, said, []), label=_label(going), is_last=False)

    def finish(self, going: Going, ran: Ran, said: Sequence[Said]) -> Execution:
        """Put the outputs of a cell into the file, wherever it is by now, and on record."""
        outcome = ran.outcome
        outputs = next(each.outputs for each in said if each.going is going)
        notes = [*going.notes, *_notes(going, ran)]
        saved = is_stale = False
        if not self._is_check:
            run = self._executed(going, outcome.status, kernel=ran.kernel, seconds=outcome.seconds)
            saved, is_stale, more = self._save(going, said, outputs, run)
            notes += more
            if going.injected is not None:
                self.parameters(*going.injected)
        lost, replay, more = self._lost(going, ran)
        error = outcome.error
        traceback = plain_traceback(error.traceback) if error else ()
        return Execution(
            going.cell.handle,
            going.cell.index,
            outcome.status,
            outputs,
            outcome.seconds,
            going.count,
            (error.ename, error.evalue) if error else None,
            saved=saved,
            stale=is_stale,
            state_kept=outcome.state_kept,
            notes=(*notes, *more),
            traceback=traceback,
            line=failing_line(traceback, going.count),
            lost=tuple(lost),
            replay=tuple(replay),
        )

    def parameters(self, source: str, ran: Ran) -> None:
        """Remember code that is in no cell: what used it did not see what the notebook says."""
        if self._is_check:
            return
        run = ExecutionRecord(
            cell=PARAMETERS,
            index=-1,
            hash="",
            source=source,
            kernel=ran.kernel,
            status=ran.outcome.status,
            count=None,
            began=time.time() - ran.outcome.seconds,
            seconds=ran.outcome.seconds,
            actor=self._book.workspace.actor,
        )
        self._book.record_execution(run)

    def end(self) -> None:
        """The run is over."""
        self._trust.end()

    def _save(
        self,
        going: Going,
        said: Sequence[Said],
        outputs: list[dict[str, Any]],
        run: ExecutionRecord | None,
    ) -> tuple[bool, bool, list[str]]:
        """Whether the outputs are in the file, and are of another source; and what to tell."""
        stale: list[bool] = []
        self._trust.look(self._book.real)
        try:
            self._file.save(_maker(going, said, stale), label=_label(going), run=run)
            self._trust.saved()
        except DurabilityUnconfirmed as failure:
            return True, stale == [True], [failure.message]
        except CellwrightError as failure:  # the cell ran all the same, and is not to be lost
            self._record(run)
            for each in said:
                each.going.renewed = each.going is not going
            return False, False, [f"The outputs are {self._aside(outputs)}: {failure.message}"]
        if not stale:
            kept = self._aside(outputs)
            return False, False, [f"The cell was deleted while it ran; its outputs are {kept}"]
        if stale[0]:
            note = "The cell was edited while it ran; its outputs are of the source it had"
            return True, True, [note]
        return True, False, []

    def _aside(self, outputs: list[dict[str, Any]]) -> str:
        """Keep outputs that have no place in the file; says where they are."""
        if outputs:
            content = json.dumps(outputs, ensure_ascii=False).encode("utf-8", "surrogatepass")
            try:
                store = self._book.workspace.artifacts
                artifact = store.put(content, mime="application/json", name="outputs")
            except CellwrightError:
                pass
            else:
                return f"only in this answer and in artifact://{artifact.id}"
        return "only in this answer"

    def _executed(
        self, going: Going, status: str, *, kernel: str, seconds: float
    ) -> ExecutionRecord | None:
        """A run as it goes on record; None of a cell without code, before there was a kernel."""
        cell = going.cell
        if not kernel:
            return None
        return ExecutionRecord(
            cell=cell.handle,
            index=cell.index,
            hash=cell.hash,
            source=cell.source,
            kernel=kernel,
            status=status,
            count=going.count,
            began=going.began,
            seconds=seconds,
            actor=self._book.workspace.actor,
        )

    def _record(self, run: ExecutionRecord | None) -> None:
        if run is not None:
            self._book.record_execution(run)

    def _lost(self, going: Going, ran: Ran) -> tuple[list[str], list[str], list[str]]:
        """After a kernel is gone: whose state went with it, and the way back."""
        outcome = ran.outcome
        if self._is_check or (outcome.state_kept and not ran.replaced):
            return [], [], []
        from cellwright.workspace.recovery import (
            describe_loss,
            life_before,
            lost_cells,
            replay_cells,
        )

        executions = on_record(self._book.workspace.journal, self._book.real)
        over = ran.kernel
        if outcome.state_kept:  # it was found dead, and this cell ran in a new one
            over = life_before(executions, ran.kernel) or ""
        lost = lost_cells(self._notebook, executions, over)
        if going.cell.handle in lost and outcome.state_kept:
            lost.remove(going.cell.handle)  # it has just run
        cells = self._notebook.cells
        replay = [
            cells[index].handle for index in replay_cells(self._notebook, executions, going.cell)
        ]
        told = describe_loss(language_of(self._notebook), lost, replay, going.cell.handle)
        return lost, replay, [told]


def _maker(going: Going, said: Sequence[Said], stale: list[bool]) -> Any:
    """What puts outputs into a notebook; `stale` then tells whether the cell was edited.

    It stays empty if the cell is gone.
    """

    def make(notebook: Notebook) -> Change:
        stale.clear()
        edits: list[Edit] = []
        for each in said:
            cell = each.going.find(notebook)
            if cell is not None and cell.type == "code":
                edits += each.edits(cell)
                if each.going is going:
                    stale[:] = [cell.hash != going.cell.hash]
        return notebook.apply(edits)

    return make


def _label(going: Going) -> str:
    return f"run {going.cell.handle}"


def _notes(going: Going, ran: Ran) -> list[str]:
    outcome = ran.outcome
    notes = []
    if ran.replaced:
        notes.append("The kernel had died; this cell ran in a new one, without what was defined")
    if outcome.status == "died":
        notes.append(
            f"The kernel died, {outcome.exit}; all it had defined is lost. Nothing was run again"
        )
    elif outcome.status in ("timed_out", "cancelled"):
        kept = "kept" if outcome.state_kept else "lost, since it had to be ended"
        notes.append(f"The kernel was interrupted; what it had defined is {kept}")
    if outcome.error is not None:
        said = f"{outcome.error.ename} {outcome.error.evalue}"
        notes += filter(None, [about_withheld(going.withheld, said)])
    return [*notes, *(f"Part of the output was missed: {reason}" for reason in outcome.missed)]
