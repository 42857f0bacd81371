"""What cells print and read: `sys.stdout`, `sys.stderr` and `sys.stdin`, and descriptors 1 and 2.

`sys.stdout` and `sys.stderr` are ordinary text files whose bytes become frames right here;
descriptors 1 and 2, which C code and child processes write to, are pipes that a thread empties.
The same thread is the clock.

A line is sent as soon as it is complete. Only when lines come by the thousand are they collected;
the clock then sends what has gathered.

Output stays in order because of one rule: what waits in a file was printed before what waits in
the pipes. So before anything is printed, the pipes are checked, and if something is there, what
waits in the files is sent, then that.
"""

# Why not: see the package's docstring.

from __future__ import annotations

import builtins
import codecs
import io
import os
import select
import sys
from _signal import SIG_BLOCK, SIGINT, pthread_sigmask  # type: ignore[import-not-found]
from _thread import start_new_thread
from time import monotonic, sleep

from . import boot
from .wire import make_stream_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from .cells import InterruptHandler
    from .wire import RunnerWire

FRAME_BYTES = 1 << 16  # most bytes of text in a frame
HELD_BYTES = 1 << 15  # sent at once when so many have gathered
PIPE_BYTES = 1 << 20  # more than a pipe holds: one read takes all that is there
LINE_LENGTH = 10_000  # a longer text is not copied to add its line end
FLOOD_LINES = 100  # in one tick; below it every line is worth a frame of its own
FLOOD_BYTES = 2000  # in one tick; below it the flood is over

_new_decoder = codecs.getincrementaldecoder("utf-8")
TICK_MS = 20
AWAKE_SECONDS = 1.0  # after a cell, so that a row of short cells does not wake the thread each time
WATCH_MS = 1000  # how often an unkept runner looks for its parent


class OutputStreams:
    """Both streams, their pipes, and the thread that serves them."""

    def __init__(self, wire: RunnerWire, hold: InterruptHandler, pipes: Sequence[int]) -> None:
        self.wire = wire
        self.hold = hold  # text that is between two places must not get lost to an interrupt
        self.cell = ""  # the id of the cell that output belongs to; empty between cells
        # Asked before every print, and `epoll` knows in two thirds of the time.
        self.ready: Any = select.poll()
        self.now: tuple[int, ...] = (0,)
        if hasattr(select, "epoll"):
            with select.epoll() as ready:
                self.ready = select.epoll.fromfd(boot.move(ready.fileno(), boot.HIGH + 4))
            self.now = (0, 1)  # at once, and about one of them
        for pipe in pipes:
            self.ready.register(pipe, select.POLLIN)
        self.out = OutputStream("stdout", 1, pipes[0], self)
        self.err = OutputStream("stderr", 2, pipes[1], self)
        self.last = self.out  # the one that was printed to last
        self._by_pipe = {pipes[0]: self.out, pipes[1]: self.err}
        self._open = dict(self._by_pipe)
        self._parent = 0  # to be watched
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        hold.wake = self._wake
        self._heard = (0, 0)  # how many interrupts had been heard one round ago, and two
        self._interrupted = (-1, 0)  # how many had been heard before the last one came, and where
        self._ended = 0  # cells
        self._is_ticking = False
        self._is_asleep = False
        self._last_use = 0.0
        self._next_tick = 0.0
        sys.stdout = sys.__stdout__ = self.out.text  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self.err.text  # type: ignore[misc]
        builtins.print = self._make_print(builtins.print)

    def start(self, *, is_kept: bool) -> None:
        """Start the thread; after hello, which it would delay."""
        self._parent = 0 if is_kept else os.getppid()
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork,
            after_in_child=self._after_fork_in_child,
        )
        start_new_thread(self._serve, ())

    def _make_print(self, builtin: Any) -> Any:
        """Make a `print` that writes a text and its line end at once; Python's own writes twice.

        So the pipes are checked once for a line, and lines that threads print stay whole.
        """
        out = self.out

        def print(*values: object, **options: Any) -> None:  # noqa: A001 (it takes its place)
            text = values[0] if len(values) == 1 and not options else None
            if type(text) is str and len(text) < LINE_LENGTH and sys.stdout is out.text:
                out.text.write(text + "\n")
            else:
                builtin(*values, **options)

        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(print, name, getattr(builtin, name))
        print.__wrapped__ = builtin  # type: ignore[attr-defined]  # whose signature it has
        return print

    def other(self, stream: OutputStream) -> OutputStream:
        """The other one of the two."""
        return self.err if stream is self.out else self.out

    def begin(self, cell: str) -> None:
        """Assign output to this cell from now on, and start the clock."""
        self.cell = cell
        self._last_use = monotonic()
        self._is_ticking = True
        if self._is_asleep:
            os.write(self._wake, b".")

    def flush(self) -> None:
        """Send what was printed so far, before something else is sent."""
        with self.wire.lock:
            self.settle()

    def settle(self) -> None:
        """Send what was printed, then what is in the pipes; the caller holds the lock."""
        self.other(self.last).flush_text()
        self.last.flush_text()
        self._empty_pipes()

    def _empty_pipes(self) -> None:
        try:
            has_come = self.ready.poll(*self.now)  # sooner than a read that may find a megabyte
        except OSError:
            os._exit(boot.CLOSED)  # the cell has closed what watches them, and surely the wire
        if has_come:
            for pipe, stream in list(self._open.items()):
                if not stream.empty_pipe():
                    del self._open[pipe]
                    try:
                        self.ready.unregister(pipe)
                    except OSError:  # a cell has closed it
                        pass

    def let_others_pass(self, stream: OutputStream) -> None:
        """Send what was written before the text that is now printed here; the caller holds the lock."""
        if self.ready.poll(*self.now):
            self.settle()
        if self.last is not stream:
            self.change_to(stream)

    def change_to(self, stream: OutputStream) -> None:
        """Send what was printed to the other one; the caller holds the lock."""
        self.last.flush_text()
        self.last = stream

    def end(self) -> None:
        """Send everything written up to now; what comes later does not belong to a cell.

        This does not wait for children that still hold the pipes.
        """
        self._is_ticking = False
        try:
            self._take_signals()  # what came is for this cell, even if its own handler took it
        except OSError:  # a cell has closed it
            pass
        self._ended += 1
        with self.wire.lock:
            self.out.finish()
            self.err.finish()
            self._empty_pipes()
            self.out.finish_pipe()
            self.err.finish_pipe()
            self.cell = ""

    def _serve(self) -> None:
        # The main thread takes every interrupt: one that came here could stop the cell after next.
        pthread_sigmask(SIG_BLOCK, (SIGINT,))
        poll = select.poll()
        for number in (self._woken, *self._by_pipe):
            poll.register(number, select.POLLIN)
        while True:
            try:
                self._serve_once(poll)
            except Exception:  # noqa: BLE001 (a cell may break its streams, but not those of the next)
                sleep(TICK_MS / 1000)

    def _serve_once(self, poll: Any) -> None:
        self._heard = (self.hold.count_heard(), self._heard[0])
        for number, _ in poll.poll(self._timeout()):
            if number == self._woken:
                # It came after the last round began: if it was heard, the count has changed.
                ended = self._ended
                if SIGINT in self._take_signals():
                    self._interrupted = (self._heard[1], ended)
                continue
            with self.wire.lock:
                self.settle()
                if number not in self._open:
                    poll.unregister(number)
        self._is_asleep = False
        now = monotonic()
        if self._is_ticking or self.out.is_flooded or self.err.is_flooded:
            self._last_use = now
        if now >= self._next_tick:
            self._next_tick = now + TICK_MS / 1000
            self._tick()
            heard, ended = self._interrupted
            if heard >= 0:
                if ended == self._ended:  # one interrupt stops one cell
                    self.hold.repeat(heard)
                self._interrupted = (-1, 0)
        if self._parent and os.getppid() != self._parent:
            os._exit(1)

    def _take_signals(self) -> bytes:
        try:
            return os.read(self._woken, 4096)
        except BlockingIOError:
            return b""

    def _tick(self) -> None:
        # A thread that holds the lock for long waits for the host, which takes nothing meanwhile.
        if self.wire.lock.acquire(timeout=TICK_MS / 1000):
            try:
                self.out.tick()
                self.err.tick()
            finally:
                self.wire.lock.release()

    def _timeout(self) -> int | None:
        """The milliseconds until the next tick; a while after a cell the clock stops."""
        if monotonic() > self._last_use + AWAKE_SECONDS:
            self._is_asleep = True  # now `begin` wakes us; it may have been called just before
            if not self._is_ticking:
                return WATCH_MS if self._parent else None
        return TICK_MS

    def _before_fork(self) -> None:
        self.wire.lock.acquire()
        if not self.wire.is_cut:
            self.out.flush_text()
            self.err.flush_text()

    def _after_fork(self) -> None:
        self.wire.lock.release()

    def _after_fork_in_child(self) -> None:
        self.wire.cut()
        self._open.clear()  # their content is the runner's, and so is what watches them
        self.wire.lock.release()


class OutputStream(io.BufferedIOBase):
    """The binary file below `sys.stdout` or `sys.stderr`."""

    def __init__(self, name: str, number: int, pipe: int, streams: OutputStreams) -> None:
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
        streams, lock = self._streams, self._streams.wire.lock
        poll, now = streams.ready.poll, streams.now
        write, flush = text.write, text.flush

        def write_in_turn(data: str, /) -> int:
            # The lock also because, before 3.12.4, a text file forgets what one thread wrote
            # while another one's text was flushed.
            with lock:
                if poll(*now):
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
        """Flush the text file; if a cell has closed it, replace it by a new one."""
        try:
            self.text.flush()
        except ValueError:
            old, self.text, self.is_flooded = self.text, self._new_text(), False
            for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
                if getattr(sys, name, None) is old:
                    setattr(sys, name, self.text)

    def writable(self) -> bool:
        """Whether it can be written."""
        return True

    def fileno(self) -> int:
        """The descriptor that children write to; the pipe behind it ends here."""
        return self._number

    def close(self) -> None:
        """Stay open: the next cell prints too."""
        self.flush()

    def write(self, data: Any) -> int:
        """Add bytes, and send them once enough have gathered."""
        size = len(data)
        streams = self._streams
        if streams.wire.is_cut:
            view = memoryview(data)
            while view:
                view = view[os.write(self._number, view) :]
            return size
        is_text = streams.wire.lock._is_owned()  # type: ignore[attr-defined]  # noqa: SLF001
        with streams.wire.lock:
            if not is_text:  # bytes that were written here directly: the pipes were not checked yet
                streams.let_others_pass(self)
            self._held.append(data if type(data) is bytes else bytes(data))
            self._held_bytes += size
            self._bytes += size
            if self._held_bytes >= HELD_BYTES:
                self.hand_over()
        return size

    def flush(self) -> None:
        """Send what has gathered; a line-buffered text file calls this for each line."""
        self.lines += 1
        if self._held:
            with self._streams.wire.lock:
                self.hand_over()

    def hand_over(self) -> None:
        """Send what is held; the caller holds the lock."""
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
            self._streams.wire.put(make_stream_frame(self._stream, self._streams.cell, text))

    def _send_big(self, data: bytes, decode: Any) -> None:
        """Send piece by piece, so that little is in memory twice and an interrupt gets through."""
        view = memoryview(data)
        for start in range(0, len(data), FRAME_BYTES):
            with self._streams.hold:
                self._put(bytes(view[start : start + FRAME_BYTES]), decode)
            self._streams.wire.drain()

    def empty_pipe(self) -> bool:
        """Send what is in the pipe now; the caller holds the lock. False when it is closed at the other end."""
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
        self._streams.wire.drain()
        return True

    def finish_pipe(self) -> None:
        """Send an incomplete character of the pipe; the caller holds the lock."""
        self._put(b"", self._decode_pipe, is_last=True)

    def finish(self) -> None:
        """Send everything, also an incomplete character; the caller holds the lock."""
        self.flush_text()
        self.hand_over()
        self._put(b"", self._decode, is_last=True)

    def tick(self) -> None:
        """Send what has gathered, and note whether a flood began or ended; the caller holds the lock."""
        self.flush_text()
        # In a flood line ends are not seen, so that bytes are counted instead.
        flooded = self._bytes > FLOOD_BYTES if self.is_flooded else self.lines > FLOOD_LINES
        self.lines = self._bytes = 0
        if flooded != self.is_flooded:
            self.is_flooded = flooded
            self.text.reconfigure(line_buffering=not flooded)


class StdinNotImplementedError(EOFError, NotImplementedError):
    """There is no answer to `input()`; named as in Jupyter's kernels."""


class Stdin:
    """A file whose lines come from the host, one question each."""

    name = "<stdin>"
    mode = "r"
    encoding = "utf-8"
    errors = "strict"
    newlines = None
    closed = False

    def __init__(self, streams: OutputStreams) -> None:
        self._streams = streams
        self._asked = 0
        sys.stdin = sys.__stdin__ = self  # type: ignore[assignment, misc]
        builtins.input = self.input

    def ask(self, prompt: str, *, password: bool = False) -> str:
        """Ask the host for a line, and wait for it.

        Raises:
            EOFError: there is no host that could answer.
        """
        streams = self._streams
        wire = streams.wire
        if wire.is_cut or not streams.cell:
            raise EOFError("there is no one to ask")
        streams.flush()
        self._asked += 1
        cell, number = streams.cell, self._asked
        wire.send("input", id=cell, prompt=prompt, password=password, request=number)

        def is_answer(message: dict[str, Any]) -> bool:
            return message.get("type") == "input" and message.get("request", number) == number

        answer = wire.receive(is_answer)
        if answer is None or answer.get("data") is None:
            raise StdinNotImplementedError("input() was called, and there is no answer to give")
        return str(answer["data"])

    def input(self, prompt: object = "", /) -> str:
        """Read a line from the person or agent that runs the cell."""
        return self.ask(str(prompt)).removesuffix("\n")

    def getpass(self, prompt: str = "Password: ", stream: object = None, **_: object) -> str:
        """Read a line that must not be shown."""
        del stream
        return self.ask(prompt, password=True).rstrip("\n")

    def readline(self, size: int = -1, /) -> str:
        """Read a line; empty when there is no one to ask."""
        try:
            line = self.ask("")
        except EOFError:
            return ""
        # An empty answer ends the file: a loop over its lines would never end otherwise.
        return (line if line[-1:] in {"", "\n"} else line + "\n")[: None if size < 0 else size]

    read = readline

    def readlines(self, hint: int = -1, /) -> list[str]:
        """Read one line, in a list."""
        del hint
        line = self.readline()
        return [line] if line else []

    def __iter__(self) -> Iterator[str]:
        return iter(self.readlines())

    def fileno(self) -> int:
        """The descriptor that children read: it is empty."""
        return 0

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return False

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def writable(self) -> bool:
        """Whether it can be written."""
        return False

    def seekable(self) -> bool:
        """Whether it has positions."""
        return False

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Stay open: the next cell may ask too."""
