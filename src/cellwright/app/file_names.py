"""The names of the files in a folder, for those who complete what a person types."""

from __future__ import annotations

import asyncio
import os
import time

_HIDDEN = (".", "__pycache__", "node_modules")
_MOST_FILES = 5_000
_FRESH = 3.0


class FileNames:
    """The files below a folder, notebooks first; listed again after some seconds."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._found: list[str] = []
        self._when = -_FRESH

    async def find(self) -> list[str]:
        """The names of the files, relative to the folder."""
        if time.monotonic() - self._when > _FRESH:
            self._found = await asyncio.to_thread(self._walk)
            self._when = time.monotonic()
        return self._found

    def _walk(self) -> list[str]:
        found: list[str] = []
        for folder, folders, files in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
            shown = [name for name in sorted(files) if not name.startswith(".")]
            base = os.path.relpath(folder, self._folder)
            found += [name if base == "." else f"{base}/{name}" for name in shown]
            if len(found) >= _MOST_FILES:
                break
        found.sort(key=lambda name: (not name.endswith(".ipynb"), name.count("/"), name))
        return found[:_MOST_FILES]


def match_names(names: list[str], half: str, most: int = 200) -> list[str]:
    """Names that begin with `half`, then file names that do, then names that contain it."""
    low = half.lower()
    begins = [name for name in names if name.lower().startswith(low)]
    inside = [name for name in names if name.lower().rpartition("/")[2].startswith(low)]
    holds = [name for name in names if low in name.lower()]
    return list(dict.fromkeys([*begins, *inside, *holds]))[:most]
