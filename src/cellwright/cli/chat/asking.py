"""Questions to the person while a turn goes on: a key, or a line."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Protocol

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


SIGN = "\u203a"
"""What stands before the place where the person types."""


class Asker(Protocol):
    """Asks the person."""

    async def line(self, prompt: str, *, password: bool = False) -> str | None:
        """A line of text; None if they would rather not."""

    async def key(self, choices: Mapping[str, str]) -> str | None:
        """One of some keys, each with what it means; None if they would rather not."""


class PlainAsker:
    """Asks on stderr and reads a line of stdin; for one question, without any library."""

    async def line(self, prompt: str, *, password: bool = False) -> str | None:
        """A line, without its end."""
        if password:
            import getpass

            return await in_thread(lambda: getpass.getpass(prompt, sys.stderr))
        click.echo(prompt, nl=False, err=True)
        return await in_thread(_read_line)

    async def key(self, choices: Mapping[str, str]) -> str | None:
        """The first letter of a line."""
        told = " · ".join(f"{key} {meaning}" for key, meaning in choices.items())
        while True:
            line = await self.line(f"{told} {SIGN} ")
            if line is None:
                return None
            if line.strip()[:1].lower() in choices:
                return line.strip()[:1].lower()


def _read_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


async def in_thread(ask: Callable[[], str]) -> str | None:
    """Wait in a thread that nobody has to end: the cell may end before the person answers."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str | None] = loop.create_future()

    def settle(text: str | None) -> None:
        if not answer.done():
            answer.set_result(text)

    def wait() -> None:
        try:
            text: str | None = ask()
        except (EOFError, OSError, ValueError):
            text = None
        loop.call_soon_threadsafe(settle, text)

    threading.Thread(target=wait, daemon=True).start()
    return await answer
