"""The folder a caller works in: where paths resolve, what is allowed, who is asking."""

from __future__ import annotations

import os

from cellwright.errors import AlreadyExists, InvalidEdit, ModeForbids
from cellwright.workspace.book import Book
from cellwright.workspace.paths import confine, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Literal, Self

    from cellwright.config.settings import Settings
    from cellwright.journal import Journal

    Mode = Literal["ask", "edit", "agent"]
    Effect = Literal["read", "edit", "run"]

# Which mode allows which effect; `edit` only proposes, as the table is by default.
ALLOWED: dict[str, frozenset[str]] = {
    "ask": frozenset({"read"}),
    "edit": frozenset({"read"}),
    "agent": frozenset({"read", "edit", "run"}),
}
_HIDDEN = (".", "__pycache__", "node_modules")


class Workspace:
    """Notebooks below one root, opened by path.

    Args:
        root: paths outside this folder are refused; None confines nothing.
        cwd: relative paths resolve against it; the process's own by default.
        mode: `ask`, `edit` or `agent`; what it forbids is refused, whoever asks.
        actor: who is asking, as `door:name`; an undo takes back that actor's own changes.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        cwd: str | None = None,
        mode: Mode = "agent",
        actor: str = "python:caller",
        journal: Journal | None = None,
    ) -> None:
        if mode not in ALLOWED:
            raise InvalidEdit(f"Unknown mode {mode!r}", hint="One of ask, edit, agent")
        self.cwd = cwd or os.getcwd()  # noqa: PTH109  # hot path: no pathlib
        self.root = None if root is None else resolve(os.fspath(root), self.cwd)
        self.mode = mode
        self.actor = actor
        self._journal = journal
        self._settings: Settings | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the journal."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @property
    def settings(self) -> Settings:
        """The settings that hold in the working folder."""
        if self._settings is None:
            from cellwright.config.loading import load

            self._settings = load(self.cwd)
        return self._settings

    @property
    def journal(self) -> Journal:
        """The history of all notebooks of this user on this host."""
        if self._journal is None:
            from cellwright.journal import Journal

            self._journal = Journal()
        return self._journal

    def open(self, path: str | os.PathLike[str]) -> Book:
        """A notebook by path; it need not exist yet, since an edit may create it."""
        place = resolve(os.fspath(path), self.cwd)
        confine(place, self.root)
        return Book(self, place, os.fspath(path))

    def create(self, path: str | os.PathLike[str], *, kernel: str | None = None) -> dict[str, Any]:
        """Make a notebook with no cells; refuses to touch a file that is there."""
        self.require("edit", "create a notebook")
        book = self.open(path)
        if os.path.lexists(book.path):
            raise AlreadyExists(book.name)
        metadata: dict[str, Any] = {}
        if kernel is not None:
            metadata = {"kernelspec": {"name": kernel, "display_name": kernel}}
        edit = {"op": "set_metadata", "metadata": metadata}
        return book.edit([edit], create=True, label="create", kind="create")

    def list(self) -> list[dict[str, Any]]:
        """The notebooks below the root, or below the working folder, in order of their path."""
        top = self.root or self.cwd
        found = []
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
            for name in sorted(files):
                if name.endswith(".ipynb") and not name.startswith("."):
                    path = os.path.join(folder, name)  # noqa: PTH118  # as os.walk has it
                    if os.path.isfile(path):  # noqa: PTH113  # not a link that leads nowhere
                        size = os.path.getsize(path)  # noqa: PTH202
                        found.append({"path": os.path.relpath(path, self.cwd), "size": size})
        return found

    def require(self, effect: Effect, what: str) -> None:
        """Raise `ModeForbids` unless this caller's mode allows an effect."""
        if effect not in ALLOWED[self.mode]:
            raise ModeForbids(what, self.mode, "agent")
