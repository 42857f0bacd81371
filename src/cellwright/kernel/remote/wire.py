"""One WebSocket to the channels of one kernel.

It is tested when it falls silent, closed without a trace, and never holds more than one message:
who reads slowly makes the server wait, not us grow.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time

from cellwright.kernel.remote.framing import V1, BadFrame, decode, encode
from cellwright.kernel.remote.rest import why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from tornado.websocket import WebSocketClientConnection

    from cellwright.kernel.remote.framing import Message
    from cellwright.kernel.remote.rest import Rest

LARGEST_MESSAGE = 100 * 10**6
_BAD_FRAMES_BORNE = 100
_GOODBYE = 1.0
TRUSTED_FOR = 2.0
"""A connection that was heard this many seconds ago is taken to be there still."""
_log = logging.getLogger("cellwright.kernel")


class LostWire(Exception):
    """The connection is gone, or could not be made; `status` is set when the server said no."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Wire:
    """An open connection; `open_wire` makes one."""

    def __init__(self, connection: WebSocketClientConnection, quiet: float) -> None:
        self.protocol = connection.selected_subprotocol
        self._connection = connection
        self._quiet = quiet
        self._ponged = asyncio.Event()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard = time.monotonic()
        # Tornado's own pings would take a reader who is busy for a connection that is dead.
        connection.on_pong = self._on_pong  # type: ignore[method-assign]  # made to be

    async def is_there(self) -> bool:
        """Whether the other end gives a sign of life, if it gave none of late."""
        if time.monotonic() - self._heard < TRUSTED_FOR:
            return True
        try:
            await self._test()
        except LostWire:
            return False
        return True

    def abort(self) -> None:
        """Hang up; whoever reads notices."""
        stream = getattr(self._connection.protocol, "stream", None)
        if stream is not None:
            stream.close()

    async def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            LostWire: it did not leave, or not entirely.
        """
        from tornado.websocket import WebSocketClosedError

        frame = encode(message, self.protocol)
        try:
            await self._connection.write_message(frame, binary=isinstance(frame, bytes))
        except WebSocketClosedError:
            raise LostWire("the connection was closed") from None

    async def messages(self) -> AsyncIterator[Message]:
        """Every message until the connection is lost; frames that hold none are passed over.

        Raises:
            LostWire: always, in the end.
        """
        bad = 0
        while True:
            frame = await self._next_frame()
            try:
                message = decode(frame, self.protocol)
            except BadFrame as error:
                bad += 1
                _log.warning("not a message", extra={"reason": str(error)})
                if bad >= _BAD_FRAMES_BORNE:
                    raise LostWire("what it sends are no Jupyter messages") from None
                continue
            yield message

    async def close(self) -> None:
        """Say goodbye, and leave nothing behind."""
        protocol = self._connection.protocol
        stream = getattr(protocol, "stream", None)
        self._connection.close()
        with contextlib.suppress(TimeoutError, LostWire):
            async with asyncio.timeout(_GOODBYE):
                while True:
                    await self._next_frame(is_tested=False)
        if stream is not None and not stream.closed():
            stream.close()
            with contextlib.suppress(TimeoutError, LostWire):
                async with asyncio.timeout(_GOODBYE):
                    while True:
                        await self._next_frame(is_tested=False)

    def _acknowledge(self) -> None:
        # Servers hold a small frame back until the one before is acknowledged, which the kernel
        # of this machine would put off: 40 ms a cell. It has to be told anew each time.
        stream = getattr(self._connection.protocol, "stream", None)
        if stream is not None and not stream.closed() and hasattr(socket, "TCP_QUICKACK"):
            with contextlib.suppress(OSError):
                stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    async def _next_frame(self, *, is_tested: bool = True) -> str | bytes:
        self._acknowledge()
        reading: asyncio.Future[str | bytes | None]
        reading = asyncio.ensure_future(self._connection.read_message())
        try:
            # `wait` rather than `timeout`: it does not cancel a read that has its frame already.
            while is_tested and not (await asyncio.wait({reading}, timeout=self._quiet))[0]:
                await self._test(reading)
            frame = await reading
        finally:
            reading.cancel()
        if frame is None:
            if not self._gone.done():
                self._gone.set_result(None)
            code, reason = self._connection.close_code, self._connection.close_reason
            said = f" ({code}{f' {reason}' if reason else ''})" if code else ""
            raise LostWire(f"the connection was closed{said}")
        self._heard = time.monotonic()
        return frame

    async def _test(self, reading: asyncio.Future[str | bytes | None] | None = None) -> None:
        """Ask the other end for a sign of life; a message in the meantime will do."""
        from tornado.websocket import WebSocketClosedError

        self._ponged.clear()
        try:
            self._connection.ping()
        except WebSocketClosedError:
            raise LostWire("the connection was closed") from None
        answer = asyncio.ensure_future(self._ponged.wait())
        try:
            signs: set[asyncio.Future[Any]] = {answer, self._gone}
            if reading is not None:
                signs.add(reading)
            done, _ = await asyncio.wait(
                signs, timeout=self._quiet, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            answer.cancel()
        if self._gone in done:
            raise LostWire("the connection was closed")
        if not done:
            raise LostWire("the other end fell silent")

    def _on_pong(self, data: bytes) -> None:
        del data
        self._heard = time.monotonic()
        self._ponged.set()


async def open_wire(rest: Rest, kernel_id: str, session: str) -> Wire:
    """Connect to a kernel's channels.

    The same `session` again lets the server give us what it kept for us meanwhile.

    Raises:
        LostWire: there is no such kernel, no such server, or no permission.
    """
    from tornado.httpclient import HTTPClientError, HTTPRequest
    from tornado.iostream import StreamClosedError
    from tornado.websocket import WebSocketError, websocket_connect

    # The connection may only open once the kernel is ready: `ready`, not `connect`.
    request = HTTPRequest(
        rest.address.websocket("kernels", kernel_id, "channels", query={"session_id": session}),
        headers=rest.headers(),
        connect_timeout=rest.timeouts.connect,
        request_timeout=rest.timeouts.ready,
        ssl_options=rest.tls,
    )
    connecting = asyncio.ensure_future(
        websocket_connect(request, max_message_size=LARGEST_MESSAGE, subprotocols=[V1])
    )
    try:
        connection = await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_close_unwanted)
        raise
    except HTTPClientError as error:
        if error.code == 599:
            raise LostWire("it took too long, or hung up") from None
        raise LostWire(f"HTTP {error.code}", error.code) from None
    except StreamClosedError:
        raise LostWire("it hung up") from None
    except OSError as error:
        raise LostWire(why(error)) from None
    except (WebSocketError, AssertionError, ValueError):
        raise LostWire("it does not speak WebSocket with us") from None
    return Wire(connection, rest.timeouts.quiet)


def _close_unwanted(connecting: asyncio.Future[WebSocketClientConnection]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()
