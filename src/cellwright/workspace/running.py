"""Run the cells of a notebook: in its own kernel, with the outputs in its file."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from cellwright.errors import InvalidEdit
from cellwright.workspace.cell_run import CellRunner
from cellwright.workspace.halting import Halting, to_the_end
from cellwright.workspace.parameters import Parameters
from cellwright.workspace.run_record import RunRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.session import Ask, Session
    from cellwright.workspace.book import Book
    from cellwright.workspace.evaluation import Evaluator, Progress
    from cellwright.workspace.execution import Execution
    from cellwright.workspace.going import Going


class NotebookRun:
    """One call that runs some cells, one after the other.

    Args:
        book: the notebook.
        evaluator: whoever has its kernel.
        kernel: a kernelspec, interpreter or environment.
        timeout: seconds for each cell; 0 is no limit.
        time_limit: seconds for all of them together: the cell that runs when they are over has
            timed out, and the rest is not reached.
        restart: begin with a fresh kernel.
        keep_going: run the cells after one that failed, too.
        check: run in a kernel of its own, write nothing anywhere, and compare the outputs with
            those in the file.
        parameters: values that are set right after the cell tagged `parameters`, or before the
            first cell if none of them is tagged.
        answers: lines for `input()`, in order.
        ask: somebody who can be asked for more of them.
        progress: gets `{"cell", "handle", "status"}` and `{"cell", "handle", "text"}`.
        done: gets the place of each cell among `cells`, and its execution, when it is over, and
            once more if a later cell changed its displays.
        stop: an event that ends the run: the cell that runs is interrupted.
        nested: the request of a running cell, which waits for these.
    """

    def __init__(
        self,
        book: Book,
        evaluator: Evaluator,
        *,
        kernel: str | None = None,
        timeout: float = 0,
        time_limit: float = 0,
        restart: bool = False,
        keep_going: bool = False,
        check: bool = False,
        parameters: Mapping[str, Any] | None = None,
        answers: Sequence[str] = (),
        ask: Ask | None = None,
        progress: Progress | None = None,
        done: Callable[[int, Execution], object] | None = None,
        stop: asyncio.Event | None = None,
        nested: str | None = None,
    ) -> None:
        for name, seconds in (("timeout", timeout), ("time_limit", time_limit)):
            if seconds < 0:
                raise InvalidEdit(f"a {name} of {seconds:g} s", hint="0 is no limit")
        self._book = book
        self._evaluator = evaluator
        self._kernel = kernel
        self._restart = restart
        self._keep_going = keep_going
        self._check = check
        self._values = parameters or {}
        self._report = progress or (lambda _: None)
        self._done = done or (lambda *_: None)
        self._halting = Halting(time_limit, stop)
        self._how: dict[str, Any] = {
            "timeout": timeout,
            "answers": list(answers),
            "ask": ask,
            "nested": nested,
        }
        if not check:
            self._how["interval"] = book.workspace.settings.run_save_interval

    async def run(self, notebook: Notebook, cells: Sequence[Cell]) -> list[Execution]:
        """Run them, and stop at the first that does not end well, unless told to go on."""
        parameters = Parameters(self._values, cells)
        record = RunRecord(self._book, notebook, is_check=self._check)
        done: list[Execution] = []
        async with self._halting.watch(), self._session(notebook) as (session, withheld):
            runner = CellRunner(
                self._book.real,
                session,
                self._evaluator,
                record,
                parameters,
                self._halting,
                self._report,
                withheld,
                **self._how,
            )
            for cell in cells:
                runner.tell(cell, status="pending")
            try:
                for place, cell in enumerate(cells):
                    if self._halting.is_set:
                        break
                    execution = await runner.run(cell)
                    done.append(execution)
                    self._done(place, execution)
                    runner.tell(cell, status=execution.status)
                    if execution.status == "pending" or self._ends(execution, cell):
                        break
            finally:
                if record.may_sign:
                    await to_the_end(asyncio.to_thread(record.end))
        answer = [
            *(self._renewed(execution, runner.earlier) for execution in done),
            *map(runner.unreached, cells[len(done) :]),
        ]
        for place, execution in enumerate(answer):
            if place >= len(done) or execution is not done[place]:
                self._done(place, execution)
        return answer

    @contextlib.asynccontextmanager
    async def _session(self, notebook: Notebook) -> AsyncIterator[tuple[Session, tuple[str, ...]]]:
        """The notebook's session, and the names of variables that are withheld from it."""
        name = notebook.metadata.get("kernelspec", {}).get("name")
        # A check has a kernel of its own, in the same folder: the notebook's keeps its state.
        path = f"{self._book.real}.check-{id(self):x}" if self._check else self._book.real
        session, withheld = await self._evaluator.notebook_session(
            path,
            kernel=self._kernel,
            notebook_kernel=name if isinstance(name, str) else None,
            owner=self._book.workspace.owner,
            environ=self._book.workspace.environ,
            restart=self._restart and not self._check,
            root=self._book.workspace.root,
            mode=self._book.workspace.mode,
        )
        try:
            yield session, withheld
        finally:
            if self._check:
                await to_the_end(self._evaluator.pool.end(session.key))

    def _ends(self, execution: Execution, cell: Cell) -> bool:
        """Whether the run is over with this cell."""
        if not execution.is_failure or self._keep_going:
            return self._halting.is_set
        if self._check and execution.status == "error":
            return "error" not in cell.output_types  # one that is in the file was expected
        return True

    def _renewed(self, execution: Execution, ran: Sequence[Going]) -> Execution:
        """With the displays that later cells have changed, and compared if that was asked for."""
        going = next((each for each in ran if each.cell.index == execution.index), None)
        if going is None:
            return execution
        if going.is_changed:
            execution = replace(execution, outputs=going.collector.outputs())
        if self._check:
            from cellwright.workspace.checking import compare

            found = compare(going.cell, execution.status, execution.outputs)
            execution = replace(execution, check=found)
        return execution
