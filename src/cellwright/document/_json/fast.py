"""The msgspec decoders; imported only when a file is large enough to repay the import."""

# No `from __future__ import annotations`: msgspec reads these annotations at run time.
import msgspec


class _Top(msgspec.Struct):
    cells: list[msgspec.Raw]


class Facts(msgspec.Struct):
    """What names a cell and what it says."""

    cell_type: str
    source: str | list[str]
    id: str | None = None


_top = msgspec.json.Decoder(_Top).decode
facts = msgspec.json.Decoder(Facts).decode


def cell_lengths(data: memoryview) -> list[int]:
    """The length in bytes of every cell of a notebook."""
    return list(map(len, _top(data).cells))
