"""How far a kernel may run ahead of whoever reads what it says.

A kernel that prints in bursts is ahead again and again, also of a reader that is faster than it
is. So what is ahead is first left where it is: in a kernel that keeps it, which goes on
meanwhile. A kernel that does not keep it, or is ahead for long, is stopped, as by a full pipe.
"""

from __future__ import annotations

import asyncio
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.kernel.keeper import KeptProcess
    from cellwright.kernel.local.channels import Channels

BACKLOG_HIGH = 2**20
"""Bytes that a reader may leave untaken before no more are read."""
BACKLOG_LOW = 2**20 // 3
"""Bytes at which it goes on."""
LEAD_SECONDS = 0.25
"""How long a kernel may print what nobody reads; waiting for it makes up for that."""

_MESSAGES_WAITING = 1  # they are long


class Pace:
    """Holds the reading of `iopub`, or stops the process, while too much waits to be taken."""

    def __init__(self, channels: Channels, process: KeptProcess) -> None:
        self._channels = channels
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._kernel_keeps = False
        self._is_stopped = False
        self._held_at: float | None = None
        self._lead = 0.0  # seconds of printing that the kernel is ahead, at most
        self._waited = 0.0  # as `Channels` counts them, when the lead was last known
        self._stopping: asyncio.TimerHandle | None = None
        self._is_over = False
        process.on_exit(self._end)

    def keeps_its_messages(self) -> None:
        """From now on the kernel drops nothing that we do not read, so that little waits here."""
        self._kernel_keeps = True
        self._channels.limit_waiting(_MESSAGES_WAITING)

    def has_come(self, backlog: int) -> None:
        """Look at what is untaken now that there is more."""
        if backlog <= BACKLOG_HIGH or self._is_over or self._is_stopped:
            return
        if self._kernel_keeps and self._held_at is None:
            self._hold()
        elif not self._kernel_keeps:
            self._stop()

    def has_gone(self, backlog: int) -> None:
        """Look at what is untaken now that there is less."""
        if backlog < BACKLOG_LOW:
            self.resume()

    def resume(self) -> None:
        """Read again, and let a kernel go on that ran too far ahead."""
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
        """The process has ended: what it had said is read at once, before its sockets go."""
        self._is_over = True
        self.resume()
