"""Frames out, requests in: one JSON object a line.

Made of the C parts of `json` alone, because the package itself costs half a start of Python.
"""

# Why not: see the package's docstring.

from __future__ import annotations

import os
import select
from _thread import RLock

from . import boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .cells import InterruptHandler

try:
    from _json import encode_basestring_ascii as quote
except ImportError:  # another Python than CPython
    from json import dumps as quote


class _Plain:
    """The options of the scanner: the usual ones."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012


def _make_scanner() -> Any:
    try:
        from _json import make_scanner
    except ImportError:
        return None
    return make_scanner(_Plain)  # type: ignore[arg-type]


_scan = _make_scanner()


def parse(text: str) -> Any:
    """Parse a JSON text."""
    text = text.strip()
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError, TypeError):  # the package says what is wrong
        end = -1
    if end == len(text):
        return value
    from json import loads

    return loads(text)


def encode(value: Any) -> str:
    """Write a value of strings, whole numbers, lists and dicts as JSON; rarer ones with `json`."""
    if type(value) is str:
        return quote(value)
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is dict and all(type(key) is str for key in value):
        pairs = [quote(key) + ":" + encode(item) for key, item in value.items()]
        return "{" + ",".join(pairs) + "}"
    if type(value) is list or type(value) is tuple:
        return "[" + ",".join([encode(item) for item in value]) + "]"
    import json

    return json.dumps(value, default=repr)


def make_frame(kind: str, fields: dict[str, Any]) -> bytes:
    """Make a frame of that type."""
    return f'{{"type":{quote(kind)},{encode(fields)[1:]}\n'.encode()


def make_stream_frame(name: str, cell: str, text: str) -> bytes:
    """Make the frame of a piece of `stdout` or `stderr`."""
    return f'{{"type":"{name}","id":{quote(cell)},"data":{quote(text)}}}\n'.encode()


class RunnerWire:
    """The two hidden descriptors."""

    def __init__(self, control: int, frames: int, interrupts: InterruptHandler) -> None:
        self.control = control
        self.frames = frames
        self.lock = RLock()  # a handler that prints may come in while its own thread writes
        self.is_cut = False  # in a forked child, which must not speak for the runner
        self._interrupts = interrupts
        self._queue: list[tuple[bytes, list[int]]] = []
        self._received = bytearray()
        self._put_back: list[dict[str, Any]] = []
        self._reading = RLock()
        self._has_come = select.poll()
        self._has_come.register(control, select.POLLIN)

    def send(self, kind: str, **fields: Any) -> None:
        """Send one frame."""
        self.put(make_frame(kind, fields))
        self.drain()

    def put(self, frame: bytes) -> None:
        """Queue a frame; `drain` sends it."""
        if not self.is_cut:
            self._queue.append((frame, []))

    def drain(self) -> None:
        """Send everything that is queued, waiting for the host if necessary.

        A handler of the user may raise here at any moment, and the next call must continue at the
        right byte. So the call that writes also records how much: `extend` and `map` are C code,
        and no handler runs between them.
        """
        with self.lock:
            queue = self._queue
            while queue:
                frame, written = item = queue[0]
                done = sum(written)
                if done < len(frame):
                    rest = memoryview(frame)[done:] if done else frame
                    try:
                        written.extend(map(os.write, [self.frames], [rest]))
                    except OSError:
                        # The host is gone, or the cell closed the wire: it cannot continue.
                        os._exit(boot.CLOSED)
                elif queue[0] is item:
                    del queue[0]

    def cut(self) -> None:
        """Close the wire: this is a forked child, whose output goes to the pipes."""
        if not self.is_cut:
            self.is_cut = True
            os.close(self.control)
            os.close(self.frames)

    def receive(self, wanted: Callable[[dict[str, Any]], bool] | None = None) -> Any:
        """Wait for the next request, or the next that is wanted; None when there will be none.

        Requests before it are put back for the next call.
        """
        with self._reading:
            passed: list[dict[str, Any]] = []
            try:
                while True:
                    message = self._put_back.pop(0) if self._put_back else self._next()
                    if message is None or wanted is None or wanted(message):
                        return message
                    passed.append(message)
            finally:
                self._put_back[:0] = passed

    def has_request(self) -> bool:
        """Whether a request is here already."""
        return bool(self._put_back) or b"\n" in self._received

    def _next(self) -> dict[str, Any] | None:
        while True:
            line = self._line()
            if line is None:
                return None
            try:
                message = parse(line.decode())
                if not isinstance(message, dict):
                    raise TypeError("a request is an object")  # noqa: TRY301
            except (ValueError, TypeError, RecursionError) as problem:
                said = str(problem) or "not JSON"
                self.send("error", id="", ename="ProtocolError", evalue=said, traceback=[])
            else:
                return message

    def _line(self) -> bytearray | None:
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if self._interrupts.is_armed:  # wait where an interrupt loses nothing that was read
                self._has_come.poll()
            with self._interrupts:
                try:
                    data = os.read(self.control, 1 << 16)
                except OSError:
                    data = b""
                self._received += data
            if not data:
                return None
        line = self._received[:end]
        del self._received[: end + 1]
        return line
