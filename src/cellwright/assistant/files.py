"""Whether two names mean the same file, however they are spelled."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

_HOSTS = ("", "localhost")


def file_named(name: object, cwd: str) -> str | None:
    """The absolute path that a path or a `file:` address means; None if it means no file."""
    if isinstance(name, os.PathLike):
        name = os.fspath(name)
    if not isinstance(name, str) or not name or "\0" in name:
        return None
    if name[:5].lower() == "file:":
        address = urlsplit(name)
        if address.netloc.lower() not in _HOSTS:
            return None
        name = unquote(address.path)
        if not name or "\0" in name:
            return None
    elif "://" in name:
        return None
    return os.path.join(cwd, os.path.expanduser(name))  # noqa: PTH111, PTH118  # links as they are


def is_same_file(one: str, other: str) -> bool:
    """Whether two absolute paths lead to one file, over links of any kind."""
    if one == other or os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)  # noqa: PTH121  # also where case does not matter
    except (OSError, ValueError):
        return False


def is_notebook(path: str) -> bool:
    """Whether a path, or what it leads to, is called like a notebook."""
    return any(place.lower().endswith(".ipynb") for place in (path, os.path.realpath(path)))
