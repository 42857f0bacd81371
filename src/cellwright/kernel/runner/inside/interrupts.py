"""What a SIGINT does: stop the cell's own code, and never our bookkeeping."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class InterruptHandler:
    """Raises KeyboardInterrupt while a cell runs, and only between two pieces of our own work.

    As a context it is such a piece of work in the main thread. It does not nest: if a user's
    handler raises inside one, the end of the next one restores the state.
    """

    def __init__(self) -> None:
        self.is_armed = False
        self.wake = -1  # a descriptor that gets the number of every signal that comes
        self._heard = 0
        self._is_held = False
        self._is_pending = False
        self._main = get_ident()

    def install(self) -> None:
        """Become the handler again, whatever the last cell changed."""
        signal.signal(signal.SIGINT, self._on_signal)
        try:
            signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        except (OSError, ValueError):  # a cell has closed it
            pass

    def count_heard(self) -> int:
        """How often the handler ran."""
        return self._heard

    def repeat(self, heard: int) -> None:
        """Send an interrupt again, from another thread, if the handler did not run.

        An interrupt right before the main thread sleeps in a system call does not wake it, and
        the handler runs only when it wakes up.
        """
        is_ours = signal.getsignal(signal.SIGINT) == self._on_signal
        if self.is_armed and is_ours and heard == self._heard:
            signal.pthread_kill(self._main, signal.SIGINT)

    def arm(self) -> None:
        """Let interrupts stop the cell, until `disarm`."""
        self.install()
        self._is_pending = False
        self.is_armed = True

    def disarm(self) -> None:
        """Ignore interrupts from now on."""
        self.is_armed = False
        self._is_pending = False
        self.install()

    def _on_signal(self, _number: int, _frame: Any) -> None:
        self._heard += 1
        if self.is_armed:
            if not self._is_held:
                raise KeyboardInterrupt
            self._is_pending = True

    def __enter__(self) -> None:
        if get_ident() == self._main:
            self._is_held = True

    def __exit__(self, *_: object) -> None:
        if get_ident() != self._main:
            return
        self._is_held = False
        if self._is_pending:
            self._is_pending = False
            if self.is_armed:
                raise KeyboardInterrupt
