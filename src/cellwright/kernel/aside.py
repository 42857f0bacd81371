"""What a kernel says beside the cell that runs: between cells, or for an earlier one."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from cellwright.kernel.events import Missed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.kernel.events import KernelEvent

EVENTS_KEPT = 1000
BYTES_KEPT = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Aside:
    """An event outside the cell that runs; `cell_id` is the cell it is from, if that is known."""

    event: KernelEvent
    cell_id: str | None = None


class AsideQueue:
    """Keeps the newest such events until somebody asks for them; counts the others."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Aside, int]] = deque()
        self._bytes = 0
        self._dropped = 0
        self._filled = asyncio.Event()

    def put(self, aside: Aside, size: int) -> None:
        """Add an event of about `size` bytes, if need be in the place of the oldest ones."""
        self._kept.append((aside, size))
        self._bytes += size
        while len(self._kept) > EVENTS_KEPT or (self._bytes > BYTES_KEPT and len(self._kept) > 1):
            self._bytes -= self._kept.popleft()[1]
            self._dropped += 1
        self._filled.set()

    async def events(self) -> AsyncIterator[Aside]:
        """All events from now on, and those kept so far; never ends by itself."""
        while True:
            await self._filled.wait()
            if self._dropped:
                reason = f"{self._dropped} events between cells were not asked for in time"
                self._dropped = 0
                yield Aside(Missed(reason))
            while self._kept:
                aside, size = self._kept.popleft()
                self._bytes -= size
                yield aside
            self._filled.clear()
