"""One stream: the file that cells print to, and the pipe that everybody else writes to.

A line goes out as soon as it is complete. Only when lines come by the thousand are they
collected; a clock then sends what has gathered.

What the cell put in order stays in order, because of one rule: whatever waits in the file was
printed before whatever waits in the pipes. So who prints looks into the pipes first, and if
there is something, sends what waits, then that, and only then begins to print.
"""

# Why not: see the package's docstring.

from __future__ import annotations

import codecs
import io
import os
import sys

from .wire import stream_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .streams import Streams

FRAME_BYTES = 1 << 16  # most bytes of text in a frame
HELD_BYTES = 1 << 15  # sent at once when so many have gathered
PIPE_BYTES = 1 << 20  # more than a pipe holds: one read takes all that is there
FLOOD_LINES = 100  # in one tick; below it every line is worth a frame of its own
FLOOD_BYTES = 2000  # in one tick; below it the flood is over

_new_decoder = codecs.getincrementaldecoder("utf-8")


class Stream(io.BufferedIOBase):
    """The binary file below `sys.stdout` or `sys.stderr`."""

    def __init__(self, name: str, number: int, pipe: int, streams: Streams) -> None:
        self.name = f"<{name}>"
        self.lines = 0
        self.is_flooded = False
        self._bytes = 0
        self._stream = name
        self._number = number
        self._pipe = pipe
        self._streams = streams
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._decode = _new_decoder("replace").decode
        self._decode_pipe = _new_decoder("replace").decode
        self.text = self._new_text()

    def _new_text(self) -> io.TextIOWrapper:
        text = io.TextIOWrapper(
            self, "utf-8", "backslashreplace", newline="\n", line_buffering=True
        )
        streams, lock, poll = self._streams, self._streams.wire.lock, self._streams.ready.poll
        write, flush = text.write, text.flush

        def write_in_turn(data: str, /) -> int:
            # The lock also because, before 3.12.4, a text file forgets what one thread wrote
            # while another one's text was flushed.
            with lock:
                if poll(0):
                    streams.settle()
                if streams.last is not self:
                    streams.change_to(self)
                return write(data)

        def flush_in_turn() -> None:
            with lock:
                flush()

        text.write = write_in_turn  # type: ignore[method-assign]
        text.flush = flush_in_turn  # type: ignore[method-assign]
        return text

    def flush_text(self) -> None:
        """Flush the text file; if a cell has taken it apart, there is a new one from here on."""
        try:
            self.text.flush()
        except ValueError:
            old, self.text, self.is_flooded = self.text, self._new_text(), False
            for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
                if getattr(sys, name, None) is old:
                    setattr(sys, name, self.text)

    def writable(self) -> bool:
        """Say that it can be written."""
        return True

    def fileno(self) -> int:
        """Give the descriptor that children write to; what goes there comes out here."""
        return self._number

    def close(self) -> None:
        """Stay open: the next cell prints too."""
        self.flush()

    def write(self, data: Any) -> int:
        """Take bytes, and send them once enough have gathered."""
        size = len(data)
        streams = self._streams
        if streams.wire.is_cut:
            view = memoryview(data)
            while view:
                view = view[os.write(self._number, view) :]
            return size
        is_text = streams.wire.lock._is_owned()  # type: ignore[attr-defined]  # noqa: SLF001
        with streams.wire.lock:
            if not is_text:  # nobody has looked yet: these bytes were written here directly
                streams.let_others_pass(self)
            self._held.append(data if type(data) is bytes else bytes(data))
            self._held_bytes += size
            self._bytes += size
            if self._held_bytes >= HELD_BYTES:
                self.hand_over()
        return size

    def flush(self) -> None:
        """Send what has gathered; a text file that is flushed line by line comes here often."""
        self.lines += 1
        if self._held:
            with self._streams.wire.lock:
                self.hand_over()

    def hand_over(self) -> None:
        """Send what is held; the lock is ours."""
        if not self._held:
            return
        with self._streams.hold:
            held, self._held, self._held_bytes = self._held, [], 0
            data = held[0] if len(held) == 1 else b"".join(held)
            if len(data) <= FRAME_BYTES:
                self._put(data, self._decode)
        if len(data) > FRAME_BYTES:
            self._send_big(data, self._decode)
        self._streams.wire.drain()

    def _put(self, data: bytes, decode: Any, *, is_last: bool = False) -> None:
        text = decode(data, is_last)
        if text:
            self._streams.wire.put(stream_frame(self._stream, self._streams.cell, text))

    def _send_big(self, data: bytes, decode: Any) -> None:
        """Send piece by piece, so that little is in memory twice and an interrupt gets through."""
        view = memoryview(data)
        for start in range(0, len(data), FRAME_BYTES):
            with self._streams.hold:
                self._put(bytes(view[start : start + FRAME_BYTES]), decode)
            self._streams.wire.drain()

    def empty_pipe(self, *, is_last: bool = False) -> bool:
        """Send what is in the pipe now; the lock is ours. False when nobody can write any more."""
        with self._streams.hold:
            try:
                data = os.read(self._pipe, PIPE_BYTES)
            except BlockingIOError:
                data = b""
            except OSError:
                return False
            else:
                if not data:
                    return False
            for start in range(0, len(data), FRAME_BYTES):
                self._put(data[start : start + FRAME_BYTES], self._decode_pipe)
            if is_last:
                self._put(b"", self._decode_pipe, is_last=True)
        self._streams.wire.drain()
        return True

    def finish(self) -> None:
        """Send all there is, also a character that was never completed; the lock is ours."""
        self.flush_text()
        self.hand_over()
        self._put(b"", self._decode, is_last=True)

    def tick(self) -> None:
        """Send what has gathered, and see whether the flood came or went; the lock is ours."""
        self.flush_text()
        # In a flood nothing says where lines end, so that then bytes are counted.
        flooded = self._bytes > FLOOD_BYTES if self.is_flooded else self.lines > FLOOD_LINES
        self.lines = self._bytes = 0
        if flooded != self.is_flooded:
            self.is_flooded = flooded
            self.text.reconfigure(line_buffering=not flooded)
