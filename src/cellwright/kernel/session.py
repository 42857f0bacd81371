"""`Session`: one kernel that several callers share, one cell at a time.

A caller gets an answer in bounded time, whatever its cell does: a cell that has to stop is
interrupted first; if the kernel ignores that, its whole process tree is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass, replace
from typing import NamedTuple

from cellwright.config.defaults import INTERRUPT_GRACE
from cellwright.errors import KernelCannot, ResetInProgress, RestartLimit
from cellwright.kernel.events import CommMessage, Finished, InputRequested, Missed
from cellwright.kernel.processes import is_stopped
from cellwright.outputs.events import ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from typing import Any, Literal

    from cellwright.config.settings import Settings
    from cellwright.kernel.events import KernelEvent, KernelExit
    from cellwright.kernel.transport import Code, KernelInfo, Transport

    Start = Callable[[], Awaitable[Transport]]
    OnComm = Callable[[CommMessage, str | None], object]
    State = Literal["new", "idle", "busy", "dead", "closed"]
    Status = Literal["ok", "error", "timed_out", "cancelled", "died"]
    Ask = Callable[[InputRequested], Awaitable[str | None]]

NO_STDIN = (
    "[stdin] Kernel requested input. Interactive stdin is not supported; "
    "provide input programmatically."
)
STDIN_FAILED = "Kernel requested stdin; interactive input is not supported."
# How long a killed kernel may take until its death is noticed.
_LAST_WAIT = 2.0
_KILL_TAKES = 0.5
_LOOK_EVERY, _LOOKS = 0.25, 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a cell ended.

    `state_kept` is false when the kernel that ran it is gone, and with it all its variables.
    `stdin_refused` says that the cell asked for input and there was no answer to give.
    """

    status: Status
    seconds: float
    execution_count: int | None = None
    error: ErrorEvent | None = None
    exit: KernelExit | None = None
    state_kept: bool = True
    stdin_refused: bool = False
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """The outcome of a cell in a session, and what happened to the kernel on the way.

    `replaced` says that the session's kernel was dead and another one was started before the
    cell; `retried` that it died under the cell, which was then run once more in a new one.
    `kernel` identifies the kernel process in which the cell ran. `stopped_by` says what a caller
    did to the session that ended the cell: `restarted`, or `shut down`.
    """

    outcome: Outcome
    replaced: bool = False
    retried: bool = False
    kernel: str = ""
    stopped_by: str = ""


def describe_timeout(seconds: float) -> str:
    """The line that a timeout adds to the output."""
    return f"Command timed out after {seconds:g} seconds"


class CellExecution:
    """One cell in one kernel: runs it to its end, its timeout or its cancellation.

    Args:
        timeout: seconds until it is stopped; 0 is never.
        grace: seconds from an interrupt to the kill.
        on_event: gets every event, in order; it must be quick.
        answers: lines for the cell's standard input, in order.
        ask: called for a line when the answers are used up.
        stop: an event that stops the cell when it is set, as `cancel` does.
    """

    def __init__(
        self,
        transport: Transport,
        code: Code,
        *,
        timeout: float = 0,
        grace: float = INTERRUPT_GRACE,
        on_event: Callable[[KernelEvent], object] | None = None,
        answers: Iterable[str] = (),
        ask: Ask | None = None,
        stop: asyncio.Event | None = None,
    ) -> None:
        self._transport = transport
        self._code = code
        self._timeout = timeout
        self._grace = grace
        self._on_event = on_event or (lambda _: None)
        self._answers = list(answers)
        self._ask = ask
        self._asking: asyncio.Future[str | None] | None = None
        self._is_cancelled = False
        self._cancelling: asyncio.Future[None] | None = None
        self._stop = stop
        self._finished: Finished | None = None
        self._error: ErrorEvent | None = None
        self._missed: list[str] = []
        self._stdin_refused = False
        self._has_begun = asyncio.Event()

    def cancel(self) -> None:
        """Stop the cell; `wait` then ends as cancelled."""
        self._is_cancelled = True
        if self._cancelling is not None and not self._cancelling.done():
            self._cancelling.set_result(None)

    @property
    def _is_stopped(self) -> bool:
        return self._is_cancelled or (self._stop is not None and self._stop.is_set())

    async def wait(self) -> Outcome:
        """Run it to its end.

        When the task that waits is cancelled, the cell is stopped as by `cancel` first.
        """
        began = time.monotonic()
        reading = asyncio.ensure_future(self._read())
        self._cancelling = asyncio.get_running_loop().create_future()
        stopping: list[asyncio.Future[Any]] = [self._cancelling]
        if self._stop is not None:
            stopping.append(asyncio.ensure_future(self._stop.wait()))
        if self._is_cancelled:
            self._cancelling.set_result(None)
        why: Status | None = None
        killed = False
        interruption: asyncio.CancelledError | None = None
        try:
            await self._wait_for_turn(reading, *stopping)
            await asyncio.wait(
                [reading, *stopping],
                timeout=self._timeout or None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not reading.done():
                why = "cancelled" if self._is_stopped else "timed_out"
        except asyncio.CancelledError as error:
            interruption, why = error, "cancelled"
        finally:
            for each in stopping:
                each.cancel()
        if not reading.done():
            # This must not be cancelled itself: until it is done the kernel is not usable.
            end = asyncio.ensure_future(self._end(reading))
            while not end.done():
                try:
                    await asyncio.shield(end)
                except asyncio.CancelledError as error:
                    interruption = error
            killed = end.result()
        if why == "timed_out":
            self._on_event(StreamEvent("stderr", f"\n{describe_timeout(self._timeout)}\n"))
        outcome = self._outcome(why, time.monotonic() - began, killed=killed)
        if interruption is not None:
            raise interruption
        if reading.done() and not reading.cancelled() and (failure := reading.exception()):
            raise failure
        return outcome

    async def _end(self, reading: asyncio.Future[None]) -> bool:
        """Interrupt, wait, kill; returns whether it had to kill."""
        if self._asking is not None:
            self._asking.cancel()
        await self._wait_for_turn(reading)
        with contextlib.suppress(Exception):  # a kernel that cannot be interrupted is killed
            async with asyncio.timeout(self._grace or 0.001):
                await self._transport.interrupt()
        if await self._obeys(reading):
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WAIT):
                await self._transport.shutdown(now=True)
        await asyncio.wait([reading], timeout=_LAST_WAIT)
        if not reading.done():  # the transport did not end its events; do not wait for it
            reading.cancel()
            await asyncio.wait([reading], timeout=_LAST_WAIT)
        return True

    async def _wait_for_turn(self, *others: asyncio.Future[Any]) -> None:
        """Wait until the cell begins, or one of these is done, where others use the kernel too.

        Until then a cell of another client may run: its time is not ours, nor is it ours to stop.
        """
        if getattr(self._transport, "is_shared", False):
            beginning = asyncio.ensure_future(self._has_begun.wait())
            try:
                await asyncio.wait([beginning, *others], return_when=asyncio.FIRST_COMPLETED)
            finally:
                beginning.cancel()

    async def _obeys(self, reading: asyncio.Future[None]) -> bool:
        """Whether the cell ends within the grace; a stopped kernel cannot, and is not waited for.

        The kill takes a moment, too, and the grace is all that a caller waits.
        """
        end = time.monotonic() + self._grace - min(_KILL_TAKES, self._grace / 10)
        stopped = 0
        while not reading.done() and stopped < _LOOKS and (left := end - time.monotonic()) > 0:
            await asyncio.wait([reading], timeout=min(left, _LOOK_EVERY))
            # More than once: while too much of its output waits, we stop it ourselves.
            stopped = stopped + 1 if self._is_stopped_by_a_signal() else 0
        return reading.done()

    def _is_stopped_by_a_signal(self) -> bool:
        pid = self._transport.info.pid if self._transport.is_alive else None
        return pid is not None and is_stopped(pid)

    async def _read(self) -> None:
        async for event in self._transport.execute(self._code):
            self._has_begun.set()
            if isinstance(event, Finished):
                self._finished = event
            elif isinstance(event, ErrorEvent):
                self._error = event
            elif isinstance(event, Missed):
                self._missed.append(event.reason)
            self._on_event(event)
            if isinstance(event, InputRequested):
                await self._transport.answer_input(await self._answer(event))

    async def _answer(self, request: InputRequested) -> str | None:
        """A line for the cell; None if it must fail for want of one."""
        if self._answers:
            return self._answers.pop(0)
        if self._ask is not None and not self._is_stopped:
            self._asking = asyncio.ensure_future(self._ask(request))
            try:
                answer = await self._asking
            except asyncio.CancelledError:
                if not self._asking.cancelled():
                    raise
                return ""  # the cell is being stopped
            finally:
                self._asking = None
            if answer is not None:
                return answer
        self._stdin_refused = True
        if self._code.input_raises:
            return None
        self._on_event(StreamEvent("stderr", f"{NO_STDIN}\n"))
        return ""

    def _outcome(self, why: Status | None, seconds: float, *, killed: bool) -> Outcome:
        finished = self._finished
        status: Status = finished.status if finished is not None else "died"
        died = status == "died"
        if why is not None:
            status = why  # even if the cell caught the interrupt and ended well
        if self._stdin_refused and why is None and status in ("ok", "cancelled"):
            status = "error"
        exit_ = finished.exit if finished is not None else self._transport.exit
        return Outcome(
            status=status,
            seconds=seconds,
            execution_count=finished.execution_count if finished is not None else None,
            error=self._error,
            exit=exit_ if killed or died else None,
            state_kept=not (killed or died),
            stdin_refused=self._stdin_refused,
            missed=tuple(self._missed),
        )


class Key(NamedTuple):
    """What identifies a session: a name, the folder its code runs in, and whose it is."""

    session: str
    cwd: str
    origin: str = ""


class Session:
    """A kernel, started when first needed and replaced when dead.

    `start` makes a kernel that is ready. Cells run in the order in which they were requested.
    With `retries`, a cell under which the kernel died is run once more in a new one.
    """

    def __init__(
        self,
        key: Key,
        start: Start,
        settings: Settings,
        *,
        kind: str = "eval",
        retries: bool = True,
    ) -> None:
        self.key = key
        self.kind = kind
        self.note = ""  # free for the caller that made the session
        self.clients: set[str | None] = set()  # for whom it is kept
        self.loss: str | None = None  # what an earlier session of the same key took with it
        self.owners: set[str] = set()
        self.created = time.time()
        self.used = time.monotonic()
        self.executions = 0
        self.waiting = 0
        self.transport: Transport | None = None
        self._life = ""
        self.is_closed = False
        self.on_comm: OnComm | None = None  # gets messages on comms, and the cell they are from
        self.on_fresh: Callable[[], object] | None = None  # called when the kernel is a new one
        self._idle_reader: asyncio.Task[None] | None = None
        self._start = start
        self._settings = settings
        self._retries = retries
        self._turn = asyncio.Lock()
        self._running: CellExecution | None = None
        self._restarts = 0
        self._is_resetting = False
        self._ended_by_us = False
        self._generation = 0
        self._stopped_by = ""

    @property
    def is_busy(self) -> bool:
        """Whether a cell runs or waits, or the kernel is being started or ended."""
        return self._turn.locked() or self.waiting > 0

    @property
    def life(self) -> str:
        """What identifies the kernel process: a restarted kernel has another one.

        A kernel that other clients use too is called what it calls itself in its messages, so that
        all of them call it the same.
        """
        process = getattr(self.transport, "process", None)
        if process:
            self._life = process
        return self._life

    @property
    def has_running_cell(self) -> bool:
        """Whether the kernel runs a cell of ours now."""
        return self._running is not None

    @property
    def state(self) -> State:
        """What the session is doing."""
        if self.is_closed:
            return "closed"
        if self.is_busy:
            return "busy"
        if self.transport is None:
            return "new"
        return "idle" if self.transport.is_alive else "dead"

    async def run(
        self,
        code: Code | Callable[[KernelInfo], Code],
        *,
        timeout: float = 0,  # noqa: ASYNC109  # interrupts and then kills, instead of cancelling
        reset: bool = False,
        on_event: Callable[[KernelEvent], object] | None = None,
        on_retry: Callable[[], object] | None = None,
        answers: Iterable[str] = (),
        ask: Ask | None = None,
        stop: asyncio.Event | None = None,
        caller: str | None = None,
    ) -> CellOutcome:
        """Run a cell when its turn comes; `reset` gives it a fresh kernel.

        A cell that depends on the kernel is given as a function of its `KernelInfo`.
        A cell that still waits when the session is restarted or closed ends as cancelled, and so
        does one whose `stop` is set, whether it waits or runs. `caller` names the cell in calls
        of `on_comm`.

        Raises:
            ResetInProgress: another reset of this session has not ended yet.
            RestartLimit: the kernel died again and again without a success between.
            KernelError: no kernel could be started.
        """
        if reset:
            if self._is_resetting:
                raise ResetInProgress(self.key.session)
            self._is_resetting = True
        answers = list(answers)
        generation = self._generation
        try:
            async with self._take_turn(stop=stop):
                if generation != self._generation:
                    outcome = Outcome("cancelled", 0.0, state_kept=False)
                    return CellOutcome(outcome, stopped_by=self._stopped_by)
                if stop is not None and stop.is_set():
                    return CellOutcome(Outcome("cancelled", 0.0), kernel=self.life)
                if reset:
                    await self._make_fresh()
                    self._is_resetting = False
                    reset = False
                replaced = await self._make_ready()
                listen = self._make_listener(on_event, caller)
                options = {"timeout": timeout, "on_event": listen, "ask": ask, "stop": stop}
                outcome = await self._run_once(code, {**options, "answers": answers})
                retried = outcome.status == "died" and self._retries
                if retried:
                    await self._replace()
                    if on_retry is not None:
                        on_retry()
                    outcome = await self._run_once(code, {**options, "answers": answers})
                if outcome.status in ("ok", "error"):
                    self._restarts = 0
                stopped_by = ""
                if outcome.status in ("cancelled", "died") and generation != self._generation:
                    stopped_by = self._stopped_by
                    outcome = replace(outcome, status="cancelled", state_kept=False)
                return CellOutcome(outcome, replaced, retried, self.life, stopped_by)
        except _StoppedWaiting:
            return CellOutcome(Outcome("cancelled", 0.0), kernel=self.life)
        finally:
            if reset:
                self._is_resetting = False

    async def run_nested(
        self,
        code: Callable[[KernelInfo], Code],
        *,
        timeout: float = 0,  # noqa: ASYNC109  # interrupts and then kills, instead of cancelling
        on_event: Callable[[KernelEvent], object] | None = None,
        caller: str | None = None,
    ) -> CellOutcome:
        """Run a cell that the running one waits for, without waiting for a turn.

        Raises:
            KernelCannot: no cell is running.
        """
        if self.transport is None or self._running is None:
            raise KernelCannot(self.key.session, "run a cell inside another: none is running")
        self.executions += 1
        execution = CellExecution(
            self.transport,
            code(self.transport.info),
            timeout=timeout,
            grace=self._settings.interrupt_grace,
            on_event=self._make_listener(on_event, caller),
        )
        return CellOutcome(await execution.wait(), kernel=self.life)

    async def start(self) -> None:
        """Have a living kernel, without running anything."""
        async with self._take_turn():
            await self._make_ready()

    async def restart(self) -> None:
        """Stop the running cell, and restart the kernel."""
        if self._is_resetting:
            raise ResetInProgress(self.key.session)
        self._is_resetting = True
        try:
            self._generation += 1
            self._stopped_by = "restarted"
            self.interrupt()
            async with self._take_turn():
                await self._make_fresh()
        finally:
            self._is_resetting = False

    def interrupt(self) -> bool:
        """Stop the running cell; returns whether there was one."""
        if self._running is None:
            return False
        self._running.cancel()
        return True

    async def check(self, within: float) -> bool:
        """Ask an idle kernel whether it answers; one that does not is ended, to be replaced."""
        if self.is_busy or self.transport is None or not self.transport.is_alive:
            return self.transport is None or self.transport.is_alive
        async with self._take_turn(counts_as_use=False):
            alive = await self.transport.ping(within)
            if not alive:
                await self.transport.shutdown(now=True)
        return alive

    async def close(self) -> None:
        """Stop the running cell, and end the kernel and everything it started."""
        self.is_closed = True
        self._generation += 1
        self._stopped_by = "shut down"
        self.interrupt()
        try:
            async with asyncio.timeout(self._settings.interrupt_grace * 2):
                async with self._take_turn():
                    await self._end()
        except TimeoutError:
            await self._end(now=True)

    def to_json(self) -> dict[str, Any]:
        """The facts about the session, for people and for the engine's clients."""
        info = self.transport.info if self.transport and self.transport.is_alive else None
        return {
            "session": self.key.session,
            "cwd": self.key.cwd,
            "kind": self.kind,
            "state": self.state,
            "owners": sorted(self.owners),
            "executions": self.executions,
            "waiting": self.waiting,
            "idle_seconds": round(time.monotonic() - self.used, 1),
            "created": self.created,
            "kernel": None if info is None else info.name,
            "transport": None if info is None else info.transport,
            "language": None if info is None else info.language,
            "pid": None if info is None else info.pid,
            "server": None if info is None else info.details.get("server"),
        }

    # --- one cell after the other ---

    @contextlib.asynccontextmanager
    async def _take_turn(
        self, *, counts_as_use: bool = True, stop: asyncio.Event | None = None
    ) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            if stop is None or not self._turn.locked():
                await self._turn.acquire()
            elif not await _acquire_or_stop(self._turn, stop):
                raise _StoppedWaiting
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            if counts_as_use:
                self.used = time.monotonic()
            self._turn.release()

    async def _run_once(
        self, code: Code | Callable[[KernelInfo], Code], options: dict[str, Any]
    ) -> Outcome:
        assert self.transport is not None  # noqa: S101  # `_make_ready` made one
        if callable(code):
            code = code(self.transport.info)
        self.executions += 1
        grace = self._settings.interrupt_grace
        self._running = CellExecution(self.transport, code, grace=grace, **options)
        try:
            outcome = await self._running.wait()
            self._ended_by_us = not outcome.state_kept and outcome.status != "died"
            return outcome
        finally:
            self._running = None
            if not self.transport.is_alive and not self._is_lent:
                await self._end()

    def _make_listener(
        self, on_event: Callable[[KernelEvent], object] | None, caller: str | None
    ) -> Callable[[KernelEvent], None]:
        def listen(event: KernelEvent) -> None:
            if isinstance(event, CommMessage) and self.on_comm is not None:
                self.on_comm(event, caller)
            if on_event is not None:
                on_event(event)

        return listen

    # --- the kernel: started, replaced, restarted, ended ---

    @property
    def _is_lent(self) -> bool:
        """Whether others use the kernel too: then it stays in its place, also when it has died."""
        return getattr(self.transport, "is_lent", False)

    async def _make_ready(self) -> bool:
        """Have a living kernel; returns whether a dead one had to be replaced."""
        if self.transport is not None and self.transport.is_alive:
            return False
        if self.transport is None and self.executions == 0:
            await self._begin()
            return False
        await self._replace()
        return True

    async def _make_fresh(self) -> None:
        """Have a kernel that has run nothing yet; this also resets the count of restarts."""
        self._restarts = 0
        is_new = self.executions == 0
        if not self._is_lent and (self.transport is None or not self.transport.is_alive):
            await self._end()
            await self._begin()
            is_new = True
        if self.transport is not None and await self.transport.restart():
            self._begin_life()
        elif not is_new:
            await self._end()
            await self._begin()

    async def _replace(self) -> None:
        # A kernel that we ended ourselves, after a timeout, does not count as a failure.
        self._restarts += not self._ended_by_us
        self._ended_by_us = False
        if self._restarts > self._settings.kernel_restarts_allowed:
            raise RestartLimit
        if self._is_lent and self.transport is not None:
            await self.transport.restart()
            self._begin_life()
            return
        await self._end()
        await self._begin()

    async def _begin(self) -> None:
        self.transport = await self._start()
        self._begin_life()
        if self.on_comm is not None:
            self._idle_reader = asyncio.ensure_future(self._read_idle_events(self.transport))

    def _begin_life(self) -> None:
        self._life = uuid.uuid4().hex[:12]
        if self.on_fresh is not None:
            self.on_fresh()

    async def _read_idle_events(self, transport: Transport) -> None:
        """Hand on what a kernel says between cells, for as long as it lives."""
        async for idle in transport.idle_events():
            if isinstance(idle.event, CommMessage) and self.on_comm is not None:
                self.on_comm(idle.event, None)

    async def _end(self, *, now: bool = False) -> None:
        transport, self.transport = self.transport, None
        if self._idle_reader is not None:
            self._idle_reader.cancel()
            self._idle_reader = None
        if transport is not None:
            await transport.shutdown(now=now or not transport.is_alive)


class _StoppedWaiting(Exception):
    """A cell was stopped before its turn came."""


async def _acquire_or_stop(lock: asyncio.Lock, stop: asyncio.Event) -> bool:
    """Wait for a lock until `stop` is set; returns whether the lock is held."""
    stopping = asyncio.ensure_future(stop.wait())
    acquiring = asyncio.ensure_future(lock.acquire())
    try:
        await asyncio.wait([stopping, acquiring], return_when=asyncio.FIRST_COMPLETED)
    except BaseException:
        if not acquiring.cancel() and not acquiring.cancelled():
            lock.release()  # it was acquired in the same moment
        raise
    finally:
        stopping.cancel()
    if acquiring.done():
        return True
    acquiring.cancel()
    return False
