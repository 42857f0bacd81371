"""`Model`: the protocol between a chat and its model. Messages and tools go in, a stream comes out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from cellwright.assistant.availability import ToolReference
    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.requests import ChatRequest
    from cellwright.outputs.images import ModelImage
    from cellwright.tools.tool import ResultPart


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of what a model says."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a model calls; `id` ties the result to it.

    `problem` says why its arguments cannot be read; such a call is not carried out.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls of a model took, in tokens; `cached` are those of `input` that cost less.

    `cost` is in US dollars, and None if the price is not known.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        """Both together; an unknown cost makes the sum unknown."""
        unknown = self.cost is None or other.cost is None
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            None if unknown else (self.cost or 0.0) + (other.cost or 0.0),
        )

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class NativeReply:
    """An answer in the form of the model `by` that gave it, which that model gets back as it was.

    There may be more in it than text and calls, such as signed thoughts that a provider demands.
    """

    by: str
    answer: object = field(repr=False)


ModelEvent: TypeAlias = TextDelta | ToolCall | Usage | NativeReply


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a conversation.

    A model's own has the `calls` it made, and may have a `native` form; a tool's result has the
    `call_id` of the call that it answers, and `data`, `parts` and `left_out` of the tool's result for
    models that are programs. `shown` is its text for a person, if that is another one.
    """

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    images: tuple[ModelImage, ...] = ()
    is_error: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[ResultPart, ...] = ()
    left_out: tuple[str, ...] = ()
    shown: str = ""
    native: NativeReply | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Situation:
    """What a request is about, for models that are programs; others read the messages."""

    request: ChatRequest
    context: NotebookContext | None = None
    reason: str = ""
    references: tuple[ToolReference, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model.

    `tools` has the name, the description and the `inputSchema` of each tool it may call.
    """

    messages: tuple[ChatMessage, ...]
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
