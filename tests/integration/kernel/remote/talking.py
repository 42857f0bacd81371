"""Short ways to run a cell and to look at what came of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cellwright.kernel.events import Finished, Missed
from cellwright.kernel.transport import Code
from cellwright.outputs.events import DisplayEvent, StreamEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.transport import Transport

LONGEST = 20


async def run(
    kernel: Transport,
    source: str | Code,
    on_event: Callable[[KernelEvent], Awaitable[Any]] | None = None,
) -> list[KernelEvent]:
    """All events of a cell, in bounded time."""
    events = []
    async with asyncio.timeout(LONGEST):
        async for event in kernel.execute(source if isinstance(source, Code) else Code(source)):
            events.append(event)
            if on_event is not None:
                await on_event(event)
    assert [event for event in events if isinstance(event, Finished)] == events[-1:]
    return events


def status(events: list[KernelEvent]) -> str:
    last = events[-1]
    assert isinstance(last, Finished)
    return last.status


def text(events: Iterable[KernelEvent]) -> str:
    """All that was printed."""
    return "".join(event.text for event in events if isinstance(event, StreamEvent))


def result(events: Iterable[KernelEvent]) -> str:
    """The value of the cell's last expression."""
    (shown,) = [event for event in events if isinstance(event, DisplayEvent) and event.is_result]
    return str(shown.data["text/plain"])


def missed(events: Iterable[KernelEvent]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Missed)]


async def until(condition: Callable[[], object], within: float = 60) -> None:
    """Wait for something that gives no sign of its own."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.02)
