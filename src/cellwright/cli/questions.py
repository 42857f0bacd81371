"""Questions to the person at the terminal: a line of text, or one of some keys."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Protocol

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

SIGN = "\u203a"
"""Printed before the place where the person types."""


class Asker(Protocol):
    """Asks the person."""

    async def line(self, prompt: str, *, password: bool = False) -> str | None:
        """Ask for a line of text; None if the person gives none."""

    async def key(self, choices: Mapping[str, str]) -> str | None:
        """Ask for one of some keys, each with its meaning; None if the person presses none."""


class PlainAsker:
    """Asks on stderr and reads lines of stdin; needs no library."""

    async def line(self, prompt: str, *, password: bool = False) -> str | None:
        """Read a line."""
        if password:
            import getpass

            return await read_in_thread(lambda: getpass.getpass(prompt, sys.stderr))
        click.echo(prompt, nl=False, err=True)
        return await read_in_thread(read_line)

    async def key(self, choices: Mapping[str, str]) -> str | None:
        """Read lines until one begins with one of the keys."""
        meanings = " · ".join(f"{key} {meaning}" for key, meaning in choices.items())
        while True:
            line = await self.line(f"{meanings} {SIGN} ")
            if line is None:
                return None
            if line.strip()[:1].lower() in choices:
                return line.strip()[:1].lower()


async def answer_input(request: Any) -> str | None:
    """Ask the person for the line that a cell waits for in `input()`."""
    import getpass

    read = getpass.getpass if request.password else input
    return await read_in_thread(lambda: read(request.prompt))


def read_line() -> str:
    """Read a line of stdin without its end; raises `EOFError` if there is none."""
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


async def read_in_thread(read: Callable[[], str]) -> str | None:
    """Read in a thread of its own; None if there is nothing to read.

    The thread is a daemon: a cell may end before the person answers.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str | None] = loop.create_future()

    def settle(text: str | None) -> None:
        if not answer.done():
            answer.set_result(text)

    def wait() -> None:
        try:
            text: str | None = read()
        except (EOFError, OSError, ValueError):
            text = None
        loop.call_soon_threadsafe(settle, text)

    threading.Thread(target=wait, daemon=True).start()
    return await answer
