"""The msgspec decoders; imported only when a file is large enough to repay the import."""

# No `from __future__ import annotations`: msgspec reads these annotations at run time.
import gc
import time

import msgspec


class FastFacts(msgspec.Struct, gc=False):
    """What names a cell and what it says."""

    cell_type: str
    source: str | list[str]
    id: str | None = None


class _Spans(msgspec.Struct):
    cells: list[msgspec.Raw]


class _Facts(msgspec.Struct):
    cells: list[FastFacts]


_spans = msgspec.json.Decoder(_Spans).decode
_facts = msgspec.json.Decoder(_Facts).decode


def cell_lengths(data: memoryview) -> list[int]:
    """The length in bytes of every cell of a notebook; raises if it is not strict JSON."""
    return list(map(len, _spans(data).cells))


def cell_facts(data: memoryview) -> list[FastFacts]:
    """The facts of every cell; raises if one lacks them."""
    # Thousands of lists come to stay: looking again and again for garbage among them is in vain.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _facts(data).cells
    finally:
        if collects:
            gc.enable()
        # Nobody else has had a turn all the while, such as the thread that saves the file.
        time.sleep(0)
