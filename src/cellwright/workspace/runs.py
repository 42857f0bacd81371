"""Runs by id: started by one caller, watched, awaited or stopped by any.

Everything here belongs to one event loop. A run goes on when whoever started it stops waiting;
only `cancel` ends it before its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections import deque
from dataclasses import dataclass, field

from cellwright.errors import CellwrightError, ExecutionCancelled, RunNotFound
from cellwright.workspace.turns import Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any, Literal

    from cellwright.workspace.events import Events

    Event = dict[str, Any]
    Listener = Callable[[Event], object]
    State = Literal["waiting", "running", "done", "failed"]

_EVENTS_KEPT = 2_000
_TEXT_KEPT = 2**18
_ENDED_KEPT = 100
_ANSWERS_KEPT = 10  # they hold outputs, which may be large; those of notebooks are in their files


@dataclass
class Run:
    """One call that runs cells, from its beginning until it is forgotten.

    `answer` is what the call answers; until it ended, what is known so far. `error` is why there
    is none. `cells` has the status of each cell by its handle, for notebooks. `stop` is set when
    it shall end before its time.
    """

    kind: str
    subject: str
    actor: str
    id: str = field(default_factory=lambda: f"r{uuid.uuid4().hex[:8]}")
    began: float = field(default_factory=time.time)
    ended: float | None = None
    state: State = "waiting"
    cells: dict[str, str] = field(default_factory=dict)
    answer: Any = None
    error: CellwrightError | None = None
    missed_events: int = 0
    watchers: int = 0
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    _events: deque[Event] = field(default_factory=deque)
    _text: int = 0
    _listeners: list[Listener] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    _has_begun: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.ended is not None

    def report(self, event: Event) -> None:
        """Something happened; whoever watches is told, and the rest kept for later."""
        if "handle" in event and "status" in event:
            self.cells[event["handle"]] = event["status"]
        self._events.append(event)
        self._text += len(event.get("text", ""))
        while len(self._events) > _EVENTS_KEPT or self._text > _TEXT_KEPT:
            self._text -= len(self._events.popleft().get("text", ""))
            self.missed_events += 1
        for listener in list(self._listeners):
            listener(event)

    def watch(self, listener: Listener, *, from_start: bool = False) -> Callable[[], None]:
        """Tell somebody what happens from now on, or also what has happened; returns the end."""
        if from_start:
            if self.missed_events:
                listener({"missed": self.missed_events})
            for event in self._events:
                listener(event)
        self._listeners.append(listener)

        def stop() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return stop

    def cancel(self) -> bool:
        """Stop it; returns whether there was anything to stop.

        The cell that runs is interrupted, and the answer tells what was done until then. A run
        that still waits for its turn is over at once.
        """
        if self._task is None or self.is_over:
            return False
        self.stop.set()
        # A task that has not even begun would end without a word; it looks at `stop` first.
        if self.state == "waiting" and self._has_begun:
            self._task.cancel()
        return True

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, or so long; returns whether it has ended."""
        if self._task is not None and not self.is_over:
            await asyncio.wait([self._task], timeout=seconds)
        return self.is_over

    def forget_answer(self) -> None:
        """Keep only that it was, and how it went."""
        self.answer = None
        self._events.clear()

    def to_json(self) -> dict[str, Any]:
        """What a list of runs says of it."""
        now = self.ended if self.ended is not None else time.time()
        return {
            "run": self.id,
            "kind": self.kind,
            "subject": self.subject,
            "actor": self.actor,
            "state": self.state,
            "began": self.began,
            "ended": self.ended,
            "seconds": round(now - self.began, 3),
            "cells": dict(self.cells),
            "error": self.error and {"code": self.error.code, "message": self.error.message},
        }


class Runs:
    """All runs of one process: those that go on, and the last of those that ended."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._runs: dict[str, Run] = {}
        self.turns = Turns()  # one run at a time for each notebook

    def start(
        self,
        kind: str,
        subject: str,
        actor: str,
        work: Callable[[Run], Awaitable[Any]],
        cells: Sequence[str] = (),
    ) -> Run:
        """Begin to run something, which is then known by its id."""
        run = Run(kind, subject, actor, cells=dict.fromkeys(cells, "pending"))
        self._runs[run.id] = run
        run.watch(lambda event: self._publish(run, event))
        run._task = asyncio.ensure_future(self._follow(run, work))  # noqa: SLF001
        return run

    async def _follow(self, run: Run, work: Callable[[Run], Awaitable[Any]]) -> None:
        run._has_begun = True  # noqa: SLF001
        try:
            run.answer = await _unless_stopped(run, work)
            run.state = "done"
        except asyncio.CancelledError:
            run.error, run.state = ExecutionCancelled(), "failed"
        except CellwrightError as error:
            run.error, run.state = error, "failed"
        except Exception as error:  # noqa: BLE001  # a bug of ours must reach the caller, as one
            run.error, run.state = CellwrightError(f"{type(error).__name__}: {error}"), "failed"
            run.error.__cause__ = error
        finally:
            run.ended = time.time()
            self._events.publish(run.subject, "run_ended", run=run.id, state=run.state)
            self._forget()

    def _publish(self, run: Run, event: Event) -> None:
        """Whoever watches a notebook is told which cells run; what they print is in the run."""
        if "status" in event:
            self._events.publish(run.subject, "cell", run=run.id, actor=run.actor, **event)

    def get(self, run_id: str) -> Run:
        """A run by its id.

        Raises:
            RunNotFound: there is none, or it has been forgotten.
        """
        run = self._runs.get(run_id)
        if run is None:
            raise RunNotFound(run_id)
        return run

    def list(self) -> list[dict[str, Any]]:
        """All of them, the newest first."""
        return [run.to_json() for run in reversed(self._runs.values())]

    def is_at(self, subject: str) -> bool:
        """Whether something runs there, or waits to."""
        return any(run.subject == subject and not run.is_over for run in [*self._runs.values()])

    @property
    def active(self) -> int:
        """How many have not ended."""
        return sum(not run.is_over for run in self._runs.values())

    def cells(self, subject: str) -> dict[str, str]:
        """The cells of a notebook that run or wait right now, by handle."""
        return {
            handle: status
            for run in list(self._runs.values())  # also asked from other threads
            if run.subject == subject and not run.is_over
            for handle, status in list(run.cells.items())
            if status in ("running", "pending")
        }

    async def close(self) -> None:
        """Stop all that goes on, and wait for its end."""
        tasks = [run._task for run in self._runs.values() if run.cancel()]  # noqa: SLF001
        if tasks:
            await asyncio.wait([task for task in tasks if task is not None])

    def _forget(self) -> None:
        over = [run.id for run in self._runs.values() if run.is_over]
        for run_id in over[:-_ENDED_KEPT]:
            del self._runs[run_id]
        for run_id in over[-_ENDED_KEPT:-_ANSWERS_KEPT]:
            self._runs[run_id].forget_answer()


async def _unless_stopped(run: Run, work: Callable[[Run], Awaitable[Any]]) -> Any:
    if run.stop.is_set():
        raise ExecutionCancelled
    return await work(run)
