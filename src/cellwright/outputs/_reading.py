"""Parts of an artifact: by bytes, by whole characters, by lines."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cellwright.outputs._ends import whole_end, whole_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

BYTES = 50 * 2**10
"""How much is read unless somebody says otherwise."""

_BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes; `next_offset` is where the rest begins, None at the end."""

    data: bytes
    offset: int
    next_offset: int | None
    total: int


@dataclass(frozen=True, slots=True)
class TextPart:
    """Some text; offsets and `total` count bytes of UTF-8."""

    text: str
    offset: int
    next_offset: int | None
    total: int


@dataclass(frozen=True, slots=True)
class LinesPart:
    """Some lines, counted from 1; `next_line` is the first one after them, None at the end.

    If they were too long together, `cut_bytes` of them are missing at the end.
    """

    text: str
    first: int
    next_line: int | None
    total_lines: int
    cut_bytes: int = 0


def read_bytes(file: BinaryIO, offset: int, limit: int) -> Part:
    """Bytes from an offset on; one beyond the end gives nothing."""
    total = os.fstat(file.fileno()).st_size
    offset = min(max(0, offset), total)
    data = os.pread(file.fileno(), max(0, limit), offset)
    end = offset + len(data)
    return Part(data, offset, end if end < total else None, total)


def read_text(file: BinaryIO, offset: int, limit: int) -> TextPart:
    """Text from an offset on, always whole characters, and at least one."""
    limit = max(4, limit)
    part = read_bytes(file, offset, limit + 4)
    start = min(whole_start(part.data, 0), 3) if part.offset else 0
    end = start + limit
    end = max(whole_end(part.data, end), end - 3) if end < len(part.data) else len(part.data)
    after = part.offset + end
    return TextPart(
        text=part.data[start:end].decode("utf-8", "replace"),
        offset=part.offset + start,
        next_offset=after if after < part.total else None,
        total=part.total,
    )


def read_lines(file: BinaryIO, first: int, count: int, most_bytes: int) -> LinesPart:
    """Lines from one on; the whole file is looked at, to know how many there are."""
    first, count = max(1, first), max(1, count)
    stop = first + count
    line = 1  # the number of the line that the next byte is on
    kept = bytearray()
    cut = 0
    ends_open = False
    while block := file.read(_BLOCK):
        newlines = block.count(b"\n")
        ends_open = not block.endswith(b"\n")
        if line < stop and line + newlines >= first:
            begin = _after_lines(block, first - line)
            end = _after_lines(block, stop - line)
            wanted = block[begin:end]
            room = max(0, most_bytes - len(kept))
            kept += wanted[:room]
            cut += len(wanted) - len(wanted[:room])
        line += newlines
    total = line - 1 + ends_open
    if cut:
        whole = len(bytes(kept).decode("utf-8", "ignore").encode())
        if whole >= len(kept) - 3:  # an unfinished character, rather than no UTF-8 at all
            cut += len(kept) - whole
            del kept[whole:]
    return LinesPart(
        text=kept.decode("utf-8", "replace"),
        first=first,
        next_line=stop if stop <= total else None,
        total_lines=total,
        cut_bytes=cut,
    )


def _after_lines(block: bytes, count: int) -> int:
    """The position after so many lines of a block, or its end."""
    if count <= 0:
        return 0
    position = -1
    for _ in range(count):
        position = block.find(b"\n", position + 1)
        if position < 0:
            return len(block)
    return position + 1
