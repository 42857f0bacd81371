"""A terminal made of glass: carries out what it is sent, and shows what a person would see."""

from __future__ import annotations

import re

from rich.cells import get_character_cell_size

_token = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r)|(\n)|([^\x1b])", re.DOTALL)
_IGNORED = "mhl"  # colours, and modes that change nothing that is seen at the end


class Glass:
    """So many columns and rows; what scrolls out at the top is kept.

    `writes` has everything as it was sent. What is not known here is an error.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.writes: list[str] = []
        self._above: list[str] = []
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0

    def size(self) -> tuple[int, int]:
        return self.columns, self.rows

    @property
    def text(self) -> list[str]:
        """All lines there ever were, without space at their ends, nor empty ones at the end."""
        lines = [*self._above, *("".join(line).rstrip() for line in self._lines)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def write(self, text: str) -> None:
        if text:
            self.writes.append(text)
        position = 0
        for found in _token.finditer(text):
            assert found.start() == position, ascii(text[position:])
            position = found.end()
            numbers, command, back, down, letter = found.groups()
            if letter:
                self._put(letter)
            elif back:
                self._column = 0
            elif down:
                self._column = 0
                self._next_line()
            else:
                self._obey(command, numbers)
        assert position == len(text), ascii(text[position:])

    def _obey(self, command: str, numbers: str) -> None:
        line = self._lines[self._row]
        if command == "A":
            # A terminal stays at its top; whoever counts on more has lost lines.
            assert int(numbers) <= self._row, "above the top of the screen"
            self._row -= int(numbers)
        elif command == "K":
            # Behind the last column the cursor still is on it, and what is on it goes.
            del line[min(self._column, self.columns - 1) :]
        elif command == "J":
            del line[self._column :]
            del self._lines[self._row + 1 :]
        else:
            assert command in _IGNORED, ascii(command)

    def _put(self, letter: str) -> None:
        width = get_character_cell_size(letter)
        assert self._column + width <= self.columns, "a line is wider than the terminal"
        line = self._lines[self._row]
        line.extend(" " * (self._column - len(line)))
        line[self._column : self._column + width] = [letter, *[""] * (width - 1)]
        self._column += width

    def _next_line(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append([])
        if len(self._lines) > self.rows:
            self._above.append("".join(self._lines.pop(0)).rstrip())
            self._row -= 1
