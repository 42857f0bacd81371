"""One kernel that several callers share, one cell at a time."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass
from typing import NamedTuple

from cellwright.errors import KernelCannot, ResetInProgress, RestartLimit
from cellwright.kernel.events import CommMessage
from cellwright.kernel.running import Outcome, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from typing import Any, Literal

    from cellwright.config.settings import Settings
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.running import Ask
    from cellwright.kernel.transport import Code, KernelInfo, Transport

    Start = Callable[[], Awaitable[Transport]]
    OnComm = Callable[[CommMessage, str | None], object]
    State = Literal["new", "idle", "busy", "dead", "closed"]


class Key(NamedTuple):
    """What tells sessions apart: a name, and the folder its code runs in."""

    session: str
    cwd: str


@dataclass(frozen=True, slots=True)
class Ran:
    """A cell that was run: its outcome, and what happened to the kernel on the way.

    `replaced` says that the session's kernel was found dead and another took its place before the
    cell; `retried` that it died under the cell, which was then run once more in a new one.
    `kernel` names the one life of a kernel in which it ran.
    """

    outcome: Outcome
    replaced: bool = False
    retried: bool = False
    kernel: str = ""


class _StoppedWaiting(Exception):
    """A cell was stopped before its turn came."""


async def _acquired(lock: asyncio.Lock, stop: asyncio.Event) -> bool:
    """Wait for a lock, or until told to stop; returns whether the lock is held."""
    stopping = asyncio.ensure_future(stop.wait())
    acquiring = asyncio.ensure_future(lock.acquire())
    try:
        await asyncio.wait([stopping, acquiring], return_when=asyncio.FIRST_COMPLETED)
    except BaseException:
        if not acquiring.cancel() and not acquiring.cancelled():
            lock.release()  # it came in the same moment
        raise
    finally:
        stopping.cancel()
    if acquiring.done():
        return True
    acquiring.cancel()
    return False


class Session:
    """A kernel, started when first needed and replaced when dead.

    `start` makes a kernel that is ready. Cells wait for each other in the order they were asked
    for. With `retries`, a cell under which the kernel died is run once more in a new one.
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
        self.note = ""  # what its maker wants to remember of it
        self.owners: set[str] = set()
        self.created = time.time()
        self.used = time.monotonic()
        self.executions = 0
        self.waiting = 0
        self.transport: Transport | None = None
        self.life = ""
        self.is_closed = False
        self.on_comm: OnComm | None = None  # gets messages on comms, and the cell they are from
        self.on_fresh: Callable[[], object] | None = None  # the kernel is a new one
        self._asides: asyncio.Task[None] | None = None
        self._start = start
        self._settings = settings
        self._retries = retries
        self._turn = asyncio.Lock()
        self._run: Run | None = None
        self._restarts = 0
        self._is_resetting = False
        self._ended_by_us = False
        self._generation = 0

    @property
    def is_busy(self) -> bool:
        """Whether a cell runs or waits, or the kernel is being started or ended."""
        return self._turn.locked() or self.waiting > 0

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
        timeout: float = 0,  # noqa: ASYNC109  # the ladder of interrupts, not a cancellation
        reset: bool = False,
        on_event: Callable[[KernelEvent], object] | None = None,
        on_retry: Callable[[], object] | None = None,
        answers: Iterable[str] = (),
        ask: Ask | None = None,
        stop: asyncio.Event | None = None,
        caller: str | None = None,
    ) -> Ran:
        """Run a cell when its turn comes; `reset` gives it a fresh kernel.

        A cell that depends on the kernel is given as a function of what the kernel is.
        A cell that still waits when the session is restarted or closed ends as cancelled, and so
        does one whose `stop` is set, whether it waits or runs. `caller` is what the cell is
        called where its messages on comms are answered.

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
            async with self._my_turn(stop=stop):
                if generation != self._generation:
                    return Ran(Outcome("cancelled", 0.0, state_kept=False))
                if stop is not None and stop.is_set():
                    return Ran(Outcome("cancelled", 0.0), kernel=self.life)
                if reset:
                    await self._fresh()
                    self._is_resetting = False
                    reset = False
                replaced = await self._ready()
                listen = self._listener(on_event, caller)
                options = {"timeout": timeout, "on_event": listen, "ask": ask, "stop": stop}
                outcome = await self._once(code, {**options, "answers": answers})
                retried = outcome.status == "died" and self._retries
                if retried:
                    await self._replace()
                    if on_retry is not None:
                        on_retry()
                    outcome = await self._once(code, {**options, "answers": answers})
                if outcome.status in ("ok", "error"):
                    self._restarts = 0
                return Ran(outcome, replaced=replaced, retried=retried, kernel=self.life)
        except _StoppedWaiting:
            return Ran(Outcome("cancelled", 0.0), kernel=self.life)
        finally:
            if reset:
                self._is_resetting = False

    async def run_nested(
        self,
        code: Callable[[KernelInfo], Code],
        *,
        timeout: float = 0,  # noqa: ASYNC109  # the ladder of interrupts, not a cancellation
        on_event: Callable[[KernelEvent], object] | None = None,
        caller: str | None = None,
    ) -> Ran:
        """Run a cell that the running one waits for, past the queue.

        Raises:
            KernelCannot: nothing runs, so that nothing can wait for it.
        """
        if self.transport is None or self._run is None:
            raise KernelCannot(self.key.session, "run a cell inside another: none is running")
        self.executions += 1
        grace = self._settings.interrupt_grace
        listen = self._listener(on_event, caller)
        made = code(self.transport.info)
        run = Run(self.transport, made, timeout=timeout, grace=grace, on_event=listen)
        return Ran(await run.wait(), kernel=self.life)

    @contextlib.asynccontextmanager
    async def _my_turn(
        self, *, counts_as_use: bool = True, stop: asyncio.Event | None = None
    ) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            if stop is None or not self._turn.locked():
                await self._turn.acquire()
            elif not await _acquired(self._turn, stop):
                raise _StoppedWaiting
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            if counts_as_use:
                self.used = time.monotonic()
            self._turn.release()

    async def _once(
        self, code: Code | Callable[[KernelInfo], Code], options: dict[str, Any]
    ) -> Outcome:
        assert self.transport is not None  # noqa: S101  # `_ready` saw to it
        if callable(code):
            code = code(self.transport.info)
        self.executions += 1
        self._run = Run(self.transport, code, grace=self._settings.interrupt_grace, **options)
        try:
            outcome = await self._run.wait()
            self._ended_by_us = not outcome.state_kept and outcome.status != "died"
            return outcome
        finally:
            self._run = None
            if not self.transport.is_alive:
                await self._end()

    def _listener(
        self, on_event: Callable[[KernelEvent], object] | None, caller: str | None
    ) -> Callable[[KernelEvent], None]:
        def listen(event: KernelEvent) -> None:
            if isinstance(event, CommMessage) and self.on_comm is not None:
                self.on_comm(event, caller)
            if on_event is not None:
                on_event(event)

        return listen

    async def _listen_aside(self, transport: Transport) -> None:
        """Take what a kernel says between cells, for as long as it lives."""
        async for aside in transport.idle_events():
            if isinstance(aside.event, CommMessage) and self.on_comm is not None:
                self.on_comm(aside.event, None)

    async def _ready(self) -> bool:
        """Have a living kernel; returns whether a dead one had to be replaced."""
        if self.transport is not None and self.transport.is_alive:
            return False
        if self.transport is None and self.executions == 0:
            await self._begin()
            return False
        await self._replace()
        return True

    async def _begin(self) -> None:
        self.transport = await self._start()
        self.life = uuid.uuid4().hex[:12]
        if self.on_fresh is not None:
            self.on_fresh()
        if self.on_comm is not None:
            self._asides = asyncio.ensure_future(self._listen_aside(self.transport))

    async def _replace(self) -> None:
        # One that we ended ourselves, after a timeout, is no sign of anything wrong with it.
        self._restarts += not self._ended_by_us
        self._ended_by_us = False
        if self._restarts > self._settings.kernel_restarts_allowed:
            raise RestartLimit
        await self._end()
        await self._begin()

    async def _fresh(self) -> None:
        """Have a kernel that has not run anything; also the way out of the limit on restarts."""
        self._restarts = 0
        if self.transport is not None and self.executions == 0 and self.transport.is_alive:
            return
        await self._end()
        await self._begin()

    async def restart(self) -> None:
        """Stop what runs, and start the kernel anew."""
        if self._is_resetting:
            raise ResetInProgress(self.key.session)
        self._is_resetting = True
        try:
            self._generation += 1
            self.interrupt()
            async with self._my_turn():
                await self._fresh()
        finally:
            self._is_resetting = False

    def interrupt(self) -> bool:
        """Stop the cell that runs; returns whether there was one."""
        if self._run is None:
            return False
        self._run.cancel()
        return True

    async def check(self, within: float) -> bool:
        """See whether an idle kernel answers; one that does not is ended, to be replaced."""
        if self.is_busy or self.transport is None or not self.transport.is_alive:
            return self.transport is None or self.transport.is_alive
        async with self._my_turn(counts_as_use=False):
            alive = await self.transport.ping(within)
            if not alive:
                await self.transport.shutdown(now=True)
        return alive

    async def close(self) -> None:
        """Stop what runs and end the kernel and all that it started."""
        self.is_closed = True
        self._generation += 1
        self.interrupt()
        try:
            async with asyncio.timeout(self._settings.interrupt_grace * 2):
                async with self._my_turn():
                    await self._end()
        except TimeoutError:
            await self._end(now=True)

    async def _end(self, *, now: bool = False) -> None:
        transport, self.transport = self.transport, None
        if self._asides is not None:
            self._asides.cancel()
            self._asides = None
        if transport is not None:
            await transport.shutdown(now=now or not transport.is_alive)

    def to_json(self) -> dict[str, Any]:
        """What there is to know about it, for people and over the wire."""
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
        }
