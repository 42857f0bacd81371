"""Real runners for the tests, and what their cells said."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.kernel.events import Finished, KernelEvent, Missed
from cellwright.kernel.runner import Runner
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import DisplayEvent, ErrorEvent, StreamEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

WITHIN = 30.0  # seconds that no cell of a test takes, on however busy a machine


@dataclass
class Ran:
    """What came of a cell."""

    events: list[KernelEvent] = field(default_factory=list)

    @property
    def finished(self) -> Finished:
        assert isinstance(self.events[-1], Finished)
        assert sum(isinstance(event, Finished) for event in self.events) == 1
        return self.events[-1]

    @property
    def status(self) -> str:
        return self.finished.status

    @property
    def stdout(self) -> str:
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        return self._stream("stderr")

    @property
    def shown(self) -> list[DisplayEvent]:
        return [event for event in self.events if isinstance(event, DisplayEvent)]

    @property
    def result(self) -> Any:
        results = [shown for shown in self.shown if shown.is_result]
        return results[0].data["text/plain"] if results else None

    @property
    def statuses(self) -> list[Any]:
        kind = "application/x-cellwright-status"
        return [shown.data[kind] for shown in self.shown if kind in shown.data]

    @property
    def raised(self) -> ErrorEvent:
        (raised,) = [event for event in self.events if isinstance(event, ErrorEvent)]
        return raised

    @property
    def order(self) -> list[str]:
        """Streams, displays and results in order, pieces of one stream joined."""
        found: list[tuple[str, str]] = []
        for event in self.events:
            if isinstance(event, StreamEvent):
                if found and found[-1][0] == event.name:
                    found[-1] = (event.name, found[-1][1] + event.text)
                else:
                    found.append((event.name, event.text))
            elif isinstance(event, DisplayEvent):
                found.append(("shown", str(event.data.get("text/plain"))))
        return [f"{kind}:{text}" for kind, text in found]

    def _stream(self, name: str) -> str:
        assert not any(isinstance(event, Missed) for event in self.events)
        texts = [e.text for e in self.events if isinstance(e, StreamEvent) and e.name == name]
        return "".join(texts)


class Driver:
    """A started runner."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    async def run(self, source: str, **options: Any) -> Ran:
        ran = Ran()
        async with asyncio.timeout(WITHIN):
            async for event in self.runner.execute(Code(source, **options)):
                ran.events.append(event)
        return ran

    async def ok(self, source: str, **options: Any) -> Ran:
        ran = await self.run(source, **options)
        assert ran.status == "ok", ran.events
        return ran

    def begin(self, source: str, **options: Any) -> asyncio.Task[Ran]:
        return asyncio.create_task(self.run(source, **options))


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Driver]]]:
    """Start runners in `tmp_path`; they are gone when the test ends."""
    runners: list[Runner] = []

    async def make(python: str | None = None, **options: Any) -> Driver:
        launch = Launch(str(tmp_path), dict(os.environ), python=python)
        runner = Runner(launch, **options)
        runners.append(runner)
        await runner.start()
        return Driver(runner)

    yield make
    for runner in runners:
        await runner.shutdown(now=True)


@pytest.fixture
async def cells(start: Callable[..., Awaitable[Driver]]) -> Driver:
    """One runner."""
    return await start()
