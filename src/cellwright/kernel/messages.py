"""Jupyter messages to events, whatever wire they came over.

A kernel or a server may send anything: what has the wrong shape becomes empty, never an exception.
"""

from __future__ import annotations

import re

from cellwright.kernel.events import CommMessage, Started
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from cellwright.kernel.events import KernelEvent

_COMM_KINDS: dict[str, Literal["open", "msg", "close"]] = {
    "comm_open": "open",
    "comm_msg": "msg",
    "comm_close": "close",
}


# Some kernels of Python name the class of an exception as Python prints it.
_class = re.compile(r"^<class '(?:\w+\.)*(\w+)'>$")


def event(
    kind: str,
    content: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    buffers: tuple[bytes, ...] = (),
) -> KernelEvent | None:
    """What a message on the `iopub` channel says; None for those that are about the kernel."""
    if kind == "stream":
        return StreamEvent(_text(content.get("name")) or "stdout", _text(content.get("text")))
    if kind in {"display_data", "execute_result", "update_display_data"}:
        return _shown(kind, content)
    if kind == "error":
        return raised(content)
    if kind == "execute_input":
        return Started(count(content))
    if kind == "clear_output":
        return ClearEvent(wait=bool(content.get("wait")))
    if kind in _COMM_KINDS:
        return _comm(kind, content, metadata, buffers)
    return None


def raised(content: Mapping[str, Any]) -> ErrorEvent:
    """The exception that an `error` message, or a reply with that status, tells of."""
    traceback = content.get("traceback")
    lines = traceback if isinstance(traceback, list | tuple) else ()
    return ErrorEvent(
        ename=_class.sub(r"\1", _text(content.get("ename"))),
        evalue=_text(content.get("evalue")),
        traceback=tuple(_text(line) for line in lines),
    )


def pages(reply: Mapping[str, Any]) -> Iterator[DisplayEvent]:
    """The help text that a reply carries, as for `len?`: notebooks show it below the cell."""
    payload = reply.get("payload")
    for item in payload if isinstance(payload, list) else ():
        if isinstance(item, dict) and item.get("source") == "page" and _mapping(item.get("data")):
            yield DisplayEvent(data=_mapping(item.get("data")))


def count(content: Mapping[str, Any]) -> int | None:
    """The execution count that a message carries, if it is one."""
    value = content.get("execution_count")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def comm_content(message: CommMessage) -> tuple[str, dict[str, Any]]:
    """The type and content of the Jupyter message for a message on a comm."""
    content: dict[str, Any] = {"comm_id": message.comm_id, "data": dict(message.data)}
    if message.kind == "open":
        content["target_name"] = message.target
    return f"comm_{message.kind}", content


def _shown(kind: str, content: Mapping[str, Any]) -> DisplayEvent:
    is_result = kind == "execute_result"
    display_id = _mapping(content.get("transient")).get("display_id")
    return DisplayEvent(
        data=_mapping(content.get("data")),
        metadata=_mapping(content.get("metadata")),
        display_id=display_id if isinstance(display_id, str) else None,
        is_update=kind == "update_display_data",
        is_result=is_result,
        execution_count=count(content) if is_result else None,
    )


def _comm(
    kind: str,
    content: Mapping[str, Any],
    metadata: Mapping[str, Any] | None,
    buffers: tuple[bytes, ...],
) -> CommMessage:
    return CommMessage(
        kind=_COMM_KINDS[kind],
        comm_id=_text(content.get("comm_id")),
        target=_text(content.get("target_name")),
        data=_mapping(content.get("data")),
        metadata=metadata or {},
        buffers=buffers,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
