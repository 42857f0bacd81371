"""The last lines of a terminal, which may still change; everything above them stays."""

from __future__ import annotations

import re

from rich.cells import cell_len

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_look = re.compile(r"\x1b\[[0-9;]*m")
_BEGIN = "\x1b[?2026h\x1b[?25l"  # show nothing until all of it is there; no cursor meanwhile
_END = "\x1b[?25h\x1b[?2026l"


class Live:
    """Some lines at the end of what was printed, drawn over when they change.

    Lines are never wider than the terminal. The cursor stands on the line below them.

    Args:
        write: prints text at once.
        size: columns and rows of the terminal.
    """

    def __init__(self, write: Callable[[str], object], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self._lines: list[str] = []
        self._columns = 0

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines in place of those that are there; of too many, the last ones."""
        _, rows = self._size()
        # One that has scrolled out of the screen could not be drawn over.
        self._replace(list(lines)[-max(1, rows - 2) :])

    def settle(self, lines: Sequence[str]) -> None:
        """Print these lines for good, in place of those that are there."""
        self._replace(list(lines))
        self._lines = []

    def _replace(self, new: list[str]) -> None:
        columns, _ = self._size()
        if columns != self._columns:
            # The terminal has laid out anew what was there. Nobody knows how: it stays.
            self._lines, self._columns = [], columns
        old = self._lines
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        self._lines = new
        if same == len(old) == len(new):
            return
        back = f"\x1b[{len(old) - same}A\r" if len(old) > same else ""
        text = "".join(f"{self._whole(line)}\n" for line in new[same:])
        below = "\x1b[J" if len(old) > len(new) else ""
        self._write(f"{_BEGIN}{back}{text}{below}{_END}")

    def _whole(self, line: str) -> str:
        """A line, and nothing right of it; at the last column erasing would take the line's end."""
        is_full = cell_len(_look.sub("", line)) >= self._columns
        return line if is_full else f"{line}\x1b[K"
