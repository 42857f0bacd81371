"""Paths that were checked: one pinned to an open folder, and one known to contain no links.

Between the check of a path and its use, another process may put a link into it. An open folder
stays the same folder, so `/proc/self/fd/N/name` always means the same file.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class PinnedPath(str):
    """A path that the system opens; printed, it shows `name`, the path that people know.

    `real` is that path without links, as it was when the folder was opened. If its last component
    is a link by now, the link is not followed.
    """

    __slots__ = ("name", "real")
    name: str
    real: str

    def __new__(cls, path: str, name: str, real: str) -> Self:
        """Make a path for the file at `path` that is shown as `name`."""
        self = super().__new__(cls, path)
        self.name, self.real = name, real
        return self

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


class RealPath(str):
    """A path that contains no links; the caller who makes one has checked that."""

    __slots__ = ()
