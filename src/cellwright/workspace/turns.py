"""One at a time for each name, in the order they came."""

from __future__ import annotations

import asyncio
import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Turns:
    """Fair locks by name; a name that nobody waits for costs nothing."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, list[None]]] = {}

    @contextlib.asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Have the turn of that name inside this block."""
        lock, interested = self._locks.setdefault(name, (asyncio.Lock(), []))
        interested.append(None)
        try:
            async with lock:
                yield
        finally:
            interested.pop()
            if not interested:
                del self._locks[name]
