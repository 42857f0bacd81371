"""Prompts from a pipe: one a line."""

from __future__ import annotations

import sys

from cellwright.cli.chat.asking import in_thread


async def next_line() -> str:
    """The next line that is not empty.

    Raises:
        EOFError: there is none.
    """
    while True:
        line = await in_thread(sys.stdin.readline)
        if not line:
            raise EOFError
        if line.strip():
            return line.strip()
