"""`input()` in a cell, asked of the person who sits at the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types

from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from cellwright.kernel.events import InputRequested

_LONGEST = 500
_FIELD = "answer"


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client can put a question to a person."""
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    elicitation = capabilities.elicitation
    # An empty object, as clients of 2025 send it, means forms.
    return elicitation.form is not None or elicitation.url is None


def question(request: InputRequested) -> types.ElicitRequestFormParams:
    """The form for one line of input."""
    prompt = shorten(request.prompt)[:_LONGEST] or "A cell waits for a line of input."
    if request.password:
        # Forms must not ask for secrets; a person may still choose to answer.
        prompt += " (the cell asked for a password; what you type is not hidden)"
    field = {"type": "string", "title": "Answer", "description": prompt}
    return types.ElicitRequestFormParams(
        message=f"A cell asks: {prompt}",
        requested_schema={"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]},
    )


def answered(result: object) -> str | None:
    """What the person typed; None if they would not."""
    if not isinstance(result, types.ElicitResult) or result.action != "accept":
        return None
    value = (result.content or {}).get(_FIELD)
    return None if value is None else str(value)
