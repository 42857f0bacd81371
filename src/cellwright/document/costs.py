"""What keeps frequent and large work cheap: a hash without OpenSSL, texts in pieces, pauses of the collector."""

from __future__ import annotations

import gc

try:
    # `hashlib` would load OpenSSL, which costs every command 2 ms.
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LONG_TEXT", "GarbagePause", "blake2b", "cut_text"]
LONG_TEXT = 1 << 20
"""A text with more characters is worked on in pieces: every thread waits for a single call."""


def cut_text(text: str) -> Iterator[str]:
    """The text in pieces."""
    for at in range(0, len(text), LONG_TEXT):
        yield text[at : at + LONG_TEXT]


class GarbagePause:
    """Stops the garbage collector inside a `with` block that makes thousands of lasting objects."""

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()
