"""Everything a kernel may say while it runs a cell or between cells, and how a cell ends.

The events of a cell's output are defined in `cellwright.outputs.events`; here are the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from cellwright.outputs.events import OutputEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any, Literal

EVENTS_KEPT = 1000
BYTES_KEPT = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Started:
    """The kernel has begun with the cell."""

    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class InputRequested:
    """The cell waits for a line on its standard input; `answer_input` gives it one."""

    prompt: str = ""
    password: bool = False


@dataclass(frozen=True, slots=True)
class CommMessage:
    """A message on a comm, of kind `open`, `msg` or `close`.

    `channel` is the one it is sent on: some kernels read only `control` while a cell runs.
    `is_ours` is false for an answer to another client, which will take care of it.
    """

    kind: Literal["open", "msg", "close"]
    comm_id: str
    target: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    buffers: tuple[bytes, ...] = ()
    channel: Literal["shell", "control"] = "shell"
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class Missed:
    """A part of the output was not seen, and why; the cell itself kept running."""

    reason: str


@dataclass(frozen=True, slots=True)
class KernelExit:
    """How a kernel's process ended: by a signal, or with an exit code; neither if unknown."""

    code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False

    def __str__(self) -> str:
        if self.signal is not None:
            from signal import Signals

            try:
                name = f"{Signals(self.signal).name}, signal {self.signal}"
            except ValueError:
                name = f"signal {self.signal}"
            return f"killed by {name}" + ("; likely out of memory" if self.out_of_memory else "")
        if self.code is not None:
            return f"exited with code {self.code}"
        return "gone without an exit code"


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every cell, exactly once.

    `ok` and `error` are the kernel's own verdict. `cancelled` means that the cell was interrupted
    and the kernel lives. `died` means that the kernel ended before the cell did; `exit` says how.
    """

    status: Literal["ok", "error", "cancelled", "died"]
    execution_count: int | None = None
    exit: KernelExit | None = None


KernelEvent: TypeAlias = OutputEvent | Started | InputRequested | CommMessage | Missed | Finished


@dataclass(frozen=True, slots=True)
class IdleEvent:
    """An event outside the running cell; `cell_id` is the earlier cell it is from, if known."""

    event: KernelEvent
    cell_id: str | None = None


class IdleEventQueue:
    """Keeps the newest idle events until they are read, and counts the dropped ones."""

    def __init__(self) -> None:
        self._kept: deque[tuple[IdleEvent, int]] = deque()
        self._bytes = 0
        self._dropped = 0
        self._filled = asyncio.Event()

    def put(self, event: IdleEvent, size: int) -> None:
        """Add an event of about `size` bytes; if there is no room, the oldest ones are dropped."""
        self._kept.append((event, size))
        self._bytes += size
        while len(self._kept) > EVENTS_KEPT or (self._bytes > BYTES_KEPT and len(self._kept) > 1):
            self._bytes -= self._kept.popleft()[1]
            self._dropped += 1
        self._filled.set()

    async def events(self) -> AsyncIterator[IdleEvent]:
        """Yield the events kept so far and all later ones; never ends by itself."""
        while True:
            await self._filled.wait()
            if self._dropped:
                reason = f"{self._dropped} events between cells were not read in time"
                self._dropped = 0
                yield IdleEvent(Missed(reason))
            while self._kept:
                event, size = self._kept.popleft()
                self._bytes -= size
                yield event
            self._filled.clear()
