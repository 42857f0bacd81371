"""What a person asks in a chat, and what was there when they asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.snapshot import CellRef
    from cellwright.workspace.requests import Mode

Location: TypeAlias = Literal["pane", "cell"]
"""Where a chat takes place: in the chat pane, or inline in a cell of the active notebook."""

_mention = re.compile(r"""(?<![\w@])@(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'`@][^\s"'`]*))""").finditer
_TAIL = ".,;:!?)]}"


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that was attached, by its path or its `file:` address."""

    path: str


@dataclass(frozen=True, slots=True)
class SessionReference:
    """A running session that was attached; `notebook` is the notebook it belongs to, if any."""

    notebook: str | None


@dataclass(frozen=True, slots=True)
class ToolAttachment:
    """A tool that was attached instead of being named with `#` in the prompt."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookEditor:
    """The notebook editor that is active, with what is selected in it.

    `editing` is the cell that the person types in.
    """

    path: str
    selected: tuple[CellRef, ...] = ()
    editing: CellRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One thing that a person asks.

    Args:
        prompt: what they wrote; `@name.ipynb` in it attaches that file, `#name` names a tool.
        mode: what the assistant may do.
        location: where they wrote it.
        references: what they attached: files, sessions, tools; anything else means nothing here.
        editor: the notebook editor that was active, if one was.
    """

    prompt: str
    mode: Mode = "ask"
    location: Location = "pane"
    references: Sequence[object] = ()
    editor: NotebookEditor | None = None


def mentioned_files(prompt: str) -> list[str]:
    """The files that a prompt attaches with `@`, in order."""
    found = [
        quoted or single or bare.rstrip(_TAIL)
        for quoted, single, bare in (match.groups() for match in _mention(prompt))
    ]
    return list(dict.fromkeys(name for name in found if name))
