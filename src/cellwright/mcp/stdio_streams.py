"""Serve one client over stdin and stdout.

The streams that the library of the protocol reads and writes are the wire itself: a queue and a
task between the two would cost every message turns of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage

from cellwright.mcp.stdio import encode_message, refuse_line

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from cellwright.mcp.stdio import StdioWire


async def serve_stdio(server: Server[Any], wire: StdioWire) -> None:
    """Serve one client until it closes our stdin, or stops reading."""
    to_client = ToClient(wire)
    options = server.create_initialization_options()
    serving = asyncio.ensure_future(server.run(FromClient(wire, to_client), to_client, options))
    leaving = asyncio.ensure_future(to_client.is_gone.wait())
    try:
        await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not leaving.done():
            await to_client.finish()
    finally:
        serving.cancel()
        leaving.cancel()
        found = await asyncio.gather(serving, leaving, return_exceptions=True)
    gone = (OSError, asyncio.CancelledError, anyio.BrokenResourceError, anyio.ClosedResourceError)
    for error in found:
        if isinstance(error, BaseException) and not isinstance(error, gone):
            raise error


class ToClient(ObjectSendStream[SessionMessage]):
    """Messages to the client; `is_gone` is set when it does not take them any more."""

    def __init__(self, wire: StdioWire) -> None:
        self.is_gone = asyncio.Event()
        self._wire = wire
        self._turn = asyncio.Lock()

    async def send(self, item: SessionMessage) -> None:
        """Write a message.

        Raises:
            BrokenResourceError: the client is gone.
        """
        await self.write(encode_message(item.message))

    async def write(self, data: bytes) -> None:
        """Write a line; raises as `send` does."""
        try:
            is_written = not self._turn.locked() and self._wire.write_at_once(data)
        except OSError:
            self.is_gone.set()
        else:
            if not is_written:
                # A call that is cancelled now must not leave half a line behind.
                await asyncio.shield(asyncio.ensure_future(self._write_in_turn(data)))
        if self.is_gone.is_set():
            raise anyio.BrokenResourceError

    async def finish(self) -> None:
        """Wait until what was begun is written."""
        async with self._turn:
            pass

    async def aclose(self) -> None:
        """Do nothing: the wire lives as long as the process."""

    async def _write_in_turn(self, data: bytes) -> None:
        async with self._turn:
            try:
                await self._wire.write(data)
            except OSError:
                self.is_gone.set()


class FromClient(ObjectReceiveStream[SessionMessage | Exception]):
    """Messages of the client; a line that is none is answered with an error."""

    def __init__(self, wire: StdioWire, to_client: ToClient) -> None:
        self._lines = wire.lines()
        self._to_client = to_client

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            EndOfStream: the client has closed our stdin.
        """
        async for line in self._lines:
            message = await self._read(line)
            if message is not None:
                return message
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Do nothing: the wire lives as long as the process."""

    async def _read(self, line: bytes | None) -> SessionMessage | None:
        if line is not None and not line.strip():
            return None
        try:
            if line is None:
                raise ValueError("too long")  # noqa: TRY301
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            refusal = refuse_line(line)
            if refusal is not None:
                with contextlib.suppress(anyio.BrokenResourceError):  # who serves it hears of that
                    await self._to_client.write(refusal)
            return None
