"""Printed text as lines, each in its last state, of which the first and last are kept."""

from __future__ import annotations

import re

from cellwright.outputs._ends import Ends
from cellwright.outputs.sanitizer import ERASE_LINE, ERASE_REST, REWRITES

_steps = re.compile(f"(\b+|[\r{ERASE_REST}{ERASE_LINE}])")
_CUT = "…"


class Lines:
    r"""Takes sanitised text with its rewrites, and carries those out.

    A carriage return starts the line anew when something follows it, so that `\r\n` is a
    newline; a backspace takes back a character, as far as the line is still kept. Of lines
    longer than `columns` only so many characters are kept.
    """

    def __init__(self, head_limit: int, tail_limit: int, columns: int | None) -> None:
        self.newlines = 0
        self.long_lines = 0
        self._columns = columns
        self._done = Ends(head_limit, tail_limit)
        self._line = Ends(head_limit, tail_limit)
        self._width = 0  # of the open line, in characters; only where columns count
        self._beyond = 0  # bytes of the open line beyond the columns
        self._beyond_before = 0  # of all lines before
        self._has_returned = False

    @property
    def open_bytes(self) -> int:
        """Length of the line that is not ended yet."""
        return len(self._line) + self._beyond

    @property
    def total_bytes(self) -> int:
        """Length of the whole text, before lines were cut at the last column."""
        return len(self._done) + self._beyond_before + self.open_bytes

    @property
    def takes_bytes(self) -> bool:
        """Whether text without rewrites can be added as it is."""
        return self._columns is None and not self._has_returned

    def feed(self, text: str) -> None:
        """Go on with more text."""
        if self.takes_bytes and not any(sign in text for sign in REWRITES):
            self.feed_bytes(text.encode())
            return
        for number, part in enumerate(text.split("\n")):
            if number:
                self._end_line()
            if part:
                self._write(part)

    def ends(self) -> tuple[Ends, int]:
        """The text with its open line, and how many of its lines were too long."""
        text = self._done.copy()
        text.add_all(self._line)
        if self._beyond:
            text.add(_CUT.encode())
        return text, self.long_lines + bool(self._beyond)

    def clear(self) -> None:
        """Forget everything."""
        self.newlines = self.long_lines = self._beyond_before = 0
        self._done.clear()
        self._clear_line()

    def feed_bytes(self, data: bytes) -> None:
        """Go on with text that rewrites nothing, where `takes_bytes` allows it."""
        end = data.rfind(b"\n") + 1
        if end:
            self._done.add_all(self._line)
            self._line.clear()
            self._done.add(data[:end])
            self.newlines += data.count(b"\n")
        if end < len(data):
            self._line.add(data[end:])

    def _end_line(self) -> None:
        self._done.add_all(self._line)
        self._done.add(_CUT.encode() + b"\n" if self._beyond else b"\n")
        self.long_lines += bool(self._beyond)
        # The sign that a line was cut is no part of the text.
        self._beyond_before += self._beyond - len(_CUT.encode()) * bool(self._beyond)
        self.newlines += 1
        self._clear_line()

    def _clear_line(self) -> None:
        self._line.clear()
        self._width = self._beyond = 0
        self._has_returned = False

    def _write(self, part: str) -> None:
        """Carry out a part of one line."""
        last = part.rstrip("\r").rfind("\r")
        if last >= 0:  # what stands before is overwritten
            self._clear_line()
            part = part[last + 1 :]
        for step in _steps.split(part):
            if step == "\r":
                self._has_returned = True
            elif step == ERASE_REST:
                if self._has_returned:
                    self._clear_line()
            elif step == ERASE_LINE:
                self._clear_line()
            elif step:
                if self._has_returned:
                    self._clear_line()
                if step[0] == "\b":
                    self._take_back(len(step))
                else:
                    self._append(step)

    def _append(self, text: str) -> None:
        if self._columns is not None:
            room = max(0, self._columns - self._width)
            self._beyond += len(text[room:].encode())
            text = text[:room]
            self._width += len(text)
        self._line.add(text.encode())

    def _take_back(self, count: int) -> None:
        while count and not self._beyond and self._line.take_back_character():
            count -= 1
            self._width -= 1
