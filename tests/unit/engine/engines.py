"""An engine for a test: in this process, or a real one with places of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.config.settings import Settings
from cellwright.engine import location, wire
from cellwright.engine.client import EngineConnection
from cellwright.engine.connection import Connection
from cellwright.engine.launch import connect_or_start, try_connect
from cellwright.engine.service import Service
from cellwright.engine.wire import identify_file, make_hello

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import pytest


# --- In this process -----------------------------------------------------------------------------


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
        await self.send(wire.request(number, method, params))
        while True:
            message = await self.receive()
            if message.get("id") == number:
                return message

    async def greet(self, **other: Any) -> dict[str, Any]:
        return await self.call("hello", **greeting(**other))


def greeting(**other: Any) -> dict[str, Any]:
    words = make_hello(
        cwd=str(Path.cwd()), root=None, mode="agent", actor="test:ada", environ=dict(os.environ)
    )
    return {**words, **other}


@contextlib.asynccontextmanager
async def serving(
    path: Path, handle: Any = None, *, most: int = wire.MAX_FRAME, **settings: Any
) -> AsyncIterator[tuple[Service, Callable[[], Any]]]:
    """A service in this process, and how to connect to it; `handle` may take its place."""
    service = Service(Settings(**settings), str(path / "s"))
    writers: list[asyncio.StreamWriter] = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await service.serve(Connection(reader, writer, handle or service.handle, most=most))

    server = await asyncio.start_unix_server(client, path / "s", limit=2**18)
    service._place = identify_file(str(path / "s"))

    async def connect() -> Line:
        reader, writer = await asyncio.open_unix_connection(path / "s", limit=2**26)
        writers.append(writer)
        return Line(reader, writer)

    try:
        yield service, connect
    finally:
        for writer in writers:
            writer.close()
        server.close()
        service.leaving.set()
        await service.close()


# --- As a process --------------------------------------------------------------------------------


class Engine:
    """The engine of this test's places."""

    @property
    def pid(self) -> int:
        return int(self.status()["pid"])

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = ask("status")
        return found

    def stop(self) -> None:
        """Tell it to leave, and see that it does."""
        with contextlib.suppress(ConnectionError):
            end(ask("stop")["pid"])


def ask(verb: str, path: str | None = None) -> Any:
    """Call the engine without a greeting."""
    connected = try_connect(path)
    if connected is None:
        raise ConnectionRefusedError
    client = EngineConnection(connected, None)
    try:
        return client.call(verb, {})
    finally:
        client.close()


def end(pid: int) -> None:
    """Wait for the end of a process that was told to end; not for ever."""
    try:
        wait_for(lambda: not is_alive(pid), f"the end of process {pid}", 20)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        raise


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(is_true: Callable[[], Any], what: str, seconds: float = 20) -> Any:
    """Wait until something holds; what another process does can only be looked at."""
    deadline = time.monotonic() + seconds
    while not (found := is_true()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)
    return found


@contextlib.contextmanager
def engine_of_its_own(patch: pytest.MonkeyPatch, *, started: bool = True) -> Iterator[Engine]:
    """Commands go through an engine, which ends with the block."""
    patch.setenv("CELLWRIGHT_ENGINE", "always")
    patch.delenv("CI", raising=False)
    if started:
        connect_or_start().close()
    engine = Engine()
    try:
        yield engine
    finally:
        for path in location.draining_paths():
            with contextlib.suppress(ConnectionError):
                end(ask("stop", path)["pid"])
        engine.stop()
