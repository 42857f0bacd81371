"""Cells that a person runs in an editor: heard in their kernel, and landed if the editor goes.

While its page is there, the page shows what a cell says. What comes after the page was closed,
loaded again or has crashed would be lost with it: so the engine listens from the beginning, and
puts all of it into the notebook as soon as the page that ran the cell is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict

from cellwright.errors import CellwrightError
from cellwright.kernel.events import Finished, Started
from cellwright.kernel.session import CellOutcome, Outcome
from cellwright.outputs.collector import Collector
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, RawPiece, StreamEvent
from cellwright.workspace.runs.execution import Execution, Executions
from cellwright.workspace.runs.landing import CellRun, RunRecord
from cellwright.workspace.runs.run import Run, RunOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.engine.connection import Connection
    from cellwright.engine.live import Editor
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.remote.follower import KernelFollower
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.hosts.host import KernelAddress
    from cellwright.workspace.hub import Hub
    from cellwright.workspace.notebook import OpenNotebook

    Follow = Callable[[KernelAddress, Callable[[str, KernelEvent], object]], KernelFollower]

log = logging.getLogger("cellwright.engine")

_OUTPUTS = (StreamEvent, DisplayEvent, RawPiece, ErrorEvent, ClearEvent)
_STRANGERS_KEPT = 20
_FILE_INTERVAL = 2.0


class HeardCell:
    """What a kernel has said about one request, and whose cell that is, once it is known.

    `page` is where the person runs it; None once that is gone.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.collector = Collector(limit_bytes=limit_bytes)
        self.began = 0.0
        self.count: int | None = None
        self.life = ""
        self.finished: Finished | None = None
        self.ended = 0.0
        self.news = asyncio.Event()
        self.page: Connection | None = None
        self.book: OpenNotebook | None = None
        self.told: ExecutionRecord | None = None

    def is_of(self, real: str | None, handle: str | None = None) -> bool:
        """Whether it is a cell of that notebook, and has that handle."""
        if self.book is None or self.told is None:
            return False
        return real in (None, self.book.real) and handle in (None, self.told.cell)

    def take(self, event: KernelEvent, life: str) -> None:
        """Take what the kernel says next."""
        if isinstance(event, Started):
            self.began, self.count, self.life = time.time(), event.execution_count, life
        elif isinstance(event, Finished):
            self.finished, self.ended = event, time.time()
            self.count = event.execution_count or self.count
        elif isinstance(event, _OUTPUTS):
            self.collector.feed(event)
        self.news.set()


class FollowedKernel:
    """A kernel that editors run notebooks in, and the cells that it was heard to run."""

    def __init__(self, hub: Hub, address: KernelAddress, follow: Follow) -> None:
        self.editors: set[Editor] = set()
        self.cells: OrderedDict[str, HeardCell] = OrderedDict()
        self.follower = follow(address, self._take)
        self._hub = hub
        self._opening: asyncio.Task[bool] | None = None

    def listen(self) -> None:
        """Begin to listen, or try again if that did not work."""
        opening = self._opening
        if opening is None or (opening.done() and not opening.cancelled() and not opening.result()):
            self._opening = asyncio.ensure_future(self._open())

    def find(self, request: str) -> HeardCell:
        """Return what is heard about a request; the kernel or the page may be the first to say."""
        found = self.cells.get(request)
        if found is None:
            found = self.cells[request] = HeardCell(self._hub.settings.notebook_output_bytes)
            strangers = [name for name, cell in self.cells.items() if cell.book is None]
            for name in strangers[:-_STRANGERS_KEPT]:
                del self.cells[name]
        return found

    async def close(self) -> None:
        """Listen no more."""
        if self._opening is not None:
            self._opening.cancel()
        await self.follower.close()

    async def _open(self) -> bool:
        try:
            await self.follower.open()
        except CellwrightError as error:
            log.info("cannot listen to a kernel: %s", error)
            return False
        return True

    def _take(self, request: str, event: KernelEvent) -> None:
        self.find(request).take(event, self.follower.process)


class PersonRuns:
    """The cells that people run in all editors; for the event loop."""

    def __init__(self, hub: Hub, follow: Follow | None = None) -> None:
        self._hub = hub
        self._follow = follow or _follow
        self._kernels: dict[tuple[str, str], FollowedKernel] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.is_leaving = False  # the engine is about to end: kernels of others stay as they are
        hub.close_at_end(self._leave)

    def attend(self, editor: Editor) -> None:
        """Listen to the kernel of an editor, and no longer to one that it does not use any more."""
        address = editor.kernel
        place = None if address is None else (address.server, address.kernel_id)
        for name, kernel in list(self._kernels.items()):
            if name != place and editor in kernel.editors:
                kernel.editors.discard(editor)
                self._close_unused(name)
        if place is None or address is None or self.is_leaving:
            return
        if place not in self._kernels:
            self._kernels[place] = FollowedKernel(self._hub, address, self._follow)
        self._kernels[place].editors.add(editor)
        self._kernels[place].listen()

    def claim(self, editor: Editor, caller: Caller, request: str, told: ExecutionRecord) -> None:
        """Note which cell a request of a page is for; the page may be one that came back."""
        kernel = next((each for each in self._kernels.values() if editor in each.editors), None)
        if kernel is None:
            return
        cell, book = kernel.find(request), caller.open(editor.path)
        if cell.page is None:
            for older, each in list(kernel.cells.items()):
                if each.page is editor.connection and each.is_of(book.real, told.cell):
                    self._land(kernel, older, is_taken=True)  # the page shows the new one only
        cell.page, cell.book, cell.told = editor.connection, book, told
        cell.news.set()

    def forget(self, editor: Editor, handle: str) -> None:
        """Note that a page has shown all of a cell: it is the page's to keep."""
        for kernel in self._kernels.values():
            for request, cell in list(kernel.cells.items()):
                if cell.page is editor.connection and cell.is_of(None, handle):
                    del kernel.cells[request]

    def move(self, client: Connection, caller: Caller, old: str, path: str) -> None:
        """Note that a page calls a notebook otherwise now: what it runs there stays with it."""
        for kernel in self._kernels.values():
            for cell in kernel.cells.values():
                if cell.page is client and cell.is_of(old):
                    cell.book = caller.open(path)

    def leave(self, editor: Editor, real: str) -> None:
        """Note that a page is gone; what it ran and is not over lands by itself from now on."""
        for name, kernel in list(self._kernels.items()):
            for request, cell in list(kernel.cells.items()):
                if cell.page is editor.connection and cell.is_of(real):
                    self._land(kernel, request)
            kernel.editors.discard(editor)
            self._close_unused(name)

    def finish(self, kernel: FollowedKernel, request: str) -> None:
        """Forget a cell that has landed."""
        kernel.cells.pop(request, None)
        for name, each in list(self._kernels.items()):
            if each is kernel:
                self._close_unused(name)

    def _land(self, kernel: FollowedKernel, request: str, *, is_taken: bool = False) -> None:
        kernel.cells[request].page = None
        self._hub.runs.start(LeftRun(self, kernel, request, is_taken=is_taken))

    def _close_unused(self, name: tuple[str, str]) -> None:
        kernel = self._kernels[name]
        if not kernel.editors and all(cell.book is None for cell in kernel.cells.values()):
            del self._kernels[name]
            closing = asyncio.ensure_future(kernel.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _leave(self) -> None:
        self.is_leaving = True
        for kernel in self._kernels.values():
            for cell in kernel.cells.values():
                cell.news.set()
            await kernel.close()


class LeftRun(Run):
    """A cell that a person began, and whose page is gone: its outputs land in the notebook.

    If the notebook is opened again meanwhile, they land there. If the page comes back by itself,
    after its connection was broken, the rest is its own again. A cell that is taken, since the
    person has run it again, is only put on record.
    """

    KIND = "run"

    def __init__(
        self, runs: PersonRuns, kernel: FollowedKernel, request: str, *, is_taken: bool
    ) -> None:
        heard = kernel.cells[request]
        book, told = heard.book, heard.told
        assert book is not None and told is not None  # noqa: S101, PT018  # a page has claimed it
        status = "running" if heard.began else "pending"
        pending = [Execution(status, told.cell, told.index)]
        super().__init__(book.real, book.caller.actor, pending, RunOptions(), [told.cell])
        self.origin = book.origin
        self._runs = runs
        self._kernel = kernel
        self._request = request
        self._heard = heard
        self._told = told
        self._book = book
        self._run: CellRun | None = None
        self._record: RunRecord | None = None
        self._is_stopped = False
        self._is_taken = is_taken
        self.cells[told.cell] = status

    def answer(self) -> Executions:
        """Return what is known of the cell now."""
        execution = self.executions[0]
        if not self.is_over:
            execution = execution.replace(outputs=self._heard.collector.outputs())
        return Executions([execution], run=self.id, done=self.is_over)

    def cancel(self) -> bool:
        """Interrupt the kernel; what the cell has said until then lands all the same."""
        self._is_stopped = not self.is_over
        self._heard.news.set()
        return self._is_stopped

    def give_up(self, handle: str) -> None:
        """Land no more: a person runs the cell again."""
        if handle == self._told.cell:
            self._is_taken = True
            if self._run is not None:
                self._run.is_taken = True

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        hub, real = self._book.hub, self._book.real
        self.state = "running"
        try:
            with contextlib.suppress(CellwrightError):
                await hub.in_file_thread(hub.leases.own, real)
            yield
        finally:
            if self._record is not None and self._record.needs_end:
                await hub.in_file_thread(self._record.end)
            self._runs.finish(self._kernel, self._request)
            if hub.find_session(real) is None and not hub.is_open(real):
                await hub.in_file_thread(hub.leases.release, real)

    def report_cell(self, place: int, **facts: Any) -> None:
        """Report something about the cell, by its handle."""
        del place
        self.report({"cell": self._told.index, "handle": self._told.cell, **facts})

    async def _run_cell(self, place: int) -> Execution:
        heard, hub = self._heard, self._book.hub
        self.report_cell(place, status=self.cells[self._told.cell])
        has_news, due = True, 0.0
        while heard.finished is None and heard.page is None and not self._runs.is_leaving:
            heard.news.clear()
            if self._is_stopped:
                self._is_stopped = False
                with contextlib.suppress(CellwrightError):
                    await self._kernel.follower.interrupt()
            if heard.began and self.cells[self._told.cell] == "pending":
                self.report_cell(place, status="running")
            is_due = time.monotonic() >= due
            if heard.began and has_news and is_due and not self._is_taken:
                with contextlib.suppress(CellwrightError, OSError):
                    await hub.in_file_thread(self._land_so_far)
                has_news = False
                due = time.monotonic() + (self._book.host.landing_interval or _FILE_INTERVAL)
            is_waiting = has_news and heard.began and not self._is_taken
            has_news |= await self._wait_for_news(due - time.monotonic() if is_waiting else None)
        if heard.page is not None or not heard.began:
            # The page is back, or the kernel refused the cell, since one before it failed.
            return self.executions[place].replace(status="cancelled")
        return await hub.in_file_thread(self._land)

    async def _wait_for_news(self, seconds: float | None) -> bool:
        """Wait until the kernel says something, or so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._heard.news.wait()
        return self._heard.news.is_set()

    def _land_so_far(self) -> None:
        record, run = self._prepare()
        record.land_so_far(run, [run.take_outputs()])

    def _land(self) -> Execution:
        heard, finished = self._heard, self._heard.finished
        record, run = self._prepare()
        seconds = (heard.ended or time.time()) - heard.began
        status = "running" if finished is None else finished.status
        outcome = Outcome(status, seconds, heard.count)  # type: ignore[arg-type]  # left running
        if finished is None:
            record.land_so_far(run, [run.take_outputs()])
            return self.executions[0]
        run.end(outcome)
        outputs = run.take_outputs()
        ran = CellOutcome(outcome, kernel=heard.life)
        (landed,) = record.land([(run, ran)], [outputs])
        return Execution(
            finished.status,
            run.cell.handle,
            run.cell.index,
            outputs=outputs.outputs,
            seconds=seconds,
            count=heard.count,
            saved=landed.saved,
            stale=landed.stale,
            save_error=landed.save_error,
            artifact=landed.artifact,
            notes=list(landed.notes),
        )

    def _prepare(self) -> tuple[RunRecord, CellRun]:
        """Return what lands outputs where the notebook lives now; it may have been opened since."""
        book = self._book.caller.open(self._book.name)
        if self._run is None:
            self._run = CellRun(self._find_cell(book), self._heard.collector)
            self._run.begin(self._heard.life)
            self._run.began, self._run.is_taken = self._heard.began, self._is_taken
        if self._record is None or book.host is not self._book.host:
            if self._record is not None and self._record.needs_end:
                self._record.end()
            self._book = book
            self._record = RunRecord(book, book.host.read().state)
        return self._record, self._run

    def _find_cell(self, book: OpenNotebook) -> Cell:
        """Find the cell, with the source that the kernel got; it may not have been saved so."""
        from cellwright.document.notebook import Notebook

        handle, source = self._told.cell, self._told.source or ""
        notebook = Notebook.of_state(book.host.read().state)
        found = next((cell for cell in notebook.cells if cell.handle == handle), None)
        if found is None and notebook.nbformat_minor < 5:  # there a page makes the ids up
            found = next((cell for cell in notebook.cells if cell.source == source), None)
        if found is None:
            notebook.apply([{"op": "insert", "source": source, "id": handle}])
            return notebook.cells[-1]
        if found.source != source:
            notebook.apply([{"op": "replace", "cell": found.index, "source": source}])
        return notebook.cells[found.index]


def _follow(
    address: KernelAddress, on_event: Callable[[str, KernelEvent], object]
) -> KernelFollower:
    from cellwright.kernel.remote.follower import KernelFollower

    return KernelFollower(address.server, address.token, address.kernel_id, on_event)
