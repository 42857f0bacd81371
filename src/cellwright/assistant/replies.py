"""What comes back from one call of a model, and what of a turn is kept for the next."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cellwright.assistant.models import Message, Native, TextDelta, ToolCall, Usage
from cellwright.tools.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.assistant.models import ModelEvent


@dataclass(slots=True)
class Reply:
    """What a model has answered so far."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    native: Native | None = None

    def take(self, event: ModelEvent) -> None:
        """Add what came."""
        if isinstance(event, TextDelta):
            self.text += event.text
        elif isinstance(event, ToolCall):
            self.calls.append(event)
        elif isinstance(event, Usage):
            self.usage += event
        else:
            self.native = event

    def message(self) -> Message:
        """As a message of the conversation."""
        return Message(
            role="assistant", text=self.text, calls=tuple(self.calls), native=self.native
        )


@contextlib.asynccontextmanager
async def closing(stream: AsyncIterator[ModelEvent]) -> AsyncIterator[None]:
    """End a stream that is left before its end, if it can be: somebody may be paying for it."""
    try:
        yield
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def unreadable(call: ToolCall) -> ToolResult:
    """The answer to a call whose arguments cannot be read; the model may try again."""
    text = f"error: {call.name} was called with arguments that cannot be read; nothing was done"
    return ToolResult(f"{text}\n- {call.problem}", {"code": "INVALID_PARAMETERS"}, is_error=True)


def whole(turn: list[Message]) -> list[Message]:
    """A turn without calls that nobody answered; no model accepts those in a conversation."""
    answered = {message.call_id for message in turn if message.role == "tool"}
    kept = []
    for message in turn:
        if any(call.id not in answered for call in message.calls):
            break
        kept.append(message)
    return kept if len(kept) > 1 else []  # a question that got no answer is asked again
