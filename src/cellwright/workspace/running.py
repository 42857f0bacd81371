"""Run the cells of a notebook: in its own kernel, with the outputs in its file."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from cellwright.document.edits import SetOutputs
from cellwright.errors import CellNotFound, CellwrightError, InvalidCell, InvalidEdit
from cellwright.journal.executions import Executed
from cellwright.kernel.environment import about_withheld
from cellwright.outputs.events import Cleared, Raised, Shown, StreamText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.change import Change
    from cellwright.document.notebook import Notebook
    from cellwright.document.refs import CellRef
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.running import Ask
    from cellwright.kernel.session import Ran
    from cellwright.outputs.collector import Collector
    from cellwright.workspace.book import Book
    from cellwright.workspace.evaluation import Evaluator, Progress

_OUTPUTS = (StreamText, Shown, Raised, Cleared)


@dataclass(frozen=True, slots=True)
class Execution:
    """What became of one cell of a notebook that was run.

    `status` is `pending` for cells that were not reached. `saved` says that `outputs` are in the
    file. `stale` says that the cell has been edited while it ran, so that they are those of an
    earlier source. `state_kept` is false if the kernel, and all it had defined, is gone.
    """

    cell: str
    index: int
    status: str
    outputs: Sequence[dict[str, Any]] = ()
    seconds: float = 0.0
    count: int | None = None
    error: tuple[str, str] | None = None
    saved: bool = False
    stale: bool = False
    state_kept: bool = True
    notes: tuple[str, ...] = ()

    def raise_for_status(self) -> None:
        """Raise what ended the cell, unless it ended well or was not reached."""
        from cellwright.errors import (
            CellFailed,
            ExecutionCancelled,
            ExecutionTimedOut,
            KernelDied,
        )

        if self.status == "error":
            raise CellFailed(*(self.error or ("error", "no traceback was given")))
        if self.status == "timed_out":
            raise ExecutionTimedOut(self.seconds)
        if self.status == "cancelled":
            raise ExecutionCancelled
        if self.status == "died":
            raise KernelDied(" ".join(self.notes))

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "cell": self.cell,
            "index": self.index,
            "status": self.status,
            "execution_count": self.count,
            "seconds": round(self.seconds, 3),
            "outputs": list(self.outputs),
            "error": self.error and {"ename": self.error[0], "evalue": self.error[1]},
            "saved": self.saved,
            "stale": self.stale,
            "state_kept": self.state_kept,
            "notes": list(self.notes),
        }


@dataclass
class Going:
    """A cell on its way: which one it was when it was asked for, and what it has said."""

    cell: Cell
    hash: str
    collector: Collector
    withheld: Sequence[str] = ()
    count: int | None = None
    renewed: bool = False  # a later cell has changed one of its displays


def choose_cells(
    notebook: Notebook,
    cells: Sequence[CellRef] | None,
    above: CellRef | None,
    below: CellRef | None,
) -> list[Cell]:
    """The code cells that are meant, in the order of the notebook.

    `above` means those before that cell, `below` that cell and those after it.

    Raises:
        CellNotFound, AmbiguousCell: a cell is not there, or not the only one.
        InvalidCell: a cell that was named is no code.
    """
    given = [value for value in (cells, above, below) if value is not None]
    if len(given) > 1:
        raise InvalidEdit("only one of cells, above and below", hint="Run the rest after it")
    if cells is None:
        every = list(notebook.cells)
        if above is not None:
            every = every[: notebook.cell(above).index]
        elif below is not None:
            every = every[notebook.cell(below).index :]
        return [cell for cell in every if cell.type == "code"]
    chosen = {cell.index: cell for cell in map(notebook.cell, cells)}
    for index, cell in chosen.items():
        if cell.type != "code":
            raise InvalidCell(index, f"it is {cell.type}, and only code runs")
    return [chosen[index] for index in sorted(chosen)]


class NotebookRun:
    """One call that runs some cells, one after the other."""

    def __init__(
        self,
        book: Book,
        evaluator: Evaluator,
        *,
        kernel: str | None = None,
        timeout: float = 0,
        restart: bool = False,
        keep_going: bool = False,
        answers: Sequence[str] = (),
        ask: Ask | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._book = book
        self._evaluator = evaluator
        self._kernel = kernel
        self._timeout = timeout
        self._restart = restart
        self._keep_going = keep_going
        self._answers = list(answers)
        self._ask = ask
        self._report = progress or (lambda _: None)
        self._earlier: list[Going] = []

    async def run(self, notebook: Notebook, cells: Sequence[Cell]) -> list[Execution]:
        """Run them, and stop at the first that does not end well, unless told to go on."""
        name = notebook.metadata.get("kernelspec", {}).get("name")
        session, withheld = await self._evaluator.notebook_session(
            self._book.real,
            kernel=self._kernel,
            notebook_kernel=name if isinstance(name, str) else None,
            owner=self._book.workspace.actor,
        )
        if self._restart:
            await session.restart()
        done: list[Execution] = []
        for cell in cells:
            going = Going(cell, cell.hash, self._evaluator.collector(), withheld=withheld)
            self._report({"cell": cell.index, "status": "running"})
            ran = await session.run(
                self._evaluator.notebook_code(session, self._book.real, cell),
                timeout=self._timeout,
                on_event=self._listener(going),
                answers=self._answers,
                ask=self._ask,
            )
            execution = await asyncio.to_thread(self._finish, going, ran)
            done.append(execution)
            self._report({"cell": cell.index, "status": execution.status})
            if execution.status != "ok" and not self._keep_going:
                break
        return [
            *done,
            *(Execution(cell.handle, cell.index, "pending") for cell in cells[len(done) :]),
        ]

    def _listener(self, going: Going) -> Callable[[KernelEvent], None]:
        def listen(event: KernelEvent) -> None:
            if isinstance(event, _OUTPUTS) and not going.collector.feed(event):
                # A display of an earlier cell of this call; its file is written again below.
                for earlier in self._earlier:
                    if isinstance(event, Shown) and earlier.collector.update(event):
                        earlier.renewed = True
            if isinstance(event, StreamText):
                self._report({"cell": going.cell.index, "text": event.text})

        self._earlier.append(going)
        return listen

    def _finish(self, going: Going, ran: Ran) -> Execution:
        """Put the outputs into the file, wherever the cell is by now."""
        outcome = ran.outcome
        outputs = going.collector.finish()
        count = going.count = outcome.execution_count
        stale: list[bool] = []
        missing: list[bool] = []

        def make(notebook: Notebook) -> Change:
            cell = _find(notebook, going)
            missing[:] = [cell is None]
            if cell is None:
                return notebook.apply([])
            stale[:] = [cell.hash != going.hash]
            edits = [SetOutputs(cell.index, outputs, count)]
            for earlier in self._earlier:
                other = _find(notebook, earlier) if earlier.renewed else None
                if other is not None and other.index != cell.index:
                    shown = earlier.collector.outputs()
                    edits.append(SetOutputs(other.index, shown, earlier.count))
                earlier.renewed = False
            return notebook.apply(edits)

        unsaved: CellwrightError | None = None
        try:
            self._book.record_run(make, label=f"run {going.cell.handle}")
        except CellwrightError as failure:
            unsaved = failure  # the cell ran all the same, and what it said must not be lost
        self._book.record_execution(
            Executed(
                cell=going.cell.id or going.cell.handle,
                index=going.cell.index,
                hash=going.hash,
                source=going.cell.source,
                kernel=ran.kernel,
                status=outcome.status,
                count=count,
                began=time.time() - outcome.seconds,
                seconds=outcome.seconds,
                actor=self._book.workspace.actor,
            )
        )
        notes = list(_notes(going, ran))
        if unsaved is not None:
            notes.append(f"The outputs are only in this answer: {unsaved.message}")
        elif missing[0]:
            notes.append("The cell was deleted while it ran; its outputs are only in this answer")
        if stale and stale[0]:
            notes.append("The cell was edited while it ran; its outputs are of the source it had")
        error = outcome.error
        return Execution(
            going.cell.handle,
            going.cell.index,
            outcome.status,
            outputs,
            outcome.seconds,
            count,
            (error.ename, error.evalue) if error else None,
            saved=unsaved is None and not missing[0],
            stale=bool(stale and stale[0]),
            state_kept=outcome.state_kept,
            notes=tuple(notes),
        )


def _find(notebook: Notebook, going: Going) -> Cell | None:
    """The cell where it is now: by its id, or where there is none by what it says."""
    if going.cell.id is not None:
        try:
            return notebook.cell(going.cell.id)
        except (CellNotFound, LookupError):
            return None
    cells = notebook.cells
    if going.cell.index < len(cells) and cells[going.cell.index].hash == going.hash:
        return cells[going.cell.index]
    same = [cell for cell in cells if cell.hash == going.hash]
    return same[0] if len(same) == 1 else None


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
