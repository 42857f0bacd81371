"""Talk to the engine from code that blocks; light enough for a command that ends at once."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading

from cellwright.engine import place, verbs, wire
from cellwright.errors import EngineLost, EngineUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from cellwright.kernel.session import Ask

    Progress = Callable[[dict[str, Any]], object]

_CONNECT_WITHIN = 5.0
_LOOK_EVERY = 0.2


def try_connect(path: str | None = None) -> socket.socket | None:
    """A connection to the engine that runs, or None."""
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.settimeout(_CONNECT_WITHIN)
        with place.Address(path or place.socket_path()) as address:
            connected.connect(address)
        if peer(connected) == os.geteuid():
            connected.settimeout(None)
            return connected
    except OSError:
        pass
    connected.close()
    return None


def is_reachable() -> bool:
    """Whether an engine listens."""
    connected = try_connect()
    if connected is None:
        return False
    connected.close()
    return True


def peer(connected: socket.socket) -> int:
    """The user at the other end."""
    if not hasattr(socket, "SO_PEERCRED"):  # macOS: the folder, which is ours alone, has to do
        return os.geteuid()
    found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1])


class EngineClient:
    """One connection; calls are made one after the other."""

    def __init__(
        self, connected: socket.socket, hello: Callable[[], Mapping[str, Any]] | None
    ) -> None:
        self._socket = connected
        self._frames = wire.Frames()
        self._number = 0
        self._sending = threading.Lock()
        self.is_broken = False
        try:
            if hello is not None:
                self.engine = self.call("hello", dict(hello()))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up; runs that were started go on."""
        self.is_broken = True
        with contextlib.suppress(OSError):
            self._socket.close()

    @property
    def is_usable(self) -> bool:
        """Whether the other end is there, as far as can be seen before a call."""
        if self.is_broken:
            return False
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True  # it has nothing to say, as it should
        except OSError:
            return False

    def call(
        self,
        verb: str,
        params: dict[str, Any],
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        until: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a verb and wait for its answer.

        Ctrl-C stops the run that the call has started, whose answer then says so; a second one
        waits for nothing any more. `until` is asked now and then whether the call shall end.

        Raises:
            EngineLost: the engine went away; what it did is not known.
            CellwrightError: as the verb itself does.
        """
        self._number += 1
        number = self._number
        is_stopped = False
        request = wire.request(number, verb, params)
        if verbs.is_following(verb, params):
            can_ask, listens = ask is not None, progress is not None
            request = wire.call(number, verb, params, can_ask=can_ask, listens=listens)
        self._send(verb, request)
        while True:
            try:
                message = self._receive(verb, None if is_stopped else until)
                if message is None:
                    is_stopped = True
                    self._send(verb, wire.notification("stop", {"call": number}))
                    continue
                method, facts = message.get("method"), message.get("params", {})
                if method == "event" and facts.pop("call") == number:
                    if progress is not None:
                        progress(facts)
                elif method == "ask":
                    self._ask(verb, message["id"], facts, ask)
                elif message.get("id") == number:
                    if "error" in message:
                        raise wire.restore(message["error"])
                    return message.get("result")
            except KeyboardInterrupt:
                if is_stopped or self.is_broken:
                    raise
                self._send(verb, wire.notification("stop", {"call": number}))
                is_stopped = True
                if not verbs.is_running(verb, params):
                    self.close()  # nobody takes the answer any more
                    raise

    def _ask(self, verb: str, number: str, facts: dict[str, Any], ask: Ask | None) -> None:
        """Ask whoever sits here, while the call goes on: it may end before they answer."""

        def wait() -> None:
            import asyncio

            from cellwright.kernel.events import InputRequested

            text: str | None = None
            if ask is not None:

                async def asked() -> str | None:
                    request = InputRequested(facts["prompt"], password=facts["password"])
                    return await ask(request)

                text = asyncio.run(asked())
            with contextlib.suppress(EngineLost):
                self._send(verb, wire.answer(number, text))

        threading.Thread(target=wait, daemon=True).start()

    def _send(self, verb: str, message: dict[str, Any]) -> None:
        line = wire.encode(message)
        if len(line) > wire.MAX_FRAME:
            raise EngineUnavailable(f"a call of {len(line):,} bytes is too long for it")
        with self._sending:
            try:
                self._socket.sendall(line)
            except OSError:
                self.close()
                raise EngineLost(verb) from None
            except BaseException:
                self.close()  # half a message cannot be taken back
                raise

    def _receive(self, verb: str, until: Callable[[], bool] | None = None) -> dict[str, Any] | None:
        """The next message; None if it is enough."""
        # The buffer is here, and not inside a file object: what was read stays when Ctrl-C comes.
        while (line := self._frames.next()) is None:
            try:
                self._socket.settimeout(None if until is None else _LOOK_EVERY)
                chunk = self._socket.recv(2**16)  # more would be mapped anew for every message
            except TimeoutError:
                if until is not None and until():
                    return None
                continue
            except OSError:
                chunk = b""
            if not chunk:
                self.close()
                raise EngineLost(verb)
            self._frames.feed(chunk)
        return wire.decode(line)
