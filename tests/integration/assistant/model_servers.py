"""Servers of models, without a model: they say over HTTP what a script says.

Both dialects are spoken, OpenAI's chat completions and Anthropic's messages, streamed in pieces
that end in the middle of words and bytes. Every request is kept, with accessors that do not depend
on the dialect.

    async with serve("openai", [ToolCall("a", "GetNotebookCells"), "There are seven."]) as server:
        ...  # server.base_url, server.requests

`served` is the same for tests that wait for other processes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cellwright.assistant.models.language_model import Backoff, LanguageModel
from cellwright.assistant.models.providers import choose_model
from cellwright.config.settings import Settings
from tests.integration.assistant import wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from cellwright.assistant.models.model import ToolCall
    from tests.integration.assistant.wire import Writing

Dialect = Literal["openai", "anthropic"]
DIALECTS: tuple[Dialect, ...] = ("openai", "anthropic")
PIECE = 37  # bytes that are sent at a time; no divisor of anything


@dataclass(frozen=True)
class RawCall:
    """A call of a tool whose arguments are any text at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Thought:
    """What a model thinks before it answers; `signature` is Anthropic's."""

    text: str
    signature: str = "signed"


Line: TypeAlias = "str | ToolCall | RawCall | Thought"


@dataclass(frozen=True)
class Says:
    """An answer; `stop` is why it ended, in OpenAI's words."""

    lines: Sequence[Line]
    stop: str | None = None


@dataclass(frozen=True)
class Fails:
    """An error instead of an answer."""

    status: int
    message: str = "the server says no"
    kind: str = "some_error"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Breaks:
    """The beginning of an answer, and then the connection is gone.

    `is_polite` ends the body as if it were whole.
    """

    lines: Sequence[Line]
    is_polite: bool = False


@dataclass(frozen=True)
class Complains:
    """The beginning of an answer, and then an error in the stream."""

    lines: Sequence[Line]
    message: str = "Overloaded"
    kind: str = "overloaded_error"


@dataclass(frozen=True)
class Holds:
    """The beginning of an answer, and then nothing until the client leaves."""

    lines: Sequence[Line] = ()


@dataclass(frozen=True)
class Pauses:
    """The beginning of an answer, and the rest when the test says so, by `go_on`."""

    lines: Sequence[Line]
    rest: Sequence[Line]


Step: TypeAlias = "Line | list[Line] | Says | Fails | Breaks | Complains | Holds | Pauses"
Script: TypeAlias = "Sequence[Step | Callable[[Received], Step]]"


@dataclass(frozen=True)
class Received:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def is_anthropic(self) -> bool:
        return self.path.split("?")[0].endswith("/messages")

    @property
    def system(self) -> str:
        """The system prompt."""
        if self.is_anthropic:
            system = self.body["system"]
            return system if isinstance(system, str) else "".join(part["text"] for part in system)
        (found,) = [each for each in self.body["messages"] if each["role"] == "system"]
        return wire.text_of(found["content"])

    @property
    def tools(self) -> dict[str, Any]:
        """The schemas of the tools, by name."""
        tools = self.body.get("tools", [])
        if self.is_anthropic:
            return {tool["name"]: tool["input_schema"] for tool in tools}
        return {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}

    @property
    def descriptions(self) -> list[str]:
        tools = self.body.get("tools", [])
        return [(tool if self.is_anthropic else tool["function"])["description"] for tool in tools]

    @property
    def said(self) -> list[tuple[str, str]]:
        """What was said, by role and in order, without the system prompt and results of tools."""
        return wire.said(self.body["messages"])

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """The calls in the conversation: id, name and arguments."""
        return wire.calls(self.body["messages"])

    @property
    def results(self) -> list[tuple[str, str, bool]]:
        """The results in the conversation: id, text, and whether it is marked as a failure."""
        return wire.results(self.body["messages"])

    @property
    def images(self) -> list[bytes]:
        """The pictures in the conversation."""
        return [base64.b64decode(each) for each in wire.images(self.body["messages"])]


class ModelServer:
    """A server on this machine that answers one request after the other as its script says.

    `requests` has all that came; `left` how many clients went away before their answer's end.
    """

    def __init__(self, dialect: Dialect, script: Script) -> None:
        self.dialect = dialect
        self.requests: list[Received] = []
        self.left = 0
        self.said_all = asyncio.Event()
        self._script = list(script)
        self._left = asyncio.Event()
        self._going_on = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """Where it is, as its dialect wants it."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}{'/v1' if self.dialect == 'openai' else ''}"

    @property
    def last(self) -> Received:
        return self.requests[-1]

    def add(self, *steps: Step | Callable[[Received], Step]) -> None:
        """Let it say these next."""
        self._script += steps

    def forget(self) -> None:
        """Forget the requests, and what it has not said."""
        self.requests.clear()
        self._script.clear()

    def go_on(self) -> None:
        """Let an answer that pauses say its rest; from any thread."""
        self._loop.call_soon_threadsafe(self._going_on.set)

    async def wait_left(self) -> None:
        """Wait until a client has gone away before the end."""
        await asyncio.wait_for(self._left.wait(), 30)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            received = await wire.receive(reader)
            if received is not None:
                await self._answer(Received(*received), reader, writer)
        except ConnectionError:
            self._note_left()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(
        self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.requests.append(request)
        step = self._script.pop(0) if self._script else "(the script is at its end)"
        if callable(step):
            step = step(request)
        write = wire.anthropic if request.is_anthropic else wire.openai
        if isinstance(step, Fails):
            body = wire.failure(request.is_anthropic, step.message, step.kind, step.code)
            await wire.send(writer, step.status, body, step.headers)
            return
        stop = step.stop if isinstance(step, Says) else None
        writing = write(_lines(step), stop, request.body["model"])
        await wire.begin_stream(writer)
        await self._stream(writing, step, writer)
        if isinstance(step, Pauses):
            await self._going_on.wait()
            self._going_on.clear()
            writing = write(list(step.rest), None, request.body["model"])
            await self._stream(writing, step, writer)
        if isinstance(step, Complains):
            error = wire.failure(request.is_anthropic, step.message, step.kind, None)
            await wire.send_pieces(writer, wire.event(error, "error"), PIECE)
            await wire.end_stream(writer)
        elif isinstance(step, Holds):
            self.said_all.set()
            await reader.read()  # nothing comes, but the end
            self._note_left()
        elif not isinstance(step, Breaks):
            await wire.send_pieces(writer, writing.end, PIECE)
            await wire.end_stream(writer)
        elif step.is_polite:
            await wire.end_stream(writer)

    async def _stream(self, writing: Writing, step: object, writer: asyncio.StreamWriter) -> None:
        is_whole = not isinstance(step, (Breaks, Complains, Holds))
        await wire.send_pieces(writer, writing.body if is_whole else writing.broken, PIECE)

    def _note_left(self) -> None:
        self.left += 1
        self._left.set()


def model_at(server: ModelServer, name: str = "scripted", **settings: Any) -> LanguageModel:
    """The model that is asked there, which waits for nothing before it asks again."""
    chosen = choose_model(
        f"{server.dialect}:{name}", Settings(assistant_base_url=server.base_url, **settings), {}
    )
    assert isinstance(chosen, LanguageModel)
    chosen.backoff = Backoff(first=0)
    return chosen


def _lines(step: Any) -> list[Line]:
    if isinstance(step, (Says, Breaks, Complains, Holds, Pauses)):
        return list(step.lines)
    return list(step) if isinstance(step, list) else [step]


@contextlib.asynccontextmanager
async def serve(dialect: Dialect, script: Script) -> AsyncIterator[ModelServer]:
    """A server that runs while the block does."""
    server = ModelServer(dialect, script)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.contextmanager
def served(dialect: Dialect, script: Script) -> Iterator[ModelServer]:
    """The same in a thread of its own, for tests that block while another process asks."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def make() -> ModelServer:
        server = ModelServer(dialect, script)
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(make(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
