"""The built-in assistant where cards show what cells have put out: it need not say it again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cellwright.assistant.models.model.direct import DirectModel
from cellwright.assistant.models.model.model import TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.assistant.models.model.model import Model, ModelEvent, ModelRequest

_block = re.compile(r"\n\n(`{3,})\n.*?\n\1(?=\n|$)", re.DOTALL)


class BriefDirectModel(DirectModel):
    """Tells how a run went, without the outputs."""

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """What `DirectModel` says, without the blocks after a run."""
        last = request.messages[-1]
        ran = last.role == "tool" and "executions" in last.data
        async for event in super().respond(request):
            if ran and isinstance(event, TextDelta):
                yield TextDelta(_block.sub("", event.text))
            else:
                yield event


def without_repetition(model: Model) -> Model:
    """The same model; the built-in one in its brief form."""
    return BriefDirectModel() if type(model) is DirectModel else model
