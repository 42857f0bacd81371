"""Where the cells of a notebook stand in its bytes.

Two parsers give the same answer: msgspec's, fast, for large files, and the standard library's for
small ones, for what msgspec refuses (NaN, lone surrogates, deep nesting) and as the test oracle.
"""

from __future__ import annotations

import re
import sys

from cellwright.document._json.scan import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COMMA,
    OPEN_ARRAY,
    OPEN_OBJECT,
    Member,
    check,
    decode_string,
    elements,
    skip_space,
    skip_string,
    skip_value,
)
from cellwright.errors import DuplicateKey, InvalidNotebook, NotUtf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

BOM = b"\xef\xbb\xbf"
# Below this size the standard library is done before msgspec is imported.
MSGSPEC_FROM_BYTES = 200_000

_separator = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+").match


class Index:
    """The top-level members of a notebook, and the span of every cell."""

    __slots__ = ("cells_close", "cells_open", "members", "spans")

    def __init__(
        self,
        members: dict[str, Member],
        cells_open: int,
        spans: Sequence[tuple[int, int]],
        cells_close: int,
    ) -> None:
        self.members = members
        self.cells_open = cells_open
        self.spans = spans
        self.cells_close = cells_close


def index(data: bytes) -> Index:
    """Index a whole file; raises `InvalidNotebook` or one of its kinds.

    A file whose top level has no `cells` array (nbformat 2 and 3) gets `cells_open` -1.
    """
    check_utf8(data)
    start = skip_space(data, len(BOM) if data.startswith(BOM) else 0)
    if len(data) >= MSGSPEC_FROM_BYTES or "msgspec" in sys.modules:
        lengths = _measure(memoryview(data)[start:])
        if lengths is not None:
            return _walk(data, start, lengths)
    return index_with_standard_library(data, start)


def index_with_standard_library(data: bytes, start: int) -> Index:
    """The same answer as `index`, by the slower parser that accepts all of JSON."""
    check(data, start)
    if data[start] != OPEN_OBJECT:
        raise InvalidNotebook("The file holds JSON, but not an object")
    return _walk(data, start, None)


def check_utf8(data: bytes) -> None:
    """Raise `NotUtf8` at the first byte that is not UTF-8, with little extra memory."""
    if data.isascii():
        return
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NotUtf8(0, looks_like="UTF-16")
    at, size = 0, len(data)
    # `isascii` runs at memory speed, so that only blocks that hold other characters are decoded.
    while at < size:
        end = min(at + 4096, size)
        while end < size and data[end] & 0xC0 == 0x80 and end > at:
            end -= 1
        block = data[at : end if end > at else at + 4096]
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                raise NotUtf8(at + error.start) from None
        at += len(block)


def _measure(data: memoryview) -> list[int] | None:
    """The length of every cell, or None if msgspec cannot say."""
    try:
        from cellwright.document._json.fast import cell_lengths

        return cell_lengths(data)
    except (ImportError, ValueError, RecursionError):
        return None  # the other parser knows whether the file really is wrong


def _walk(data: bytes, start: int, lengths: list[int] | None) -> Index:
    """Walk the top level; over the cells by their lengths if these are known."""
    found: dict[str, Member] = {}
    cells_open = cells_close = -1
    spans: Sequence[tuple[int, int]] = ()
    at = skip_space(data, start + 1)
    while data[at] != CLOSE_OBJECT:
        key_start, key_end = at, skip_string(data, at)
        key = decode_string(data, key_start, key_end)
        value = skip_space(data, skip_space(data, key_end) + 1)
        if key in found:
            raise DuplicateKey(key, "the notebook")
        if key == "cells" and data[value] == OPEN_ARRAY:
            cells_open = value
            spans = list(elements(data, value)) if lengths is None else _spans(data, value, lengths)
            cells_close = skip_space(data, spans[-1][1] if spans else value + 1)
            end = cells_close + 1
            if data[cells_close] != CLOSE_ARRAY:
                raise InvalidNotebook("The two parsers disagree about the cells")
        else:
            end = skip_value(data, value)
        found[key] = Member(key, key_start, key_end, value, end)
        at = skip_space(data, end)
        if data[at] == COMMA:
            at = skip_space(data, at + 1)
    return Index(found, cells_open, spans, cells_close)


def _spans(data: bytes, cells_open: int, lengths: list[int]) -> Sequence[tuple[int, int]]:
    at = skip_space(data, cells_open + 1)
    spans: list[tuple[int, int]] = []
    if not lengths:
        return spans
    add = spans.append
    end = at + lengths[0]
    add((at, end))
    usual = b","
    width = 1
    for length in lengths[1:]:
        # The separator of the cell before, if it stands here too and a cell opens after it.
        at = end + width
        if data[end:at] != usual or data[at] != OPEN_OBJECT:
            found = _separator(data, end)
            if found is None:
                raise InvalidNotebook("The two parsers disagree about the cells")
            at = found.end()
            usual, width = found[0], at - end
        end = at + length
        add((at, end))
    return spans
