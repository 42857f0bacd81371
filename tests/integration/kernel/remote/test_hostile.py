"""A server that means harm, or is none: bounded, worded, and without a crash."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import tornado.httpserver
import tornado.netutil
import tornado.web
import tornado.websocket

from cellwright.errors import KernelError, KernelStartFailed, KernelUnreachable
from cellwright.kernel.remote import RemoteKernel, RemoteServer, Timeouts, websocket
from cellwright.kernel.remote.websocket import V1, RemoteMessage, decode_frame, encode_frame
from tests.integration.kernel.remote.talking import missed, run, status, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

KERNEL = {"id": "k-1", "name": "odd", "execution_state": "idle"}
QUICK = Timeouts(connect=2, request=2, ready=2, reconnect=1, quiet=0.3)


class Api(tornado.web.RequestHandler):
    """Answers every call with the same words."""

    def initialize(self, says: bytes) -> None:
        self.says = says

    def get(self) -> None:
        self.finish(self.says)

    post = delete = get


class Channels(tornado.websocket.WebSocketHandler):
    """Speaks to a kernel's client as it was told to."""

    def initialize(self, on_open: Any, on_request: Any) -> None:
        self.told = on_open
        self.answer = on_request

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return V1 if V1 in subprotocols else None

    def open(self) -> None:
        self.told(self)

    def on_message(self, message: str | bytes) -> None:
        self.answer(self, decode_frame(message, self.selected_subprotocol))

    def say(self, kind: str, parent: RemoteMessage, channel: str = "iopub", **content: Any) -> None:
        header = {"msg_type": kind, "session": "k"}
        said = RemoteMessage(channel, header, parent.header, content=content)
        frame = encode_frame(said, self.selected_subprotocol)
        self.write_message(frame, binary=isinstance(frame, bytes))


def polite(socket: Channels, request: RemoteMessage) -> None:
    """Answer as a kernel does, for a cell with one line of output."""
    socket.say("status", request, execution_state="busy")
    if request.kind == "execute_request":
        socket.say("stream", request, name="stdout", text="polite")
    kind = request.kind.replace("request", "reply")
    socket.say(kind, request, "shell", status="ok", language_info={"name": "odd"})
    socket.say("status", request, execution_state="idle")


@asynccontextmanager
async def serving(
    says: bytes = json.dumps(KERNEL).encode(),
    on_open: Callable[[Channels], None] = lambda _: None,
    on_request: Callable[[Channels, RemoteMessage], None] = polite,
) -> AsyncIterator[RemoteServer]:
    (socket,) = tornado.netutil.bind_sockets(0, "127.0.0.1")
    told = {"on_open": on_open, "on_request": on_request}
    server = tornado.httpserver.HTTPServer(
        tornado.web.Application(
            [(r"/api/kernels/[^/]+/channels", Channels, told), (r"/.*", Api, {"says": says})]
        )
    )
    server.add_sockets([socket])
    try:
        port = socket.getsockname()[1]
        yield RemoteServer(f"http://127.0.0.1:{port}", "some-token", timeouts=QUICK)
    finally:
        server.stop()
        await server.close_all_connections()


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"<html>Log in</html>",
        b'{"id": "../../evil"}',
        b'{"id": ["k"]}',
        b'{"id": ""}',
        b"[" * 200_000,
        b"\xff\xfe",
        b"9" * 10_000,
    ],
    ids=range(11),
)
async def test_an_answer_that_makes_no_sense_starts_no_kernel(says: bytes) -> None:
    async with serving(says) as server:
        with pytest.raises(KernelError) as caught:
            await RemoteKernel(server).start()
        assert isinstance(caught.value, KernelStartFailed | KernelUnreachable)
        for call in (server.kernels, server.specs):
            try:
                assert await call() is not None
            except KernelUnreachable:
                continue


async def test_an_endless_answer_is_cut_off() -> None:
    async with serving(b"[" + b" " * 40 * 2**20 + b"]") as server:
        with pytest.raises(KernelUnreachable):
            await server.kernels()


async def test_frames_that_are_no_messages_are_passed_over() -> None:
    def garbage(socket: Channels) -> None:
        for frame in ("", "null", "{", '{"header": 1}', b"", b"\xff" * 100, "[" * 50_000):
            socket.write_message(frame, binary=isinstance(frame, bytes))

    async with serving(on_open=garbage) as server:
        kernel = RemoteKernel(server)
        await kernel.start()
        events = await run(kernel, "x")
        await kernel.shutdown()

    assert text(events) == "polite"
    assert status(events) == "ok"


@pytest.mark.all
async def test_nothing_but_garbage_is_given_up() -> None:
    def garbage(socket: Channels) -> None:
        for _ in range(1000):
            socket.write_message("garbage")

    async with serving(on_open=garbage, on_request=lambda *_: None) as server:
        async with asyncio.timeout(15):
            with pytest.raises(KernelError):
                await RemoteKernel(server).start()


async def test_a_kernel_that_never_answers_does_not_start() -> None:
    async with serving(on_request=lambda *_: None) as server:
        async with asyncio.timeout(15):
            with pytest.raises(KernelStartFailed):
                await RemoteKernel(server).start()


async def test_a_frame_over_the_limit_again_and_again_ends_in_a_death_not_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "LARGEST_MESSAGE", 100_000)

    def flood(socket: Channels, request: RemoteMessage) -> None:
        if request.kind == "execute_request":
            socket.write_message(b"x" * 200_000, binary=True)
        else:
            polite(socket, request)

    async with serving(on_request=flood) as server:
        kernel = RemoteKernel(server)
        await kernel.start()
        events = await run(kernel, "x")
        await kernel.shutdown()

    assert missed(events)
    assert status(events) == "error"  # how it ended was not seen, and is not made up


async def test_a_kernel_that_goes_silent_while_its_server_calls_it_idle_is_given_up() -> None:
    def silent(socket: Channels, request: RemoteMessage) -> None:
        if socket.application.settings.setdefault("asked", 0) < 1:
            polite(socket, request)
        socket.application.settings["asked"] += request.kind == "kernel_info_request"

    async with serving(on_request=silent) as server:
        kernel = RemoteKernel(server)
        await kernel.start()
        events = await run(kernel, "x")
        await kernel.shutdown()

    assert any("no longer answers" in reason for reason in missed(events))
    assert status(events) == "died"


@pytest.mark.all
async def test_a_socket_that_opens_and_closes_forever_is_given_up() -> None:
    def shut(socket: Channels, request: RemoteMessage) -> None:
        if request.kind == "execute_request":
            socket.application.settings["shut"] = True
            socket.close()
        else:
            polite(socket, request)

    opened = 0

    def slam(socket: Channels) -> None:
        nonlocal opened
        opened += 1
        if socket.application.settings.get("shut"):
            socket.close()

    async with serving(on_open=slam, on_request=shut) as server:
        kernel = RemoteKernel(server)
        await kernel.start()
        events = await run(kernel, "x")
        await kernel.shutdown()

    assert missed(events)
    assert status(events) == "died"
    assert 2 < opened < 10
