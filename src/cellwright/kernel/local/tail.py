"""The last words of a kernel's process, for when it does not come up."""

from __future__ import annotations

import asyncio
import os

LENGTH = 8 * 2**10
_SHOWN = 600
_PIECE = 64 * 2**10
_READS_FOR_THE_END = 64


class Tail:
    """A pipe for the stdout and stderr of a process; always drained, only its end is kept."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._kept = b""
        self._loop.add_reader(self._reader, self._read)

    def close_writer(self) -> None:
        """Leave the writing end to the process that was given it."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def text(self) -> str:
        """What is kept, on one line: the end of it if it is long."""
        for _ in range(_READS_FOR_THE_END):
            if not self._read():
                break
        lines = self._kept.decode("utf-8", "replace").splitlines()
        joined = " / ".join(line.strip() for line in lines if line.strip())
        return joined if len(joined) <= _SHOWN else f"…{joined[-_SHOWN:]}"

    def close(self) -> None:
        """Stop listening. May be called twice, and after the event loop was closed."""
        self.close_writer()
        if self._reader >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1

    def _read(self) -> bool:
        """Take one piece, so that a flood does not keep the event loop; false if there is none."""
        if self._reader < 0:
            return False
        try:
            data = os.read(self._reader, _PIECE)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._reader)
        self._kept = (self._kept + data)[-LENGTH:]
        return bool(data)
