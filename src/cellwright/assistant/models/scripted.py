"""A model that follows a script; for tests, ours and those of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from cellwright.assistant.models.model import TextDelta, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.assistant.models.model import ModelEvent, ModelRequest


Line: TypeAlias = str | ToolCall | Usage | BaseException
Step: TypeAlias = Line | Sequence[Line] | Callable[["ModelRequest"], "Line | Sequence[Line]"]


class ScriptedModel:
    """Answers one call after the other with the steps it was given.

    A step is a text, a `ToolCall`, a `Usage`, an exception to raise, a list of these, or a function
    of the request that gives one. `requests` has every request that it got. When the script is at its
    end it says nothing more.
    """

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.requests: list[ModelRequest] = []

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Say the next step."""
        self.requests.append(request)
        step: Step = self._steps.pop(0) if self._steps else []
        if callable(step):
            step = step(request)
        for line in step if isinstance(step, Sequence) and not isinstance(step, str) else [step]:
            if isinstance(line, BaseException):
                raise line
            yield TextDelta(line) if isinstance(line, str) else line
