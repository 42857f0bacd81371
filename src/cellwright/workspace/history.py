"""States of a notebook by name, what changed between two of them, and changes taken back."""

from __future__ import annotations

import os

from cellwright.document.change import Change
from cellwright.errors import ChangeNotFound, NothingToUndo
from cellwright.workspace.paths import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.change import State
    from cellwright.document.notebook import Notebook
    from cellwright.journal import Entry
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


def take_back(
    book: Book, notebook: Notebook, names: str | Sequence[str] | None
) -> tuple[Change, list[Entry]]:
    """Take back one change, or several as one, the newest first.

    Raises:
        NothingToUndo: there is none, or none that had not been taken back before.
        ChangeNotFound: a name is that of no change.
        Conflict: somebody has changed one of the cells since.
    """
    journal, actor = book.workspace.journal, book.workspace.actor
    if names is None or isinstance(names, str):
        found = [journal.undo_target(book.real, actor=actor, change_id=names)]
    else:
        found = _standing(book, names)
    done: Change | None = None
    for entry in found:
        step = notebook.apply(journal.change(entry).inverse())
        done = step if done is None else done.then(step)
    if done is None:
        raise NothingToUndo("undo: all of these are undone already")
    return done, found


def make_again(book: Book, notebook: Notebook, name: str | None) -> tuple[Change, list[Entry]]:
    """Make a change again that was taken back.

    Raises:
        NothingToUndo: there is none.
        Conflict: somebody has changed one of the cells since.
    """
    journal = book.workspace.journal
    entry = journal.redo_target(book.real, actor=book.workspace.actor, change_id=name)
    return notebook.apply(journal.change(entry)), [entry]


def _standing(book: Book, names: Sequence[str]) -> list[Entry]:
    """Those of the named changes that have not been taken back, the newest first."""
    journal = book.workspace.journal
    found: dict[str, Entry] = {}
    for name in names:
        if not isinstance(name, str):
            raise ChangeNotFound(str(name))
        if journal.get(book.real, name).undone_by is None:
            entry = journal.undo_target(book.real, change_id=name)  # a run cannot be taken back
            found[entry.id] = entry
    return sorted(found.values(), key=lambda entry: entry.number, reverse=True)


def _state_or_file(book: Book, name: str) -> State:
    if is_file(book, name):
        return book.workspace.open(name).load().state
    return find_state(book, name)
