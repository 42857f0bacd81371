"""Which file a caller means, and whether it may be touched."""

from __future__ import annotations

import os

from cellwright.errors import OutsideRoot


def resolve(path: str, cwd: str) -> str:
    """The absolute path of what a caller named.

    Dots are taken out unless they follow a link: only the system knows where `link/..` leads.
    """
    whole = os.path.join(cwd, path)  # noqa: PTH118  # hot path: no pathlib
    short = os.path.normpath(whole)
    return short if os.path.realpath(short) == os.path.realpath(whole) else whole


def confine(path: str, root: str | None) -> None:
    """Raise `OutsideRoot` unless the real path lies in the root; no root confines nothing."""
    if root is None:
        return
    real, top = os.path.realpath(path), os.path.realpath(root)
    # Compared by whole components: `/data-evil` does not lie in `/data`.
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        raise OutsideRoot(path, root)
