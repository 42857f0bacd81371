"""The msgspec decoders; imported only when a file is large enough to repay the import."""

# No `from __future__ import annotations`: msgspec reads these annotations at run time.
import gc
import time
from typing import Literal

import msgspec


class FastFacts(msgspec.Struct, gc=False):
    """What names a cell, and what it says as it is spelled in the file."""

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
spell = msgspec.json.Encoder().encode


def cell_lengths(data: memoryview) -> list[int]:
    """The length in bytes of every cell of a notebook; raises if it is not strict JSON."""
    return list(map(len, _spans(data).cells))


def cell_facts(data: memoryview) -> list[FastFacts]:
    """The facts of every cell; raises if one lacks them."""
    facts = _facts(data).cells
    # Nobody else has had a turn all the while, such as the thread that saves the file.
    time.sleep(0)
    return facts


def texts(sources: list[msgspec.Raw]) -> list[str]:
    """What those cells say, each as one string; raises if one is no text."""
    join = "".join
    found = _texts(b"[" + b",".join(sources) + b"]")
    return [text if type(text) is str else join(text) for text in found]


class no_collection:  # noqa: N801  # used as a word
    """Thousands of objects come to stay: looking again and again for garbage among them is vain."""

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()
