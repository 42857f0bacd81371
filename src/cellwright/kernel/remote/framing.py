"""Jupyter messages on a WebSocket: the two framings that servers speak, and nothing else.

`v1.kernel.websocket.jupyter.org` is a table of offsets and the parts as the kernel wrote them.
The default one is a JSON text, or with buffers a table of offsets, that JSON, and the buffers.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

V1 = "v1.kernel.websocket.jupyter.org"
_MOST_PARTS = 10_000


class BadFrame(ValueError):
    """Something came that is no Jupyter message."""


@dataclass(slots=True)
class Message:
    """One message, on one of the channels `shell`, `control`, `stdin` and `iopub`."""

    channel: str
    header: Mapping[str, Any]
    parent: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    buffers: tuple[bytes, ...] = ()
    size: int = 0

    @property
    def kind(self) -> str:
        """Its type, such as `stream`."""
        return str(self.header.get("msg_type", ""))

    @property
    def parent_id(self) -> str:
        """The id of the request that it answers, or is a consequence of."""
        return str(self.parent.get("msg_id", ""))


def encode(message: Message, protocol: str | None) -> str | bytes:
    """The frame for a message: text or binary, as the protocol wants it."""
    if protocol == V1:
        parts = [
            message.channel.encode(),
            *(
                _dump(part).encode()
                for part in (message.header, message.parent, message.metadata, message.content)
            ),
            *message.buffers,
        ]
        offsets = [8 * (len(parts) + 2)]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        return b"".join([struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets), *parts])
    text = _dump(
        {
            "channel": message.channel,
            "header": message.header,
            "parent_header": message.parent,
            "metadata": message.metadata,
            "content": message.content,
        }
    )
    if not message.buffers:
        return text
    parts = [text.encode(), *message.buffers]
    starts = [4 * (len(parts) + 1)]
    for part in parts[:-1]:
        starts.append(starts[-1] + len(part))
    return b"".join([struct.pack(f"!{len(parts) + 1}I", len(parts), *starts), *parts])


def decode(frame: str | bytes, protocol: str | None) -> Message:
    """The message in a frame.

    Raises:
        BadFrame: there is none.
    """
    try:
        if isinstance(frame, str):
            return _from_object(_load(frame), (), len(frame))
        if protocol == V1:
            return _from_v1(frame)
        parts = _slices(frame, "!", 4, has_end=False)
        return _from_object(_load(parts[0]), parts[1:], len(frame))
    except (ValueError, IndexError, KeyError, RecursionError, struct.error, OverflowError) as error:
        raise BadFrame(f"{type(error).__name__} in a frame of {len(frame)} bytes") from None


def _from_v1(frame: bytes) -> Message:
    channel, header, parent, metadata, content, *buffers = _slices(frame, "<", 8, has_end=True)
    return Message(
        channel.decode(),
        _object(_load(header)),
        _object(_load(parent)),
        _object(_load(metadata)),
        _object(_load(content)),
        tuple(buffers),
        len(frame),
    )


def _from_object(value: Any, buffers: Sequence[bytes], size: int) -> Message:
    value = _object(value)
    return Message(
        str(value.get("channel") or "iopub"),
        _object(value["header"]),
        _object(value.get("parent_header") or {}),
        _object(value.get("metadata") or {}),
        _object(value.get("content") or {}),
        tuple(buffers),
        size,
    )


def _slices(frame: bytes, order: str, width: int, *, has_end: bool) -> list[bytes]:
    letter = "Q" if width == 8 else "I"
    (count,) = struct.unpack_from(f"{order}{letter}", frame)
    if not 0 < count <= _MOST_PARTS:
        raise BadFrame("no such number of parts")
    offsets = list(struct.unpack_from(f"{order}{count}{letter}", frame, width))
    if not has_end:
        offsets.append(len(frame))
    if offsets[0] < width * (count + 1) or offsets[-1] > len(frame):
        raise BadFrame("offsets outside the frame")
    if any(stop < start for start, stop in pairwise(offsets)):
        raise BadFrame("offsets out of order")
    return [frame[start:stop] for start, stop in pairwise(offsets)]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadFrame("a part is no object")
    return value


def _dump(value: Any) -> str:
    # ASCII: a lone surrogate in a source has no UTF-8, but it has an escape.
    return json.dumps(value, separators=(",", ":"))


def _load(raw: str | bytes) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # Python's own reader also takes NaN and lone surrogates, which kernels may send.
        return json.loads(raw if isinstance(raw, str) else raw.decode("utf-8", "replace"))
