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


_spans = msgspec.json.Decoder(_Spans).decode
_facts = msgspec.json.Decoder(list[FastFacts]).decode
# So many cells are decoded before others, such as the thread that saves, have their turn.
_TURN = 2500


def cell_lengths(data: memoryview) -> list[int]:
    """The length in bytes of every cell of a notebook; raises if it is not strict JSON."""
    return list(map(len, _spans(data).cells))


def cell_facts(data: bytes, starts: list[int], ends: list[int]) -> list[FastFacts]:
    """The facts of every cell; raises if one lacks them."""
    facts: list[FastFacts] = []
    # Thousands of lists come to stay: looking again and again for garbage among them is in vain.
    collects = gc.isenabled()
    gc.disable()
    try:
        for first in range(0, len(starts), _TURN):
            last = min(first + _TURN, len(starts)) - 1
            facts += _facts(b"[%b]" % data[starts[first] : ends[last]])
            time.sleep(0)
    finally:
        if collects:
            gc.enable()
    return facts
