"""Messages of a local kernel to events: long texts in pieces, the rest as any wire's."""

from __future__ import annotations

from cellwright.kernel import messages
from cellwright.kernel.events import InputRequested, Missed
from cellwright.outputs.events import StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.local.wire import Message


_DISPLAYS = frozenset({"display_data", "execute_result", "update_display_data"})


def events(message: Message) -> Iterator[KernelEvent]:
    """What a message says of its cell; nothing for those that are about the kernel."""
    try:
        yield from _events(message)
    except (ValueError, TypeError, AttributeError) as error:
        # Kernels are written by many people. The next message may be right again.
        yield Missed(f"a message `{message.type}` that cannot be read: {error}")


def _events(message: Message) -> Iterator[KernelEvent]:
    if message.type == "stream":
        for name, text in message.stream_pieces():
            yield StreamEvent(name, text)
    elif message.type == "input_request":
        content = message.content
        yield InputRequested(str(content.get("prompt", "")), bool(content.get("password")))
    else:
        if message.type in _DISPLAYS and not isinstance(message.content.get("data"), dict):
            raise TypeError("its data is no object")
        buffers = tuple(frame.bytes for frame in message.buffers)
        found = messages.event(message.type, message.content, message.metadata, buffers)
        if found is not None:
            yield found


def is_farewell(reply: Mapping[str, Any]) -> bool:
    """Tell whether a reply says that the kernel ends after it, as for `quit()`."""
    return any(
        payload.get("source") == "ask_exit" and not payload.get("keepkernel")
        for payload in reply.get("payload") or ()
    )
