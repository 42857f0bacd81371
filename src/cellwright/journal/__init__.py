"""The history of every notebook: who changed what, and every state, to the byte.

Knows SQLite, states and changes. Does not know how files are saved, and no event loop.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.journal.history import Backup, BlameRow, Entry
    from cellwright.journal.journal import Journal, Recording
    from cellwright.journal.place import signature
    from cellwright.journal.pruning import JournalLimits

__all__ = ["Backup", "BlameRow", "Entry", "Journal", "JournalLimits", "Recording", "signature"]

_HOMES = {
    "Backup": "history",
    "BlameRow": "history",
    "Entry": "history",
    "Journal": "journal",
    "JournalLimits": "pruning",
    "Recording": "journal",
    "signature": "place",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # the next look finds it without coming here
    return value


def __dir__() -> list[str]:
    return __all__
