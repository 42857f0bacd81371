"""The msgspec decoders; imported only when a file is large enough to be worth the import."""

# No `from __future__ import annotations`: msgspec reads these annotations at run time.
import time
from typing import Literal

import msgspec


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
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_outputs = msgspec.json.Decoder(_CellOutputs).decode
_spans = msgspec.json.Decoder(_Spans).decode
_facts = msgspec.json.Decoder(_Facts).decode
_lengths = msgspec.json.Decoder(list[msgspec.Raw]).decode
_block = msgspec.json.Decoder(list[FullFacts]).decode
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


def decode_head(head: bytes) -> None:
    """Raise `ValueError` unless it is a notebook without cells."""
    head.decode()
    if _spans(head).cells:
        raise ValueError("it has cells")


def measure_block(block: memoryview) -> list[int]:
    """The lengths of cells that are separated by commas."""
    return list(map(len, _lengths(b"".join((b"[", block, b"]")))))


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
