"""Run one cell in one kernel: to its end, its timeout, or its cancellation.

Who asks for a cell gets an answer in bounded time, whatever the cell does: an interrupt first,
then, if the kernel is deaf to it, the end of its whole process tree.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass

from cellwright.config.defaults import INTERRUPT_GRACE
from cellwright.kernel.events import Finished, InputRequested, Missed
from cellwright.outputs.events import ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Literal

    from cellwright.kernel.events import KernelEvent, KernelExit
    from cellwright.kernel.transport import Code, Transport

    Status = Literal["ok", "error", "timed_out", "cancelled", "died"]
    Ask = Callable[[InputRequested], Awaitable[str | None]]

NO_STDIN = (
    "[stdin] Kernel requested input. Interactive stdin is not supported; "
    "provide input programmatically."
)
STDIN_FAILED = "Kernel requested stdin; interactive input is not supported."
# What a kernel that was killed may take to be seen as dead.
_LAST_WAIT = 2.0


def timed_out(seconds: float) -> str:
    """The line that a timeout adds to the output."""
    return f"Command timed out after {seconds:g} seconds"


def _ignore(_: KernelEvent) -> None:
    """Take an event, and do nothing with it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a cell went.

    `state_kept` is false when the kernel that ran it is gone, and with it all its variables.
    `stdin_refused` says that the cell asked for input and nobody was there to give it.
    """

    status: Status
    seconds: float
    execution_count: int | None = None
    error: ErrorEvent | None = None
    exit: KernelExit | None = None
    state_kept: bool = True
    stdin_refused: bool = False
    missed: tuple[str, ...] = ()


class Run:
    """One cell on its way through a kernel.

    Args:
        timeout: seconds until it is stopped; 0 is never.
        grace: seconds from an interrupt to the kill.
        on_event: gets every event, in order; it must be quick.
        answers: lines for the cell's standard input, in order.
        ask: somebody who can be asked for a line when the answers are used up.
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
        self._on_event = on_event or _ignore
        self._answers = list(answers)
        self._ask = ask
        self._asking: asyncio.Future[str | None] | None = None
        self._stop = asyncio.Event()
        self._told = stop or self._stop
        self._finished: Finished | None = None
        self._error: ErrorEvent | None = None
        self._missed: list[str] = []
        self._stdin_refused = False

    def cancel(self) -> None:
        """Stop the cell; `wait` then ends as cancelled."""
        self._stop.set()

    @property
    def _is_stopped(self) -> bool:
        return self._stop.is_set() or self._told.is_set()

    async def wait(self) -> Outcome:
        """Run it to its end.

        When the task that waits is cancelled, the cell is stopped as by `cancel` first.
        """
        began = time.monotonic()
        reading = asyncio.ensure_future(self._read())
        stopping = [asyncio.ensure_future(each.wait()) for each in {self._stop, self._told}]
        why: Status | None = None
        killed = False
        interruption: asyncio.CancelledError | None = None
        try:
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
            # Not to be cancelled in its turn: until this is over the kernel is not usable.
            end = asyncio.ensure_future(self._end(reading))
            while not end.done():
                try:
                    await asyncio.shield(end)
                except asyncio.CancelledError as error:
                    interruption = error
            killed = end.result()
        if why == "timed_out":
            self._on_event(StreamEvent("stderr", f"\n{timed_out(self._timeout)}\n"))
        outcome = self._outcome(why, time.monotonic() - began, killed=killed)
        if interruption is not None:
            raise interruption
        if reading.done() and not reading.cancelled() and (failure := reading.exception()):
            raise failure
        return outcome

    async def _end(self, reading: asyncio.Future[None]) -> bool:
        """Interrupt, wait, kill; returns whether it came to that."""
        if self._asking is not None:
            self._asking.cancel()
        with contextlib.suppress(Exception):  # what cannot be interrupted is killed
            async with asyncio.timeout(self._grace or 0.001):
                await self._transport.interrupt()
        await asyncio.wait([reading], timeout=self._grace)
        if reading.done():
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WAIT):
                await self._transport.shutdown(now=True)
        await asyncio.wait([reading], timeout=_LAST_WAIT)
        if not reading.done():  # a transport that broke its word; the answer must not wait for it
            reading.cancel()
            await asyncio.wait([reading], timeout=_LAST_WAIT)
        return True

    async def _read(self) -> None:
        async for event in self._transport.execute(self._code):
            if isinstance(event, Finished):
                self._finished = event
            elif isinstance(event, ErrorEvent):
                self._error = event
            elif isinstance(event, Missed):
                self._missed.append(event.reason)
            self._on_event(event)
            if isinstance(event, InputRequested):
                await self._transport.answer_input(await self._answer(event))

    async def _answer(self, request: InputRequested) -> str:
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
        self._on_event(StreamEvent("stderr", f"{NO_STDIN}\n"))
        return ""

    def _outcome(self, why: Status | None, seconds: float, *, killed: bool) -> Outcome:
        finished = self._finished
        status: Status = finished.status if finished is not None else "died"
        died = status == "died"
        if why is not None:
            status = why  # also if it caught the interrupt and ended well: it was told to stop
        if self._stdin_refused and status == "ok":
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
