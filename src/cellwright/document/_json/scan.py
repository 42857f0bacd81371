"""Find values in JSON text by their byte offsets, with the standard library alone.

`check` raises for everything that is not JSON. `skip_value`, `members` and `elements` rely on a
previous `check`, or on another strict parser. They never recurse, so no nesting is too deep.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # of every Python

from cellwright.errors import InvalidJson, TooDeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

QUOTE, BACKSLASH, COLON, COMMA = b'"\\:,'
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = b"{}[]"

# From this size on, msgspec is faster than looking for brackets.
_LONG = 50_000
_space = re.compile(rb"[ \t\r\n]*+").match
_scalar = re.compile(rb"[^,\]} \t\r\n]*+").match
# Possessive quantifiers: a string of a million escapes must not grow a backtracking stack. Each
# part is told by its first byte, because before Python 3.11.5 a part may match half of itself. A
# bounded number of parts lets other threads work in between.
_between_brackets = re.compile(
    rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"){0,100000}+', re.DOTALL
).match
# The comma before a member, its key, and its value if that is short and holds no other values: a
# long string is found faster by its closing quote.
read_head = re.compile(
    rb"[ \t\r\n]*+,?[ \t\r\n]*+"
    rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*+:[ \t\r\n]*+'
    rb'("[^"\\]{0,100}"|[^\[{",:\]} \t\r\n]++|\[\]|\{\})?',
    re.DOTALL,
).match
_comma = re.compile(rb"[ \t\r\n]*+,?[ \t\r\n]*+").match
_token = re.compile(
    rb"[ \t\r\n]*+(?:"
    rb'("[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")'
    # What Python's json reads is JSON here: a notebook with NaN must be readable.
    # Its optional parts are not possessive: before Python 3.11.5 those match half of themselves.
    rb"|(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity)"
    rb"|([{}\[\],:]))"
).match


def skip_space(data: bytes, at: int) -> int:
    """The first place from `at` on that is not white space."""
    return _space(data, at).end()  # type: ignore[union-attr]  # matches always, maybe nothing


def skip_string(data: bytes, at: int) -> int:
    """The place after the string whose opening quote is at `at`."""
    at += 1
    while True:
        end = data.find(b'"', at)
        if end < 0:
            raise _invalid(data, at, "the string does not end")
        back = end
        while data[back - 1] == BACKSLASH:
            back -= 1
        if (end - back) % 2 == 0:
            return end + 1
        at = end + 1


def skip_value(data: bytes, at: int) -> int:
    """The place after the value that starts at `at`."""
    first = data[at]
    if first == QUOTE:
        return skip_string(data, at)
    if first not in (OPEN_OBJECT, OPEN_ARRAY):
        return _scalar(data, at).end()  # type: ignore[union-attr]  # matches always
    depth, size = 1, len(data)
    at += 1
    while True:
        end = _between_brackets(data, at).end()  # type: ignore[union-attr]  # matches always
        if end == size:
            raise _invalid(data, size, "a bracket is not closed")
        mark = data[end]
        if mark in (OPEN_OBJECT, OPEN_ARRAY):
            depth += 1
        elif mark in (CLOSE_OBJECT, CLOSE_ARRAY):
            depth -= 1
            if not depth:
                return end + 1
        elif end == at:
            raise _invalid(data, at + 1, "the string does not end")
        else:  # more parts than a match may have
            at = end
            continue
        at = end + 1


def decode_string(data: bytes, start: int, end: int) -> str:
    """The text of the string literal from `start` to `end`."""
    if data.find(b"\\", start, end) < 0:
        return data[start + 1 : end - 1].decode()
    text: str = scanstring(data[start:end].decode(), 1)[0]
    return text


def decode(raw: bytes, where: str) -> Any:
    """Turn JSON into Python objects; integers beyond Python's limit become floats.

    Raises:
        TooDeep: it is nested too deeply; `where` names it in the message.
    """
    try:
        return _decoder.decode(raw.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise TooDeep(where) from None


def _integer(text: str) -> int | float:
    return int(text) if len(text) < 4300 else float(text)


# Made once: `json.loads` with settings makes a decoder for every call.
_decoder = json.JSONDecoder(parse_int=_integer)


class Member:
    """One `"key": value` of an object: the decoded key, and the places of both."""

    __slots__ = ("end", "key", "key_end", "key_start", "start")

    def __init__(self, key: str, key_start: int, key_end: int, start: int, end: int) -> None:
        self.key = key
        self.key_start = key_start
        self.key_end = key_end
        self.start = start
        self.end = end


def members(data: bytes, at: int) -> Iterator[Member]:
    """The members of the object that opens at `at`."""
    at += 1
    while found := read_head(data, at):
        key_start, key_end = found.span(1)
        start, at = found.span(2)
        if at < 0:
            start = found.end()
            at = skip_value(data, start)
        yield Member(decode_string(data, key_start, key_end), key_start, key_end, start, at)


def list_members(data: bytes, start: int, end: int) -> list[Member]:
    """The members of the object from `start` to `end`; fast also if one of them is long."""
    if end - start >= _LONG:
        found = _measure_members(data, start, end)
        if found is not None:
            return found
    return list(members(data, start))


def _measure_members(data: bytes, start: int, end: int) -> list[Member] | None:
    """The members by the lengths that msgspec finds; None if it refuses, or a key comes twice."""
    try:
        from cellwright.document._json.fast import member_lengths

        lengths = member_lengths(memoryview(data)[start:end])
    except (ImportError, ValueError, RecursionError):
        return None
    found = []
    at = start + 1
    while head := read_head(data, at):
        key = decode_string(data, *head.span(1))
        if key not in lengths:
            return None
        value = head.end() if head[2] is None else head.start(2)
        at = value + lengths[key]
        found.append(Member(key, *head.span(1), value, at))
    is_all = len(found) == len(lengths) and skip_space(data, at) == end - 1
    return found if is_all else None


def elements(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The start and end of each element of the array that opens at `at`."""
    at = skip_space(data, at + 1)
    while data[at] != CLOSE_ARRAY:
        end = skip_value(data, at)
        yield at, end
        at = _comma(data, end).end()  # type: ignore[union-attr]  # matches always


def check(data: bytes, at: int = 0) -> None:
    """Raise `InvalidJson` unless the bytes from `at` to the end are exactly one JSON value."""
    match = _token
    open_brackets = bytearray()
    # What may come next: a value, a key, or what follows a value. `closes` is the bracket that
    # may also come now, because the array or object has just been opened.
    want, closes = "value", 0
    while True:
        found = match(data, at)
        if found is None:
            if want == "end" and skip_space(data, at) == len(data):
                return
            raise _explain(data, skip_space(data, at), want)
        kind = found.lastindex
        at = found.end()
        mark = data[at - 1]
        if kind == 3 and mark not in (OPEN_OBJECT, OPEN_ARRAY):
            if want == "after" and mark == COMMA:
                want, closes = ("key" if open_brackets[-1] == CLOSE_OBJECT else "value"), 0
                continue
            if want == "colon" and mark == COLON:
                want = "value"
                continue
            if (want == "after" and mark == open_brackets[-1]) or (closes and mark == closes):
                open_brackets.pop()
                want, closes = ("after" if open_brackets else "end"), 0
                continue
            raise _explain(data, at - 1, want)
        if want == "key":
            if kind != 1:
                raise _explain(data, found.start(kind or 0), want)
            want, closes = "colon", 0
        elif want != "value":
            raise _explain(data, found.start(kind or 0), want)
        elif kind == 3:
            open_brackets.append(CLOSE_OBJECT if mark == OPEN_OBJECT else CLOSE_ARRAY)
            closes = open_brackets[-1]
            want = "key" if mark == OPEN_OBJECT else "value"
        else:
            want, closes = ("after" if open_brackets else "end"), 0


_EXPECTED = {
    "value": "expected a value",
    "key": "expected a key in double quotes",
    "colon": "expected ':'",
    "after": "expected ',' or a closing bracket",
    "end": "more text follows the end",
}


def _explain(data: bytes, at: int, want: str) -> InvalidJson:
    if at >= len(data):
        return _invalid(data, len(data), "the file ends too early" if data else "the file is empty")
    if data[at] == QUOTE and want in ("value", "key"):
        return _invalid(
            data, at, "a string is not closed, or holds a bad escape or a control character"
        )
    return _invalid(data, at, _EXPECTED[want])


def _invalid(data: bytes, at: int, reason: str) -> InvalidJson:
    line_start = data.rfind(b"\n", 0, at) + 1
    column = len(data[line_start:at].decode(errors="replace")) + 1
    return InvalidJson(reason, line=data.count(b"\n", 0, at) + 1, column=column)
