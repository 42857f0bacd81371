"""What happens while the assistant works on a request, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from cellwright.assistant.models import Usage

if TYPE_CHECKING:
    from cellwright.assistant.changes import ChangeSet
    from cellwright.assistant.models import ToolCall
    from cellwright.assistant.proposals import Proposal
    from cellwright.tools.modes import Reference
    from cellwright.tools.tool import ToolResult

Ending: TypeAlias = Literal["answered", "limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The request was understood: what it is about, and what the model has.

    `notebook` is None while notebook mode is off, and `reason` says why it is.
    """

    kind: ClassVar[str] = "begun"
    mode: str
    location: str
    notebook: str | None
    reason: str
    tools: list[str]
    tool_references: tuple[Reference, ...]
    prompts: list[str]

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "event": self.kind,
            "mode": self.mode,
            "location": self.location,
            "notebook": self.notebook,
            "reason": self.reason,
            "tools": self.tools,
            "tool_references": [
                {"name": each.name, "tool": each.tool and each.tool.name, "note": each.note}
                for each in self.tool_references
            ],
            "prompts": self.prompts,
        }


@dataclass(frozen=True, slots=True)
class Said:
    """The model said something more."""

    kind: ClassVar[str] = "text"
    text: str

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {"event": self.kind, "text": self.text}


@dataclass(frozen=True, slots=True)
class Called:
    """The model calls a tool."""

    kind: ClassVar[str] = "tool_call"
    call: ToolCall

    def to_json(self) -> dict[str, Any]:
        """As data."""
        call = self.call
        return {
            "event": self.kind,
            "id": call.id,
            "name": call.name,
            "arguments": dict(call.arguments),
        }


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool has answered."""

    kind: ClassVar[str] = "tool_result"
    call: ToolCall
    answer: ToolResult

    def to_json(self) -> dict[str, Any]:
        """As data; pictures only by their kind and size."""
        images = [
            {"mime": each.mime, "width": each.width, "height": each.height}
            for each in self.answer.images
        ]
        return {
            "event": self.kind,
            "id": self.call.id,
            "name": self.call.name,
            "text": self.answer.text,
            "data": self.answer.data,
            "is_error": self.answer.is_error,
            "images": images,
        }


@dataclass(frozen=True, slots=True)
class Done:
    """The turn is over.

    `changes` has all its edits, if it made any. `proposal` is the new source that an answer
    inside a cell proposes for that cell. `usage` is what all calls of the model in it took.
    """

    kind: ClassVar[str] = "done"
    ending: Ending = "answered"
    text: str = ""
    changes: ChangeSet | None = None
    proposal: Proposal | None = None
    usage: Usage = field(default_factory=Usage)

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "event": self.kind,
            "ending": self.ending,
            "text": self.text,
            "changes": self.changes and self.changes.to_json(),
            "proposal": self.proposal and self.proposal.to_json(),
            "usage": self.usage.to_json(),
        }


ChatEvent: TypeAlias = Begun | Said | Called | Returned | Done
