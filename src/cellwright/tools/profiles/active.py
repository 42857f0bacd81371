"""Which notebook is meant by a tool that need not name one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cellwright.tools.params import Name

if TYPE_CHECKING:
    from cellwright.tools.tool import Caller
    from cellwright.workspace.workspace import AsyncBook

OptionalPath = Annotated[
    Name | None, Field(description="Notebook, relative to the root; default: the active one")
]


def active_book(caller: Caller, path: str | None) -> AsyncBook | None:
    """The notebook that was named, or else the one a person looks at, or else none."""
    found = path or caller.active
    return caller.workspace.open(found) if found else None
