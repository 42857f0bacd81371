"""A chat on a terminal of our own: what it is sent is carried out, and what is seen can be read."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING

from tests.unit.cli.calling import command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

_sequence = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>()][0-9A-B]?"
)
_WHERE = b"\x1b[6n"  # where is the cursor?
PATIENCE = 40.0


class ChatTerminal:
    """`cellwright chat` on a terminal.

    `seen` is all that was printed, without sequences. Nothing sleeps: `wait` reads until a text
    has come that was not there before.
    """

    def __init__(
        self,
        folder: Path,
        *words: str,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES", "TMUX", "CI"}}
        given = {"TERM": "xterm-256color", **(env or {})}
        self._process = subprocess.Popen(
            command("chat", *words),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={**kept, **given},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # Ctrl-C
        )
        os.close(theirs)
        self.raw = ""
        self._read_until = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(20)
        os.close(self._ours)

    @property
    def seen(self) -> str:
        return _sequence.sub("", self.raw).replace("\r", "")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def say(self, line: str) -> None:
        """Type a line once there is a prompt for it."""
        self.wait("\u203a ")
        self.type(f"{line}\r")

    def wait(self, text: str, *, seconds: float = PATIENCE) -> str:
        """Read until a text has come after what was waited for last; returns what came before."""
        end = time.monotonic() + seconds
        while True:
            found = self.seen.find(text, self._read_until)
            if found >= 0:
                before = self.seen[self._read_until : found]
                self._read_until = found + len(text)
                return before
            assert self._read(end), f"{text!r} has not come:\n{self.seen[self._read_until :]}"

    def leave(self) -> int:
        """Wait for its end; returns the exit code."""
        end = time.monotonic() + PATIENCE
        while self._read(end):
            pass
        return self._process.wait(20)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0, end - time.monotonic()))
        if not ready:
            return False
        try:
            part = os.read(self._ours, 65536)
        except OSError:  # nobody holds the other end any more
            return False
        self.raw += part.decode(errors="replace")
        for _ in range(part.count(_WHERE)):
            os.write(self._ours, b"\x1b[1;1R")  # any place will do
        return bool(part)
