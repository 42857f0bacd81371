"""`input()`, `getpass()` and `sys.stdin`: whoever asks, asks the host."""

# Why not: see the package's docstring.

from __future__ import annotations

import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .streams import Streams


class Stdin:
    """A file whose lines come from the host, one question each."""

    name = "<stdin>"
    mode = "r"
    encoding = "utf-8"
    errors = "strict"
    newlines = None
    closed = False

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._asked = 0
        sys.stdin = sys.__stdin__ = self  # type: ignore[assignment, misc]
        builtins.input = self.input

    def ask(self, prompt: str, *, password: bool = False) -> str:
        """Ask the host for a line, and wait for it.

        Raises:
            EOFError: there is no host that could answer.
        """
        streams = self._streams
        wire = streams.wire
        if wire.is_cut or not streams.cell:
            raise EOFError("nobody can be asked")
        streams.flush()
        self._asked += 1
        cell, number = streams.cell, self._asked
        wire.send("input", id=cell, prompt=prompt, password=password, request=number)

        def is_answer(message: dict[str, Any]) -> bool:
            return message.get("type") == "input" and message.get("request", number) == number

        answer = wire.receive(is_answer)
        if answer is None or answer.get("data") is None:
            raise EOFError("nobody answered")
        return str(answer["data"])

    def input(self, prompt: object = "", /) -> str:
        """Read a line from the person or agent that runs the cell."""
        return self.ask(str(prompt)).removesuffix("\n")

    def getpass(self, prompt: str = "Password: ", stream: object = None, **_: object) -> str:
        """Read a line that is not to be shown."""
        del stream
        return self.ask(prompt, password=True).rstrip("\n")

    def readline(self, size: int = -1, /) -> str:
        """Read a line; empty when nobody can be asked."""
        try:
            line = self.ask("")
        except EOFError:
            return ""
        # An empty answer ends the file: a loop over its lines would never end otherwise.
        return (line if line[-1:] in {"", "\n"} else line + "\n")[: None if size < 0 else size]

    read = readline

    def readlines(self, hint: int = -1, /) -> list[str]:
        """Read one line, in a list."""
        del hint
        line = self.readline()
        return [line] if line else []

    def __iter__(self) -> Iterator[str]:
        return iter(self.readlines())

    def fileno(self) -> int:
        """Give the descriptor that children read: it is empty."""
        return 0

    def isatty(self) -> bool:
        """Say that no terminal is here."""
        return False

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def writable(self) -> bool:
        """Say that it cannot be written."""
        return False

    def seekable(self) -> bool:
        """Say that there is no going back."""
        return False

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Stay open: the next cell may ask too."""
