"""Wait for what happens to notebooks."""

from __future__ import annotations

import queue
import time

from cellwright.errors import OutsideRoot
from cellwright.journal.place import signature
from cellwright.workspace.paths import confine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.workspace.evaluation import Progress
    from cellwright.workspace.events import Event
    from cellwright.workspace.hub import Hub

_LOOK_EVERY = 0.5


def watch(
    hub: Hub,
    real: str | None,
    progress: Progress,
    seconds: float | None,
    until: Callable[[], bool] | None,
    *,
    root: str | None = None,
) -> int:
    """Tell `progress` of events in this thread, for so many seconds; returns how many.

    Without a `real` path these are the events of all notebooks in the root.
    """
    waiting: queue.SimpleQueue[Event] = queue.SimpleQueue()
    end = hub.events.subscribe(real, waiting.put)
    deadline = None if seconds is None else time.monotonic() + seconds
    seen = signature(real) if real is not None else None
    count = 0
    try:
        while (left := _left(deadline)) > 0 and not (until is not None and until()):
            try:
                event = waiting.get(timeout=min(left, _LOOK_EVERY))
            except queue.Empty:
                now = signature(real) if real is not None else None
                if now == seen:
                    continue
                if real is not None and hub.has_runs and hub.runs.is_at(real):
                    seen = now  # what a cell says is saved now and then, while it runs
                    continue
                event = {"event": "outside", "notebook": real, "when": time.time()}
            seen = signature(real) if real is not None else None
            if real is None and not _is_inside(event["notebook"], root):
                continue
            count += 1
            progress(event)
    finally:
        end()
    return count


def _left(deadline: float | None) -> float:
    return _LOOK_EVERY if deadline is None else deadline - time.monotonic()


def _is_inside(real: str, root: str | None) -> bool:
    try:
        confine(real, root)
    except OutsideRoot:
        return False
    return True
