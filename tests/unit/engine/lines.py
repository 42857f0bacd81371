"""A service in this process, and clients that say what they like; no socket has a name."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from typing import TYPE_CHECKING, Any

from cellwright.config.settings import Settings
from cellwright.engine import wire
from cellwright.engine.connection import Connection
from cellwright.engine.service import Service
from tests.engines import greeting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


class Line:
    """A client that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._numbers = iter(range(1, 10**9))

    async def send(self, *lines: bytes | dict[str, Any]) -> None:
        for line in lines:
            self.writer.write(wire.encode(line) if isinstance(line, dict) else line)
        await self.writer.drain()

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(20):
            message: dict[str, Any] = json.loads(await self.reader.readline())
        return message

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call, and return the answer; events before it are let go."""
        number = next(self._numbers)
        await self.send(wire.make_call(number, method, params))
        while True:
            message = await self.receive()
            if message.get("id") == number:
                return message

    async def greet(self, **other: Any) -> dict[str, Any]:
        return await self.call("hello", **greeting(**other))


@contextlib.asynccontextmanager
async def serving(
    folder: Path, handle: Any = None, *, most: int = wire.MAX_FRAME, **settings: Any
) -> AsyncIterator[tuple[Service, Callable[..., Any]]]:
    """A service in this process, and how to connect to it; `handle` may take its place."""
    (folder / "s").touch()  # in place of its socket
    service = Service(Settings(**settings), str(folder / "s"))
    writers: list[asyncio.StreamWriter] = []
    serving: set[asyncio.Task[None]] = set()

    async def connect(process: int | None = None) -> Line:
        here, there = socket.socketpair()
        ours = await asyncio.open_connection(sock=there, limit=2**18)
        client = Connection(*ours, handle or service.handle, most=most, process=process)
        serving.add(asyncio.ensure_future(service.serve(client)))
        reader, writer = await asyncio.open_connection(sock=here, limit=2**26)
        writers.append(writer)
        return Line(reader, writer)

    try:
        yield service, connect
    finally:
        for writer in writers:
            writer.close()
        service.leaving.set()
        await service.close()
        await asyncio.gather(*serving, return_exceptions=True)
