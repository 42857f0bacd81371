"""Find the cells of a notebook in its bytes.

Two parsers give the same answer. The fast one, msgspec, measures the cells of large files. The
standard library parses small files and what msgspec refuses (NaN, lone surrogates, deep nesting),
and tests compare the first with it.
"""

from __future__ import annotations

import re
import sys
from itertools import accumulate, repeat
from operator import add

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
    from collections.abc import Callable

BOM = b"\xef\xbb\xbf"
# Until a process has read this much, the standard library is faster than importing msgspec.
MSGSPEC_FROM_BYTES = 200_000
_BLOCK = 1 << 14
_bytes_read = 0

_separator = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+").match


class NotebookIndex:
    """The top-level members of a notebook, and where every cell starts and ends.

    `strict` is whether msgspec accepted the file. Without a `cells` array at the top level
    (nbformat 2 and 3), `cells_open` is -1.
    """

    __slots__ = ("cells_close", "cells_open", "ends", "members", "starts", "strict")

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.cells_open = -1
        self.cells_close = -1
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.strict = False


def index_notebook(data: bytes) -> NotebookIndex:
    """Index a whole file; raises `InvalidNotebook` or a subclass."""
    check_utf8(data)
    start = skip_space(data, len(BOM) if data.startswith(BOM) else 0)
    global _bytes_read  # noqa: PLW0603  # of the process
    _bytes_read += len(data)
    if _bytes_read >= MSGSPEC_FROM_BYTES or "msgspec" in sys.modules:
        found = index_by_measuring(data, start)
        if found is not None:
            return found
    return index_with_standard_library(data, start)


def index_with_standard_library(data: bytes, start: int) -> NotebookIndex:
    """Index with the slower parser, which accepts all of JSON."""
    check(data, start)
    if data[start] != OPEN_OBJECT:
        raise InvalidNotebook("The file holds JSON, but not an object")

    def find(found: NotebookIndex, at: int) -> None:
        for cell, end in elements(data, at):
            found.starts.append(cell)
            found.ends.append(end)

    return _walk(data, start, find)


def index_by_measuring(data: bytes, start: int) -> NotebookIndex | None:
    """Index by the lengths of the cells in msgspec; None if msgspec refuses the file."""
    try:
        from cellwright.document._json.fast import GarbagePause, cell_lengths

        with GarbagePause():
            lengths = cell_lengths(memoryview(data)[start:])
    except (ImportError, ValueError, RecursionError):
        return None  # the standard library knows whether the file really is wrong

    def find(found: NotebookIndex, at: int) -> None:
        found.starts, found.ends = _place_cells(data, skip_space(data, at + 1), lengths)

    try:
        found = _walk(data, start, find)
    except DuplicateKey:
        raise
    except InvalidNotebook:
        return None
    found.strict = True
    return found


def check_utf8(data: bytes) -> None:
    """Raise `NotUtf8` at the first byte that is not UTF-8, with little extra memory."""
    if data.isascii():
        return
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NotUtf8(0, looks_like="UTF-16")
    at, size = 0, len(data)
    # `isascii` runs at memory speed, so that only blocks that hold other characters are decoded.
    while at < size:
        end = min(at + _BLOCK, size)
        while end < size and data[end] & 0xC0 == 0x80 and end > at:
            end -= 1
        block = data[at : end if end > at else at + _BLOCK]
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                raise NotUtf8(at + error.start) from None
        at += len(block)


def _walk(data: bytes, start: int, find: Callable[[NotebookIndex, int], None]) -> NotebookIndex:
    """Walk the top level of a valid file; `find` finds the cells in their array."""
    found = NotebookIndex()
    at = skip_space(data, start + 1)
    while data[at] != CLOSE_OBJECT:
        key_start, key_end = at, skip_string(data, at)
        key = decode_string(data, key_start, key_end)
        value = skip_space(data, skip_space(data, key_end) + 1)
        if key in found.members:
            raise DuplicateKey(key, "the notebook")
        if key == "cells" and data[value] == OPEN_ARRAY:
            found.cells_open = value
            find(found, value)
            found.cells_close = skip_space(data, found.ends[-1] if found.ends else value + 1)
            end = found.cells_close + 1
            if data[found.cells_close] != CLOSE_ARRAY:
                raise InvalidNotebook("The parsers disagree about the cells")
        else:
            end = skip_value(data, value)
        found.members[key] = Member(key, key_start, key_end, value, end)
        at = skip_space(data, end)
        if data[at] == COMMA:
            at = skip_space(data, at + 1)
    return found


def _place_cells(data: bytes, at: int, lengths: list[int]) -> tuple[list[int], list[int]]:
    """Starts and ends of cells of known lengths, the first of which starts at `at`."""
    if not lengths:
        return [], []
    separator = _separator(data, at + lengths[0])
    width = len(separator[0]) if separator else 0
    starts = list(accumulate([length + width for length in lengths[:-1]], initial=at))
    ends = list(map(add, starts, lengths))
    if separator is None or _evenly_separated(data, starts, ends, separator[0]):
        return starts, ends
    starts, ends = [], []
    for length in lengths:
        if ends:
            separator = _separator(data, ends[-1])
            if separator is None:
                raise InvalidNotebook("The parsers disagree about the cells")
            at = separator.end()
        starts.append(at)
        ends.append(at + length)
    return starts, ends


def _evenly_separated(data: bytes, starts: list[int], ends: list[int], separator: bytes) -> bool:
    """Whether exactly this separator, without more white space, is between all cells."""
    if ends[-1] > len(data):
        return False
    # With the first byte of a cell, because more white space would also match the separator.
    begin = separator + data[starts[0] : starts[0] + 1]
    return all(map(data.startswith, repeat(begin), ends[:-1]))
