"""The token of this user's HTTP servers: made once, kept in a file that only the user can read."""

from __future__ import annotations

import os
import re
import secrets
import stat
from typing import TYPE_CHECKING

from cellwright.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_BYTES = 32
_SHAPE = re.compile(r"[A-Za-z0-9_-]{32,128}")


def token_path() -> Path:
    """Where it is kept."""
    from cellwright.config.directories import state_directory

    return state_directory() / "mcp-token"


def load_token(*, renew: bool = False) -> tuple[str, bool]:
    """The token, and whether it was made just now.

    Raises:
        ConfigError: the file cannot be made, is not ours alone, or holds something else.
    """
    path = token_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if renew:
            path.unlink(missing_ok=True)
        try:
            return _made(path), True
        except FileExistsError:
            return _read(path), False
    except OSError as error:
        raise ConfigError(
            f"The token in {path} cannot be used: {error.strerror}", hint="Is the folder yours?"
        ) from None


def _made(path: Path) -> str:
    token = secrets.token_urlsafe(_BYTES)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123  # of the descriptor
        file.write(token + "\n")
    return token


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="ascii", errors="replace") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not is_ours or status.st_mode & 0o077:
            raise ConfigError(
                f"The token in {path} could be read by others", hint="Make a new one: --new-token"
            )
        token = file.read(256).strip()
    if not _SHAPE.fullmatch(token):
        raise ConfigError(f"{path} holds no token", hint="Make a new one: --new-token")
    return token
