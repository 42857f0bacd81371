"""Which file a caller means, and whether it may be touched."""

from __future__ import annotations

import os

from cellwright.errors import OutsideRoot


def resolve(path: str, cwd: str) -> str:
    """The absolute path of what a caller named.

    Links and dots stay as they are: only the system knows where `link/..` leads.
    """
    return os.path.join(cwd, path)  # noqa: PTH118  # hot path: no pathlib


def confine(path: str, root: str | None) -> None:
    """Raise `OutsideRoot` unless the real path lies in the root; no root confines nothing."""
    if root is None:
        return
    real, top = os.path.realpath(path), os.path.realpath(root)
    # Compared by whole components: `/data-evil` does not lie in `/data`.
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        raise OutsideRoot(path, root)
