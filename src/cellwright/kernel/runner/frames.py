"""What a frame of the runner means as an event."""

from __future__ import annotations

from cellwright.kernel.events import InputRequested, Started
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.kernel.events import KernelEvent


def event_of(frame: Mapping[str, Any]) -> KernelEvent | None:
    """Give the event of a frame; None for `done` and for frames that are not about a cell."""
    kind = frame.get("type")
    if kind in {"stdout", "stderr"}:
        return StreamEvent(kind, frame["data"])
    if kind in {"display", "result"}:
        is_result = kind == "result"
        return DisplayEvent(
            frame["bundle"],
            frame.get("metadata") or {},
            display_id=frame.get("displayId"),
            is_update=bool(frame.get("update")),
            is_result=is_result,
            execution_count=frame.get("executionCount") if is_result else None,
        )
    if kind == "error":
        return ErrorEvent(frame["ename"], frame["evalue"], tuple(frame["traceback"]))
    if kind == "clear":
        return ClearEvent(wait=bool(frame.get("wait")))
    if kind == "started":
        return Started(frame.get("executionCount"))
    if kind == "input":
        return InputRequested(frame.get("prompt", ""), password=bool(frame.get("password")))
    return None
