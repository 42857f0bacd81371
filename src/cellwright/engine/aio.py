"""Talk to the engine from an event loop; many calls at a time over one connection."""

from __future__ import annotations

import asyncio
import contextlib
import time

from cellwright.engine import wire
from cellwright.engine.client import (
    LONG_PATIENCE,
    MUTE,
    PATIENCE,
    SILENCE,
    EngineConnection,
    can_ask_again,
)
from cellwright.engine.launch import greet_engine
from cellwright.errors import CellwrightError, EngineLost, EngineUnavailable
from cellwright.workspace.caller import Caller
from cellwright.workspace.workspace import AsyncWorkspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from cellwright.workspace.api.requests import Mode, PathLike, Request

    A = TypeVar("A")

_LOOK_EVERY = 0.2


async def connect(
    root: PathLike | None = None,
    *,
    cwd: str | None = None,
    mode: Mode = "agent",
    actor: str = "python:caller",
    environ: Mapping[str, str] | None = None,
) -> AsyncWorkspace:
    """Return an `AsyncWorkspace` whose kernels live in the engine, which is started if needed.

    Raises:
        EngineUnavailable: it could not be started.
        EngineDraining: the one that runs takes no new work.
    """
    options: dict[str, Any] = {"cwd": cwd, "mode": mode, "actor": actor, "environ": environ}
    api = AsyncEngineApi(Caller(root, **options))
    await api.connect()
    return AsyncWorkspace(root, **options, api=api)


class _Call:
    """One call that is under way."""

    def __init__(self, request: Request[Any]) -> None:
        self.request = request
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class AsyncEngineApi:
    """Carries requests out in the engine, over one connection that is made anew when it breaks."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._wire = wire.ClientWire()
        self._calls: dict[int, _Call] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False
        self._heard_at = 0.0
        self._asked_at: float | None = None

    async def connect(self) -> None:
        """Connect, unless that is done."""
        async with self._connecting:
            if self._is_closed:
                raise EngineUnavailable("this workspace is closed")
            if self._writer is not None:
                return
            connected = await asyncio.to_thread(greet_engine, self._greet, start=True)
            assert connected is not None  # noqa: S101  # it was started, or an error raised
            reader, self._writer = await asyncio.open_unix_connection(sock=connected)
            self._heard_at, self._asked_at = time.monotonic(), None
            self._reading = asyncio.ensure_future(self._read(reader))

    def _greet(self, connected: socket.socket) -> socket.socket:
        EngineConnection(connected, lambda: wire.make_hello(self._caller))
        return connected

    async def call(self, request: Request[A]) -> A:
        """Call a verb and wait for its answer; a cancelled call stops the run it started."""
        try:
            return await self._call(request)
        except EngineLost as lost:
            if not can_ask_again(request, lost):
                raise
            return await self._call(request)

    async def _call(self, request: Request[A]) -> A:
        await self.connect()
        number, line = self._wire.write_request(request)
        call = self._calls[number] = _Call(request)
        until = getattr(request, "until", None)
        looking = asyncio.ensure_future(self._look(number, until)) if until else None
        try:
            await self._send(request.VERB, line)
            found = await self._wait_for(call)
            if request.VERB == "load":  # it may read a file
                return await asyncio.to_thread(request.decode_answer, found)
            return request.decode_answer(found)
        except asyncio.CancelledError:
            with contextlib.suppress(CellwrightError):  # its answer, whatever it is, came too late
                await self._send(request.VERB, self._wire.write_stop(number))
                if request.runs_cells:
                    await self._wait_for(call)
            raise
        finally:
            if looking is not None:
                looking.cancel()
            del self._calls[number]
            if not call.answer.cancel() and not call.answer.cancelled():
                call.answer.exception()  # seen, also if no one waits for it any more

    async def close(self) -> None:
        """Hang up; runs that were started continue."""
        self._is_closed = True
        for task in (*self._asking, *([self._reading] if self._reading else ())):
            task.cancel()
        self._lose_connection()
        self._caller.close()

    async def _wait_for(self, call: _Call) -> Any:
        """Return the answer to a call; an engine that gives no sign of life is lost."""
        patience = LONG_PATIENCE if call.request.runs_cells else PATIENCE
        while not call.answer.done():
            await asyncio.wait([call.answer], timeout=SILENCE)
            now = time.monotonic()
            if call.answer.done() or now - self._heard_at < SILENCE:
                continue
            if self._asked_at is None:
                self._asked_at = now
                await self._send("status", self._wire.write_call("status", {})[1])
            elif now - self._asked_at >= patience:
                self._lose_connection(MUTE)
        return await asyncio.shield(call.answer)

    async def _look(self, number: int, until: Callable[[], bool]) -> None:
        while not until():  # noqa: ASYNC110  # it can only be asked
            await asyncio.sleep(_LOOK_EVERY)
        with contextlib.suppress(EngineLost):
            await self._send("stop", self._wire.write_stop(number))

    async def _send(self, verb: str, line: bytes) -> None:
        if self._writer is None:
            raise EngineLost(verb)
        try:
            self._writer.write(line)
            async with asyncio.timeout(LONG_PATIENCE):
                await self._writer.drain()
        except OSError as error:
            how = MUTE if isinstance(error, TimeoutError) else "went away"
            self._lose_connection(how)
            raise EngineLost(verb, how) from None

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while chunk := await reader.read(2**18):
                self._heard_at, self._asked_at = time.monotonic(), None
                for message in self._wire.read(chunk):
                    self._take(message)
        except OSError:
            pass
        finally:
            self._lose_connection()

    def _lose_connection(self, how: str = "went away") -> None:
        """Fail what was under way: the connection is gone."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        for call in self._calls.values():
            if not call.answer.done():
                call.answer.set_exception(EngineLost(call.request.VERB, how))

    def _take(self, message: wire.EventMessage | wire.Question | wire.Answered) -> None:
        call = self._calls.get(message.call)
        if isinstance(message, wire.Question):
            asking = asyncio.ensure_future(self._ask(message, call))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        elif call is None:
            pass  # it was cancelled
        elif isinstance(message, wire.EventMessage):
            progress = getattr(call.request, "progress", None)
            if progress is not None:
                progress(message.facts)
        elif not call.answer.done():
            if message.error is not None:
                call.answer.set_exception(message.error)
            else:
                call.answer.set_result(message.result)

    async def _ask(self, question: wire.Question, call: _Call | None) -> None:
        from cellwright.kernel.events import InputRequested

        ask = None if call is None else getattr(call.request, "ask", None)
        text: str | None = None
        if ask is not None:
            text = await ask(InputRequested(question.prompt, password=question.password))
        with contextlib.suppress(EngineLost):
            await self._send("ask", self._wire.write_input(question.id, text))
