"""`Run`: cells that run one after the other; started by one caller, followed or stopped by any.

There is one way to run cells, for `eval`, for notebooks, for checks and for cells that run cells:
`Run.execute`. Everything here belongs to one event loop. A run continues when the caller who
started it stops waiting; only `cancel` ends it early.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections import deque

from cellwright.errors import (
    CellwrightError,
    ExecutionCancelled,
    InvalidEdit,
    KernelDied,
    RunNotFound,
    explain_exception,
)
from cellwright.workspace.api.answers import RunFailure, RunView
from cellwright.workspace.api.values import KW_ONLY, Value
from cellwright.workspace.runs.execution import Execution, Executions
from cellwright.workspace.runs.recorder import measure_display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from typing import Any, ClassVar, Literal, Self, TypeVar

    from cellwright.kernel.events import InputRequested
    from cellwright.workspace.activity import NotebookEvents
    from cellwright.workspace.api.answers import EvalAnswer
    from cellwright.workspace.api.requests import Ask, Progress, Request

    Event = dict[str, Any]
    Listener = Callable[[Event], object]
    RunState = Literal["waiting", "running", "done", "failed"]
    T = TypeVar("T")

_EVENTS_KEPT = 2_000
_TEXT_KEPT = 2**18
# A display larger than this reaches those who watch, but is not kept for those who come later.
_DISPLAY_KEPT = 2**15
_ENDED_KEPT = 100
_ANSWERS_KEPT = 10  # they hold outputs, which may be large; those of notebooks are in their files


class RunOptions(Value):
    """How cells are run; the fields are those of `run`, `edit` and `eval`.

    `nested` is the request of a running cell that waits for these cells. `copy_of` is the notebook
    that a copy was made of, in whose folder it runs; its kernel ends with the run, unless that was
    stopped and `keep_kernel` says so.
    """

    _: KW_ONLY
    kernel: str | None = None
    server: str | None = None
    server_token: str | None = None
    timeout: float | None = 0
    time_limit: float = 0
    restart: bool = False
    keep_going: bool = False
    check: bool = False
    parameters: Mapping[str, Any] | None = None
    answers: Sequence[str] = ()
    detach: float | None = None
    progress: Progress | None = None
    ask: Ask | None = None
    nested: str | None = None
    copy_of: str | None = None
    keep_kernel: bool = False

    @property
    def has_own_kernel(self) -> bool:
        """Whether the run has a kernel for itself, which ends with it."""
        return self.check or self.copy_of is not None

    @classmethod
    def of(cls, request: Request[Any]) -> Self:
        """Take the options of a request.

        Raises:
            InvalidEdit: a number of seconds is negative.
        """
        names = [name for name in cls.FIELDS if name in request.FIELDS]
        options = cls(**{name: getattr(request, name) for name in names})
        for name in ("timeout", "time_limit"):
            seconds = getattr(options, name)
            if seconds is not None and seconds < 0:
                raise InvalidEdit(f"a {name} of {seconds:g} s", hint="0 is no limit")
        if options.detach is not None and options.detach < 0:
            raise InvalidEdit(f"`detach` is {options.detach:g}", hint="Seconds to wait, from 0")
        return options


class StopSignal:
    """Set when a run has to end early: it was stopped, or its time limit is over (`is_late`)."""

    def __init__(self, time_limit: float = 0) -> None:
        self.time_limit = time_limit
        self.is_late = False
        self.event = asyncio.Event()

    @property
    def is_set(self) -> bool:
        """Whether the run has to end."""
        return self.event.is_set()

    def set(self) -> None:
        """Stop the run."""
        self.event.set()

    @contextlib.contextmanager
    def watch_clock(self) -> Iterator[None]:
        """Count the time limit inside this block."""
        timer = None
        if self.time_limit:
            timer = asyncio.get_running_loop().call_later(self.time_limit, self._expire)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def _expire(self) -> None:
        self.is_late = True
        self.event.set()


class Run:
    """Cells that run one after the other, from the call until the run is forgotten.

    `executions` is what became of each cell so far. `error` is why there is no answer. `cells`
    has the status of each cell by its handle, for notebooks. Subclasses say what a cell is:
    `_open` prepares for cells inside a block, `_run_cell` runs one.
    """

    KIND: ClassVar[str] = ""
    origin = ""
    """Whose run it is; see `Caller.knows`."""

    def __init__(
        self,
        subject: str,
        actor: str,
        executions: Sequence[Execution],
        options: RunOptions,
        handles: Sequence[str] = (),
    ) -> None:
        self.id = f"r{uuid.uuid4().hex[:8]}"
        self.subject = subject
        self.actor = actor
        self.options = options
        self.began = time.time()
        self.ended: float | None = None
        self.state: RunState = "waiting"
        self.cells = dict.fromkeys(handles, "pending")
        self.executions = Executions(executions, run=self.id)
        self.error: CellwrightError | None = None
        self.stop = StopSignal(options.time_limit)
        self.missed_events = 0
        self._watchers = 0
        self._has_answer = False
        self._ended_as = "ok"
        self._events: deque[Event] = deque()
        self._text = 0
        self._listeners: list[Listener] = []
        self._task: asyncio.Task[None] | None = None
        self._has_begun = False

    # -- running cells ----------------------------------------------------------------------

    async def execute(self) -> None:
        """Run the cells in order, until one fails or the run is stopped."""
        async with self._open():
            for place in range(len(self.executions)):
                if self.stop.is_set:
                    break
                execution = await self._run_cell(place)
                self.executions[place] = execution
                self.report_cell(
                    place, status=execution.status, seconds=round(execution.seconds, 3)
                )
                if execution.status == "pending" or self._is_last(place, execution):
                    break

    def _open(self) -> AbstractAsyncContextManager[None]:
        """Wait for the turn of this run, set `state`, and prepare for cells inside this block."""
        raise NotImplementedError

    async def _run_cell(self, place: int) -> Execution:
        """Run one cell to its end."""
        raise NotImplementedError

    def _is_last(self, place: int, execution: Execution) -> bool:
        """Whether the run is over with this cell."""
        del place
        return self.stop.is_set or (execution.is_failure and not self.options.keep_going)

    def answer(self) -> Executions | EvalAnswer:
        """Return what is known of the cells now; what comes later does not change it."""
        raise NotImplementedError

    def report_cell(self, place: int, **facts: Any) -> None:
        """Report something about a cell."""
        self.report({"cell": place, **facts})

    async def ask(self, request: InputRequested) -> str | None:
        """Ask the caller for a line of input, while they wait for the run."""
        ask = self.options.ask
        return await ask(request) if ask is not None and self._watchers else None

    # -- watching it ------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.ended is not None

    @property
    def status(self) -> str:
        """How it is, in the words that cells have; of an ended one, its first failure."""
        if not self.is_over:
            return "pending" if self.state == "waiting" else "running"
        return self._ended_as

    def _find_end(self) -> str:
        if isinstance(self.error, ExecutionCancelled):
            return "cancelled"
        if self.error is not None:
            return "died" if isinstance(self.error, KernelDied) else "error"
        failed = next((each.status for each in self.executions if each.is_failure), None)
        if failed is None and any(each.status == "pending" for each in self.executions):
            return "timed_out" if self.stop.is_late else "cancelled"
        return failed or "ok"

    @property
    def last_answer(self) -> Executions | EvalAnswer | None:
        """The answer of a run that has ended well, as long as it is kept."""
        return self.answer() if self._has_answer else None

    def report(self, event: Event) -> None:
        """Tell those who watch what happened, and keep it for those who watch later."""
        if "handle" in event and "status" in event:
            self.cells[event["handle"]] = event["status"]
        kept = event
        if _measure_event(event) > len(event.get("text", "")) + _DISPLAY_KEPT:
            kept = {name: value for name, value in event.items() if name != "output"}
        self._events.append(kept)
        self._text += _measure_event(kept)
        while len(self._events) > _EVENTS_KEPT or self._text > _TEXT_KEPT:
            self._text -= _measure_event(self._events.popleft())
            self.missed_events += 1
        for listener in list(self._listeners):
            listener(event)

    def watch(self, listener: Listener, *, from_start: bool = False) -> Callable[[], None]:
        """Report what happens from now on, or from the start; returns a function that ends it."""
        if from_start:
            if self.missed_events:
                listener({"missed": self.missed_events})
            for event in self._events:
                listener(event)
        self._listeners.append(listener)

        def unwatch() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unwatch

    async def follow(
        self,
        progress: Progress | None,
        seconds: float | None = None,
        *,
        from_start: bool = False,
        stops: bool = True,
    ) -> None:
        """Wait for the end, or so long, and report what happens meanwhile.

        With `stops`, cancelling this call stops the run, and waits until it has.
        """
        unwatch = self.watch(progress, from_start=from_start) if progress is not None else None
        self._watchers += 1
        try:
            await self.wait(seconds)
        except asyncio.CancelledError:
            if stops:
                self.cancel()
                await self.wait()
            raise
        finally:
            self._watchers -= 1
            if unwatch is not None:
                unwatch()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, or so long; returns whether it has ended."""
        if self._task is not None and not self.is_over:
            await asyncio.wait([self._task], timeout=seconds)
        return self.is_over

    def cancel(self) -> bool:
        """Stop it; returns whether there was anything to stop.

        The cell that runs is interrupted. A run that still waits for its turn is over at once.
        """
        if self._task is None or self.is_over:
            return False
        self.stop.set()
        # A task that has not even begun would end silently; it looks at `stop` first.
        if self.state == "waiting" and self._has_begun:
            self._task.cancel()
        return True

    def describe(self) -> RunView:
        """Return what a list of runs says of it."""
        now = self.ended if self.ended is not None else time.time()
        return RunView(
            self.id,
            self.KIND,
            self.subject,
            self.actor,
            self.state,
            self.began,
            self.ended,
            round(now - self.began, 3),
            dict(self.cells),
            RunFailure(self.error.code, self.error.message) if self.error else None,
            self.status,
        )

    def give_up(self, handle: str) -> None:
        """Land no more outputs of a cell; code that is in no notebook lands none."""

    async def land_waiting(self) -> None:
        """Land what cells that are over have said, and has not landed yet."""

    # -- for the registry -------------------------------------------------------------------

    def start(self, at_end: Callable[[Run], object]) -> None:
        """Begin, in a task of its own; `at_end` is called when it is over."""
        self._task = asyncio.ensure_future(self._run_to_end(at_end))

    def forget_answer(self) -> None:
        """Keep only that it ran, and how it ended."""
        self._has_answer = False
        self.executions.clear()
        self._events.clear()

    async def _run_to_end(self, at_end: Callable[[Run], object]) -> None:
        self._has_begun = True
        try:
            if self.stop.is_set:
                raise ExecutionCancelled  # noqa: TRY301  # it was stopped before it began
            await self.execute()
            self.state, self._has_answer = "done", True
        except (asyncio.CancelledError, CellwrightError) as error:
            is_ours = isinstance(error, CellwrightError)
            self.error, self.state = error if is_ours else ExecutionCancelled(), "failed"  # type: ignore[assignment]
        except Exception as error:  # noqa: BLE001  # a bug must reach the caller, as one
            self.error = explain_exception(error)
            self.state = "failed"
        finally:
            self._ended_as = self._find_end()
            self.ended = time.time()
            at_end(self)


class RunRegistry:
    """All runs of one process: those under way, and the last of those that ended."""

    def __init__(self, events: NotebookEvents) -> None:
        self._events = events
        self._runs: dict[str, Run] = {}
        self._active: dict[str, Run] = {}  # of these, the ones that are not over
        self._ended: deque[Run] = deque()  # and the others, in the order of their ends
        self.turns = Turns()  # one run at a time for each notebook

    def start(self, run: Run) -> None:
        """Begin a run, which is then known by its id."""
        self._runs[run.id] = self._active[run.id] = run
        run.watch(lambda event: self._publish(run, event))
        run.start(self._note_end)

    async def start_and_follow(self, run: Run) -> None:
        """Begin a run, and wait for it as its options say; raise its error, if it has one."""
        self.start(run)
        progress = run.options.progress
        if progress is not None:
            progress({"run": run.id})
        await run.follow(progress, run.options.detach)
        if run.error is not None:
            raise run.error

    def get(self, run_id: str) -> Run:
        """Return a run by its id.

        Raises:
            RunNotFound: there is none, or it has been forgotten.
        """
        run = self._runs.get(run_id)
        if run is None:
            raise RunNotFound(run_id)
        return run

    def list(self) -> list[RunView]:
        """Return all of them, the newest first."""
        return [run.describe() for run in reversed(self._runs.values())]

    def find_active(self, subject: str) -> Run | None:
        """Return what runs there, or waits to."""
        runs = list(self._active.values())  # also asked from other threads
        return next((run for run in runs if run.subject == subject), None)

    def is_busy(self, subject: str) -> bool:
        """Whether something runs there, or waits to."""
        return self.find_active(subject) is not None

    @property
    def has_active(self) -> bool:
        """Whether anything runs, or waits to."""
        return bool(self._active)

    async def land_waiting(self, subject: str) -> None:
        """Have the outputs of all cells that are over in the notebook."""
        for run in list(self._active.values()):
            if run.subject == subject:
                await run.land_waiting()

    def list_cells(self, subject: str) -> dict[str, str]:
        """Return the cells of a notebook that run or wait right now, by handle."""
        return {
            handle: status
            for run in list(self._active.values())  # also asked from other threads
            if run.subject == subject
            for handle, status in list(run.cells.items())
            if status in ("running", "pending")
        }

    def give_up(self, subject: str, handle: str) -> None:
        """Leave a cell to a person who runs it now."""
        for run in self._active.values():
            if run.subject == subject:
                run.give_up(handle)

    async def close(self) -> None:
        """Stop all runs, and wait for their end."""
        stopped = [run for run in self._active.values() if run.cancel()]
        await asyncio.gather(*(run.wait() for run in stopped))

    def _note_end(self, run: Run) -> None:
        del self._active[run.id]
        self._ended.append(run)
        self._events.publish(run.subject, "run_ended", run=run.id, state=run.state)
        if len(self._ended) > _ANSWERS_KEPT:
            self._ended[-_ANSWERS_KEPT - 1].forget_answer()
        if len(self._ended) > _ENDED_KEPT:
            del self._runs[self._ended.popleft().id]

    def _publish(self, run: Run, event: Event) -> None:
        """Tell those who watch the notebook which cells run; what they print is in the run."""
        if "status" in event:
            self._events.publish(run.subject, "cell", run=run.id, actor=run.actor, **event)


def _measure_event(event: Event) -> int:
    """The characters in an event: its text, and the texts of what it displays."""
    size = len(event.get("text", ""))
    if "output" in event:
        size += measure_display(event["output"]["data"])
    return size


class Turns:
    """Fair locks by name; a name that is not waited for costs nothing."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, list[None]]] = {}

    @contextlib.asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[None]:
        """Have the turn of that name inside this block."""
        lock, waiting = self._locks.setdefault(name, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            async with lock:
                yield
        finally:
            waiting.pop()
            if not waiting:
                del self._locks[name]


async def finish_despite_cancel(work: Coroutine[Any, Any, T]) -> T:
    """Wait for something that must not be left half done, and only then obey a cancellation."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
