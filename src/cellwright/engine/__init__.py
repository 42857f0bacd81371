"""The background service that owns kernels, and the clients that talk to it.

One engine per user and host, on a Unix socket, started on demand and leaving by itself. A client
sees the verbs of a workspace; that they cross a socket makes no difference to what they mean.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.engine.remote import EngineBook as EngineBook
    from cellwright.engine.remote import EngineWorkspace as EngineWorkspace
    from cellwright.engine.remote import connect as connect

_PUBLIC = ("EngineBook", "EngineWorkspace", "connect")
__all__ = sorted(_PUBLIC)  # noqa: PLE0605  # a list, made from the tuple above

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from cellwright.engine import remote

        return getattr(remote, name)
