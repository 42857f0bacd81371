"""How a file is written, and new values written the same way."""

from __future__ import annotations

import json
import re

from cellwright.document._json.scan import OPEN_ARRAY, QUOTE, decode_string, elements, members
from cellwright.errors import InvalidMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_surrogates = re.compile("[\ud800-\udfff]")


class Style:
    """Line ends, indentation, spacing around punctuation, and whether non-ASCII is escaped.

    `newline` is empty where objects are written on one line. `escapes_unicode` is asked only when
    a text holds something to escape, since the answer takes a look at the whole file.
    """

    __slots__ = ("_escapes_unicode", "colon", "comma", "newline", "unit")

    def __init__(
        self,
        newline: bytes = b"\n",
        unit: bytes = b" ",
        colon: bytes = b": ",
        comma: bytes = b", ",
        escapes_unicode: Callable[[], bool] = lambda: False,
    ) -> None:
        self.newline = newline
        self.unit = unit
        self.colon = colon
        self.comma = comma
        self._escapes_unicode = escapes_unicode

    @classmethod
    def of_object(
        cls, raw: bytes, escapes_unicode: Callable[[], bool], comma: bytes | None = None
    ) -> Style | None:
        """The style that an object is written in, or None if it is empty.

        `comma` is what to take for one where the object has a single member.
        """
        found = []
        for member in members(raw, 0):
            found.append(member)
            if len(found) == 2:
                break
        if not found:
            return None
        first = found[0]
        opening = raw[1 : first.key_start]
        colon = raw[first.key_end : first.start]
        if b"\n" not in opening:
            if len(found) == 2:
                comma = raw[first.end : found[1].key_start]
            comma = comma or comma_beside(colon)
            return cls(b"", b"", colon, comma, escapes_unicode)
        newline = b"\r\n" if b"\r\n" in opening else b"\n"
        inner = opening[opening.rfind(b"\n") + 1 :]
        outer = raw[raw.rfind(b"\n") + 1 : -1] if b"\n" in raw else b""
        unit = inner[len(outer) :] if inner.startswith(outer) else b" "
        return cls(newline, unit, colon, comma or comma_beside(colon), escapes_unicode)

    def encode(self, value: Any, indent: bytes = b"") -> bytes:
        """Write a value whose line starts with `indent`."""
        try:
            if self.newline:
                text = json.dumps(
                    value,
                    indent=self.unit.decode(),
                    ensure_ascii=False,
                    allow_nan=False,
                    separators=(",", self.colon.decode()),
                ).replace("\n", (self.newline + indent).decode())
            else:
                text = json.dumps(
                    value,
                    ensure_ascii=False,
                    allow_nan=False,
                    separators=(self.comma.decode(), self.colon.decode()),
                )
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidMetadata(f"not a JSON value ({error})") from None
        return self.spell(text)

    def spell(self, text: str) -> bytes:
        """The bytes of JSON text, with what the file escapes escaped; never fails."""
        if text.isascii():
            return text.encode()
        if self._escapes_unicode():
            # A character above U+FFFF becomes two escapes, as UTF-16 has it.
            return re.sub(r"[^\x00-\x7f]+", _escape, text).encode()
        return _surrogates.sub(_escape, text).encode()


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def escapes_unicode(data: bytes) -> bool:
    """Whether a file writes what is not ASCII as escapes; no, if it shows neither habit."""
    return data.isascii() and _escaped_character(data) is not None


# An even number of backslashes before it means that the backslash is itself escaped.
_escaped_character = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}").search


def comma_beside(colon: bytes) -> bytes:
    """The comma that goes with a colon, where an object has but one member to tell from."""
    return b", " if colon.endswith(b" ") else b","


class ListShape:
    """What stands around the elements of an array."""

    __slots__ = ("closing", "opening", "separator")

    def __init__(self, opening: bytes, separator: bytes, closing: bytes) -> None:
        self.opening = opening
        self.separator = separator
        self.closing = closing

    @classmethod
    def of_array(cls, raw: bytes, comma: bytes) -> ListShape | None:
        """The shape of an array as written, or None if it is empty.

        `comma` separates elements on one line, where there is but one to tell from.
        """
        found: list[tuple[int, int]] = []
        last = 0
        for start, end in elements(raw, 0):
            if len(found) < 2:
                found.append((start, end))
            last = end
        if not found:
            return None
        opening = raw[1 : found[0][0]]
        if len(found) == 2:
            separator = raw[found[0][1] : found[1][0]]
        else:
            separator = b"," + opening if b"\n" in opening else comma
        return cls(opening, separator, raw[last:-1])

    @classmethod
    def of_style(cls, style: Style, indent: bytes) -> ListShape:
        """The shape that a style gives to an array on a line indented by `indent`."""
        if not style.newline:
            return cls(b"", style.comma, b"")
        inner = style.newline + indent + style.unit
        return cls(inner, b"," + inner, style.newline + indent)


def encode_source(
    source: str, style: Style, shape: ListShape, old: bytes = b"", *, as_list: bool = True
) -> bytes:
    """Write a cell's source as a list of lines, or as one string if `as_list` is false.

    Every line but the last keeps its newline, and an empty source is `[]`. Lines that stand in
    the `old` list keep their spelling.
    """
    if not as_list:
        return style.spell(json.dumps(source, ensure_ascii=False))
    if not source:
        return b"[]"
    known: dict[str, bytes] = {}
    if old and old[0] == OPEN_ARRAY:
        for start, end in elements(old, 0):
            if old[start] == QUOTE:
                known[decode_string(old, start, end)] = old[start:end]
    lines = [
        known.get(line) or style.spell(json.dumps(line, ensure_ascii=False))
        for line in split_lines(source)
    ]
    return b"[" + shape.opening + shape.separator.join(lines) + shape.closing + b"]"


def split_lines(source: str) -> list[str]:
    """Lines with their newline; only a line feed ends a line, and an empty text has none."""
    lines = [line + "\n" for line in source.split("\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        del lines[-1]
    return lines
