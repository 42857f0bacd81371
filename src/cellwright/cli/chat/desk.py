"""What lies before the person: the mode, the notebook that is open, what is selected, attached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from cellwright.assistant.requests import (
    ChatRequest,
    FileReference,
    NotebookEditor,
    ToolAttachment,
    is_notebook,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.workspace.requests import Mode

MODES: tuple[Mode, ...] = ("ask", "edit", "agent")


@dataclass(slots=True, kw_only=True)
class Desk:
    """The state that a request is made of.

    Args:
        cwd: relative paths begin there.
        mode: what the assistant may do.
        open: the notebook in the active editor, which is not thereby attached.
        selected: the handles of the cells that are selected in it.
        cell: the cell that the chat takes place in, if it is inline.
        files: what is attached; a notebook is not thereby open.
        tools: the tools that are attached, by the name behind `#`.
    """

    cwd: str
    mode: Mode = "ask"
    open: str | None = None
    selected: tuple[str, ...] = ()
    cell: str | None = None
    files: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)

    def request(self, prompt: str, *, names_files: bool = False) -> ChatRequest:
        """What is asked, with all that lies here.

        `names_files` tells the model in the prompt of files that are no notebooks: nobody else
        tells it of them.
        """
        editor = None
        if self.open is not None:
            editor = NotebookEditor(path=self.open, selected=self.selected, editing=self.cell)
        others = [name for name in self.files if not is_notebook(os.path.join(self.cwd, name))]  # noqa: PTH118
        if names_files and others:
            prompt = f"{prompt}\n\nAttached files: {', '.join(others)}"
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

    def attach(self, name: str) -> bool:
        """Attach a file, or a tool by `#name`; returns whether it was not there before."""
        place, what = (self.tools, name[1:]) if name.startswith("#") else (self.files, name)
        if what in place:
            return False
        place.append(what)
        return True

    def detach(self, name: str) -> bool:
        """Take away what was attached; returns whether it was there."""
        place, what = (self.tools, name[1:]) if name.startswith("#") else (self.files, name)
        if what not in place:
            return False
        place.remove(what)
        return True

    @property
    def attached(self) -> list[str]:
        """All that is attached, as it is named."""
        return [*self.files, *(f"#{name}" for name in self.tools)]

    def to_json(self) -> dict[str, Any]:
        """What a transcript keeps of it."""
        return {
            "open": self.open,
            "selected": list(self.selected),
            "files": list(self.files),
            "tools": list(self.tools),
        }

    def take(self, data: Mapping[str, Any]) -> None:
        """What a transcript has kept; what is there already stays."""
        if self.open is None and isinstance(data.get("open"), str):
            self.open = data["open"]
            self.selected = tuple(map(str, data.get("selected") or ()))
        for name in data.get("files") or ():
            self.attach(str(name))
        for name in data.get("tools") or ():
            self.attach(f"#{name}")
