"""The sockets to a kernel, read by callbacks on the event loop.

ZeroMQ's descriptor only tells that something changed, so that every wake-up, and every send, is
followed by reading until nothing is left. At first nothing is limited on our side: a publisher
whose subscriber is full drops messages, so we take all of them at once and whoever queues them
keeps the kernel from running ahead.
"""

from __future__ import annotations

import asyncio
import logging

from cellwright.kernel.local.wire import BadMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import zmq

    from cellwright.kernel.local.wire import Message, Signer

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
_BATCH_SECONDS = 0.005
_RECONNECT_MILLISECONDS = 10

_log = logging.getLogger("cellwright.kernel")


class Channels:
    """Connects to the sockets of one kernel, at one address for each of `CHANNELS`.

    `on_message` gets the name of the channel and the message, `on_beat` is called for every
    answered `beat`, and `on_disconnect` when the kernel's end of `iopub` has closed and all that
    it had sent is read.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        signer: Signer,
        on_message: Callable[[str, Message], None],
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
        """Send a message, and return its id; once closed it goes nowhere."""
        identity, frames = self._signer.pack(
            kind, content, parent=parent, metadata=metadata, buffers=buffers
        )
        if not self._is_closed:
            self._sockets[channel].send_multipart(frames, copy=False)
            # Sending may swallow the wake-up of what came in meanwhile.
            self._loop.call_soon(self._read, channel)
        return identity

    def beat(self) -> None:
        """Send something that a kernel whose heart beats sends back."""
        if not self._is_closed:
            self._sockets["hb"].send_multipart([b"", b"beat"])
            self._loop.call_soon(self._read_beats)

    def limit_waiting(self, messages: int) -> None:
        """Let only about so many messages wait at our end; for a kernel that then keeps its own.

        As long as there was no limit, ZeroMQ's other half was never told what we have read. It is
        told with every half of the limit, and takes all before for unread: it waits for us, and
        we for it, unless the limit is even and above that.
        """
        if not self._is_closed:
            limit = self._heard + messages
            self._sockets["iopub"].rcvhwm = limit + limit % 2

    def hold(self) -> None:
        """Leave on `iopub` what comes there, until `release`."""
        if not self._is_held and not self._is_closed:
            self._is_held = True
            # Its descriptor stays ready as long as nobody reads.
            self._loop.remove_reader(_descriptor(self._sockets["iopub"]))

    def release(self) -> None:
        """Read `iopub` again."""
        if self._is_held and not self._is_closed:
            self._is_held = False
            self._watch(self._sockets["iopub"], self._read, "iopub")

    def read_all(self) -> None:
        """Take what has arrived and was not read yet, also if reading is held."""
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
            # The kernel asks for input on the socket that has the identity of the asking shell.
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
        """Read what is there, up to a batch; true if there may be more."""
        if self._is_closed:
            return False
        socket = self._sockets[channel]
        end = self._loop.time() + _BATCH_SECONDS
        is_iopub = channel == "iopub"
        while (now := self._loop.time()) < end:
            if is_iopub and self._is_held and not is_last:
                return False
            try:
                frames = socket.recv_multipart(1, copy=False)  # 1 is NOBLOCK
            except self._nothing_left:
                if is_iopub and self._empty_since is None:
                    self._empty_since = now
                return False
            if is_iopub:
                self._heard += 1
                if self._empty_since is not None:
                    self.waited += now - self._empty_since
                    self._empty_since = None
            try:
                self._on_message(channel, self._signer.unpack(frames))
            except BadMessage as error:
                _log.warning("bad message on %s: %s", channel, error)
            del frames
        # Others on the loop have their turn; the descriptor would not wake us again.
        self._loop.call_soon(self._read, channel)
        return True

    def _read_beats(self) -> None:
        if self._has_news("hb"):
            self._on_beat()

    def _read_monitor(self) -> None:
        if self._has_news("monitor"):
            self.read_all()
            self._on_disconnect()

    def _has_news(self, name: str) -> bool:
        """Tell whether anything has come there, and forget it."""
        has_news = False
        while not self._is_closed:
            try:
                self._sockets[name].recv_multipart(1)
            except self._nothing_left:
                break
            has_news = True
        return has_news


def _descriptor(socket: zmq.Socket[bytes]) -> int:
    import zmq

    descriptor = socket.getsockopt(zmq.FD)
    assert isinstance(descriptor, int)  # noqa: S101 - for the type checker
    return descriptor
