"""One WebSocket to the channels of one kernel, and the two framings of messages on it.

`v1.kernel.websocket.jupyter.org` is a table of offsets and the parts as the kernel wrote them.
The default framing is a JSON text, or with buffers a table of offsets, that JSON, and the buffers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import time
from dataclasses import dataclass, field
from itertools import pairwise

from cellwright.kernel.jupyter import (
    DISPLAYS,
    MOST_CONTENT,
    decode_json,
    encode_json,
    read_beginnings,
)
from cellwright.kernel.remote.server import describe_connection_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Any

    from tornado.websocket import WebSocketClientConnection

    from cellwright.kernel.remote.server import RestClient

V1 = "v1.kernel.websocket.jupyter.org"
LARGEST_MESSAGE = 100 * 10**6
TRUSTED_FOR = 2.0
"""A connection from which something came in the last seconds is not tested."""
_BAD_FRAMES_ALLOWED = 100
_CLOSING_PATIENCE = 1.0
_MOST_PARTS = 10_000
_log = logging.getLogger("cellwright.kernel")


class BadFrame(ValueError):
    """A frame that does not hold a Jupyter message."""


@dataclass(slots=True)
class RemoteMessage:
    """One message, on one of the channels `shell`, `control`, `stdin` and `iopub`."""

    channel: str
    header: Mapping[str, Any]
    parent: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    buffers: tuple[bytes, ...] = ()
    size: int = 0
    raw: bytes = b""
    """The content as it came, if it is too large: then `content` is only how it begins."""

    @property
    def kind(self) -> str:
        """Its type, such as `stream`."""
        return str(self.header.get("msg_type", ""))

    @property
    def parent_id(self) -> str:
        """The id of the request that it answers."""
        return str(self.parent.get("msg_id", ""))


def encode_frame(message: RemoteMessage, protocol: str | None) -> str | bytes:
    """Encode a message as a frame: text or binary, as the protocol requires."""
    if protocol == V1:
        parts = [
            message.channel.encode(),
            *(
                encode_json(part).encode()
                for part in (message.header, message.parent, message.metadata, message.content)
            ),
            *message.buffers,
        ]
        offsets = [8 * (len(parts) + 2)]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        return b"".join([struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets), *parts])
    text = encode_json(
        {
            "channel": message.channel,
            "header": message.header,
            "parent_header": message.parent,
            "metadata": message.metadata,
            "content": message.content,
        }
    )
    if not message.buffers:
        return text
    parts = [text.encode(), *message.buffers]
    starts = [4 * (len(parts) + 1)]
    for part in parts[:-1]:
        starts.append(starts[-1] + len(part))
    return b"".join([struct.pack(f"!{len(parts) + 1}I", len(parts), *starts), *parts])


def decode_frame(frame: str | bytes, protocol: str | None) -> RemoteMessage:
    """Decode the message in a frame.

    Raises:
        BadFrame: there is none.
    """
    try:
        if isinstance(frame, str):
            return _from_object(decode_json(frame), (), len(frame))
        if protocol == V1:
            return _from_v1(frame)
        parts = _slices(frame, "!", 4, has_end=False)
        return _from_object(decode_json(parts[0]), parts[1:], len(frame))
    except (ValueError, IndexError, KeyError, RecursionError, struct.error, OverflowError) as error:
        raise BadFrame(f"{type(error).__name__} in a frame of {len(frame)} bytes") from None


def _from_v1(frame: bytes) -> RemoteMessage:
    channel, header, parent, metadata, content, *buffers = _slices(frame, "<", 8, has_end=True)
    head = _object(decode_json(header))
    is_output = head.get("msg_type") in {*DISPLAYS, "error", "execute_reply"}
    is_large = is_output and len(content) > MOST_CONTENT
    return RemoteMessage(
        channel.decode(),
        head,
        _object(decode_json(parent)),
        _object(decode_json(metadata)),
        read_beginnings(content) if is_large else _object(decode_json(content)),
        tuple(buffers),
        len(frame),
        content if is_large else b"",
    )


def _from_object(value: Any, buffers: Sequence[bytes], size: int) -> RemoteMessage:
    value = _object(value)
    return RemoteMessage(
        str(value.get("channel") or "iopub"),
        _object(value["header"]),
        _object(value.get("parent_header") or {}),
        _object(value.get("metadata") or {}),
        _object(value.get("content") or {}),
        tuple(buffers),
        size,
    )


def _slices(frame: bytes, order: str, width: int, *, has_end: bool) -> list[bytes]:
    letter = "Q" if width == 8 else "I"
    (count,) = struct.unpack_from(f"{order}{letter}", frame)
    if not 0 < count <= _MOST_PARTS:
        raise BadFrame("too many parts, or none")
    offsets = list(struct.unpack_from(f"{order}{count}{letter}", frame, width))
    if not has_end:
        offsets.append(len(frame))
    if offsets[0] < width * (count + 1) or offsets[-1] > len(frame):
        raise BadFrame("offsets outside the frame")
    if any(stop < start for start, stop in pairwise(offsets)):
        raise BadFrame("offsets out of order")
    return [frame[start:stop] for start, stop in pairwise(offsets)]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadFrame("a part is not an object")
    return value


class ConnectionLost(Exception):
    """The connection is lost, or could not be made; `status` is set when the server refused it."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class KernelWebSocket:
    """An open connection; `open_websocket` makes one.

    It is tested when it falls silent, and never holds more than one message: a slow reader makes
    the server wait.
    """

    def __init__(self, connection: WebSocketClientConnection, quiet: float) -> None:
        self.protocol = connection.selected_subprotocol
        self._connection = connection
        self._quiet = quiet
        self._ponged = asyncio.Event()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard = time.monotonic()
        # Tornado's own pings would take a busy reader for a dead connection.
        connection.on_pong = self._on_pong  # type: ignore[method-assign]  # made to be

    async def is_connected(self) -> bool:
        """Whether the other end answers; it is not asked if something came from it lately."""
        if time.monotonic() - self._heard < TRUSTED_FOR:
            return True
        try:
            await self._test()
        except ConnectionLost:
            return False
        return True

    def abort(self) -> None:
        """Hang up; the reader notices."""
        stream = getattr(self._connection.protocol, "stream", None)
        if stream is not None:
            stream.close()

    async def send(self, message: RemoteMessage) -> None:
        """Send a message.

        Raises:
            ConnectionLost: it did not leave, or not entirely.
        """
        from tornado.websocket import WebSocketClosedError

        frame = encode_frame(message, self.protocol)
        try:
            await self._connection.write_message(frame, binary=isinstance(frame, bytes))
        except WebSocketClosedError:
            raise ConnectionLost("the connection was closed") from None

    async def messages(self) -> AsyncIterator[RemoteMessage]:
        """Yield every message until the connection is lost; bad frames are skipped.

        Raises:
            ConnectionLost: always, in the end.
        """
        bad = 0
        while True:
            frame = await self._next_frame()
            try:
                message = decode_frame(frame, self.protocol)
            except BadFrame as error:
                bad += 1
                _log.warning("not a message", extra={"reason": str(error)})
                if bad >= _BAD_FRAMES_ALLOWED:
                    raise ConnectionLost("it does not send Jupyter messages") from None
                continue
            yield message

    async def close(self) -> None:
        """Close the connection, and leave nothing behind."""
        protocol = self._connection.protocol
        stream = getattr(protocol, "stream", None)
        self._connection.close()
        with contextlib.suppress(TimeoutError, ConnectionLost):
            async with asyncio.timeout(_CLOSING_PATIENCE):
                while True:
                    await self._next_frame(is_tested=False)
        if stream is not None and not stream.closed():
            stream.close()
            with contextlib.suppress(TimeoutError, ConnectionLost):
                async with asyncio.timeout(_CLOSING_PATIENCE):
                    while True:
                        await self._next_frame(is_tested=False)

    def _acknowledge(self) -> None:
        # Servers hold a small frame back until the one before is acknowledged, which the system
        # here would delay by 40 ms for each cell. The option has to be set again each time.
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
            raise ConnectionLost(f"the connection was closed{said}")
        self._heard = time.monotonic()
        return frame

    async def _test(self, reading: asyncio.Future[str | bytes | None] | None = None) -> None:
        """Ask the other end to answer; a message in the meantime is enough."""
        from tornado.websocket import WebSocketClosedError

        self._ponged.clear()
        try:
            self._connection.ping()
        except WebSocketClosedError:
            raise ConnectionLost("the connection was closed") from None
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
            raise ConnectionLost("the connection was closed")
        if not done:
            raise ConnectionLost("the server stopped answering")

    def _on_pong(self, data: bytes) -> None:
        del data
        self._heard = time.monotonic()
        self._ponged.set()


async def open_websocket(rest: RestClient, kernel_id: str, session: str) -> KernelWebSocket:
    """Connect to a kernel's channels.

    With the same `session` again, the server sends what it kept for us meanwhile.

    Raises:
        ConnectionLost: there is no such kernel, no such server, or no permission.
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
            raise ConnectionLost("it took too long, or hung up") from None
        raise ConnectionLost(f"HTTP {error.code}", error.code) from None
    except StreamClosedError:
        raise ConnectionLost("it hung up") from None
    except OSError as error:
        raise ConnectionLost(describe_connection_error(error)) from None
    except (WebSocketError, AssertionError, ValueError):
        raise ConnectionLost("it does not speak WebSocket with us") from None
    return KernelWebSocket(connection, rest.timeouts.quiet)


def _close_unwanted(connecting: asyncio.Future[WebSocketClientConnection]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()


V1 = "v1.kernel.websocket.jupyter.org"
