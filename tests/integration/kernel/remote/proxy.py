"""A proxy between a client and a server that misbehaves on command."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

PIECE = 64 * 2**10


@dataclass
class Asked:
    """A request as it came by: its first line, and all its headers."""

    line: str
    headers: str

    @property
    def is_websocket(self) -> bool:
        return "upgrade: websocket" in self.headers.lower()


@dataclass
class Proxy:
    """Passes bytes on, but for what it was told to do.

    `answers` are given to the next requests for which `should_fail` holds, in place of the
    server's. The answers to the next `lost_answers` of them are dropped instead: the server did
    what it was asked, and nobody hears. `refuses` closes every new connection at once.
    `cut_after` ends a WebSocket when so many more bytes came from the server, in the middle of a
    frame or not. `is_deaf` and `is_mute` swallow what a WebSocket's client says and hears.
    """

    port: int
    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    hides_protocols: bool = False
    answers: list[bytes] = field(default_factory=list)
    should_fail: Callable[[Asked], bool] = lambda asked: asked.line.startswith("POST")
    refuses: bool = False
    lost_answers: int = 0
    is_deaf: bool = False
    is_mute: bool = False
    cut_after: int | None = None
    swallowed: int = 0  # bytes that a client said to the deaf
    seen: list[Asked] = field(default_factory=list)
    own_port: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _sockets: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.tls)
        self.own_port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.drop(everything=True)
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, original: str) -> str:
        """The address of a server, by way of the proxy."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "https" if self.tls else "http"
        return original.replace(
            f"http://127.0.0.1:{self.port}", f"{scheme}://{host}:{self.own_port}"
        )

    def drop(self, *, everything: bool = False) -> int:
        """Cut all WebSockets, or all connections, without a word; returns how many."""
        victims = [*(self._open if everything else self._sockets)]
        for writer in victims:
            writer.transport.abort()
        return len(victims)

    @property
    def websockets(self) -> int:
        """How many WebSockets were asked for so far."""
        return sum(asked.is_websocket for asked in self.seen)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._pass(reader, writer)
        finally:
            self._tasks.discard(task)
            self._open.discard(writer)
            self._sockets.discard(writer)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            return
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, _, headers = head.partition("\r\n")
        asked = Asked(line, headers)
        self.seen.append(asked)
        if self.answers and self.should_fail(asked):
            answer = self.answers.pop(0)
            writer.write(answer)
            if answer:
                await writer.drain()
                writer.write_eof()
                await reader.read()
            return
        is_lost = self.lost_answers > 0 and self.should_fail(asked)
        self.lost_answers -= is_lost
        if self.hides_protocols:
            head = re.sub(r"Sec-WebSocket-Protocol:[^\r]*\r\n", "", head, flags=re.IGNORECASE)
        if asked.is_websocket:
            self._sockets.add(writer)
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._open.add(there_writer)
        try:
            there_writer.write(head.encode("latin-1"))
            there = asyncio.ensure_future(
                self._copy_there(reader, there_writer, is_websocket=asked.is_websocket)
            )
            back = asyncio.ensure_future(
                self._wait_for_answer(there_reader)
                if is_lost
                else self._copy_back(there_reader, writer, is_websocket=asked.is_websocket)
            )
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            for task in (there, back):
                task.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
        finally:
            self._open.discard(there_writer)
            there_writer.transport.abort()

    async def _copy_there(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_websocket: bool
    ) -> None:
        while piece := await reader.read(PIECE):
            if is_websocket and self.is_deaf:
                self.swallowed += len(piece)
                continue
            writer.write(piece)
            await writer.drain()

    async def _copy_back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_websocket: bool
    ) -> None:
        while piece := await reader.read(PIECE):
            if is_websocket and self.is_mute:
                continue
            if is_websocket and self.cut_after is not None:
                left = self.cut_after - len(piece)
                self.cut_after = left if left > 0 else None
                writer.write(piece[: len(piece) + min(left, 0)])
                if left <= 0:
                    await writer.drain()
                    return
                continue
            writer.write(piece)
            await writer.drain()

    async def _wait_for_answer(self, reader: asyncio.StreamReader) -> None:
        await reader.read(1)


def answer(status: int, body: str = "{}", **headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status} As told", f"Content-Length: {len(body.encode())}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", body]).encode()
