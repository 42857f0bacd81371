"""The seam to language models: one call, with messages and tools in, and a stream out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.requests import ChatRequest
    from cellwright.outputs.images import Picture
    from cellwright.tools.modes import Reference

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of what a model says."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a model calls; `id` ties the result to it."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


ModelEvent: TypeAlias = TextDelta | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation.

    A model's own has the `calls` it made; a tool's result has the `call_id` of the call that it
    answers, and `data` for models that are programs.
    """

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    images: tuple[Picture, ...] = ()
    is_error: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Situation:
    """What a request is about, for models that are programs; others read the messages."""

    request: ChatRequest
    context: NotebookContext | None = None
    reason: str = ""
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model.

    `tools` has the name, the description and the `inputSchema` of each tool it may call.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    situation: Situation


class Model(Protocol):
    """A language model, or something that answers like one."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer; if it calls tools, it is asked again with their results."""
        ...
