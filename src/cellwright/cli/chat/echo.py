"""Keys that are pressed while the assistant answers: kept for the next prompt, and not shown."""

from __future__ import annotations

import contextlib
import sys
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def no_echo() -> Iterator[None]:
    """Let the terminal not write what is typed into what is printed."""
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


def forget_typed() -> None:
    """Drop what was typed and not yet read."""
    from prompt_toolkit.application import get_app_session
    from prompt_toolkit.input.typeahead import clear_typeahead

    clear_typeahead(get_app_session().input)
    with contextlib.suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
