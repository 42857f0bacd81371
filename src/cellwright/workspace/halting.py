"""When a run has to end before its last cell: its time is over, or somebody says so."""

from __future__ import annotations

import asyncio
import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from typing import Any, TypeVar

    T = TypeVar("T")


class Halting:
    """Sets `event` when the run is to end; `is_late` if that is because of its time limit.

    `time_limit` is in seconds from `watch` on, 0 for none; `stop` is somebody else's word.
    """

    def __init__(self, time_limit: float, stop: asyncio.Event | None) -> None:
        self.time_limit = time_limit
        self.is_late = False
        self.event = asyncio.Event()
        self._stop = stop

    @property
    def is_set(self) -> bool:
        """Whether the run is to end."""
        return self.event.is_set()

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Watch the clock and listen, inside this block."""
        timer = obeying = None
        if self.time_limit:
            timer = asyncio.get_running_loop().call_later(self.time_limit, self._be_late)
        if self._stop is not None:
            obeying = asyncio.ensure_future(self._obey(self._stop))
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            if obeying is not None:
                obeying.cancel()

    def _be_late(self) -> None:
        self.is_late = True
        self.event.set()

    async def _obey(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.event.set()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for something that must not be left half done; who is cancelled is so after that."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
