"""A file that is reached through a descriptor of its folder, and is still called by its name.

Between the look at a path and its use somebody may put a link into it. A folder that is open stays
the same folder; `/proc/self/fd/N/name` is that file and no other.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Reached(str):
    """A path for the system, and a name for people: as text it is the name.

    The last component is never followed if it is a link.
    """

    __slots__ = ("name",)
    name: str

    def __new__(cls, path: str, name: str) -> Self:
        """The file at `path`, called `name`."""
        made = super().__new__(cls, path)
        made.name = name
        return made

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


class RealPath(str):
    """A path without links, as whoever made it one has found out."""

    __slots__ = ()
