"""One cell after the other through a kernel, with what each says on its way into the file."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace

from cellwright.errors import CellwrightError, KernelError
from cellwright.kernel.running import Outcome, timed_out
from cellwright.kernel.session import Ran
from cellwright.kernel.transport import Code
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent
from cellwright.workspace.execution import Execution
from cellwright.workspace.going import Going
from cellwright.workspace.halting import to_the_end
from cellwright.workspace.interim import InterimSaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.running import Ask
    from cellwright.kernel.session import Session
    from cellwright.kernel.transport import KernelInfo
    from cellwright.workspace.evaluation import Evaluator, Progress
    from cellwright.workspace.going import Said
    from cellwright.workspace.halting import Halting
    from cellwright.workspace.parameters import Parameters
    from cellwright.workspace.run_record import RunRecord

_OUTPUTS = (StreamEvent, DisplayEvent, ErrorEvent, ClearEvent)
_EXPECTS_ERROR = "raises-exception"
NESTED_REQUEST = "nbmp_request"
"""In the metadata of a request: which one of the running cell it is for."""


class _Halted(Exception):
    """The run is to end, and the kernel has not got the cell yet."""


@dataclass(eq=False)
class CellRunner:
    """Takes the cells of one run through its kernel; `earlier` are those that got there.

    `interval` is the time between saves while a cell runs. `nested` is the request of a cell that
    runs now and waits for these, which go past the queue.
    """

    path: str
    session: Session
    evaluator: Evaluator
    record: RunRecord
    parameters: Parameters
    halting: Halting
    report: Progress
    withheld: Sequence[str] = ()
    timeout: float = 0
    answers: Sequence[str] = ()
    ask: Ask | None = None
    interval: float = 0
    nested: str | None = None
    earlier: list[Going] = field(default_factory=list)
    _has_begun: bool = False

    async def run(self, cell: Cell) -> Execution:
        """Run one cell, to its end or that of the run.

        Raises:
            KernelError: there is no kernel for it, and there has not been any.
        """
        going = Going(cell, self.evaluator.collector(), self.withheld)
        is_first, self._has_begun = not self._has_begun, True
        saves = InterimSaves(lambda: self._save_so_far(going), self.interval)
        self.earlier.append(going)
        self.tell(cell, status="running")
        try:
            ran = await self._execute(going, saves, is_first=is_first)
        except asyncio.CancelledError:
            if going.began:
                kept = self.session.transport is not None and self.session.transport.is_alive
                outcome = Outcome("cancelled", time.time() - going.began, state_kept=kept)
                ran = Ran(outcome, kernel=self.session.life)
                await to_the_end(self._finish(going, ran, saves))
            raise
        except KernelError as error:
            self.earlier.remove(going)
            if is_first:
                raise
            # What the cells before it did must not be lost with the answer.
            return Execution(cell.handle, cell.index, "pending", notes=(error.message,))
        if not going.began:
            self.earlier.remove(going)
            return self._not_begun(going, ran)
        return await to_the_end(self._finish(going, ran, saves))

    def unreached(self, cell: Cell) -> Execution:
        """A cell that was not run."""
        late = f"The time limit of {self.halting.time_limit:g} s was over"
        notes = (late,) if self.halting.is_late else ()
        return Execution(cell.handle, cell.index, "pending", notes=notes)

    def tell(self, cell: Cell, **what: Any) -> None:
        """Report something about a cell."""
        self.report({"cell": cell.index, "handle": cell.handle, **what})

    def _not_begun(self, going: Going, ran: Ran) -> Execution:
        """A cell that its kernel never got: nothing of it has changed."""
        cell, outcome = going.cell, ran.outcome
        if self.halting.is_late:
            return self.unreached(cell)
        if going.notes:  # the parameters that it was to have
            error, notes = outcome.error, tuple(going.notes)
            told = (error.ename, error.evalue) if error else None
            return Execution(cell.handle, cell.index, outcome.status, error=told, notes=notes)
        note = "It was stopped before its turn came"
        return Execution(cell.handle, cell.index, "cancelled", notes=(note,))

    # -- in the kernel ------------------------------------------------------------------------

    async def _execute(self, going: Going, saves: InterimSaves, *, is_first: bool) -> Ran:
        cell, parameters = going.cell, self.parameters
        if is_first and parameters and parameters.cell is None:
            ran = await self._inject(going)
            if ran.outcome.status != "ok":
                return ran
        if cell.source.strip():
            ran = await self._send(going, saves, is_first=is_first)
        else:
            # As in Jupyter, no kernel gets it; it just has no outputs and no count any more.
            going.begin(self.session.life)
            ran = Ran(Outcome("ok", 0.0), kernel=self.session.life)
        if ran.outcome.status == "ok" and parameters.cell is cell:
            failed = (await self._inject(going)).outcome
            if failed.status != "ok":
                outcome = replace(ran.outcome, status=failed.status, error=failed.error)
                outcome = replace(outcome, exit=failed.exit, state_kept=failed.state_kept)
                return replace(ran, outcome=outcome)
        return ran

    async def _send(self, going: Going, saves: InterimSaves, *, is_first: bool) -> Ran:
        """Have the kernel run a cell."""
        cell, parameters = going.cell, self.parameters
        make = self.evaluator.notebook_code(self.session, self.path, cell)

        def code(info: KernelInfo) -> Code:
            if parameters and is_first:
                parameters.source(info.language)  # refused before anything ran, if at all
            if self.halting.is_set:
                raise _Halted  # while the kernel was being started
            going.begin(self.session.life)
            return make(info)

        listener = self._listener(going, saves)
        try:
            if self.nested is not None:
                return await self.session.run_nested(
                    lambda info: replace(code(info), metadata={NESTED_REQUEST: self.nested}),
                    timeout=self.timeout,
                    on_event=listener,
                    caller=cell.handle,
                )
            return await self.session.run(
                code,
                timeout=self.timeout,
                on_event=listener,
                answers=self.answers,
                ask=self.ask,
                stop=self.halting.event,
                caller=cell.handle,
            )
        except _Halted:
            return Ran(Outcome("cancelled", 0.0))

    async def _inject(self, going: Going) -> Ran:
        """Set the parameters, as a part of the cell that they belong to."""
        told: list[tuple[str, str]] = []

        def code(info: KernelInfo) -> Code:
            source = self.parameters.source(info.language)
            told.append((source, info.language))
            return Code(source, silent=True, store_history=False)

        ran = await self.session.run(code, timeout=self.timeout, stop=self.halting.event)
        if told:
            source, language = told[0]
            going.notes += self.parameters.notes(language)
            if going.began:
                going.injected = (source, ran)  # on record after the cell, as it happened
            else:
                self.record.parameters(source, ran)
        if ran.outcome.status != "ok":
            error = ran.outcome.error
            why = f"{error.ename}: {error.evalue}" if error else ran.outcome.status
            going.notes.append(f"The parameters could not be set: {why}")
        return ran

    def _listener(self, going: Going, saves: InterimSaves) -> Callable[[KernelEvent], None]:
        def listen(event: KernelEvent) -> None:
            if not isinstance(event, _OUTPUTS):
                return
            going.collector.feed(event)
            if isinstance(event, DisplayEvent) and event.display_id:
                # What has an id changes wherever it is shown, here or in an earlier cell.
                for earlier in self.earlier:
                    if earlier is not going and earlier.collector.update(event):
                        earlier.renewed = earlier.is_changed = True
            saves.touch()
            if isinstance(event, StreamEvent):
                self.tell(going.cell, text=event.text)

        return listen

    # -- into the file ------------------------------------------------------------------------

    async def _save_so_far(self, going: Going) -> bool:
        said = self._said(going)
        try:
            await asyncio.to_thread(self.record.save_so_far, going, said)
        except (CellwrightError, OSError):
            for each in said:
                each.going.renewed = True
            return False  # the next one may work, and the last one tells
        return True

    def _said(self, going: Going) -> list[Said]:
        """What the file does not have yet: of this cell, and of earlier ones that it changed."""
        found = [each.said() for each in self.earlier if each is going or each.renewed]
        for each in found:
            each.going.renewed = False  # what changes from now on is for the next save
        return found

    async def _finish(self, going: Going, ran: Ran, saves: InterimSaves) -> Execution:
        await saves.end()
        limit = self.halting.time_limit
        if self.halting.is_late and ran.outcome.status == "cancelled":
            ran = replace(ran, outcome=replace(ran.outcome, status="timed_out"))
            going.collector.feed(StreamEvent("stderr", f"\n{timed_out(limit)}\n"))
            going.notes.append(f"That was the time limit of {limit:g} s for the run")
        going.end(ran.outcome)
        said = self._said(going)
        execution = await asyncio.to_thread(self.record.finish, going, ran, said)
        tags = going.cell.metadata.get("tags")
        if execution.status == "error" and isinstance(tags, list) and _EXPECTS_ERROR in tags:
            execution = replace(execution, expected=True)
        return execution
