"""What waits to be read by who watches a cell; bounded, so that a flood waits at its source."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.kernel.remote.framing import Message

BYTES_HELD = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Gap:
    """The connection was lost, and is back."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more will come: the kernel is gone, or out of reach."""

    reason: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Nobody was meant to read on: another cell was started."""


class Inbox:
    """A queue of messages with one reader; one message may be larger than all it holds else."""

    def __init__(self) -> None:
        self._items: deque[Message | Gap | End] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._is_closed = False

    async def put(self, message: Message) -> None:
        """Add a message, once there is room; a closed one takes everything and keeps nothing."""
        await self._drained.wait()
        if self._is_closed:
            return
        self._bytes += message.size
        if self._bytes > BYTES_HELD:
            self._drained.clear()
        self.tell(message)

    def tell(self, item: Message | Gap | End) -> None:
        """Add something that cannot wait."""
        if not self._is_closed:
            self._items.append(item)
            self._filled.set()

    async def get(self, within: float) -> Message | Gap | End | Closed | None:
        """The next item; None if there was none in so many seconds."""
        if not self._items and not self._is_closed:
            self._filled.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._filled.wait()
        if not self._items:
            return Closed() if self._is_closed else None
        item = self._items.popleft()
        self._bytes -= getattr(item, "size", 0)
        if self._bytes <= BYTES_HELD:
            self._drained.set()
        return item

    def close(self) -> list[Message]:
        """Keep nothing, now and later; gives the messages that nobody took."""
        left = [item for item in self._items if not isinstance(item, Gap | End)]
        self._is_closed = True
        self._items.clear()
        self._bytes = 0
        self._drained.set()
        self._filled.set()
        return left
