"""One cell under way: what came for it and was not taken yet, and when it is over."""

from __future__ import annotations

import asyncio
from collections import deque

from cellwright.kernel.events import Finished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.kernel.events import KernelExit
    from cellwright.kernel.local.wire import Message


class Run:
    """The messages of one execute request, in order, and its end: reply *and* idle, or death."""

    def __init__(self, identity: str, *, cell_id: str | None = None, silent: bool = False) -> None:
        self.id = identity
        self.cell_id = cell_id
        self.backlog = 0
        self.reply: dict[str, Any] | None = None
        self.is_idle = False
        self.is_over = False
        self.started_at: float | None = None
        self.was_interrupted = False
        self.has_missed_idle = False
        self._silent = silent
        self._messages: deque[Message] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, message: Message) -> None:
        """Take a message that is for this cell."""
        kind = message.type
        if kind == "status":
            self.is_idle = message.content.get("execution_state") == "idle"
            if self._silent:  # which is not told in any other way
                self._start()
        elif kind == "execute_reply":
            self.reply = message.content
        else:
            if kind == "execute_input":
                self._start()
            self._messages.append(message)
            self.backlog += message.size
        self.wake()

    def _start(self) -> None:
        if self.started_at is None:
            self.started_at = asyncio.get_running_loop().time()

    def end(self) -> None:
        """Nothing more will come: the kernel is gone."""
        self.is_over = True
        self.wake()

    def wake(self) -> None:
        """Let whoever waits for a message look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> Message | None:
        """The next message, if one is there."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self.backlog -= message.size
        return message

    @property
    def is_complete(self) -> bool:
        """Whether the kernel has said all that it will say."""
        return self.is_over or (self.reply is not None and self.is_idle)

    @property
    def lacks_only_idle(self) -> bool:
        """Whether the kernel replied but did not say that it is done."""
        return self.reply is not None and not self.is_idle

    async def wait(self, within: float | None) -> bool:
        """Wait until something has changed, or so long; false if nothing has."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            if within is None:
                await waiter
            else:
                await asyncio.wait([waiter], timeout=within)
        finally:
            self._waiter = None
        return waiter.done()

    def finished(self, exit_: KernelExit | None, *, is_python: bool) -> Finished:
        """The verdict."""
        reply = self.reply
        if reply is None or not self.is_idle:
            return Finished("died", exit=exit_)
        count = reply.get("execution_count")
        status = reply.get("status")
        if status == "ok":
            return Finished("ok", count)
        # Other languages have other words for it, so any failure after an interrupt counts.
        is_interrupt = not is_python or reply.get("ename") == "KeyboardInterrupt"
        if status != "error" or (self.was_interrupted and is_interrupt):
            return Finished("cancelled", count)
        return Finished("error", count)
