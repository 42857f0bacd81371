"""The sockets to a kernel, read by callbacks on the event loop, and the messages that they carry.

A message is frames, signed and checked. A header is decoded at once, a content only when it is
needed. A long text is decoded in pieces, so that a flood of output is never held twice; of a
content that is too large, only the beginnings of its texts are.

ZeroMQ's descriptor only signals that something changed, so that every wake-up, and every send, is
followed by reading until nothing is left. At first nothing is limited on our side: a publisher
whose subscriber is full drops messages, so we take all of them at once, and `Backpressure` keeps
the kernel from running ahead.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import secrets
import signal
import sys

from cellwright.kernel.jupyter import (
    MOST_CONTENT,
    build_header,
    decode_json,
    encode_json,
    find_safe_cut,
    read_beginnings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    import zmq

    from cellwright.kernel.processes import KeptProcess


DELIMITER = b"<IDS|MSG>"
PIECE = 256 * 2**10
_STREAM_OPENING = re.compile(rb'\{"name": ?"(\w+)", ?"text": ?"')
_STREAM_CLOSING = re.compile(rb'"\}')
_TEXT_OPENING = re.compile(rb'\{"text": ?"')
_TEXT_CLOSING = re.compile(rb'", ?"name": ?"(\w+)"\}')
_LONGEST_CLOSING = 64


class BadMessage(ValueError):
    """Frames that are not a message, or have a wrong signature."""


class LocalMessage:
    """One message from a kernel; `content` and the like are decoded when asked for."""

    __slots__ = (
        "_beginnings",
        "_content",
        "_metadata",
        "_parent",
        "buffers",
        "header",
        "parent_id",
        "size",
    )

    def __init__(self, parts: Sequence[zmq.Frame]) -> None:
        header, parent, self._metadata, self._content, *buffers = parts
        self.header = _decode(header.buffer)
        self._parent = _decode(parent.buffer)
        self.parent_id: str | None = self._parent.get("msg_id")
        self.buffers = buffers
        self.size = sum(len(part) for part in parts)
        self._beginnings: dict[str, Any] | None = None
        if len(self._content) > MOST_CONTENT and self.type != "stream":
            self._beginnings = read_beginnings(self.raw_content)

    @property
    def type(self) -> str:
        """The message's type, such as `stream`."""
        return str(self.header.get("msg_type", ""))

    @property
    def parent_type(self) -> str:
        """The type of the message that this one answers; empty if it answers none."""
        return str(self._parent.get("msg_type", ""))

    @property
    def content(self) -> dict[str, Any]:
        """The body, decoded anew with every call; of one that is too large, how it begins."""
        return self.decode_content() if self._beginnings is None else self._beginnings

    @property
    def raw_content(self) -> memoryview:
        """The body as the kernel sent it."""
        return self._content.buffer

    def decode_content(self) -> dict[str, Any]:
        """Decode the body, however large it is."""
        return _decode(self._content.buffer)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the body."""
        return _decode(self._metadata.buffer)

    def stream_pieces(self) -> Iterator[tuple[str, str]]:
        """Yield the name and text of a `stream` message, a long text in several pieces."""
        raw = self._content.buffer
        found = _find_text(raw) if len(raw) > 2 * PIECE else None
        if found is None:
            content = self.content
            yield str(content.get("name", "stdout")), str(content.get("text", ""))
            return
        name, start, end = found
        while start < end:
            piece = bytes(raw[start : start + PIECE + 1])
            cut = len(piece) if start + len(piece) >= end else find_safe_cut(piece, PIECE)
            text: str = decode_json(b'"%b"' % piece[: min(cut, end - start)])
            yield name, text
            start += cut


class MessageSigner:
    """Makes the frames of our messages, and checks those of the kernel."""

    def __init__(self, key: bytes) -> None:
        self.session = secrets.token_hex(16)
        self._hmac = hmac.new(key, digestmod="sha256")
        self._user = "cellwright"  # by which other clients know which cells are ours
        self._count = 0

    def pack(
        self,
        kind: str,
        content: Mapping[str, Any],
        *,
        parent: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        buffers: Sequence[bytes] = (),
    ) -> tuple[str, list[bytes]]:
        """Make a new message; returns its id and its frames."""
        self._count += 1
        identity = f"{self.session}_{self._count}"
        header = build_header(kind, identity, self.session, self._user)
        parts = [
            encode_json(part).encode() for part in (header, parent or {}, metadata or {}, content)
        ]
        return identity, [DELIMITER, self._sign(parts), *parts, *buffers]

    def unpack(self, frames: Sequence[zmq.Frame]) -> LocalMessage:
        """Read the message in `frames`.

        Raises:
            BadMessage: they hold none, or one that was not signed with our key.
        """
        rest = iter(frames)
        if not any(len(frame) == len(DELIMITER) and frame.bytes == DELIMITER for frame in rest):
            raise BadMessage("no delimiter")
        signed = [*rest]
        if len(signed) < 5:
            raise BadMessage("too few parts")
        signature, *parts = signed
        ours = self._sign([part.buffer for part in parts[:4]])
        if not hmac.compare_digest(signature.bytes, ours):
            raise BadMessage("wrong signature")
        return LocalMessage(parts)

    def _sign(self, parts: Sequence[bytes | memoryview]) -> bytes:
        digest = self._hmac.copy()
        for part in parts:
            digest.update(part)
        return digest.hexdigest().encode()


def _find_text(raw: memoryview) -> tuple[str, int, int] | None:
    """Find the name of a stream, and where its text begins and ends; None if it is written oddly."""
    ending = bytes(raw[-_LONGEST_CLOSING:])
    for opens, closes in ((_STREAM_OPENING, _STREAM_CLOSING), (_TEXT_OPENING, _TEXT_CLOSING)):
        opening = opens.match(raw)
        closing = next(
            (each for each in closes.finditer(ending) if each.end() == len(ending)), None
        )
        if opening is not None and closing is not None:
            name = (opening if opens is _STREAM_OPENING else closing)[1].decode()
            return name, opening.end(), len(raw) - len(ending) + closing.start()
    return None


def _decode(raw: memoryview) -> dict[str, Any]:
    try:
        value = decode_json(raw)
    except ValueError as error:
        raise BadMessage(f"a part is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadMessage("a part is not an object")
    return value


CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
BACKLOG_HIGH = 2**20
"""Bytes that may wait for a reader before no more are read from the kernel."""
BACKLOG_LOW = 2**20 // 3
"""Bytes at which reading starts again."""
LEAD_SECONDS = 0.25
"""How long a kernel may print what is not read; time in which we wait for it is subtracted."""
_BATCH_SECONDS = 0.005
_RECONNECT_MILLISECONDS = 10
_MESSAGES_WAITING = 1  # they are long
_CHECKED_APART = 2**20  # bytes; to check the signature of more takes long
_M_MMAP_THRESHOLD = -3
_LARGE_BLOCK = 256 * 2**10
_M_ARENA_MAX = -8
_ARENAS = 2

_log = logging.getLogger("cellwright.kernel")


class Channels:
    """Connects to the sockets of one kernel, at one address for each of `CHANNELS`.

    `on_message` gets the name of the channel and the message, `on_beat` is called for every
    answered `beat`, and `on_disconnect` when the kernel has closed `iopub` and all that it had
    sent is read.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        signer: MessageSigner,
        on_message: Callable[[str, LocalMessage], None],
        on_beat: Callable[[], None],
        on_disconnect: Callable[[], None],
    ) -> None:
        import zmq

        self._loop = asyncio.get_running_loop()
        self._signer = signer
        self._on_message = on_message
        self._on_beat = on_beat
        self._on_disconnect = on_disconnect
        self._nothing_left = zmq.Again
        self._context = zmq.Context()
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._readers: set[int] = set()
        self._is_closed = False
        self._is_held = False
        self._checked: dict[str, list[zmq.Frame]] = {}  # messages that are checked in a thread
        self._heard = 0  # messages on `iopub`
        self._empty_since: float | None = None
        self.waited = 0.0  # seconds in which `iopub` was read and nothing was there
        try:
            for name, address in zip(CHANNELS, addresses, strict=True):
                self._connect(name, address)
        except BaseException:
            self.close()
            raise

    def send(
        self,
        channel: str,
        kind: str,
        content: Mapping[str, Any],
        *,
        parent: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        buffers: Sequence[bytes] = (),
    ) -> str:
        """Send a message, and return its id; after `close` it is dropped."""
        identity, frames = self._signer.pack(
            kind, content, parent=parent, metadata=metadata, buffers=buffers
        )
        if not self._is_closed:
            self._sockets[channel].send_multipart(frames, copy=False)
            # Sending may swallow the wake-up for what came in meanwhile.
            self._loop.call_soon(self._read, channel)
        return identity

    def beat(self) -> None:
        """Send a heartbeat, which a living kernel sends back."""
        if not self._is_closed:
            self._sockets["hb"].send_multipart([b"", b"beat"])
            self._loop.call_soon(self._read_beats)

    def limit_waiting(self, messages: int) -> None:
        """Let only about so many messages wait here; for a kernel that keeps its own messages.

        ZeroMQ's sending half learns only after each half of the limit what we have read. As there
        was no limit so far, it takes everything before for unread: both sides would wait for each
        other, unless the limit is even and above that.
        """
        if not self._is_closed:
            limit = self._heard + messages
            self._sockets["iopub"].rcvhwm = limit + limit % 2

    def hold(self) -> None:
        """Stop reading `iopub`, until `release`."""
        if not self._is_held and not self._is_closed:
            self._is_held = True
            # Its descriptor stays ready until it is read.
            self._loop.remove_reader(_descriptor(self._sockets["iopub"]))

    def release(self) -> None:
        """Read `iopub` again."""
        if self._is_held and not self._is_closed:
            self._is_held = False
            self._watch(self._sockets["iopub"], self._read, "iopub")

    def read_all(self) -> None:
        """Read what has arrived, even if reading is held."""
        for channel in CHANNELS[:4]:
            while self._read(channel, is_last=True):
                pass

    def close(self) -> None:
        """Close everything at once; what was not sent is dropped. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._loop.is_closed():
            for descriptor in self._readers:
                self._loop.remove_reader(descriptor)
        iopub = self._sockets.get("iopub")
        if iopub is not None:
            iopub.disable_monitor()
        for socket in self._sockets.values():
            socket.close(linger=0)
        self._context.term()

    def _connect(self, name: str, address: str) -> None:
        import zmq

        socket = self._context.socket(zmq.SUB if name == "iopub" else zmq.DEALER)
        self._sockets[name] = socket
        socket.linger = 0
        socket.rcvhwm = socket.sndhwm = 0
        socket.reconnect_ivl = _RECONNECT_MILLISECONDS
        if name == "iopub":
            socket.subscribe(b"")
            monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            self._sockets["monitor"] = monitor
            self._watch(monitor, self._read_monitor)
        elif name != "hb":
            # The kernel asks for input on the socket with the identity of the shell that asked.
            socket.identity = self._signer.session.encode()
        socket.connect(address)
        if name == "hb":
            self._watch(socket, self._read_beats)
        else:
            self._watch(socket, self._read, name)

    def _watch(self, socket: zmq.Socket[bytes], call: Callable[..., object], *args: str) -> None:
        descriptor = _descriptor(socket)
        self._loop.add_reader(descriptor, call, *args)
        self._readers.add(descriptor)
        # A socket that was never found empty does not announce what comes next.
        self._loop.call_soon(call, *args)

    def _read(self, channel: str, *, is_last: bool = False) -> bool:
        """Read what is there, up to one batch; true if there may be more."""
        if self._is_closed:
            return False
        if channel in self._checked:
            if not is_last:
                return False
            self._hand_over(channel, self._checked.pop(channel))
        socket = self._sockets[channel]
        end = self._loop.time() + _BATCH_SECONDS
        is_iopub = channel == "iopub"
        while (now := self._loop.time()) < end:
            if is_iopub and self._is_held and not is_last:
                return False
            try:
                # `recv_multipart` would ask the socket after every frame whether there is more.
                frames = [socket.recv(1, copy=False)]  # 1 is NOBLOCK
                while frames[-1].more:
                    frames.append(socket.recv(1, copy=False))
            except self._nothing_left:
                if is_iopub and self._empty_since is None:
                    self._empty_since = now
                return False
            if is_iopub:
                self._heard += 1
                if self._empty_since is not None:
                    self.waited += now - self._empty_since
                    self._empty_since = None
            if not is_last and sum(map(len, frames)) > _CHECKED_APART:
                self._checked[channel] = frames
                self._loop.create_task(self._check_apart(channel, frames))
                return False
            self._hand_over(channel, frames)
            del frames
        # Give others on the loop a turn; the descriptor would not wake us again.
        self._loop.call_soon(self._read, channel)
        return True

    async def _check_apart(self, channel: str, frames: list[zmq.Frame]) -> None:
        """Check a large message in a thread, hand it over, and read on."""
        message: LocalMessage | BadMessage
        try:
            message = await asyncio.to_thread(self._signer.unpack, frames)
        except BadMessage as error:
            message = error
        if self._checked.get(channel) is not frames:
            return  # the kernel has ended, and it was handed over then
        del self._checked[channel]
        if isinstance(message, BadMessage):
            _log.warning("bad message on %s: %s", channel, message)
        elif not self._is_closed:
            self._on_message(channel, message)
        self._read(channel)

    def _hand_over(self, channel: str, frames: list[zmq.Frame]) -> None:
        try:
            self._on_message(channel, self._signer.unpack(frames))
        except BadMessage as error:
            _log.warning("bad message on %s: %s", channel, error)

    def _read_beats(self) -> None:
        if self._drain("hb"):
            self._on_beat()

    def _read_monitor(self) -> None:
        if self._drain("monitor"):
            self.read_all()
            self._on_disconnect()

    def _drain(self, name: str) -> bool:
        """Read and forget what has come there; true if there was anything."""
        was_filled = False
        while not self._is_closed:
            try:
                self._sockets[name].recv_multipart(1)
            except self._nothing_left:
                break
            was_filled = True
        return was_filled


def _descriptor(socket: zmq.Socket[bytes]) -> int:
    import zmq

    descriptor = socket.getsockopt(zmq.FD)
    assert isinstance(descriptor, int)  # noqa: S101 - for the type checker
    return descriptor


class Backpressure:
    """Holds the reading of `iopub`, or stops the process, while too much waits to be read.

    A kernel that prints in bursts is ahead again and again, even of a reader that is faster. So
    its output is first left where it is: in a kernel that keeps it, which continues meanwhile. A
    kernel that does not keep it, or is ahead for long, is stopped, as by a full pipe.
    """

    def __init__(self, channels: Channels, process: KeptProcess) -> None:
        self._channels = channels
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._kernel_keeps = False
        self._is_stopped = False
        self._held_at: float | None = None
        self._lead = 0.0  # at most so many seconds of printing is the kernel ahead
        self._waited = 0.0  # as `Channels` counts them, when the lead was last known
        self._stopping: asyncio.TimerHandle | None = None
        self._is_over = False
        process.on_exit(self._end)

    def note_kernel_keeps_messages(self) -> None:
        """Note that the kernel drops nothing that we do not read, so that little has to wait here."""
        self._kernel_keeps = True
        self._channels.limit_waiting(_MESSAGES_WAITING)

    def note_arrival(self, backlog: int) -> None:
        """Hold or stop the kernel if the backlog, which has grown, is too large."""
        if backlog <= BACKLOG_HIGH or self._is_over or self._is_stopped:
            return
        if self._kernel_keeps and self._held_at is None:
            self._hold()
        elif not self._kernel_keeps:
            self._stop()

    def note_removal(self, backlog: int) -> None:
        """Resume if the backlog, which has shrunk, is small enough."""
        if backlog < BACKLOG_LOW:
            self.resume()

    def resume(self) -> None:
        """Read again, and let a stopped kernel continue."""
        if self._held_at is not None:
            self._count_lead()
            self._held_at = None
            self._channels.release()
        if self._is_stopped:
            self._is_stopped = False
            self._process.send_signal(signal.SIGCONT)

    def _hold(self) -> None:
        waited = self._channels.waited
        self._lead = max(0.0, self._lead - (waited - self._waited))
        self._waited = waited
        self._held_at = self._loop.time()
        self._channels.hold()
        if self._lead >= LEAD_SECONDS:
            self._stop()
        else:
            self._stopping = self._loop.call_later(LEAD_SECONDS - self._lead, self._stop)

    def _stop(self) -> None:
        self._count_lead()
        self._is_stopped = True
        self._process.send_signal(signal.SIGSTOP)

    def _count_lead(self) -> None:
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None
        if self._held_at is not None and not self._is_stopped:
            self._lead += self._loop.time() - self._held_at

    def _end(self) -> None:
        """The process has ended: read what it had said at once, before its sockets close."""
        self._is_over = True
        self.resume()


def return_large_blocks() -> bool:
    """Have freed blocks of 256 KiB and more returned to the system, and threads share the rest.

    Otherwise the C library of Linux keeps them, and the messages of a flood leave several times
    their size behind; and what one thread has freed is of no use to the others. This affects the
    whole process, so that only an engine should call it. Returns whether it is possible here.
    """
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_ARENA_MAX, _ARENAS)
        return bool(set_option(_M_MMAP_THRESHOLD, _LARGE_BLOCK))
    except AttributeError:  # another C library
        return False
