"""What Ctrl-C means during a turn: the kernel first, then the turn."""

from __future__ import annotations

import asyncio
import contextlib

from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Interrupts:
    """Counts how often somebody has pressed Ctrl-C in one turn.

    While cells run, the first one stops the run: the cell is interrupted, and the turn goes on
    with what happened. Any other one ends the turn.

    Args:
        stop_run: stops a run by its id.
        end_turn: ends the turn.
        say: tells the person what was done.
    """

    def __init__(
        self,
        stop_run: Callable[[str], Awaitable[object]],
        end_turn: Callable[[], object],
        say: Callable[[str], object],
    ) -> None:
        self._stop_run = stop_run
        self._end_turn = end_turn
        self._say = say
        self._run: str | None = None
        self._stopped: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def running(self, run: str | None) -> None:
        """Cells run, or do not any more."""
        self._run = run

    def press(self) -> None:
        """Ctrl-C was pressed."""
        if self._run is not None and self._run != self._stopped:
            self._stopped = self._run
            self._say("Interrupting the kernel; Ctrl-C again ends the turn")
            task = asyncio.ensure_future(self._stop(self._run))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._end_turn()

    async def _stop(self, run: str) -> None:
        with contextlib.suppress(CellwrightError):  # it may have ended by itself
            await self._stop_run(run)
