"""Settings with the origin of each value, and the directories Cellwright keeps things in.

Knows environment variables, TOML files and the user's folders.
Does not know what a setting is used for, and imports nothing until a name is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.config.directories import (
        cache_directory,
        config_directory,
        runtime_directory,
        state_directory,
    )
    from cellwright.config.loading import load
    from cellwright.config.settings import Origin, Settings

__all__ = [
    "Origin",
    "Settings",
    "cache_directory",
    "config_directory",
    "load",
    "runtime_directory",
    "state_directory",
]

_HOMES = {
    "Origin": "settings",
    "Settings": "settings",
    "cache_directory": "directories",
    "config_directory": "directories",
    "load": "loading",
    "runtime_directory": "directories",
    "state_directory": "directories",
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
