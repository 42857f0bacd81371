"""A chat in a folder, with a person who answers questions as a test wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cellwright.app.workspaces import open_chat_workspaces
from cellwright.assistant.chat import (
    Chat,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from cellwright.assistant.models.direct import DirectModel
from cellwright.assistant.models.model import ToolCall
from cellwright.assistant.requests import ChatRequest, FileReference, NotebookEditor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cellwright.assistant.chat import ChatEvent
    from cellwright.assistant.models.model import Model
    from cellwright.assistant.permissions import Decision, Operation
    from cellwright.assistant.requests import Location
    from cellwright.document.snapshot import CellRef
    from cellwright.workspace.api.requests import Mode

NOTEBOOK = "sales.ipynb"


class Turn:
    """What happened in one turn."""

    def __init__(self, events: Sequence[ChatEvent]) -> None:
        self.events = list(events)
        (self.begun,) = [event for event in events if isinstance(event, TurnStartEvent)]
        self.text = "".join(event.text for event in events if isinstance(event, TextEvent))
        self.calls = [event.call for event in events if isinstance(event, ToolCallEvent)]
        self.answers = [event.answer for event in events if isinstance(event, ToolResultEvent)]
        (self.done,) = [event for event in events if isinstance(event, TurnEndEvent)]

    @property
    def called(self) -> list[str]:
        return [call.name for call in self.calls]


class Conversation:
    """A chat about the notebook of the folder, and the person in front of it."""

    def __init__(
        self, folder: Path, model: Model | None = None, decision: Decision = "once", **options: Any
    ) -> None:
        self.folder = folder
        self.decision: Decision = decision
        self.asked: list[Operation] = []
        self.workspaces = open_chat_workspaces(folder, actor="chat:test")
        self.chat = Chat(
            self.workspaces, model or DirectModel(), **{"confirm": self._confirm, **options}
        )

    async def __call__(self, prompt: str, mode: Mode = "agent", **more: Any) -> Turn:
        request = self.request(prompt, mode, **more)
        return Turn([event async for event in self.chat.send(request)])

    def request(
        self,
        prompt: str,
        mode: Mode = "agent",
        *,
        attached: Sequence[object] = (FileReference(NOTEBOOK),),
        active: str | None = NOTEBOOK,
        selected: tuple[CellRef, ...] = (),
        editing: CellRef | None = None,
        location: Location = "pane",
    ) -> ChatRequest:
        editor = active and NotebookEditor(path=active, selected=selected, editing=editing)
        return ChatRequest(
            prompt=prompt, mode=mode, references=attached, editor=editor or None, location=location
        )

    async def _confirm(self, operation: Operation) -> Decision:
        self.asked.append(operation)
        return self.decision

    def cells(self, name: str = NOTEBOOK) -> list[Any]:
        from cellwright import read

        return list(read(self.folder / name).cells)

    def source(self, ref: CellRef) -> str:
        from cellwright import read

        return read(self.folder / NOTEBOOK).cell(ref).source


def call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(f"call-{tool}", tool, arguments)
