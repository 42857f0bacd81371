"""What losslessness means, checked by another parser than ours.

`anatomy` takes a file apart with the scanner of Python's json module over a latin-1 view, in which
a character is a byte. Every check compares bytes of the file before and after an edit.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import JSONDecoder, scanstring
from typing import Any

_space = re.compile(r"[ \t\r\n]*").match
_scan = JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).scan_once


@dataclass(frozen=True)
class Anatomy:
    """A file in pieces: `head` and `tail` around the cells, and the gaps between them."""

    head: bytes
    cells: list[bytes]
    gaps: list[bytes]
    tail: bytes

    @property
    def frame(self) -> bytes:
        return self.head + b"|" + self.tail


def anatomy(data: bytes) -> Anatomy:
    text = data.decode("latin-1")
    at = _skip(text, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
    at = _skip(text, at + 1)
    while True:
        key, at = scanstring(text, at + 1)
        at = _skip(text, _skip(text, at) + 1)
        if key == "cells":
            return _cells(data, text, at + 1)
        _, at = _scan(text, at)
        at = _skip(text, _skip(text, at) + 1)


def _cells(data: bytes, text: str, start: int) -> Anatomy:
    cells, gaps = [], []
    end = start
    at = _skip(text, start)
    while text[at] != "]":
        if text[at] == ",":
            at = _skip(text, at + 1)
        gaps.append(data[end:at])
        _, end = _scan(text, at)
        cells.append(data[at:end])
        at = _skip(text, end)
    gaps.append(data[end:at])
    return Anatomy(data[:start], cells, gaps, data[at:])


def _skip(text: str, at: int) -> int:
    found = _space(text, at)
    assert found is not None
    return found.end()


def load(data: bytes) -> Any:
    """The value of a file, with numbers kept as they are spelled."""
    text = data.decode("utf-8-sig")
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)


def source_of(cell: dict[str, Any]) -> str:
    value = cell["source"]
    return value if isinstance(value, str) else "".join(value)


def assert_only_cell_changed(before: bytes, after: bytes, index: int) -> None:
    """Every byte outside one cell is the same."""
    old, new = anatomy(before), anatomy(after)
    start = len(b"".join([old.head, *_woven(old)[: 2 * index + 1]]))
    rest = len(before) - start - len(old.cells[index])
    assert before[:start] == after[:start]
    assert not rest or before[-rest:] == after[-rest:]
    assert len(after) - start - rest == len(new.cells[index])


def assert_only_inserted(before: bytes, after: bytes, index: int) -> None:
    """Taking the new cell and one separator out gives the old file."""
    old, new = anatomy(before), anatomy(after)
    assert old.cells == new.cells[:index] + new.cells[index + 1 :]
    assert (old.head, old.tail) == (new.head, new.tail)
    if old.cells:
        first = new.gaps[:index] + new.gaps[index + 1 :]
        second = new.gaps[: index + 1] + new.gaps[index + 2 :]
        assert old.gaps in (first, second)
        assert all(gap.strip() == b"," for gap in new.gaps[1:-1])


def assert_only_deleted(before: bytes, after: bytes, index: int) -> None:
    assert_only_inserted(after, before, index) if len(anatomy(before).cells) > 1 else None
    assert anatomy(after).frame == anatomy(before).frame
    old = anatomy(before).cells
    assert anatomy(after).cells == old[:index] + old[index + 1 :]


def assert_only_moved(before: bytes, after: bytes, index: int, target: int) -> None:
    """The same cells, byte by byte, in the other order, in the same frame."""
    old, new = anatomy(before), anatomy(after)
    order = list(range(len(old.cells)))
    order.insert(target, order.pop(index))
    assert [old.cells[i] for i in order] == new.cells
    assert old.frame == new.frame
    assert sorted(old.gaps[1:-1]) == sorted(new.gaps[1:-1]) or len(set(old.gaps)) > 3
    assert (old.gaps[0], old.gaps[-1]) == (new.gaps[0], new.gaps[-1])


def assert_only_metadata_changed(before: bytes, after: bytes) -> None:
    """The cells and what separates them are the same, and every other key of the notebook."""
    old, new = anatomy(before), anatomy(after)
    assert (old.cells, old.gaps) == (new.cells, new.gaps)
    one, two = load(before), load(after)
    one.pop("metadata", None)
    two.pop("metadata", None)
    assert one == two


def _woven(pieces: Anatomy) -> list[bytes]:
    woven = []
    for gap, cell in zip(pieces.gaps, pieces.cells, strict=False):
        woven += [gap, cell]
    return [*woven, pieces.gaps[-1]]
