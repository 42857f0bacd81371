"""Jupyter's wire format: frames to messages and back, signed and checked.

A header is decoded at once, a content only when it is needed. A long text is decoded in pieces,
so that a flood of output is never held twice; of a content that is too large, only the beginnings
of its texts are.
"""

from __future__ import annotations

import hmac
import re
import secrets

from cellwright.kernel.jupyter import (
    MOST_CONTENT,
    build_header,
    decode_json,
    encode_json,
    find_safe_cut,
    read_beginnings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    import zmq

DELIMITER = b"<IDS|MSG>"
PIECE = 256 * 2**10
_STREAM_OPENING = re.compile(rb'\{"name": ?"(\w+)", ?"text": ?"')
_STREAM_CLOSING = re.compile(rb'"\}')
_TEXT_OPENING = re.compile(rb'\{"text": ?"')
_TEXT_CLOSING = re.compile(rb'", ?"name": ?"(\w+)"\}')
_LONGEST_CLOSING = 64


class BadMessage(ValueError):
    """Frames that are not a message, or have a wrong signature."""


class LocalMessage:
    """One message from a kernel; `content` and the like are decoded when asked for."""

    __slots__ = (
        "_beginnings",
        "_content",
        "_metadata",
        "_parent",
        "buffers",
        "header",
        "parent_id",
        "size",
    )

    def __init__(self, parts: Sequence[zmq.Frame]) -> None:
        header, parent, self._metadata, self._content, *buffers = parts
        self.header = _decode(header.buffer)
        self._parent = _decode(parent.buffer)
        self.parent_id: str | None = self._parent.get("msg_id")
        self.buffers = buffers
        self.size = sum(len(part) for part in parts)
        self._beginnings: dict[str, Any] | None = None
        if len(self._content) > MOST_CONTENT and self.type != "stream":
            self._beginnings = read_beginnings(self.raw_content)

    @property
    def type(self) -> str:
        """The message's type, such as `stream`."""
        return str(self.header.get("msg_type", ""))

    @property
    def parent_type(self) -> str:
        """The type of the message that this one answers; empty if it answers none."""
        return str(self._parent.get("msg_type", ""))

    @property
    def content(self) -> dict[str, Any]:
        """The body, decoded anew with every call; of one that is too large, how it begins."""
        return self.decode_content() if self._beginnings is None else self._beginnings

    @property
    def raw_content(self) -> memoryview:
        """The body as the kernel sent it."""
        return self._content.buffer

    def decode_content(self) -> dict[str, Any]:
        """Decode the body, however large it is."""
        return _decode(self._content.buffer)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the body."""
        return _decode(self._metadata.buffer)

    def stream_pieces(self) -> Iterator[tuple[str, str]]:
        """Yield the name and text of a `stream` message, a long text in several pieces."""
        raw = self._content.buffer
        found = _find_text(raw) if len(raw) > 2 * PIECE else None
        if found is None:
            content = self.content
            yield str(content.get("name", "stdout")), str(content.get("text", ""))
            return
        name, start, end = found
        while start < end:
            piece = bytes(raw[start : start + PIECE + 1])
            cut = len(piece) if start + len(piece) >= end else find_safe_cut(piece, PIECE)
            text: str = decode_json(b'"%b"' % piece[: min(cut, end - start)])
            yield name, text
            start += cut


class MessageSigner:
    """Makes the frames of our messages, and checks those of the kernel."""

    def __init__(self, key: bytes) -> None:
        self.session = secrets.token_hex(16)
        self._hmac = hmac.new(key, digestmod="sha256")
        self._user = "cellwright"  # by which other clients know which cells are ours
        self._count = 0

    def pack(
        self,
        kind: str,
        content: Mapping[str, Any],
        *,
        parent: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        buffers: Sequence[bytes] = (),
    ) -> tuple[str, list[bytes]]:
        """Make a new message; returns its id and its frames."""
        self._count += 1
        identity = f"{self.session}_{self._count}"
        header = build_header(kind, identity, self.session, self._user)
        parts = [
            encode_json(part).encode() for part in (header, parent or {}, metadata or {}, content)
        ]
        return identity, [DELIMITER, self._sign(parts), *parts, *buffers]

    def unpack(self, frames: Sequence[zmq.Frame]) -> LocalMessage:
        """Read the message in `frames`.

        Raises:
            BadMessage: they hold none, or one that was not signed with our key.
        """
        rest = iter(frames)
        if not any(len(frame) == len(DELIMITER) and frame.bytes == DELIMITER for frame in rest):
            raise BadMessage("no delimiter")
        signed = [*rest]
        if len(signed) < 5:
            raise BadMessage("too few parts")
        signature, *parts = signed
        ours = self._sign([part.buffer for part in parts[:4]])
        if not hmac.compare_digest(signature.bytes, ours):
            raise BadMessage("wrong signature")
        return LocalMessage(parts)

    def _sign(self, parts: Sequence[bytes | memoryview]) -> bytes:
        digest = self._hmac.copy()
        for part in parts:
            digest.update(part)
        return digest.hexdigest().encode()


def _find_text(raw: memoryview) -> tuple[str, int, int] | None:
    """Find the name of a stream, and where its text begins and ends; None if it is written oddly."""
    ending = bytes(raw[-_LONGEST_CLOSING:])
    for opens, closes in ((_STREAM_OPENING, _STREAM_CLOSING), (_TEXT_OPENING, _TEXT_CLOSING)):
        opening = opens.match(raw)
        closing = next(
            (each for each in closes.finditer(ending) if each.end() == len(ending)), None
        )
        if opening is not None and closing is not None:
            name = (opening if opens is _STREAM_OPENING else closing)[1].decode()
            return name, opening.end(), len(raw) - len(ending) + closing.start()
    return None


def _decode(raw: memoryview) -> dict[str, Any]:
    try:
        value = decode_json(raw)
    except ValueError as error:
        raise BadMessage(f"a part is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadMessage("a part is not an object")
    return value
