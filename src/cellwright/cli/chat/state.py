"""What the person works with: the mode, the open notebook, its selection, and attachments."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from cellwright.assistant.requests import (
    ChatRequest,
    FileReference,
    NotebookEditor,
    ToolAttachment,
    is_notebook,
    resolve_file,
)
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.workspace.api.requests import Mode

MODES: tuple[Mode, ...] = ("ask", "edit", "agent")


class WrongCommand(CellwrightError):
    """A slash command is wrong, or cannot be carried out."""

    code = "USAGE"


@dataclass(slots=True, kw_only=True)
class ChatState:
    """The state that requests to the assistant are made of.

    Args:
        cwd: the folder that relative paths start from.
        mode: what the assistant may do.
        open: the notebook in the active editor; it is not attached by being open.
        selected: the handles of its selected cells.
        cell: the cell that the chat is about, if it is about one cell.
        files: the attached files; a notebook is not open by being attached.
        tools: the attached tools, by their names without `#`.
    """

    cwd: str
    mode: Mode = "ask"
    open: str | None = None
    selected: tuple[str, ...] = ()
    cell: str | None = None
    files: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)

    def build_request(self, prompt: str, *, names_files: bool = False) -> ChatRequest:
        """Make a request of a prompt and this state.

        With `names_files`, the prompt lists what is attached beside the open notebook; the model
        would not know of it otherwise.
        """
        editor = None
        if self.open is not None:
            editor = NotebookEditor(path=self.open, selected=self.selected, editing=self.cell)
        if names_files:
            others = [name for name in self.files if name != self.open]
            books = [name for name in others if is_notebook(os.path.join(self.cwd, name))]  # noqa: PTH118
            files = [name for name in others if name not in books]
            for what, names in (("notebooks", books), ("files", files)):
                prompt += f"\n\nAttached {what}: {', '.join(names)}" if names else ""
        return ChatRequest(
            prompt=prompt,
            mode=self.mode,
            location="pane" if self.cell is None else "cell",
            references=(
                *(FileReference(name) for name in self.files),
                *(ToolAttachment(name) for name in self.tools),
            ),
            editor=editor,
        )

    @property
    def attachments(self) -> list[str]:
        """The names of all attached files and tools."""
        return [*self.files, *(f"#{name}" for name in self.tools)]

    def attach(self, name: str) -> bool:
        """Attach a file, or a tool by `#name`; returns whether it is new."""
        names, bare = self._names_for(name)
        if bare in names:
            return False
        names.append(bare)
        return True

    def detach(self, name: str) -> bool:
        """Remove an attachment; returns whether it was there."""
        names, bare = self._names_for(name)
        if bare not in names:
            return False
        names.remove(bare)
        return True

    def _names_for(self, name: str) -> tuple[list[str], str]:
        return (self.tools, name[1:]) if name.startswith("#") else (self.files, name)

    def to_json(self) -> dict[str, Any]:
        """The part that a transcript keeps."""
        return {
            "open": self.open,
            "selected": list(self.selected),
            "files": list(self.files),
            "tools": list(self.tools),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Add what a transcript has kept; an open notebook and attachments stay."""
        if self.open is None and isinstance(data.get("open"), str):
            self.open = data["open"]
            self.selected = tuple(map(str, data.get("selected") or ()))
        for name in data.get("files") or ():
            self.attach(str(name))
        for name in data.get("tools") or ():
            self.attach(f"#{name}")


def shorten_path(name: str, cwd: str) -> str:
    """The name of a file relative to a folder if it is inside, else its absolute path."""
    place = resolve_file(name, cwd)
    if place is None:
        raise WrongCommand(f"`{one_line(name)}` is not a valid file name")
    clean = os.path.normpath(place)
    is_inside = clean.startswith(f"{cwd.rstrip('/')}/")
    return os.path.relpath(clean, cwd) if is_inside else clean


def require_file(name: str, cwd: str) -> None:
    """Raise `WrongCommand` unless the file exists."""
    if not os.path.isfile(os.path.join(cwd, name)):  # noqa: PTH113, PTH118
        raise WrongCommand(f"There is no file `{one_line(name)}`")
