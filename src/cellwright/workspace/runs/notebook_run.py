"""A run of a notebook's cells: in its own kernel, with their outputs in the notebook."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import replace
from typing import NamedTuple

from cellwright.errors import CellwrightError, KernelError
from cellwright.kernel.environment import explain_withheld
from cellwright.kernel.session import CellOutcome, Outcome, describe_timeout
from cellwright.kernel.transport import Code
from cellwright.outputs.collector import Collector
from cellwright.outputs.events import (
    ANSWERED_ERROR,
    ClearEvent,
    DisplayEvent,
    ErrorEvent,
    RawPiece,
    StreamEvent,
    bound_error,
)
from cellwright.workspace.runs.execution import (
    NOTHING_AGAIN,
    CellError,
    Execution,
    Executions,
    OutputCheck,
    find_error_output,
    find_failing_line,
    strip_traceback,
)
from cellwright.workspace.runs.landing import REST, CellRun, InterimSaves, Landed, RunRecord
from cellwright.workspace.runs.parameters import Parameters
from cellwright.workspace.runs.recorder import describe_display, describe_stream, find_title
from cellwright.workspace.runs.run import Run, finish_despite_cancel
from cellwright.workspace.runs.sessions import find_kernel_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.session import Session
    from cellwright.kernel.transport import KernelInfo
    from cellwright.workspace.notebook import OpenNotebook
    from cellwright.workspace.runs.landing import OutputsSoFar
    from cellwright.workspace.runs.run import RunOptions
    from cellwright.workspace.runs.widgets import WidgetModels

_OUTPUTS = (StreamEvent, DisplayEvent, RawPiece, ErrorEvent, ClearEvent)
_NO_INPUT = "StdinNotImplementedError"
_EXPECTS_ERROR = "raises-exception"
_CAUGHT = 300  # characters of what an Output widget caught, in a note
NESTED_REQUEST = "nbmp_request"
"""In the metadata of an execute request: which request of the running cell it is for."""


class _StoppedEarly(Exception):
    """The run has to end before the kernel got the cell."""


class _EndedCell(NamedTuple):
    """A cell that is over and has not landed; `place` is its place in the run."""

    place: int
    run: CellRun
    ran: CellOutcome
    notes: list[str]


class NotebookRun(Run):
    """One call that runs cells of a notebook.

    `notebook` is what it held when the run was asked for. With the option `nested` the cells run
    inside a cell that waits for them: past the queue, in the turn that it has.
    """

    KIND = "run"

    def __init__(
        self,
        book: OpenNotebook,
        notebook: Notebook,
        cells: Sequence[Cell],
        options: RunOptions,
    ) -> None:
        pending = [Execution("pending", cell.handle, cell.index) for cell in cells]
        handles = [cell.handle for cell in cells]
        super().__init__(book.real, book.caller.actor, pending, options, handles)
        self.book = book
        self.origin = book.origin
        self._notebook = notebook
        self._chosen = cells
        self._sessions = book.hub.sessions
        self._parameters = Parameters(options.parameters or {}, cells)
        self._record = RunRecord(book, notebook.state, is_check=options.check)
        self.skipped: list[str] = []  # handles of cells that a tag keeps out
        self._runs: list[CellRun] = []  # those that their kernel got
        self._waiting: list[_EndedCell] = []  # short ones, which land with the next
        self._landing_turn = asyncio.Lock()
        self._landing_timer: asyncio.TimerHandle | None = None
        self._landing_task: asyncio.Task[None] | None = None
        self._landing_failure: Exception | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._landed_at = self._landing_cost = 0.0
        self._has_begun_cell = False
        self._session: Session
        self._widgets: WidgetModels
        self._withheld: tuple[str, ...] = ()
        self._usage: dict[str, float] | None = None
        book.hub.actors.note(book.real, book.caller.actor, "run")

    def answer(self) -> Executions:
        """Return what is known of the cells now; what comes later does not change it."""
        executions = list(self.executions)
        run = self._runs[-1] if self._runs else None
        if run is not None and not run.is_over and not self.is_over:
            cell = run.cell
            executions[self._chosen.index(cell)] = Execution(
                "running",
                cell.handle,
                cell.index,
                outputs=run.collector.outputs(),
                seconds=time.time() - run.began if run.began else 0.0,
            )
        return Executions(
            executions, run=self.id, done=self.is_over, skipped=self.skipped, usage=self._usage
        )

    def notebook_now(self) -> Notebook:
        """Return the notebook as the run left it; read anew if it lands nothing."""
        written = self._record.written
        if written is None:
            return self.book.host.read()
        from cellwright.document.notebook import Notebook

        return Notebook.of_state(written, path=self.book.path)

    def give_up(self, handle: str) -> None:
        """Land no more outputs of a cell: a person runs it now."""
        for run in self._runs:
            if run.cell.handle == handle and not run.is_over:
                run.is_taken = True

    # -- the run as a whole -----------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        if self.options.nested is not None:
            self.state = "running"
            async with self._open_session():
                yield
            return
        book, hub = self.book, self.book.hub
        async with hub.runs.turns.take(book.real):
            self.state = "running"
            if not hub.leases.owns(book.real):
                # That may take a moment, and other kernels must not wait for it.
                await hub.in_file_thread(book.host.own)
            try:
                async with self._open_session():
                    yield
            finally:
                hub.actors.note(book.real, book.caller.actor, "run")
                if hub.find_session(book.real) is None:
                    book.host.release()

    @contextlib.asynccontextmanager
    async def _open_session(self) -> AsyncIterator[None]:
        book, options = self.book, self.options
        path: str = book.real
        if options.check:  # in the same folder: the notebook's own kernel keeps its state
            path = f"{options.copy_of or book.real}.check-{self.id}"
        with self.stop.watch_clock():
            self._session, self._withheld = await self._sessions.open_notebook(
                path,
                book.caller,
                kernel=options.kernel,
                notebook_kernel=find_kernel_name(self._notebook),
                restart=options.restart and not options.check,
                address=None if options.has_own_kernel else book.host.kernel(),
                request=options,
                copy_of=options.copy_of or (book.real if options.check else None),
            )
            self._widgets = self._sessions.find_widgets(self._session)
            self._landed_at = time.monotonic()
            try:
                for place, cell in enumerate(self._chosen):
                    self.report_cell(place, status="pending", title=find_title(cell.source))
                yield
            finally:
                await self.land_waiting()
                await self._end_cells()
                if options.copy_of is not None or options.restart:
                    self._usage = await finish_despite_cancel(self._measure_kernel())
                if options.has_own_kernel and not (options.keep_kernel and self.stop.is_set):
                    await finish_despite_cancel(self._sessions.pool.end(self._session.key))
                elif await self._sessions.pool.end_unstarted(self._session) and options.server:
                    self._sessions.disconnect(self._session.key)  # it gave no kernel to keep to
                self._report_failed_landing()

    async def _measure_kernel(self) -> dict[str, float] | None:
        """What the kernel has used, if it is a process of this machine that still lives."""
        pid = self._session.to_json()["pid"]
        if pid is None:
            return None
        from cellwright.kernel.processes import measure_usage

        return await self.book.hub.in_file_thread(measure_usage, pid)

    async def _end_cells(self) -> None:
        in_thread = self.book.hub.in_file_thread
        unsaved: CellwrightError | None = None
        if self._record.needs_end:
            unsaved = await finish_despite_cancel(in_thread(self._record.end))
        for place, execution in enumerate(self.executions):
            run = next((run for run in self._runs if run.cell.index == execution.index), None)
            if run is not None:
                found = self._renew(execution, run)
                if unsaved is not None and found.saved:
                    kept = await in_thread(self._record.keep_unsaved, found.outputs, unsaved)
                    found = found.replace(
                        saved=False,
                        save_error=kept.save_error,
                        artifact=kept.artifact,
                        notes=[*found.notes, *kept.notes],
                    )
                self.executions[place] = found
            elif execution.status == "pending" and not execution.notes:
                self.executions[place] = self._describe_unreached(self._chosen[place])

    def report_cell(self, place: int, **facts: Any) -> None:
        """Report something about a cell, by its index and handle."""
        cell = self._chosen[place]
        self.report({"cell": cell.index, "handle": cell.handle, **facts})

    def _renew(self, execution: Execution, run: CellRun) -> Execution:
        """Add the displays that later cells changed, and compare if that was asked for."""
        if run.is_changed:
            execution = execution.replace(outputs=run.collector.outputs())
        if self.options.check:
            from cellwright.workspace.runs.comparison import compare_outputs

            now = run.cell.to_dict()["outputs"] if run.is_empty else execution.outputs
            found = compare_outputs(run.cell, execution.status, now)
            execution = execution.replace(check=found)
        return execution

    # -- one cell ---------------------------------------------------------------------------

    async def _run_cell(self, place: int) -> Execution:
        cell = self._chosen[place]
        run = CellRun(cell, self._make_collector())
        is_first, self._has_begun_cell = not self._has_begun_cell, True
        interval = self._find_interval()
        saves = InterimSaves(lambda: self._land_so_far(run), interval)
        self._runs.append(run)
        self.report_cell(place, status="running", began=time.time())
        announcing = None
        if interval:  # else nothing is saved while cells run
            loop = asyncio.get_running_loop()
            announcing = loop.call_later(interval / 2, self._begin_announcing, run)
        try:
            ran = await self._execute(place, run, saves, is_first=is_first)
        except asyncio.CancelledError:
            if run.began:
                transport = self._session.transport
                kept = transport is not None and transport.is_alive
                outcome = Outcome("cancelled", time.time() - run.began, state_kept=kept)
                ran = CellOutcome(outcome, kernel=self._session.life)
                await finish_despite_cancel(self._finish(place, run, ran, saves))
            raise
        except KernelError as error:
            self._runs.remove(run)
            if is_first:
                raise
            # What the cells before it did must not be lost with the answer.
            return Execution("pending", cell.handle, cell.index, notes=[error.message])
        finally:
            if announcing is not None:
                announcing.cancel()
        if not run.began:
            self._runs.remove(run)
            return self._describe_not_begun(run, ran)
        return await finish_despite_cancel(self._finish(place, run, ran, saves))

    def _find_interval(self) -> float:
        """Return the seconds between two saves of what cells say; 0 if there are none."""
        if self.options.check:
            return 0.0
        interval = self.book.host.landing_interval
        return self.book.caller.settings.run_save_interval if interval is None else interval

    def _make_collector(self) -> Collector:
        store = self._sessions.store
        return Collector(
            limit_bytes=self._sessions.settings.notebook_output_bytes,
            spill=None
            if store is None
            else lambda: store.stamp(self.book.origin).create(name="outputs"),
        )

    def _describe_unreached(self, cell: Cell) -> Execution:
        notes = []
        if self.stop.is_late:
            notes = [f"The time limit of {self.stop.time_limit:g} s was over"]
        check = None
        if self.options.check and not cell.output_types and cell.execution_count is None:
            check = OutputCheck("unstored")  # as it was, so it is
        return Execution("pending", cell.handle, cell.index, notes=notes, check=check)

    def _describe_not_begun(self, run: CellRun, ran: CellOutcome) -> Execution:
        """Describe a cell that its kernel never got."""
        cell, outcome = run.cell, ran.outcome
        if self.stop.is_late:
            return self._describe_unreached(cell)
        if run.notes:  # the parameters that it was to have could not be set
            error = outcome.error
            error = bound_error(error, ANSWERED_ERROR) if error else None
            about = CellError(error.ename, error.evalue, []) if error else None
            return Execution(
                outcome.status, cell.handle, cell.index, error=about, notes=list(run.notes)
            )
        note = "It was stopped before its turn came"
        if ran.stopped_by:
            note = f"The kernel was {ran.stopped_by} before its turn came"
        return Execution("cancelled", cell.handle, cell.index, notes=[note])

    # -- in the kernel ----------------------------------------------------------------------

    async def _execute(
        self, place: int, run: CellRun, saves: InterimSaves, *, is_first: bool
    ) -> CellOutcome:
        cell, parameters = run.cell, self._parameters
        if is_first and parameters and parameters.cell is None:
            ran = await self._inject_parameters(run)
            if ran.outcome.status != "ok":
                return ran
        if cell.source.strip():
            ran = await self._send(place, run, saves, is_first=is_first)
        else:
            # As with nbclient, no kernel gets it, and what it holds stays.
            run.begin(self._session.life)
            ran = CellOutcome(Outcome("ok", 0.0), kernel=self._session.life)
        if ran.outcome.status == "ok" and parameters.cell is cell:
            failed = (await self._inject_parameters(run)).outcome
            if failed.status != "ok":
                outcome = replace(ran.outcome, status=failed.status, error=failed.error)
                outcome = replace(outcome, exit=failed.exit, state_kept=failed.state_kept)
                return replace(ran, outcome=outcome)
        return ran

    async def _send(
        self, place: int, run: CellRun, saves: InterimSaves, *, is_first: bool
    ) -> CellOutcome:
        """Have the kernel run a cell."""
        cell, parameters, session = run.cell, self._parameters, self._session
        options = self.options

        def make_code(info: KernelInfo) -> Code:
            if parameters and is_first:
                parameters.source(info.language)  # refused before anything ran, if at all
            if self.stop.is_set:
                raise _StoppedEarly  # while the kernel was being started
            run.begin(session.life)
            run.kernel = _describe_kernel(info)
            code = self._sessions.make_notebook_code(
                cell.source,
                cell.id,
                session,
                self.book.real,
                info,
                has_input=bool(options.answers) or options.ask is not None,
            )
            if options.nested is not None:
                return replace(code, metadata={NESTED_REQUEST: options.nested})
            return code

        listener = self._make_listener(place, run, saves)
        timeout = options.timeout or 0
        # The cell that waits for a nested one may be another client's, such as a tab's.
        try:
            if options.nested is not None and session.has_running_cell:
                return await session.run_nested(
                    make_code, timeout=timeout, on_event=listener, caller=cell.handle
                )
            return await session.run(
                make_code,
                timeout=timeout,
                on_event=listener,
                answers=options.answers,
                ask=None if options.ask is None else self.ask,
                stop=self.stop.event,
                caller=cell.handle,
            )
        except _StoppedEarly:
            return CellOutcome(Outcome("cancelled", 0.0))

    async def _inject_parameters(self, run: CellRun) -> CellOutcome:
        """Set the parameters, as a part of the cell that they belong to."""
        sent: list[tuple[str, str]] = []

        def make_code(info: KernelInfo) -> Code:
            source = self._parameters.source(info.language)
            sent.append((source, info.language))
            return Code(source, silent=True, store_history=False)

        ran = await self._session.run(
            make_code, timeout=self.options.timeout or 0, stop=self.stop.event
        )
        if sent:
            source, language = sent[0]
            run.notes += self._parameters.notes(language)
            if run.began:
                run.injected = (source, ran)  # on record after the cell, as it happened
            else:
                self._record.record_parameters(source, ran)
        if ran.outcome.status != "ok":
            error = ran.outcome.error
            why: str = ran.outcome.status
            if error:  # quoted: the kernel says what it likes
                why = json.dumps(f"{error.ename}: {error.evalue}"[:200], ensure_ascii=False)
            run.notes.append(f"The parameters could not be set: {why}")
        return ran

    def _make_listener(
        self, place: int, run: CellRun, saves: InterimSaves
    ) -> Callable[[KernelEvent], None]:
        is_ours = not self.book.host.keeps_widgets

        def listen(event: KernelEvent) -> None:
            if not isinstance(event, _OUTPUTS):
                return
            if is_ours and self._widgets.catch(event, run.cell.handle):
                saves.touch()
                return
            run.collector.feed(event)
            if isinstance(event, DisplayEvent) and event.display_id:
                # What has an id changes wherever it is shown, here or in an earlier cell.
                for earlier in self._runs:
                    if earlier is not run and earlier.collector.update(event):
                        earlier.is_unsaved = earlier.is_changed = True
            saves.touch()
            if isinstance(event, StreamEvent):
                self.report_cell(place, **describe_stream(event))
            elif isinstance(event, DisplayEvent) and not event.is_update:
                self.report_cell(place, **describe_display(event))

        return listen

    def _begin_announcing(self, run: CellRun) -> None:
        self._announcing = asyncio.ensure_future(self._announce(run))

    async def _announce(self, run: CellRun) -> None:
        """Put on record that a cell runs, since it takes long."""
        async with self._landing_turn:  # what ended is not on record as running after that
            if run.began and not run.is_over:
                with contextlib.suppress(CellwrightError, OSError):
                    await self.book.hub.in_file_thread(self._record.announce, run)

    # -- into the notebook ------------------------------------------------------------------

    async def _land_so_far(self, run: CellRun) -> bool:
        await self.land_waiting()
        async with self._landing_turn:
            outputs = self._take_outputs([run])
            try:
                await self.book.hub.in_file_thread(self._record.land_so_far, run, outputs)
            except (CellwrightError, OSError):
                for each in outputs:
                    each.run.is_unsaved = True
                return False  # the next one may work, and the last one reports
        return True

    def _take_outputs(self, runs: Sequence[CellRun]) -> list[OutputsSoFar]:
        """Return what has not landed yet: of these cells, and of earlier ones that they changed."""
        if not self.book.host.keeps_widgets:
            self._record.widgets = self._widgets.snapshot()
        landing = frozenset(runs)
        return [each.take_outputs() for each in self._runs if each in landing or each.is_unsaved]

    async def _finish(
        self, place: int, run: CellRun, ran: CellOutcome, saves: InterimSaves
    ) -> Execution:
        await saves.end()
        caught = self._widgets.end_cell(run.cell.handle)
        if caught:
            await self._sessions.tell_widgets(self._session, caught)
            run.notes += map(_describe_caught, caught.values())
        limit = self.stop.time_limit
        if self.stop.is_late and ran.outcome.status == "cancelled":
            ran = replace(ran, outcome=replace(ran.outcome, status="timed_out"))
            run.collector.feed(StreamEvent("stderr", f"\n{describe_timeout(limit)}\n"))
            run.notes.append(f"That was the time limit of {limit:g} s for the run")
        run.end(ran.outcome)
        if ran.outcome.error is not None:
            short = bound_error(ran.outcome.error, ANSWERED_ERROR)
            ran = replace(ran, outcome=replace(ran.outcome, error=short))
        ended = _EndedCell(place, run, ran, [*run.notes, *self._list_notes(ran)])
        self._waiting.append(ended)
        if self._may_wait(ended):
            await self._land_later(run)
            return self._describe(ended, run.collector.outputs(), Landed())
        await self._land_together()  # in a `finish_despite_cancel` already
        self._report_failed_landing()
        return self.executions[place]

    def _may_wait(self, ended: _EndedCell) -> bool:
        """Whether a cell that is over may land with the next ones, to save a turn of the disk.

        What comes seldom lands at once. Whatever waits is in the file after at most the interval.
        """
        interval, outcome = self._find_interval(), ended.ran.outcome
        if not interval or self.book.host.landing_interval is not None:  # a person watches
            return False
        is_last = ended.place + 1 == len(self.executions) or self.stop.is_set
        if is_last or outcome.status != "ok" or ended.run.injected or self.options.nested:
            return False
        # What has to do with the death of a kernel is on record before anything else runs.
        if ended.ran.replaced or self._session.executions <= 1:
            return False
        rest = max(interval / 2, REST * self._landing_cost)
        return time.monotonic() - self._landed_at < rest

    async def _land_later(self, run: CellRun) -> None:
        """Land what waits after a while; the first cell is put on record now, should we die."""
        if self._landing_timer is not None:
            return
        rest = REST * self._landing_cost + self._landed_at - time.monotonic()
        self._landing_timer = asyncio.get_running_loop().call_later(
            max(self._find_interval() / 2, rest), self._begin_landing
        )
        async with self._landing_turn:
            if self._waiting:  # else they have landed meanwhile
                with contextlib.suppress(CellwrightError, OSError):
                    await self.book.hub.in_file_thread(self._record.announce, run)

    def _begin_landing(self) -> None:
        self._landing_task = asyncio.ensure_future(self._land_together())

    async def land_waiting(self) -> None:
        """Land the cells that are over and wait for that."""
        if self._waiting or self._landing_turn.locked():
            await finish_despite_cancel(self._land_together())

    def _report_failed_landing(self) -> None:
        """Raise what went wrong in a landing, and is not an error of ours."""
        if self._landing_failure is not None:
            raise self._landing_failure

    async def _land_together(self) -> None:
        try:
            await self._land_all()
        except Exception as error:  # noqa: BLE001  # raised to the caller of the run
            self._landing_failure = error

    async def _land_all(self) -> None:
        async with self._landing_turn:
            if self._landing_timer is not None:
                self._landing_timer.cancel()
                self._landing_timer = None
            ended, self._waiting = self._waiting, []
            if not ended:
                return
            began = time.monotonic()
            outputs = self._take_outputs([each.run for each in ended])
            landed = await self.book.hub.in_file_thread(self._land, ended, outputs)
            for each, execution in zip(ended, landed, strict=True):
                self.executions[each.place] = execution
            self._landed_at = time.monotonic()
            self._landing_cost = self._landed_at - began

    def _land(
        self, ended: Sequence[_EndedCell], outputs: Sequence[OutputsSoFar]
    ) -> list[Execution]:
        """Land the outputs of cells that are over, and describe what became of them; blocks."""
        own = {each.run: each.outputs for each in outputs}
        is_orphan = self._follows_a_death(ended[-1].ran)
        landed = self._record.land([(each.run, each.ran) for each in ended], outputs)
        return [
            self._describe(each, own[each.run], found, is_orphan=is_orphan)
            for each, found in zip(ended, landed, strict=True)
        ]

    def _describe(
        self,
        ended: _EndedCell,
        outputs: list[dict[str, Any]],
        landed: Landed,
        *,
        is_orphan: bool = False,
    ) -> Execution:
        run, outcome = ended.run, ended.ran.outcome
        cell = run.cell
        lost, replay, told = self._find_loss(cell, ended.ran, is_orphan=is_orphan)
        error = None
        if outcome.error is not None:
            traceback = strip_traceback(outcome.error.traceback)
            line = find_failing_line(traceback, run.count)
            error = CellError(outcome.error.ename, outcome.error.evalue, traceback, line)
        return Execution(
            outcome.status,
            cell.handle,
            cell.index,
            outputs=outputs,
            seconds=outcome.seconds,
            count=run.count,
            error=error,
            expected=(
                outcome.status == "error"
                or (outcome.status == "ok" and find_error_output(outputs) is not None)
            )
            and _expects_error(cell),
            saved=landed.saved,
            stale=landed.stale,
            save_error=landed.save_error,
            artifact=landed.artifact,
            state_kept=outcome.state_kept,
            lost=lost,
            replay=replay,
            notes=[*ended.notes, *landed.notes, *told],
        )

    def _follows_a_death(self, ran: CellOutcome) -> bool:
        """Whether the last kernel died with its engine, under a cell; this is the first after it."""
        if self._session.executions > 1 or self.options.check:
            return False
        from cellwright.workspace.staleness import find_previous_life

        executions = self.book.list_executions()
        # Which need not be the last on record: short cells before it may have landed after that.
        life = find_previous_life(executions, ran.kernel)
        return any(each.status == "running" and each.kernel == life for each in executions)

    def _find_loss(
        self, cell: Cell, ran: CellOutcome, *, is_orphan: bool
    ) -> tuple[list[str], list[str], list[str]]:
        """After a kernel is gone, find whose state went with it, and the way back."""
        outcome = ran.outcome
        if self.options.check or (outcome.state_kept and not ran.replaced and not is_orphan):
            return [], [], []
        from cellwright.workspace import staleness

        notebook, executions = self._notebook, self.book.list_executions()
        life = ran.kernel
        if outcome.state_kept:  # it was found dead, and this cell ran in a new one
            life = staleness.find_previous_life(executions, ran.kernel) or ""
        lost = staleness.find_lost_cells(notebook, executions, life)
        if cell.handle in lost and outcome.state_kept:
            lost.remove(cell.handle)  # it has just run
        cells = notebook.cells
        replay = [
            cells[index].handle for index in staleness.find_replay_cells(notebook, executions, cell)
        ]
        language = staleness.find_language(notebook)
        return lost, replay, [staleness.describe_loss(language, lost, replay, cell.handle)]

    def _list_notes(self, ran: CellOutcome) -> list[str]:
        outcome = ran.outcome
        notes = []
        if ran.replaced:
            notes.append(
                "The kernel had died; this cell ran in a new one, without earlier variables"
            )
        if outcome.status == "died":
            notes += [f"The kernel died, {outcome.exit}; its variables are lost", NOTHING_AGAIN]
        elif ran.stopped_by:
            notes.append(
                f"The kernel was {ran.stopped_by} while the cell ran; its variables are lost"
            )
        elif outcome.status in ("timed_out", "cancelled"):
            kept = "kept" if outcome.state_kept else "lost, since it had to be ended"
            notes.append(f"The kernel was interrupted; its variables are {kept}")
        if outcome.stdin_refused or (outcome.error and outcome.error.ename == _NO_INPUT):
            notes.append("The cell called input(), and there was no answer to give it")
        if outcome.error is not None:
            said = f"{outcome.error.ename} {outcome.error.evalue}"
            notes += filter(None, [explain_withheld(self._withheld, said)])
        notes += [f"Part of the output was missed: {reason}" for reason in outcome.missed]
        return notes + self._sessions.take_notes(self._session)


def _expects_error(cell: Cell) -> bool:
    """Whether a tag says that the cell raises."""
    tags = cell.metadata.get("tags")
    return isinstance(tags, list) and _EXPECTS_ERROR in tags


def _describe_caught(outputs: Sequence[dict[str, Any]]) -> str:
    """Say what an Output widget caught: it is not among the outputs of the cell."""
    texts = [str(each.get("text") or each.get("evalue") or each["output_type"]) for each in outputs]
    text = json.dumps("".join(texts)[-_CAUGHT:], ensure_ascii=False)
    return f"An Output widget has {len(outputs)} outputs that the cell does not show: {text}"


def _describe_kernel(info: KernelInfo) -> dict[str, Any]:
    """Describe a kernel as the metadata of a notebook does; nothing if it says nothing itself."""
    if not info.language_info:
        return {}
    kernelspec = {
        "display_name": info.display_name or info.name,
        "language": info.language,
        "name": info.name,
    }
    return {"kernelspec": kernelspec, "language_info": dict(info.language_info)}
