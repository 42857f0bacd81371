"""A connection to a kernel that reconnects by itself, and the requests that use it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from uuid import uuid4

from cellwright.errors import KernelError, KernelMissing, KernelStartFailed
from cellwright.kernel.jupyter import build_execute_request, build_header
from cellwright.kernel.remote.websocket import ConnectionLost, RemoteMessage, open_websocket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from cellwright.kernel.remote.server import RemoteServer
    from cellwright.kernel.remote.websocket import KernelWebSocket

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_FUTILE, _MOST_FUTILE = 2.0, 6
_log = logging.getLogger("cellwright.kernel")


class KernelLink:
    """One kernel's channels, for as long as they can be reached.

    Args:
        on_message: gets each message that does not answer an `ask`; until it returns, nothing
            more is read.
        on_gap: called each time that the connection was lost and is back, with the reason.
        on_end: called once, when the kernel is gone or cannot be reached any more.
    """

    def __init__(
        self,
        server: RemoteServer,
        kernel_id: str,
        *,
        on_message: Callable[[RemoteMessage], Awaitable[None]],
        on_gap: Callable[[str], None],
        on_end: Callable[[str], None],
    ) -> None:
        self.session = uuid4().hex
        self._server = server
        self._kernel_id = kernel_id
        self._on_message = on_message
        self._on_gap = on_gap
        self._on_end = on_end
        self._socket: KernelWebSocket | None = None
        self._changed = asyncio.Condition()
        self._is_ended = False
        self._reader: asyncio.Task[None] | None = None
        self._pending: dict[str, _PendingRequest] = {}

    async def open(self) -> None:
        """Connect.

        Raises:
            KernelError: there is no such kernel, or no way to it.
        """
        rest = self._server.rest
        try:
            self._socket = await open_websocket(rest, self._kernel_id, self.session)
        except ConnectionLost as lost:
            if lost.status in {401, 403}:
                raise rest.refusal(lost.status) from None
            if lost.status is not None and 300 <= lost.status < 400:
                raise rest.redirect("") from None
            if lost.status == 404:
                raise KernelMissing(
                    f"{self._server.address} has no kernel with the id {self._kernel_id}",
                    hint="It ended, or never existed; start a new one",
                ) from None
            if lost.status is not None:
                raise KernelStartFailed(
                    self._kernel_id, f"the server did not connect us: {lost.reason}"
                ) from None
            raise rest.unreachable(lost.reason) from None
        self._reader = asyncio.create_task(self._read_messages(self._socket), name="remote kernel")

    async def close(self) -> None:
        """Disconnect; pending requests fail."""
        self._is_ended = True
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        await self._close_socket()
        self._fail_pending()

    def make_message(
        self,
        channel: str,
        kind: str,
        content: Mapping[str, Any],
        *,
        parent: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        buffers: tuple[bytes, ...] = (),
    ) -> RemoteMessage:
        """Make a message with an id of its own."""
        header = build_header(kind, uuid4().hex, self.session, "cellwright")
        return RemoteMessage(channel, header, parent or {}, metadata or {}, content, buffers)

    @property
    def protocol(self) -> str | None:
        """The framing that the server chose; None for the default one, or while not connected."""
        return self._socket.protocol if self._socket is not None else None

    async def wait_connected(self) -> None:
        """Wait until there is a connection, or until it is clear that there will be none."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._socket is not None or self._is_ended)

    async def freshen(self) -> None:
        """Make sure that the connection works: what is sent on a dead one is lost."""
        await self.wait_connected()
        socket = self._socket
        if socket is not None and not await socket.is_connected():
            async with self._changed:
                if self._socket is socket:
                    self._socket = None
                    socket.abort()
        await self.wait_connected()

    async def send(self, message: RemoteMessage) -> None:
        """Send a message, once there is a connection.

        Raises:
            ConnectionLost: it broke on the way, or there will be no connection any more.
        """
        await self.wait_connected()
        if self._socket is None:
            raise ConnectionLost("the kernel is gone")
        await self._socket.send(message)

    async def ask(
        self, message: RemoteMessage, within: float
    ) -> tuple[RemoteMessage, list[RemoteMessage]]:
        """Send a request; returns its reply, and what the kernel published until `idle`.

        Raises:
            ConnectionLost: the connection broke before the answer was complete.
            TimeoutError: it did not come in time.
        """
        identity = str(message.header["msg_id"])
        pending = self._pending[identity] = _PendingRequest()
        try:
            async with asyncio.timeout(within):
                await self.send(message)
                return await pending.answer
        finally:
            self._pending.pop(identity, None)

    async def run_silently(
        self, source: str, within: float
    ) -> tuple[RemoteMessage, list[RemoteMessage]]:
        """Run code of ours, without a trace in the kernel's history; raises as `ask` does."""
        request = build_execute_request(source)
        return await self.ask(self.make_message("shell", "execute_request", request), within)

    async def _read_messages(self, socket: KernelWebSocket) -> None:
        futile = 0
        while True:
            opened = time.monotonic()
            try:
                async for message in socket.messages():
                    futile = 0
                    pending = self._pending.get(message.parent_id)
                    if pending is None:
                        await self._on_message(message)
                    else:
                        pending.take(message)
            except ConnectionLost as lost:
                reason = lost.reason
            self._socket = None
            await socket.close()
            self._fail_pending()
            _log.info("connection lost", extra={"kernel": self._kernel_id, "reason": reason})
            began = time.monotonic()
            # A server that accepts us only to hang up again cannot be used.
            futile = futile + 1 if began - opened < _FUTILE else 0
            if futile > _MOST_FUTILE:
                back: KernelWebSocket | str = "the server accepts us, and hangs up at once"
            else:
                back = await self._reconnect(_FIRST_PAUSE * 2**futile if futile > 1 else 0)
            if isinstance(back, str):
                self._is_ended = True
                async with self._changed:
                    self._changed.notify_all()
                self._on_end(back)
                return
            socket = back
            async with self._changed:
                self._socket = socket
                self._changed.notify_all()
            self._on_gap(f"{reason}, and was back after {time.monotonic() - began:.1f} s")

    async def _reconnect(self, wait: float) -> KernelWebSocket | str:
        """Connect again, or return why that is impossible."""
        await asyncio.sleep(wait)
        until = time.monotonic() + self._server.timeouts.reconnect
        pause = _FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout_at(
                    asyncio.get_running_loop().time() + _seconds_left(until)
                ):
                    return await open_websocket(self._server.rest, self._kernel_id, self.session)
            except TimeoutError:
                reason = "it took too long"
            except ConnectionLost as lost:
                if lost.status in {401, 403}:
                    return "the server no longer lets us in"
                if lost.status == 404 and await self._is_gone():
                    return "the server no longer has it"
                reason = lost.reason
            if time.monotonic() + pause >= until:
                return f"the server could not be reached again ({reason})"
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # so that not all clients come at once
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _is_gone(self) -> bool:
        try:
            return await self._server.kernel(self._kernel_id) is None
        except KernelError:
            return False

    async def _close_socket(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    def _fail_pending(self) -> None:
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(ConnectionLost("the connection was lost"))


class _PendingRequest:
    """A request that waits for its reply and its `idle`."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[RemoteMessage, list[RemoteMessage]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._reply: RemoteMessage | None = None
        self._published: list[RemoteMessage] = []
        self._is_idle = False

    def take(self, message: RemoteMessage) -> None:
        if message.channel != "iopub":
            self._reply = message
        elif message.kind != "status":
            self._published.append(message)
        elif message.content.get("execution_state") == "idle":
            self._is_idle = True
        if self._reply is not None and self._is_idle and not self.answer.done():
            self.answer.set_result((self._reply, self._published))


def _seconds_left(until: float) -> float:
    return max(0.1, until - time.monotonic())
