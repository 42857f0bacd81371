"""The msgspec decoders; imported only when a file is large enough to be worth the import."""

# No `from __future__ import annotations`: msgspec reads these annotations at run time.
import re
import time
from collections.abc import Generator, Iterator
from typing import Literal

import msgspec

from cellwright.document._json.scan import QUOTE


class FastFacts(msgspec.Struct, gc=False):
    """Type and id of a cell, and its source as the file spells it."""

    cell_type: Literal["code", "markdown", "raw"]
    source: msgspec.Raw
    id: str | None = None


class FullFacts(msgspec.Struct, gc=False):
    """Type, id and source of a cell."""

    cell_type: Literal["code", "markdown", "raw"]
    source: str | list[str]
    id: str | None = None


class _TypedOutput(msgspec.Struct, gc=False):
    output_type: str


class _CellOutputs(msgspec.Struct):
    outputs: list[_TypedOutput]


class _Spans(msgspec.Struct):
    cells: list[msgspec.Raw]


class _Facts(msgspec.Struct):
    cells: list[FastFacts]


_LONG = 1_000_000
_PIECE = 1 << 20
_characters = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL).match
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_outputs = msgspec.json.Decoder(_CellOutputs).decode
_spans = msgspec.json.Decoder(_Spans).decode
_facts = msgspec.json.Decoder(_Facts).decode
_lengths = msgspec.json.Decoder(list[msgspec.Raw]).decode
_block = msgspec.json.Decoder(list[FullFacts]).decode
_cell = msgspec.json.Decoder(FastFacts).decode
_text = msgspec.json.Decoder(str).decode
_strings = msgspec.json.Decoder(list[str]).decode
_source = msgspec.json.Decoder(str | list[str]).decode
_texts = msgspec.json.Decoder(list[str | list[str]]).decode
encode = msgspec.json.Encoder().encode


def cell_lengths(data: memoryview) -> list[int]:
    """The length in bytes of every cell of a notebook; raises if the file is not strict JSON."""
    return list(map(len, _spans(data).cells))


def cell_facts(data: memoryview) -> list[FastFacts]:
    """The facts of every cell; raises if one lacks them."""
    facts = _facts(data).cells
    if len(data) > _LONG:
        time.sleep(0)  # decoding kept other threads waiting, such as the one that saves the file
    return facts


def decode_block(block: memoryview, scratch: bytearray | None = None) -> list[FullFacts]:
    """The facts of cells that are separated by commas; raises if they are not, or one lacks them.

    `scratch` is memory for its use: new memory for every block would take longer than decoding.
    """
    data = bytearray() if scratch is None else scratch
    data[:1] = b"["
    data[1:] = block  # without becoming empty in between, which would give the memory back
    data += b"]"
    return _block(data)


def decode_large_cell(cell: memoryview) -> list[FullFacts]:
    """The facts of a single cell, in steps, so that no other thread waits for a long source.

    Raises if it is not one cell.
    """
    found = _cell(cell)
    source = memoryview(found.source)
    if len(source) <= _PIECE:
        text = _source(source)
    else:
        decode_pieces = _decode_string if source[0] == QUOTE else _decode_list
        text = "".join(decode_pieces(source))
    return [FullFacts(found.cell_type, text, found.id)]


def _decode_string(literal: memoryview, start: int = 0) -> Generator[str, None, int]:
    """The text of the string that opens at `start`, in pieces; returns the place after it."""
    at, size = start + 1, len(literal)
    while at < size:
        piece = bytes(literal[at : at + _PIECE])
        end = _characters(piece).end()  # type: ignore[union-attr]  # matches always, maybe nothing
        if piece[end : end + 1] == b'"':
            yield _text(b'"%b"' % piece[:end])
            return at + end + 1
        piece = piece[: _find_cut(piece)]
        yield _text(b'"%b"' % piece)
        at += len(piece)
    raise ValueError("the string does not end")


def _find_cut(piece: bytes) -> int:
    """Where a piece of a string can end: not in a character, an escape, or a pair of escapes."""
    last = piece.rfind(b"\\", len(piece) - 12)
    if last >= 0 and _begins_escape(piece, last):
        size = 6 if piece[last + 1 : last + 2] == b"u" else 2
        if last + size > len(piece) or _is_first_half(piece[last:]):
            first = last - 6
            is_pair = _is_first_half(piece[first:last]) and _begins_escape(piece, first)
            return first if is_pair else last
    end = len(piece)
    while end > len(piece) - 4 and piece[end - 1] & 0xC0 == 0x80:
        end -= 1
    return end - (piece[end - 1] >= 0xC0)


def _begins_escape(piece: bytes, at: int) -> bool:
    """Whether the backslash at a place is not escaped itself."""
    before = piece[:at]
    return (at - len(before.rstrip(b"\\"))) % 2 == 0


def _is_first_half(escape: bytes) -> bool:
    """Whether it is an escape that another one completes to a character."""
    return escape[:2] == b"\\u" and escape[2:3] in b"dD" and escape[3:4] in b"89abAB"


def _decode_list(literal: memoryview) -> Iterator[str]:
    """The texts of a list, joined; cut where a line ends, which is in no string of JSON."""
    at, end = 1, len(literal) - 1
    while at < end:
        piece = bytes(literal[at : min(at + _PIECE, end)])
        stop = len(piece)
        if at + stop < end:
            stop = max(piece.rfind(b",\n"), piece.rfind(b",\r\n"))
        if stop >= 0:
            yield "".join(_strings(b"[%b]" % piece[:stop]))
            at += stop + 1
            continue
        opened = len(piece) - len(piece.lstrip(b" \t\r\n"))
        if piece[opened : opened + 1] != b'"':
            raise ValueError("not a list of strings")
        at = yield from _decode_string(literal, at + opened)
        gap = bytes(literal[at : at + _PIECE])
        at += len(gap) - len(gap.lstrip(b", \t\r\n"))


def decode_head(head: bytes) -> None:
    """Raise `ValueError` unless it is a notebook without cells."""
    head.decode()
    if _spans(head).cells:
        raise ValueError("it has cells")


def measure_block(block: memoryview) -> list[int]:
    """The lengths of cells that are separated by commas."""
    return list(map(len, _lengths(b"".join((b"[", block, b"]")))))


def find_members(data: memoryview) -> dict[str, msgspec.Raw]:
    """The bytes of the values of an object, not copied; of a key that comes twice, of the last."""
    return _members(data)


def member_lengths(data: memoryview) -> dict[str, int]:
    """The lengths of the values of an object; of a key that comes twice, of the last one."""
    return {key: len(value) for key, value in _members(data).items()}


def output_types(data: memoryview) -> list[str]:
    """The types of the outputs of a cell; raises if one has none that is text."""
    return [output.output_type for output in _outputs(data).outputs]


def decode_sources(sources: list[msgspec.Raw]) -> list[str]:
    """The sources, each as one string; raises if one is not text."""
    join = "".join
    found = _texts(b"[" + b",".join(sources) + b"]")
    return [text if type(text) is str else join(text) for text in found]
