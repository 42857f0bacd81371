"""What is logged while a chat goes on: kept until there is a place to say it.

A line that is written to the terminal in the middle of an answer, or of what somebody types, would
be drawn over or tear it apart.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING

from cellwright.outputs.sanitize import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 20
_LONGEST = 500


class Warnings(logging.Handler):
    """Keeps the last few warnings; may be called from any thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: deque[str] = deque(maxlen=_MOST)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self._kept.append(one_line(record.getMessage()[:_LONGEST]))

    def take(self) -> list[str]:
        """Those that have not been said yet, each once."""
        found = list(dict.fromkeys(self._kept))
        self._kept.clear()
        return found


@contextlib.contextmanager
def kept_warnings() -> Iterator[Warnings]:
    """Keep what is logged inside the block."""
    handler = Warnings()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
