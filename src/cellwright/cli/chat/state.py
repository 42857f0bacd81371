"""The files that a slash command may name, and the error when one is wrong."""

from __future__ import annotations

import os

from cellwright.assistant.requests import resolve_file
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line


class WrongCommand(CellwrightError):
    """A slash command is wrong, or cannot be carried out."""

    code = "USAGE"


def shorten_path(name: str, cwd: str) -> str:
    """The name of a file relative to a folder if it is inside, else its absolute path."""
    place = resolve_file(name, cwd)
    if place is None:
        raise WrongCommand(f"`{one_line(name)}` is not a valid file name")
    clean = os.path.normpath(place)
    is_inside = clean.startswith(f"{cwd.rstrip('/')}/")
    return os.path.relpath(clean, cwd) if is_inside else clean


def require_file(name: str, cwd: str) -> None:
    """Raise `WrongCommand` unless the file exists."""
    if not os.path.isfile(os.path.join(cwd, name)):  # noqa: PTH113, PTH118
        raise WrongCommand(f"There is no file `{one_line(name)}`")
