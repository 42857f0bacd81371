"""Jupyter messages to events: what each kind says of a cell."""

from __future__ import annotations

from cellwright.kernel.events import CommMessage, InputRequested, Missed, Started
from cellwright.outputs.events import Cleared, Raised, Shown, StreamText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.local.wire import Message

_COMM_KINDS: dict[str, Literal["open", "msg", "close"]] = {
    "comm_open": "open",
    "comm_msg": "msg",
    "comm_close": "close",
}


def events(message: Message) -> Iterator[KernelEvent]:
    """What a message says of its cell; nothing for those that are about the kernel."""
    try:
        yield from _events(message)
    except (ValueError, TypeError, AttributeError) as error:
        # Kernels are written by many people. The next message may be right again.
        yield Missed(f"a message `{message.type}` that cannot be read: {error}")


def _events(message: Message) -> Iterator[KernelEvent]:
    kind = message.type
    if kind == "stream":
        for name, text in message.stream_pieces():
            yield StreamText(name, text)
    elif kind in {"display_data", "execute_result", "update_display_data"}:
        yield _shown(kind, message.content)
    elif kind == "error":
        yield raised(message.content)
    elif kind == "execute_input":
        yield Started(message.content.get("execution_count"))
    elif kind == "clear_output":
        yield Cleared(wait=bool(message.content.get("wait")))
    elif kind == "input_request":
        content = message.content
        yield InputRequested(str(content.get("prompt", "")), bool(content.get("password")))
    elif kind in _COMM_KINDS:
        yield _comm(kind, message)


def raised(content: Mapping[str, Any]) -> Raised:
    """The exception that an `error` message, or a reply with that status, tells of."""
    return Raised(
        ename=str(content.get("ename", "")),
        evalue=str(content.get("evalue", "")),
        traceback=tuple(str(line) for line in content.get("traceback") or ()),
    )


def pages(reply: Mapping[str, Any]) -> Iterator[Shown]:
    """The help text that a reply carries, as for `len?`: notebooks show it below the cell."""
    for payload in reply.get("payload") or ():
        if payload.get("source") == "page" and payload.get("data"):
            yield Shown(data=payload["data"])


def is_farewell(reply: Mapping[str, Any]) -> bool:
    """Tell whether a reply says that the kernel ends after it, as for `quit()`."""
    return any(
        payload.get("source") == "ask_exit" and not payload.get("keepkernel")
        for payload in reply.get("payload") or ()
    )


def comm_content(message: CommMessage) -> tuple[str, dict[str, Any]]:
    """The kind and body of the Jupyter message for one of ours."""
    content: dict[str, Any] = {"comm_id": message.comm_id, "data": dict(message.data)}
    if message.kind == "open":
        content["target_name"] = message.target
    return f"comm_{message.kind}", content


def _shown(kind: str, content: Mapping[str, Any]) -> Shown:
    is_result = kind == "execute_result"
    return Shown(
        data=content.get("data") or {},
        metadata=content.get("metadata") or {},
        display_id=(content.get("transient") or {}).get("display_id"),
        is_update=kind == "update_display_data",
        is_result=is_result,
        execution_count=content.get("execution_count") if is_result else None,
    )


def _comm(kind: str, message: Message) -> CommMessage:
    content = message.content
    return CommMessage(
        kind=_COMM_KINDS[kind],
        comm_id=str(content.get("comm_id", "")),
        target=str(content.get("target_name", "")),
        data=content.get("data") or {},
        metadata=message.metadata,
        buffers=tuple(frame.bytes for frame in message.buffers),
    )
