"""From the comm messages of one kernel to the host of its notebook, and back.

Requests are carried out one after the other, in the order they came. Only the running of cells
does not hold up the others: a cell that is run may ask something itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from cellwright.protocol.codes import Code, Refusal, refusal_of
from cellwright.protocol.desk import Desk
from cellwright.protocol.methods import carry_out, failed, plan_run, read_or_edit
from cellwright.protocol.wire import Answer, Request, done, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from cellwright.protocol.host import NotebookHost
    from cellwright.protocol.methods import Plan
    from cellwright.protocol.wire import CommLike

    FindHost = Callable[[], "NotebookHost | None"]
    Send = Callable[[Answer], Awaitable[object]]

_log = logging.getLogger("cellwright.protocol")


class CommBridge:
    """Answers the requests of one kernel.

    Args:
        host: finds the notebook when a request is carried out; None if there is none.
        send: sends an answer to the kernel; if it fails, the kernel is gone.
    """

    def __init__(self, host: FindHost, send: Send) -> None:
        self._host = host
        self._send = send
        self._desk = Desk()
        self._queue: deque[Request] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[int, tuple[str | None, Plan]] = {}

    def feed(self, message: CommLike, *, caller: str | None = None) -> bool:
        """Take a message of the kernel, and return whether it belongs to the protocol.

        Does not wait; what is to be done is done by tasks of this bridge. `caller` is the handle
        of the cell whose run the message is part of; None between cells.
        """
        if not self._desk.is_ours(message):
            return False
        received = self._desk.receive(message, caller)
        if isinstance(received, Answer):
            self._start(self._deliver(received))
        elif received is not None:
            self._queue.append(received)
            if self._worker is None:
                self._worker = self._start(self._work())
        return True

    async def settle(self) -> None:
        """Wait until everything that was asked is answered."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    def forget(self) -> None:
        """The kernel was restarted: its comms are gone, and what waits is not wanted any more."""
        self._queue.clear()
        self._desk.clear()

    async def close(self) -> None:
        """Stop, without answering what still waits."""
        self.forget()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._take(self._queue.popleft())
                await asyncio.sleep(0)  # a flood of requests must not hold up a cell's output
        finally:
            self._worker = None

    async def _take(self, request: Request) -> None:
        try:
            host = self._host()
            if host is None:
                raise Refusal(Code.NO_ACTIVE_NOTEBOOK, "No active notebook is available")  # noqa: TRY301
            if request.method == "execute_cell_range":
                plan = await plan_run(host, request)
                self._refuse_own(request, plan)
                # Put down here, so that a request that follows sees it.
                self._running[id(request)] = (request.caller, plan)
                self._start(self._execute(host, request, plan))
                return
            data = done(request.id, await read_or_edit(host, request))
        except Exception as error:  # noqa: BLE001  # every request is answered
            data = self._refused(request, error)
        await self._answer(request, data)

    async def _execute(self, host: NotebookHost, request: Request, plan: Plan) -> None:
        try:
            data = done(request.id, await carry_out(host, request, plan))
        except Exception as error:  # noqa: BLE001  # every request is answered
            data = self._refused(request, error)
        finally:
            self._running.pop(id(request), None)
        await self._answer(request, data)

    def _refuse_own(self, request: Request, plan: Plan) -> None:
        """Refuse to run the cell that asks, or one that waits for it: it would never end."""
        waiting, more = {request.caller}, {request.caller}
        while more:
            more = {
                caller
                for caller, other in self._running.values()
                if caller not in waiting and not waiting.isdisjoint(other.cells)
            }
            waiting |= more
        for handle, place in zip(plan.cells, plan.places, strict=True):
            if handle in waiting:
                raise failed(place, "it is the cell that asks, or waits for it; nothing was run")

    def _refused(self, request: Request, error: Exception) -> dict[str, Any]:
        refusal = refusal_of(error)
        if refusal.code is Code.INTERNAL_ERROR:
            _log.warning("%s failed: %s", request.method, refusal.message)
        return refused(request.id, refusal)

    async def _answer(self, request: Request, data: dict[str, Any]) -> None:
        answer = self._desk.answer(request, data)
        if answer is not None:
            await self._deliver(answer)

    async def _deliver(self, answer: Answer) -> None:
        try:
            await self._send(answer)
        except Exception as error:  # noqa: BLE001  # a kernel that is gone needs no answer
            _log.debug("an answer was not delivered: %s", error)
