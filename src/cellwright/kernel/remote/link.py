"""A connection to a kernel that mends itself, and the requests that go over it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from datetime import UTC, datetime
from uuid import uuid4

from cellwright.errors import KernelError, KernelMissing, KernelStartFailed
from cellwright.kernel.remote.framing import Message
from cellwright.kernel.remote.wire import LostWire, open_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from cellwright.kernel.remote.server import RemoteServer
    from cellwright.kernel.remote.wire import Wire

PROTOCOL = "5.4"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_FUTILE, _MOST_FUTILE = 2.0, 6
_log = logging.getLogger("cellwright.kernel")


class Link:
    """One kernel's channels, for as long as they can be had.

    Args:
        on_message: gets each message that answers no `ask`; while it waits, nothing more is read.
        on_gap: is told of each time that the connection was lost and is back, and why.
        on_end: is told once, when the kernel is gone or cannot be reached any more.
    """

    def __init__(
        self,
        server: RemoteServer,
        kernel_id: str,
        *,
        on_message: Callable[[Message], Awaitable[None]],
        on_gap: Callable[[str], None],
        on_end: Callable[[str], None],
    ) -> None:
        self.session = uuid4().hex
        self._server = server
        self._kernel_id = kernel_id
        self._on_message = on_message
        self._on_gap = on_gap
        self._on_end = on_end
        self._wire: Wire | None = None
        self._changed = asyncio.Condition()
        self._is_ended = False
        self._keeping: asyncio.Task[None] | None = None
        self._asked: dict[str, _Asked] = {}

    async def open(self) -> None:
        """Connect.

        Raises:
            KernelError: there is no such kernel, or no way to it.
        """
        rest = self._server.rest
        try:
            self._wire = await open_wire(rest, self._kernel_id, self.session)
        except LostWire as lost:
            if lost.status in {401, 403}:
                raise rest.refused(lost.status) from None
            if lost.status is not None and 300 <= lost.status < 400:
                raise rest.led_elsewhere("") from None
            if lost.status == 404:
                raise KernelMissing(
                    f"{self._server.address} has no kernel with the id {self._kernel_id}",
                    hint="It ended, or was never there; start a new one",
                ) from None
            if lost.status is not None:
                raise KernelStartFailed(
                    self._kernel_id, f"the server did not connect us: {lost.reason}"
                ) from None
            raise rest.unreachable(lost.reason) from None
        self._keeping = asyncio.create_task(self._keep(self._wire), name="remote kernel")

    async def close(self) -> None:
        """Disconnect; what was asked and not answered yet never will be."""
        self._is_ended = True
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping
        await self._forget_wire()
        self._drop_asked()

    def message(
        self,
        channel: str,
        kind: str,
        content: Mapping[str, Any],
        *,
        parent: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        buffers: tuple[bytes, ...] = (),
    ) -> Message:
        """Make a message with an id of its own."""
        header = {
            "msg_id": uuid4().hex,
            "msg_type": kind,
            "username": "cellwright",
            "session": self.session,
            "date": datetime.now(UTC).isoformat(),
            "version": PROTOCOL,
        }
        return Message(channel, header, parent or {}, metadata or {}, content, buffers)

    @property
    def protocol(self) -> str | None:
        """The framing that the server chose; None for the default one, or while not connected."""
        return self._wire.protocol if self._wire is not None else None

    async def ready(self) -> None:
        """Wait until there is a connection, or until there will be none any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._wire is not None or self._is_ended)

    async def freshen(self) -> None:
        """See to it that the connection is there: what is sent on a dead one is lost."""
        await self.ready()
        wire = self._wire
        if wire is not None and not await wire.is_there():
            async with self._changed:
                if self._wire is wire:
                    self._wire = None
                    wire.abort()
        await self.ready()

    async def send(self, message: Message) -> None:
        """Send a message, when the connection is there.

        Raises:
            LostWire: it broke on the way, or there will be no connection any more.
        """
        await self.ready()
        if self._wire is None:
            raise LostWire("the kernel is gone")
        await self._wire.send(message)

    async def ask(self, message: Message, within: float) -> tuple[Message, list[Message]]:
        """Send a request; gives its reply, and what the kernel published on the way to `idle`.

        Raises:
            LostWire: the connection broke before the answer was complete.
            TimeoutError: it did not come in time.
        """
        identity = str(message.header["msg_id"])
        asked = self._asked[identity] = _Asked()
        try:
            async with asyncio.timeout(within):
                await self.send(message)
                return await asked.answer
        finally:
            self._asked.pop(identity, None)

    async def run_silently(self, source: str, within: float) -> tuple[Message, list[Message]]:
        """Run code of ours, without a trace in the kernel's history; raises as `ask` does."""
        content = {
            "code": source,
            "silent": True,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        return await self.ask(self.message("shell", "execute_request", content), within)

    async def _keep(self, wire: Wire) -> None:
        futile = 0
        while True:
            opened = time.monotonic()
            try:
                async for message in wire.messages():
                    futile = 0
                    asked = self._asked.get(message.parent_id)
                    if asked is None:
                        await self._on_message(message)
                    else:
                        asked.take(message)
            except LostWire as lost:
                reason = lost.reason
            self._wire = None
            await wire.close()
            self._drop_asked()
            _log.info("connection lost", extra={"kernel": self._kernel_id, "reason": reason})
            began = time.monotonic()
            # A door that opens only to be shut again is not a way in.
            futile = futile + 1 if began - opened < _FUTILE else 0
            if futile > _MOST_FUTILE:
                back: Wire | str = "the server accepts us, and hangs up at once"
            else:
                back = await self._reconnect(_FIRST_PAUSE * 2**futile if futile > 1 else 0)
            if isinstance(back, str):
                self._is_ended = True
                async with self._changed:
                    self._changed.notify_all()
                self._on_end(back)
                return
            wire = back
            async with self._changed:
                self._wire = wire
                self._changed.notify_all()
            self._on_gap(f"{reason}, and was back after {time.monotonic() - began:.1f} s")

    async def _reconnect(self, wait: float) -> Wire | str:
        """Connect once more, or say why that is not to be."""
        await asyncio.sleep(wait)
        until = time.monotonic() + self._server.timeouts.reconnect
        pause = _FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + _left(until)):
                    return await open_wire(self._server.rest, self._kernel_id, self.session)
            except TimeoutError:
                reason = "it took too long"
            except LostWire as lost:
                if lost.status in {401, 403}:
                    return "the server no longer lets us in"
                if lost.status == 404 and await self._is_gone():
                    return "the server no longer has it"
                reason = lost.reason
            if time.monotonic() + pause >= until:
                return f"the server could not be reached again ({reason})"
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # so as not to all come at once
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _is_gone(self) -> bool:
        try:
            return await self._server.kernel(self._kernel_id) is None
        except KernelError:
            return False

    async def _forget_wire(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    def _drop_asked(self) -> None:
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(LostWire("the connection was lost"))


class _Asked:
    """A request of our own that waits for its reply and its `idle`."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[Message, list[Message]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._reply: Message | None = None
        self._published: list[Message] = []
        self._is_idle = False

    def take(self, message: Message) -> None:
        if message.channel != "iopub":
            self._reply = message
        elif message.kind != "status":
            self._published.append(message)
        elif message.content.get("execution_state") == "idle":
            self._is_idle = True
        if self._reply is not None and self._is_idle and not self.answer.done():
            self.answer.set_result((self._reply, self._published))


def _left(until: float) -> float:
    return max(0.1, until - time.monotonic())
