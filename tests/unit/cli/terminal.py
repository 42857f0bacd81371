"""A terminal to run commands on: what it is sent, and what somebody types meanwhile."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

from tests.unit.cli.calling import command

if TYPE_CHECKING:
    from collections.abc import Sequence


def on_a_terminal(*words: str, columns: int = 90, **env: str) -> str:
    """What `show` sends to a terminal of that width."""
    return sent_to_a_terminal(command("show", *words), (40, columns, 0, 0), b"", **env)


def sent_to_a_terminal(
    words: Sequence[str], size: tuple[int, int, int, int], typed: bytes = b"", **env: str
) -> str:
    """What a terminal is sent, of so many rows and columns, and pixels across and down."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size))
    os.write(ours, typed)
    kept = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "TMUX", "CI"}}
    given = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **env}
    running = subprocess.Popen(words, stdout=theirs, stdin=theirs, env={**kept, **given})
    os.close(theirs)
    sent = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # nobody holds the other end any more
            break
        if not part:
            break
        sent += part
    os.close(ours)
    assert running.wait(50) == 0
    return sent.decode().replace("\r\n", "\n")
