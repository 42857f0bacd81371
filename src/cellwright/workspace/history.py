"""States of a notebook by name, and what changed between two of them."""

from __future__ import annotations

import os

from cellwright.document.change import Change
from cellwright.errors import NothingToUndo
from cellwright.workspace.paths import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.change import State
    from cellwright.workspace.book import Book


def find_state(book: Book, name: str) -> State:
    """A state by name: `now`, `first`, a change id (after it), or a change id and `^` (before)."""
    journal = book.workspace.journal
    if name == "now":
        return book.file.read().state
    if name == "first":
        return journal.first(book.real)
    if name.endswith("^"):
        return journal.state(book.real, name[:-1], side="before")
    return journal.state(book.real, name, side="after")


def compare(book: Book, before: str | None, after: str | None) -> Change:
    """What changed from one state to another.

    One name alone is compared with the file as it is now; no name shows what the newest change,
    and whatever came after it, did. A name that is the path of a file means that file.
    """
    if before is None:
        newest = book.workspace.journal.log(book.real, limit=1)
        if not newest:
            raise NothingToUndo("compare: this notebook has no history")
        before = f"{newest[0].id}^"
    return Change.between(_state_or_file(book, before), _state_or_file(book, after or "now"))


def is_file(book: Book, name: str) -> bool:
    """Whether a name means another notebook rather than a state of this one."""
    return name.endswith(".ipynb") and os.path.exists(resolve(name, book.workspace.cwd))  # noqa: PTH110


def _state_or_file(book: Book, name: str) -> State:
    if is_file(book, name):
        return book.workspace.open(name).load().state
    return find_state(book, name)
