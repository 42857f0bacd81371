"""What keeps frequent and large work cheap: a hash without OpenSSL, and pauses of the collector."""

from __future__ import annotations

import gc

try:
    # `hashlib` would load OpenSSL, which costs every command 2 ms.
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["GarbagePause", "blake2b"]


class GarbagePause:
    """Stops the garbage collector inside a `with` block that makes thousands of lasting objects."""

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()
