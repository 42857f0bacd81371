"""The background service that owns kernels, and the clients that talk to it.

One engine per user and host, on a Unix socket, started on demand and leaving by itself. A client
sees the verbs of a workspace; that they cross a socket makes no difference to what they mean.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.engine.client import connect as connect

__all__ = ["connect"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from cellwright.engine import client

        return getattr(client, name)
