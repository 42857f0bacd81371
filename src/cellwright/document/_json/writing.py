"""How a file writes JSON, and how to change values in it in the same style.

Members of an object and elements of an array that are not changed keep every byte.
"""

from __future__ import annotations

import json
import re
from io import BytesIO
from itertools import islice
from json.encoder import encode_basestring as quote

from cellwright.document._json.scan import (
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    Member,
    decode_string,
    elements,
    list_members,
    members,
)
from cellwright.errors import DuplicateKey, InvalidMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

_BLOCK = 2**16
_surrogates = re.compile("[\ud800-\udfff]")
# An even number of backslashes before it means that the backslash is itself escaped.
_escaped_character = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}").search


class Style:
    """Line ends, indentation, spacing around punctuation, and whether non-ASCII is escaped.

    `newline` is empty where objects are written on one line. `escapes_unicode` is called only for
    a text with something to escape, because it has to read the whole file.
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
        cls,
        raw: bytes,
        escapes_unicode: Callable[[], bool],
        comma: bytes | None = None,
        known: Sequence[Member] | None = None,
    ) -> Style | None:
        """The style of an object, or None if it is empty.

        `comma` is used as separator if the object has a single member. `known` are its members
        if they have been read.
        """
        found = list(islice(members(raw, 0), 2) if known is None else known[:2])
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

    def encode_lines(self, texts: Iterable[str], indent: bytes = b"") -> Iterator[bytes]:
        """Write a text as a list of lines, both in pieces: it may be all that a cell printed."""
        shape = ListShape.of_style(self, indent)
        separator = shape.separator.decode()
        before = b"[" + shape.opening
        for block in _cut_at_lines(texts):
            yield before
            yield self.spell(separator.join(map(quote, block.splitlines(keepends=True))))
            before = shape.separator
        yield shape.closing + b"]" if before is shape.separator else b"[]"

    def spell(self, text: str) -> bytes:
        """The bytes of JSON text, escaped as the file escapes; never fails."""
        if text.isascii():
            return text.encode()
        if self._escapes_unicode():
            # A character above U+FFFF becomes two escapes, as UTF-16 has it.
            return re.sub(r"[^\x00-\x7f]+", _escape, text).encode()
        try:
            return text.encode()
        except UnicodeEncodeError:
            return _surrogates.sub(_escape, text).encode()


def _cut_at_lines(texts: Iterable[str]) -> Iterator[str]:
    """The same text in pieces of whole lines."""
    begun: list[str] = []
    for text in texts:
        start = 0
        while end := text.find("\n", start + (0 if begun else _BLOCK)) + 1:
            yield "".join([*begun, text[start:end]])
            begun, start = [], end
        begun.append(text[start:])
    rest = "".join(begun)
    if rest:
        yield rest


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def has_surrogates(text: str) -> bool:
    """Whether a text holds halves of characters."""
    return not text.isascii() and _surrogates.search(text) is not None


def escapes_unicode(data: bytes) -> bool:
    """Whether a file writes non-ASCII characters as escapes; False if it has none."""
    return data.isascii() and _escaped_character(data) is not None


def comma_beside(colon: bytes) -> bytes:
    """The comma that fits a colon, for an object with a single member."""
    return b", " if colon.endswith(b" ") else b","


class ListShape:
    """The bytes around the elements of an array."""

    __slots__ = ("closing", "opening", "separator")

    def __init__(self, opening: bytes, separator: bytes, closing: bytes) -> None:
        self.opening = opening
        self.separator = separator
        self.closing = closing

    @classmethod
    def of_array(cls, raw: bytes, comma: bytes) -> ListShape | None:
        """The shape of an array, or None if it is empty.

        `comma` is used as separator if the array has a single element on one line.
        """
        found = list(islice(elements(raw, 0), 2))  # there may be a million
        if not found:
            return None
        opening = raw[1 : found[0][0]]
        if len(found) == 2:
            separator = raw[found[0][1] : found[1][0]]
        else:
            separator = b"," + opening if b"\n" in opening else comma
        return cls(opening, separator, _space_before(raw, len(raw) - 1))

    @classmethod
    def of_style(cls, style: Style, indent: bytes) -> ListShape:
        """The shape that a style gives to an array on a line indented by `indent`."""
        if not style.newline:
            return cls(b"", style.comma, b"")
        inner = style.newline + indent + style.unit
        return cls(inner, b"," + inner, style.newline + indent)


def _space_before(raw: bytes, end: int) -> bytes:
    """The white space that ends at a place."""
    start = end
    while raw[start - 1] in b" \t\r\n":
        start -= 1
    return raw[start:end]


def encode_source(
    source: str, style: Style, shape: ListShape, old: bytes = b"", *, as_list: bool = True
) -> bytes:
    """Write a cell's source as a list of lines, or as one string if `as_list` is false.

    Every line but the last keeps its newline, and an empty source is `[]`. Lines of the `old`
    list keep their spelling.
    """
    if not as_list:
        return style.spell(quote(source))
    if not source:
        return b"[]"
    known: dict[str, bytes] = {}
    if old and old[0] == OPEN_ARRAY:
        for start, end in elements(old, 0):
            if old[start] == QUOTE:
                known[decode_string(old, start, end)] = old[start:end]
    lines = [known.get(line) or style.spell(quote(line)) for line in split_lines(source)]
    return b"[" + shape.opening + shape.separator.join(lines) + shape.closing + b"]"


def split_lines(source: str) -> list[str]:
    """Lines with their newline; only a line feed ends a line, and an empty text has no lines."""
    lines = [line + "\n" for line in source.split("\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        del lines[-1]
    return lines


def read_members(raw: bytes, where: str) -> dict[str, Member]:
    """The members of an object, by key; raises on a duplicate key."""
    found: dict[str, Member] = {}
    for member in list_members(raw, 0, len(raw)):
        if member.key in found:
            raise DuplicateKey(member.key, where)
        found[member.key] = member
    return found


def change_members(
    raw: bytes,
    changes: Mapping[str, bytes | Iterable[bytes] | None],
    style: Style,
    indent: bytes,
    where: str,
    *,
    found: dict[str, Member] | None = None,
) -> bytes:
    """The object with members set to these bytes, which may come in pieces, or removed where None.

    `indent` is the indentation of the object's members; it is used for new members only. `found`
    are its members if they have been read: a long output takes its time.
    """
    found = read_members(raw, where) if found is None else found
    raw = _replace_and_remove(raw, found, changes)
    new = {key: value for key, value in changes.items() if value is not None and key not in found}
    for key, value in new.items():
        whole = value if isinstance(value, bytes) else b"".join(value)
        raw = _add(raw, key, whole, style, indent)
    return raw


def merge_patch(raw: bytes, patch: Mapping[str, Any], style: Style, indent: bytes) -> bytes:
    """Apply an RFC 7396 patch to an object: null removes, objects merge, the rest replaces."""
    found = read_members(raw, "the metadata")
    changes: dict[str, bytes | None] = {}
    for key, value in patch.items():
        member = found.get(key)
        if value is None:
            changes[key] = None
        elif isinstance(value, dict):
            old = raw[member.start : member.end] if member else b"{}"
            # A patch also creates objects, without the nulls that would remove nothing.
            old = old if old[0] == OPEN_OBJECT else b"{}"
            changes[key] = merge_patch(old, value, style, indent + style.unit)
        elif not member or not _equal(raw[member.start : member.end], value):
            changes[key] = style.encode(value, indent)  # the same value keeps its spelling
    return change_members(raw, changes, style, indent, "the metadata")


def replace_value(old: bytes, value: Any, style: Style, indent: bytes) -> bytes:
    """Write a value, or keep the old bytes if they already mean the same."""
    new = style.encode(value, indent)
    return old if old and _equal(old, value) else new


def _equal(old: bytes, value: Any) -> bool:
    try:
        loaded = json.loads(old)
    except (ValueError, RecursionError):
        return False
    # 1 == True == 1.0 in Python, not in JSON.
    return type(loaded) is type(value) and json.dumps(loaded) == json.dumps(value)


def _replace_and_remove(
    raw: bytes, found: dict[str, Member], changes: Mapping[str, bytes | Iterable[bytes] | None]
) -> bytes:
    ordered = list(found.values())
    removed = {key for key, value in changes.items() if value is None and key in found}
    if ordered and len(removed) == len(ordered):
        return b"{}"
    new = BytesIO()  # to join pieces, all of them would have to be there beside the whole
    done = 0
    kept_before = False
    for i, member in enumerate(ordered):
        if member.key in removed:
            if kept_before:
                start, end = ordered[i - 1].end, member.end
            else:
                start, end = member.key_start, ordered[i + 1].key_start
            new.write(raw[done:start])
            done = end
            continue
        kept_before = True
        value = changes.get(member.key)
        if value is not None:
            new.write(raw[done : member.start])
            new.writelines((value,) if isinstance(value, bytes) else value)
            done = member.end
    new.write(raw[done:])
    return new.getvalue()


def _add(raw: bytes, key: str, value: bytes, style: Style, indent: bytes) -> bytes:
    ordered = list(members(raw, 0))
    name = style.spell(quote(key))
    if not ordered:
        line = style.newline + indent if style.newline else b""
        end = style.newline + indent[: len(indent) - len(style.unit)] if style.newline else b""
        return b"{" + line + name + style.colon + value + end + b"}"
    first = ordered[0]
    opening = raw[1 : first.key_start]
    colon = raw[first.key_end : first.start]
    if len(ordered) > 1:
        separator = raw[first.end : ordered[1].key_start]
    else:
        separator = b"," + opening if b"\n" in opening else style.comma
    # Jupyter sorts keys; a sorted object stays sorted, so the next save there moves nothing.
    keys = [member.key for member in ordered]
    place = len(keys)
    if keys == sorted(keys):
        place = sum(1 for other in keys if other < key)
    if place == 0:
        at = first.key_start
        return raw[:at] + name + colon + value + separator + raw[at:]
    at = ordered[place - 1].end
    return raw[:at] + separator + name + colon + value + raw[at:]


def is_object(raw: bytes) -> bool:
    """Whether the value is an object."""
    return raw[:1] == b"{"
