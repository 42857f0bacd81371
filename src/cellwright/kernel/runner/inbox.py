"""Frames as they come from a runner, with a limit on how many may wait."""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

READ_BYTES = 1 << 18
PAUSE_BYTES = 1 << 20  # no more is read while this much waits, and the runner waits too
RESUME_BYTES = 1 << 18


class Inbox:
    """Reads lines of JSON from a descriptor on the event loop.

    While nobody has claimed it, frames go to `on_unclaimed`. A frame may be of any size; there
    is no limit on a line. Lines that are not JSON are left out: a runner that was killed in the
    middle of one cannot finish it.
    """

    def __init__(self, descriptor: int, on_unclaimed: Callable[[dict[str, Any]], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._on_unclaimed = on_unclaimed
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._begun: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_claimed = False
        self._is_reading = False
        self._writers_are_gone = False
        self._is_over = False
        self._resume()

    def claim(self) -> None:
        """From here on frames wait for `next`."""
        self._is_claimed = True

    def release(self) -> None:
        """From here on, and with what waits, frames go to `on_unclaimed`."""
        self._is_claimed = False
        self._hand_out()
        self._resume()

    async def next(self) -> dict[str, Any] | None:
        """The next frame; None when there will be none."""
        while True:
            while self._lines:
                frame = self._take()
                if frame is not None:
                    return frame
            if self._is_over:
                return None
            self._resume()
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def end(self) -> None:
        """Nobody writes any more: what is in the pipe is read, then it is over."""
        self._writers_are_gone = True
        self._read_rest()  # unless too much waits; then whoever takes it goes on

    def close(self) -> None:
        """Stop reading; what waits can still be taken."""
        self._finish()

    def _resume(self) -> None:
        if self._is_over or self._waiting_bytes > RESUME_BYTES:
            return
        if self._writers_are_gone:
            self._read_rest()
        elif not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._descriptor, self._read)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._descriptor)

    def _read_rest(self) -> None:
        while not self._is_over and self._waiting_bytes <= PAUSE_BYTES:
            if not self._read():
                self._finish()

    def _read(self) -> bool:
        """Read once; False when there was nothing."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            # Its process has closed the pipe and is about to end; `end` will say when.
            self._pause()
            return False
        first, *rest = data.split(b"\n")
        self._begun.append(first)
        if rest:
            self._add(b"".join(self._begun))
            for line in rest[:-1]:
                self._add(line)
            self._begun = [rest[-1]]
            if not self._is_claimed:
                self._hand_out()
            if self._waiting_bytes > PAUSE_BYTES:
                self._pause()
            self._wake()
        return True

    def _add(self, line: bytes) -> None:
        if line:
            self._lines.append(line)
            self._waiting_bytes += len(line)

    def _take(self) -> dict[str, Any] | None:
        line = self._lines.popleft()
        self._waiting_bytes -= len(line)
        try:
            frame = json.loads(line)
        except ValueError:
            return None
        return frame if isinstance(frame, dict) else None

    def _hand_out(self) -> None:
        while self._lines and not self._is_claimed:
            frame = self._take()
            if frame is not None:
                self._on_unclaimed(frame)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self) -> None:
        self._pause()
        if not self._is_over:
            self._is_over = True
            os.close(self._descriptor)
        self._wake()
