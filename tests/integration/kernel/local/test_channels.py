"""The sockets to a kernel, with a test in the kernel's place."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import pytest
import zmq

from cellwright.kernel.events import Missed
from cellwright.kernel.local.channels import CHANNELS, Channels, LocalMessage, MessageSigner
from cellwright.kernel.local.conversation import translate_message
from cellwright.outputs.events import StreamEvent
from tests.integration.kernel.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = b"key"


class Kernel:
    """The other end of the sockets."""

    def __init__(self, addresses: list[str]) -> None:
        self.context = zmq.Context()
        self.signer = MessageSigner(KEY)
        self.sockets: dict[str, zmq.Socket[bytes]] = {}
        for name, address in zip(CHANNELS, addresses, strict=True):
            kind = zmq.XPUB if name == "iopub" else zmq.ROUTER
            self.sockets[name] = self.context.socket(kind)
            self.sockets[name].bind(address)

    def publish(self, kind: str, content: object, *, bad: bool = False) -> None:
        signer = MessageSigner(b"another") if bad else self.signer
        _, frames = signer.pack(kind, content)  # type: ignore[arg-type]
        self.sockets["iopub"].send_multipart([b"topic", *frames])

    def is_subscribed(self) -> bool:
        return bool(self.sockets["iopub"].poll(0))


@pytest.fixture
def addresses(places: Path) -> list[str]:
    return [f"ipc://{places}/run/{name}" for name in CHANNELS]


@pytest.fixture
def other(addresses: list[str]) -> Iterator[Kernel]:
    kernel = Kernel(addresses)
    yield kernel
    kernel.context.destroy(linger=0)


async def test_bad_messages_are_logged_and_do_not_stop_the_good(
    addresses: list[str], other: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    came: list[str] = []

    def take(channel: str, message: LocalMessage) -> None:
        came.append(f"{channel} {message.content['n']}")

    channels = Channels(addresses, MessageSigner(KEY), take, lambda: None, lambda: None)
    try:
        assert await eventually(other.is_subscribed)
        with caplog.at_level(logging.WARNING, "cellwright.kernel"):
            other.publish("x", {"n": 1}, bad=True)
            other.sockets["iopub"].send_multipart([b"nonsense"])
            other.publish("x", [1])  # signed, but not as the protocol has it
            other.publish("x", {"n": 2})
            assert await eventually(lambda: came)
    finally:
        channels.close()
        channels.close()

    assert came == ["iopub 2"]
    assert len(caplog.records) == 3


async def test_a_beat_is_answered(addresses: list[str], other: Kernel) -> None:
    beats: list[int] = []
    channels = Channels(
        addresses, MessageSigner(KEY), lambda *_: None, lambda: beats.append(1), lambda: None
    )
    try:
        channels.beat()
        heart = other.sockets["hb"]
        assert await eventually(lambda: heart.poll(0))
        heart.send_multipart(heart.recv_multipart())
        assert await eventually(lambda: beats)
    finally:
        channels.close()


async def test_a_disconnect_comes_after_all_that_has_arrived(
    addresses: list[str], other: Kernel
) -> None:
    said: list[object] = []
    channels = Channels(
        addresses,
        MessageSigner(KEY),
        lambda _, message: said.append(message.content["n"]),
        lambda: None,
        lambda: said.append("gone"),
    )
    try:
        assert await eventually(other.is_subscribed)
        # Both are there before the event loop has a turn.
        other.publish("x", {"n": 1})
        assert channels._sockets["iopub"].poll(5000)
        other.sockets["iopub"].close(linger=0)
        assert channels._sockets["monitor"].poll(5000)
        channels._read_monitor()
    finally:
        channels.close()

    assert said == [1, "gone"]


async def test_what_is_sent_after_the_close_goes_nowhere(addresses: list[str]) -> None:
    channels = Channels(addresses, MessageSigner(KEY), lambda *_: None, lambda: None, lambda: None)
    channels.close()

    assert channels.send("shell", "x", {})
    channels.beat()
    channels.read_all()


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"data": 1, "transient": 5}'])
def test_a_message_that_cannot_be_read_is_told_as_missed(content: bytes) -> None:
    header = b'{"msg_id": "m", "msg_type": "display_data"}'
    message = LocalMessage([zmq.Frame(part) for part in (header, b"{}", b"{}", content)])

    [event] = translate_message(message)

    assert isinstance(event, Missed)


def test_a_stream_without_a_name_is_stdout() -> None:
    header = b'{"msg_id": "m", "msg_type": "stream"}'
    message = LocalMessage([zmq.Frame(part) for part in (header, b"{}", b"{}", b'{"text": "a"}')])

    assert list(translate_message(message)) == [StreamEvent("stdout", "a")]


@pytest.mark.parametrize("before", [0, 7, 8, 15, 16, 17, 33])
async def test_a_limit_that_comes_late_lets_everything_through(
    addresses: list[str], other: Kernel, before: int
) -> None:
    came: list[int] = []

    def take(_: str, message: LocalMessage) -> None:
        came.append(message.content["n"])

    other.sockets["iopub"].sndhwm = 0
    channels = Channels(addresses, MessageSigner(KEY), take, lambda: None, lambda: None)
    try:
        assert await eventually(other.is_subscribed)
        for number in range(before):
            other.publish("x", {"n": number})
        assert await eventually(lambda: len(came) == before)
        channels.limit_waiting(16)
        for number in range(before, 500):
            other.publish("x", {"n": number})

        assert await eventually(lambda: len(came) == 500)
    finally:
        channels.close()

    assert came == list(range(500))


async def test_what_comes_while_reading_is_held_stays_in_the_kernel(
    addresses: list[str], other: Kernel
) -> None:
    came: list[int] = []

    def take(_: str, message: LocalMessage) -> None:
        came.append(message.content["n"])
        if len(came) % 10 == 0:
            channels.hold()

    other.sockets["iopub"].sndhwm = 0
    channels = Channels(addresses, MessageSigner(KEY), take, lambda: None, lambda: None)
    try:
        assert await eventually(other.is_subscribed)
        channels.limit_waiting(16)
        for number in range(200):
            other.publish("x", {"n": number})
        for taken in range(10, 201, 10):
            assert await eventually(lambda taken=taken: len(came) == taken)
            await asyncio.sleep(0.01)
            assert len(came) == taken
            channels.release()
    finally:
        channels.close()

    assert came == list(range(200))
    assert channels.waited >= 0


@pytest.mark.parametrize("is_last", [False, True])
async def test_a_large_message_is_checked_in_a_thread_and_keeps_its_place(
    addresses: list[str], other: Kernel, monkeypatch: pytest.MonkeyPatch, *, is_last: bool
) -> None:
    """To check the signature of a hundred megabytes on the loop makes all others wait."""
    came: list[int] = []
    on_loop: list[bool] = []
    go = threading.Event()
    unpack = MessageSigner.unpack

    def note_and_unpack(self: MessageSigner, frames: list[zmq.Frame]) -> LocalMessage:
        if sum(map(len, frames)) > 2**20:
            on_loop.append(threading.current_thread() is threading.main_thread())
            assert on_loop[-1] or go.wait(50)
        return unpack(self, frames)

    monkeypatch.setattr(MessageSigner, "unpack", note_and_unpack)
    channels = Channels(
        addresses,
        MessageSigner(KEY),
        lambda _, message: came.append(message.content["n"]),
        lambda: None,
        lambda: None,
    )
    try:
        assert await eventually(other.is_subscribed)
        other.publish("x", {"n": 1, "pad": "x" * 2**21})
        other.publish("x", {"n": 2})
        if is_last:  # the kernel has ended, and what it said is read at once
            assert await eventually(lambda: bool(channels._checked), 50)
            assert channels._sockets["iopub"].poll(50_000)
            channels.read_all()
            assert came == [1, 2]
        go.set()
        assert await eventually(lambda: len(came) == 2, 50)
        assert False in on_loop
    finally:
        go.set()
        channels.close()

    assert came == [1, 2]
