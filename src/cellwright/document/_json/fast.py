"""The msgspec decoders; imported only when a file is large enough to be worth the import."""

# No `from __future__ import annotations`: msgspec reads these annotations at run time.
import gc
import time
from typing import Literal

import msgspec


class FastFacts(msgspec.Struct, gc=False):
    """Type and id of a cell, and its source as the file spells it."""

    cell_type: Literal["code", "markdown", "raw"]
    source: msgspec.Raw
    id: str | None = None


class _Spans(msgspec.Struct):
    cells: list[msgspec.Raw]


class _Facts(msgspec.Struct):
    cells: list[FastFacts]


_spans = msgspec.json.Decoder(_Spans).decode
_facts = msgspec.json.Decoder(_Facts).decode
_texts = msgspec.json.Decoder(list[str | list[str]]).decode
encode = msgspec.json.Encoder().encode


def cell_lengths(data: memoryview) -> list[int]:
    """The length in bytes of every cell of a notebook; raises if the file is not strict JSON."""
    return list(map(len, _spans(data).cells))


def cell_facts(data: memoryview) -> list[FastFacts]:
    """The facts of every cell; raises if one lacks them."""
    facts = _facts(data).cells
    time.sleep(0)  # decoding kept other threads waiting, such as the one that saves the file
    return facts


def decode_sources(sources: list[msgspec.Raw]) -> list[str]:
    """The sources, each as one string; raises if one is not text."""
    join = "".join
    found = _texts(b"[" + b",".join(sources) + b"]")
    return [text if type(text) is str else join(text) for text in found]


class GarbagePause:
    """Stops the garbage collector inside a `with` block that makes thousands of lasting objects."""

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()
