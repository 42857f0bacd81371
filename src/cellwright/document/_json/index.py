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
    OPEN_ARRAY,
    OPEN_OBJECT,
    Member,
    check,
    decode_string,
    elements,
    read_head,
    skip_space,
    skip_value,
)
from cellwright.document.costs import GarbagePause
from cellwright.errors import DuplicateKey, InvalidNotebook, NotUtf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.document._json.fast import FullFacts

BOM = b"\xef\xbb\xbf"
# Until a process has read this much, the standard library is faster than importing msgspec.
MSGSPEC_FROM_BYTES = 200_000
# A block should stay in the processor's cache while it is decoded, and is decoded in one go.
BLOCK_BYTES = 1 << 18
BLOCKS_FROM_BYTES = 2 * BLOCK_BYTES
# A cell of this size is a block of its own, which is decoded in steps.
LARGE_CELL_BYTES = 1 << 21
_BLOCK = 1 << 14
_bytes_read = 0

_separator = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+").match


class NotebookIndex:
    """The top-level members of a notebook, and where every cell starts and ends.

    `strict` is whether msgspec accepted the file. Without a `cells` array at the top level
    (nbformat 2 and 3), `cells_open` is -1. With `blocks`, `starts` and `ends` are empty.
    """

    __slots__ = ("blocks", "cells_close", "cells_open", "ends", "members", "starts", "strict")

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.cells_open = -1
        self.cells_close = -1
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.strict = False
        self.blocks: CellBlocks | None = None


def index_notebook(
    data: bytes, note: Callable[[list[FullFacts]], None] | None = None
) -> NotebookIndex:
    """Index a whole file; raises `InvalidNotebook` or a subclass.

    A large file is read in blocks of cells, if its indentation shows where they begin. `note` then
    gets the facts of the cells of each block; if the index has no blocks, they count for nothing.
    """
    start = skip_space(data, len(BOM) if data.startswith(BOM) else 0)
    if note is not None and len(data) >= BLOCKS_FROM_BYTES:
        found = index_in_blocks(data, start, note)
        if found is not None:
            return found
    check_utf8(data)
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
        from cellwright.document._json.fast import cell_lengths

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


def index_in_blocks(
    data: bytes, start: int, note: Callable[[list[FullFacts]], None], size: int = BLOCK_BYTES
) -> NotebookIndex | None:
    """Index by decoding blocks of cells, each once; None if that cannot be done.

    No string of JSON has a line break in it. So a closing brace, a comma and an opening brace on
    lines with the indentation of the first cell are outside of strings; that they are between two
    cells is shown when each block is an array of cells, and what is before the first cut and after
    the last one completes it to a notebook.
    """
    try:
        from cellwright.document._json.fast import (
            cell_lengths,
            decode_block,
            decode_head,
            decode_large_cell,
        )

        # Two functions, and none that calls itself: that would keep the file until it is collected.
        def take_small(start: int, end: int) -> None:
            with GarbagePause():
                facts = decode_block(view[start:end], scratch)
            check_utf8(scratch)
            blocks.add(start, end, len(facts))
            note(facts)

        def take(start: int, end: int) -> None:
            """Note the block of cells from `start` to `end`."""
            if end - start < LARGE_CELL_BYTES:
                take_small(start, end)
                return
            own = data.rfind(between, start, end)  # of the last cell, which is the large one
            if own >= 0:
                take_small(start, own + len(indent) + 1)
                start = own + len(between) - 1
            facts = decode_large_cell(view[start:end])
            check_utf8(data, start, end)
            blocks.add(start, end, len(facts))
            note(facts)

        opened = _find_cells(data, start)
        first = skip_space(data, opened + 1)
        indent = data[opened + 1 : first]
        if b"\n" not in indent or data[first] != OPEN_OBJECT:
            return None
        between = indent + b"}," + indent + b"{"
        blocks = CellBlocks(data)
        view, at, scratch = memoryview(data), first, bytearray()
        while (cut := data.find(between, at + size)) >= 0:
            end = cut + len(indent) + 1
            take(at, end)
            at = end + 1 + len(indent)
        # What is left: the last block and all that follows, and the beginning.
        if len(data) - at < LARGE_CELL_BYTES:
            rest = b"".join((b'{"cells":[', view[at:]))
            check_utf8(rest)
            with GarbagePause():
                lengths = cell_lengths(memoryview(rest))
            take(at, _place_cells(data, at, lengths)[1][-1])
        else:
            end = data.find(indent + b"}", max(data.rfind(between, at) + len(between), at))
            end += len(indent) + 1
            take(at, end)
            rest = b"".join((b'{"cells":[{}', view[end:]))
            check_utf8(rest)
            if len(cell_lengths(memoryview(rest))) > 1:
                return None
        decode_head(b"".join((view[start:first], b"]}")))
    except (ImportError, ValueError, IndexError, RecursionError, InvalidNotebook):
        return None

    def compare(_: NotebookIndex, at: int) -> None:
        if at != opened:
            raise InvalidNotebook("The parsers disagree about the cells")

    try:
        found = _walk(data, start, compare, blocks)
    except DuplicateKey:
        raise
    except InvalidNotebook:
        return None
    found.strict = True
    return found


def _find_cells(data: bytes, start: int) -> int:
    """Where the array of cells opens, in data that may be anything; raises if it is not found."""
    at = start + 1
    while head := read_head(data, at):
        value, at = head.span(2)
        value = head.end() if at < 0 else value
        if data[slice(*head.span(1))] == b'"cells"':
            if data[value] == OPEN_ARRAY:
                return value
            break
        at = skip_value(data, value) if at < 0 else at
    raise InvalidNotebook("There is no `cells` array")


class CellBlocks:
    """The cells of a file in blocks: where each block is, and within it every cell if asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._places: list[tuple[int, int]] = []
        self._firsts: list[int] = []
        self._spans: dict[int, tuple[list[int], list[int]]] = {}
        self.count = 0

    def add(self, start: int, end: int, count: int) -> None:
        """Add the next block: where it starts and ends, and its number of cells."""
        self._places.append((start, end))
        self._firsts.append(self.count)
        self.count += count

    @property
    def end(self) -> int:
        """The place after the last cell."""
        return self._places[-1][1]

    def span(self, cell: int) -> tuple[int, int]:
        """Where a cell starts and ends."""
        block, first = self.block_of(cell)
        starts, ends = self._measure(block)
        return starts[cell - first], ends[cell - first]

    def spans(self) -> tuple[list[int], list[int]]:
        """Where all cells start and end."""
        found = [self._measure(block) for block in range(len(self._places))]
        return [at for starts, _ in found for at in starts], [
            at for _, ends in found for at in ends
        ]

    def block_of(self, cell: int) -> tuple[int, int]:
        """The number of the block that has a cell, and its first cell."""
        from bisect import bisect_right  # large files only: every read would import it

        block = bisect_right(self._firsts, cell) - 1
        return block, self._firsts[block]

    def decode(self, block: int) -> list[FullFacts]:
        """The facts of the cells of a block."""
        from cellwright.document._json.fast import decode_block, decode_large_cell

        start, end = self._places[block]
        data = memoryview(self._data)[start:end]
        if len(data) >= LARGE_CELL_BYTES:
            return decode_large_cell(data)
        with GarbagePause():
            return decode_block(data)

    def _measure(self, block: int) -> tuple[list[int], list[int]]:
        if block not in self._spans:
            from cellwright.document._json.fast import measure_block

            start, end = self._places[block]
            is_one = end - start >= LARGE_CELL_BYTES
            data = memoryview(self._data)[start:end]
            lengths = [end - start] if is_one else measure_block(data)
            self._spans[block] = _place_cells(self._data, start, lengths)
        return self._spans[block]


def check_utf8(data: bytes | bytearray, start: int = 0, end: int | None = None) -> None:
    """Raise `NotUtf8` at the first byte that is not UTF-8, with little extra memory."""
    is_whole = end is None
    if is_whole and data.isascii():
        return
    if is_whole and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NotUtf8(0, looks_like="UTF-16")
    at, size = start, len(data) if end is None else end
    # `isascii` runs at memory speed, so that only blocks that hold other characters are decoded.
    while at < size:
        stop = min(at + _BLOCK, size)
        while stop < size and data[stop] & 0xC0 == 0x80 and stop > at:
            stop -= 1
        block = data[at : stop if stop > at else at + _BLOCK]
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                raise NotUtf8(at + error.start) from None
        at += len(block)


def _walk(
    data: bytes,
    start: int,
    find: Callable[[NotebookIndex, int], None],
    blocks: CellBlocks | None = None,
) -> NotebookIndex:
    """Walk the top level of a valid file; `find` finds the cells in their array."""
    found = NotebookIndex()
    found.blocks = blocks
    at = start + 1
    while head := read_head(data, at):
        key_start, key_end = head.span(1)
        key = decode_string(data, key_start, key_end)
        value, end = head.span(2)
        value = head.end() if end < 0 else value
        if key in found.members:
            raise DuplicateKey(key, "the notebook")
        if key == "cells" and data[value] == OPEN_ARRAY:
            found.cells_open = value
            find(found, value)
            last = found.ends[-1] if found.ends else value + 1
            found.cells_close = skip_space(data, last if blocks is None else blocks.end)
            end = found.cells_close + 1
            if data[found.cells_close] != CLOSE_ARRAY:
                raise InvalidNotebook("The parsers disagree about the cells")
        elif end < 0:
            end = skip_value(data, value)
        found.members[key] = Member(key, key_start, key_end, value, end)
        at = end
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
