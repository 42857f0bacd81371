"""Whether a file holds what it should, and whether the disk does."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Parts = Sequence[bytes | memoryview]

_BLOCK = 1 << 16  # larger ones are new memory every time


def holds(path: str, parts: Parts) -> bool:
    """Whether a file has exactly these bytes, looked at in blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    block = bytearray(_BLOCK)
    try:
        if os.fstat(descriptor).st_size != sum(map(len, parts)):
            return False
        for part in parts:
            view = memoryview(part)
            for at in range(0, len(view), _BLOCK):
                piece = view[at : at + _BLOCK]
                if len(piece) != len(block):
                    block = bytearray(len(piece))
                # bytearray on the left: it compares memory, a memoryview element by element.
                if not _read_into(descriptor, block) or block != piece:
                    return False
        return not os.read(descriptor, 1)
    finally:
        os.close(descriptor)


def sync_file(path: str) -> None:
    """Make sure that what a file holds is on the disk, though we did not write it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_into(descriptor: int, block: bytearray) -> bool:
    view = memoryview(block)
    while view:
        count = os.readv(descriptor, [view])
        if not count:
            return False
        view = view[count:]
    return True
