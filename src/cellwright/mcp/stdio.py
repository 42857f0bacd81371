"""stdin and stdout, which belong to the protocol alone.

At the start the two descriptors are moved away: whatever is printed goes to stderr, and whatever
reads stdin is at its end. A line that is not a message gets an error, not silence.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import select
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAX_LINE = 64 * 2**20
_CHUNK = 2**16
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


class StdioWire:
    """Both ends of the connection; made before anything else can write to stdout."""

    def __init__(self) -> None:
        self._reading = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        self._writing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nowhere, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            os.dup2(nowhere, 1)
        os.close(nowhere)

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Lines of the client; None for one that is too long to be kept."""
        waiting = bytearray()
        is_skipping = False
        while chunk := await self._read():
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                line = bytes(waiting) + part
                waiting.clear()
                if is_skipping:
                    is_skipping = False
                elif len(line) > MAX_LINE:
                    yield None
                else:
                    yield line
            if not is_skipping:
                waiting += rest
                if len(waiting) > MAX_LINE:
                    waiting.clear()
                    is_skipping = True
                    yield None
        if waiting:
            yield bytes(waiting)

    async def _read(self) -> bytes:
        """What has come, or b"" at the end."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        try:
            # Never made non-blocking: the client may have the other half of this very file.
            loop.add_reader(self._reading, ready.set_result, None)
        except PermissionError:  # a plain file, which is always ready
            pass
        else:
            ready.add_done_callback(lambda _: loop.remove_reader(self._reading))
            await ready
        try:
            return os.read(self._reading, _CHUNK)
        except OSError:  # a terminal that was closed
            return b""

    async def write(self, data: bytes) -> None:
        """Write all of it, however long that takes."""
        if not self.write_at_once(data):
            await asyncio.to_thread(self._write, data)

    def write_at_once(self, data: bytes) -> bool:
        """Write it if that needs no waiting; returns whether it is written."""
        fits = len(data) <= select.PIPE_BUF and self._has_room()
        if fits:
            self._write(data)
        return fits

    def _has_room(self) -> bool:
        """Whether as much as a pipe takes in one piece can be written without waiting."""
        ready = select.poll()
        ready.register(self._writing, select.POLLOUT)
        return ready.poll(0) == [(self._writing, select.POLLOUT)]

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._writing, view) :]


def encode_message(message: Any) -> bytes:
    """A message as one line."""
    try:
        text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
        return text.encode() + b"\n"
    except ValueError:  # text that UTF-8 cannot carry; JSON can escape it
        plain = message.model_dump(mode="python", by_alias=True, exclude_unset=True)
        return json.dumps(plain, default=str).encode() + b"\n"


def refuse_line(line: bytes | None) -> bytes | None:
    """The answer to a line that is not a message; None if the line is itself an answer."""
    number, code, said = None, _PARSE_ERROR, "Parse error"
    try:
        found = json.loads(line) if line is not None else None
    except (ValueError, RecursionError):
        found = None
    if found is not None:
        code, said = _INVALID_REQUEST, "Invalid request"
    if isinstance(found, dict):
        if "method" not in found and ("result" in found or "error" in found):
            return None
        number = found.get("id")
        if isinstance(number, bool) or not isinstance(number, (int, str)):
            number = None
    error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": said}}
    return json.dumps(error).encode() + b"\n"
