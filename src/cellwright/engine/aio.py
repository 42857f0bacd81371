"""Talk to the engine from an event loop; many calls at a time over one connection."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

from cellwright.engine import verbs, wire
from cellwright.engine.client import EngineClient
from cellwright.engine.greeting import hello
from cellwright.engine.starting import greeted
from cellwright.errors import EngineLost, EngineUnavailable
from cellwright.workspace.asynchronous import AsyncWorkspace
from cellwright.workspace.forwarding import to_json
from cellwright.workspace.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import socket
    from collections.abc import Callable, Mapping
    from typing import Any

    from cellwright.kernel.session import Ask
    from cellwright.workspace.asynchronous import Progress
    from cellwright.workspace.workspace import Mode

_LOOK_EVERY = 0.2


async def connect(
    root: str | os.PathLike[str] | None = None,
    *,
    cwd: str | None = None,
    mode: Mode = "agent",
    actor: str = "python:caller",
    environ: Mapping[str, str] | None = None,
) -> AsyncWorkspace:
    """An `AsyncWorkspace` whose kernels live in the engine, which is started if need be.

    Raises:
        EngineUnavailable: it could not be started.
        EngineDraining: the one that runs takes no new work.
    """
    here = Workspace(root, cwd=cwd, mode=mode, actor=actor, environ=environ)
    client = AsyncEngineClient(here)
    await client.connect()
    return AsyncWorkspace(root, cwd=cwd, mode=mode, actor=actor, environ=environ, api=client)


class _Call:
    """One call that is under way."""

    def __init__(self, verb: str, progress: Progress | None, ask: Ask | None) -> None:
        self.verb = verb
        self.progress = progress
        self.ask = ask
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class AsyncEngineClient:
    """The `WorkspaceApi` over one connection, made anew when the engine has gone away."""

    def __init__(self, here: Workspace) -> None:
        self._here = here
        self._numbers = itertools.count(2)  # the first was the greeting's
        self._calls: dict[int, _Call] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False

    async def connect(self) -> None:
        """Have a connection."""
        async with self._connecting:
            if self._is_closed:
                raise EngineUnavailable("this workspace is closed")
            if self._writer is not None:
                return
            connected = await asyncio.to_thread(greeted, self._greet, start=True)
            assert connected is not None  # noqa: S101  # it was started, or an error raised
            reader, self._writer = await asyncio.open_unix_connection(sock=connected)
            self._reading = asyncio.ensure_future(self._read(reader))

    def _greet(self, connected: socket.socket) -> socket.socket:
        here = self._here
        EngineClient(
            connected,
            lambda: hello(
                cwd=here.cwd,
                root=here.root,
                mode=here.mode,
                actor=here.actor,
                environ=here.environ,
            ),
        )
        return connected

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        until: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a verb and wait for its answer; a cancelled call stops the run it started."""
        await self.connect()
        number = next(self._numbers)
        call = self._calls[number] = _Call(verb, progress, ask)
        sent = to_json(params)
        looking = asyncio.ensure_future(self._look(number, until)) if until else None
        try:
            if verbs.is_following(verb, params):
                can_ask, listens = ask is not None, progress is not None
                message = wire.call(number, verb, sent, can_ask=can_ask, listens=listens)
            else:
                message = wire.request(number, verb, sent)
            await self._send(verb, message)
            return verbs.from_wire(verb, await asyncio.shield(call.answer))
        except asyncio.CancelledError:
            with contextlib.suppress(EngineLost):
                await self._send(verb, wire.notification("stop", {"call": number}))
                if verbs.is_running(verb, params):
                    await asyncio.wait([call.answer])
            raise
        finally:
            if looking is not None:
                looking.cancel()
            del self._calls[number]
            if not call.answer.cancel() and not call.answer.cancelled():
                call.answer.exception()  # seen, also if nobody waits for it any more

    async def close(self) -> None:
        """Hang up; runs that were started go on."""
        self._is_closed = True
        for task in (*self._asking, *([self._reading] if self._reading else ())):
            task.cancel()
        self._lose()
        self._here.close()

    async def _look(self, number: int, until: Callable[[], bool]) -> None:
        while not until():  # noqa: ASYNC110  # it can only be asked
            await asyncio.sleep(_LOOK_EVERY)
        with contextlib.suppress(EngineLost):
            await self._send("stop", wire.notification("stop", {"call": number}))

    async def _send(self, verb: str, message: dict[str, Any]) -> None:
        line = wire.encode(message)
        if len(line) > wire.MAX_FRAME:
            raise EngineUnavailable(f"a call of {len(line):,} bytes is too long for it")
        if self._writer is None:
            raise EngineLost(verb)
        try:
            self._writer.write(line)
            await self._writer.drain()
        except OSError:
            raise EngineLost(verb) from None

    async def _read(self, reader: asyncio.StreamReader) -> None:
        frames = wire.Frames()
        try:
            while chunk := await reader.read(2**18):
                frames.feed(chunk)
                while (line := frames.next()) is not None:
                    self._take(wire.decode(line))
        except OSError:
            pass
        finally:
            self._lose()

    def _lose(self) -> None:
        """The connection is gone, and with it what was under way."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        for call in self._calls.values():
            if not call.answer.done():
                call.answer.set_exception(EngineLost(call.verb))

    def _take(self, message: dict[str, Any]) -> None:
        method, facts = message.get("method"), message.get("params", {})
        call = self._calls.get(facts.get("call", message.get("id")))
        if call is None:
            return
        if method == "event":
            if call.progress is not None:
                call.progress({name: value for name, value in facts.items() if name != "call"})
        elif method == "ask":
            task = asyncio.ensure_future(self._answer(call, message["id"], facts))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        elif not call.answer.done():
            if "error" in message:
                call.answer.set_exception(wire.restore(message["error"]))
            else:
                call.answer.set_result(message.get("result"))

    async def _answer(self, call: _Call, number: str, facts: dict[str, Any]) -> None:
        from cellwright.kernel.events import InputRequested

        text: str | None = None
        if call.ask is not None:
            text = await call.ask(InputRequested(facts["prompt"], password=facts["password"]))
        with contextlib.suppress(EngineLost):
            await self._send(call.verb, wire.answer(number, text))
