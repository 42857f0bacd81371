"""When to save a cell that still runs: seldom enough that nobody notices what it costs."""

from __future__ import annotations

import asyncio
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# Of the time that a cell runs, saving takes at most a tenth.
_REST = 9.0


class InterimSaves:
    """Calls `save` while a cell says something, at most every `interval` seconds; 0 is never.

    The first save comes half an interval after the cell's first word, so that short cells have
    none. `save` returns whether it worked; if it did not, the next try comes later each time.
    """

    def __init__(self, save: Callable[[], Awaitable[bool]], interval: float) -> None:
        self._save = save
        self._interval = interval
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_saving = False

    def touch(self) -> None:
        """The cell has said something."""
        self._news.set()
        if self._task is None and self._interval:
            self._task = asyncio.ensure_future(self._work())

    async def end(self) -> None:
        """Save no more; a save that has begun is waited for."""
        self._interval = 0.0
        if self._task is not None:
            if not self._is_saving:
                self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        pause = self._interval
        await asyncio.sleep(pause / 2)
        while self._interval:
            await self._news.wait()
            self._news.clear()
            began = time.monotonic()
            self._is_saving = True
            try:
                worked = await self._save()
            finally:
                self._is_saving = False
            if self._interval:
                pause = self._interval if worked else pause * 2
                await asyncio.sleep(max(pause, _REST * (time.monotonic() - began)))
