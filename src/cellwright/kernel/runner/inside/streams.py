"""Everything that is printed, as frames: by Python, by C code, by child processes.

`sys.stdout` and `sys.stderr` are ordinary text files whose bytes become frames right here;
descriptors 1 and 2 are pipes that a thread empties. The same thread is the clock.
"""

# Why not: see the package's docstring.

from __future__ import annotations

import os
import select
import sys
from _signal import SIGINT  # type: ignore[import-not-found]
from _thread import start_new_thread
from time import monotonic, sleep

from .stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .interrupts import Interrupts
    from .wire import Wire

TICK_MS = 20
AWAKE_SECONDS = 1.0  # after a cell, so that in a row of short ones nobody has to be woken
WATCH_MS = 1000  # how often an unkept runner looks for its parent


class Streams:
    """Both streams, their pipes, and the thread that serves them."""

    def __init__(
        self, wire: Wire, hold: Interrupts, pipes: Sequence[int], *, is_kept: bool
    ) -> None:
        self.wire = wire
        self.hold = hold  # text that is between two places must not get lost to an interrupt
        self.cell = ""  # the id of the cell that output belongs to; empty between cells
        self.ready = select.poll()
        for pipe in pipes:
            self.ready.register(pipe, select.POLLIN)
        self.out = Stream("stdout", 1, pipes[0], self)
        self.err = Stream("stderr", 2, pipes[1], self)
        self.last = self.out  # the one that was printed to last
        self._by_pipe = {pipes[0]: self.out, pipes[1]: self.err}
        self._open = dict(self._by_pipe)
        self._parent = 0 if is_kept else os.getppid()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        hold.wake = self._wake
        self._heard = (0, 0)  # how many interrupts had been heard one round ago, and two
        self._interrupted = -1  # how many had been heard before the last one came
        self._is_ticking = False
        self._is_asleep = False
        self._last_use = 0.0
        self._next_tick = 0.0
        sys.stdout = sys.__stdout__ = self.out.text  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self.err.text  # type: ignore[misc]
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork,
            after_in_child=self._after_fork_in_child,
        )

    def start(self) -> None:
        """Start the thread; not before hello, which it would only delay."""
        start_new_thread(self._serve, ())

    def other(self, stream: Stream) -> Stream:
        """Give the other one of the two."""
        return self.err if stream is self.out else self.out

    def begin(self, cell: str) -> None:
        """From here on output belongs to this cell, and the clock runs."""
        self.cell = cell
        self._last_use = monotonic()
        self._is_ticking = True
        if self._is_asleep:
            os.write(self._wake, b".")

    def flush(self) -> None:
        """Send what was printed so far: something else is to follow it."""
        with self.wire.lock:
            self.settle()

    def settle(self) -> None:
        """Send what was printed, then what is in the pipes; the lock is ours."""
        self.other(self.last).flush_text()
        self.last.flush_text()
        for pipe, stream in list(self._open.items()):
            if not stream.empty_pipe():
                self.ready.unregister(pipe)
                del self._open[pipe]

    def let_others_pass(self, stream: Stream) -> None:
        """Send what was written before whatever is now to be printed here; the lock is ours."""
        if self.ready.poll(0):
            self.settle()
        if self.last is not stream:
            self.change_to(stream)

    def change_to(self, stream: Stream) -> None:
        """Send what was printed to the other one; the lock is ours."""
        self.last.flush_text()
        self.last = stream

    def end(self) -> None:
        """Send all that was written up to now; what comes later belongs to no cell.

        Children that still hold the pipes are not waited for.
        """
        self._is_ticking = False
        with self.wire.lock:
            self.out.finish()
            self.err.finish()
            for stream in self._by_pipe.values():
                stream.empty_pipe(is_last=True)
            self.cell = ""

    def _serve(self) -> None:
        poll = select.poll()
        for number in (self._woken, *self._by_pipe):
            poll.register(number, select.POLLIN)
        while True:
            try:
                self._serve_once(poll)
            except Exception:  # noqa: BLE001 (whatever a cell did to its streams, others follow)
                sleep(TICK_MS / 1000)

    def _serve_once(self, poll: Any) -> None:
        self._heard = (self.hold.heard(), self._heard[0])
        for number, _ in poll.poll(self._timeout()):
            if number == self._woken:
                # It came after the last round began: if it was heard, the count has changed.
                if SIGINT in os.read(number, 4096):
                    self._interrupted = self._heard[1]
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
            if self._interrupted >= 0:
                self.hold.repeat(self._interrupted)
                self._interrupted = -1
        if self._parent and os.getppid() != self._parent:
            os._exit(1)

    def _tick(self) -> None:
        # Whoever has the lock for long waits for the host, and nothing is to be sent meanwhile.
        if self.wire.lock.acquire(timeout=TICK_MS / 1000):
            try:
                self.out.tick()
                self.err.tick()
            finally:
                self.wire.lock.release()

    def _timeout(self) -> int | None:
        """Give the milliseconds until the next tick; without a cell there is none after a while."""
        if monotonic() > self._last_use + AWAKE_SECONDS:
            self._is_asleep = True  # from here on `begin` wakes us; it may have come just before
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
        for pipe in self._open:
            self.ready.unregister(pipe)  # what is in there is for the runner
        self._open.clear()
        self.wire.lock.release()
