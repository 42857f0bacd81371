"""Questions to the person at the terminal: a line of text, or one of some keys."""

from __future__ import annotations

import contextlib
import sys
import termios
from typing import Protocol

import click

from cellwright.cli.output import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
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
        click.echo(printable(prompt), nl=False, err=True)
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
    prompt = printable(request.prompt)  # it is what the cell says
    return await read_in_thread(lambda: read(prompt))


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
    import asyncio  # here: `run` and `eval` import this module, and rarely ask
    import threading

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


@contextlib.contextmanager
def hide_typing() -> Iterator[None]:
    """Keep the terminal from echoing what is typed; it is read by the next prompt."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (OSError, ValueError, termios.error):
        yield
        return
    silent = [*before[:3], before[3] & ~(termios.ECHO | termios.ECHONL), *before[4:]]
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def discard_typing() -> None:
    """Discard what was typed and not yet read."""
    from prompt_toolkit.application import get_app_session
    from prompt_toolkit.input.typeahead import clear_typeahead

    clear_typeahead(get_app_session().input)
    with contextlib.suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
