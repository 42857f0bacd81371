"""Notebooks that were lately read or written, so that the same bytes are not parsed again.

Whether a file still holds what is remembered is never guessed from its times: it is read, and
compared byte for byte, which costs a small part of parsing it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from cellwright.document._file_slots import FileSlots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.change import State

_MOST = 8
_MOST_BYTES = 128 * 2**20
# A notebook edited here and there becomes a patchwork; parsed anew it is whole again.
_MOST_PARTS = 200


class Recent:
    """What the files at some real paths held last; for all threads.

    Args:
        most: notebooks kept; the one not asked for the longest makes room.
        most_bytes: what they may have together; a larger one is not kept.
    """

    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, tuple[State, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, real: str, data: bytes) -> State | None:
        """What these bytes of a file are, if they are what was kept of it."""
        with self._lock:
            found = self._kept.get(real)
        if found is None or found[1] != len(data):
            return None
        at = 0
        for part in found[0].layout.parts():
            if not data.startswith(part, at):  # compares in place, without a copy
                return None
            at += len(part)
        with self._lock:
            if real in self._kept:
                self._kept.move_to_end(real)
        return found[0]

    def keep(self, real: str, state: State) -> None:
        """Remember what a file holds, if that is any use."""
        slots = state.layout.slots
        size = 0
        if state.old is None and isinstance(slots, FileSlots):
            lengths = [len(part) for part in state.layout.parts()]
            size = sum(lengths) if len(lengths) <= _MOST_PARTS else 0
        with self._lock:
            self._kept.pop(real, None)
            if 0 < size <= self._most_bytes:
                self._kept[real] = (state, size)
            while len(self._kept) > self._most or self._total() > self._most_bytes:
                self._kept.popitem(last=False)

    def _total(self) -> int:
        return sum(size for _, size in self._kept.values())
