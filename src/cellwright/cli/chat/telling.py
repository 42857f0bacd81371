"""What a person may want to know about their chat: tools, context, model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellwright.assistant.context import render_context
from cellwright.assistant.models.model.direct import DirectModel
from cellwright.outputs.sanitize import one_line

if TYPE_CHECKING:
    from cellwright.assistant.availability import ToolOffer
    from cellwright.assistant.chat import Chat
    from cellwright.assistant.requests import ChatRequest
    from cellwright.tools.tool import Tool

NO_MODEL = (
    "No language model is set up: the built-in assistant does what it is told, as in `run cell 2`. "
    "/model, --model or the setting assistant_model names one."
)


def tell_model(chat: Chat) -> str:
    """Which model answers."""
    if isinstance(chat.model, DirectModel):
        return f"Model {chat.model.name}. {NO_MODEL}"
    return f"Model {one_line(chat.model.name)}"


def tool_rows(offer: ToolOffer) -> list[tuple[str, str]]:
    """The tools there are with what they do, and the others with why they are not there."""
    rows = []
    for tool in offer.known:
        is_there = tool in offer.there
        name = f"#{tool.reference}" if tool.reference else tool.name
        about = _about(tool, offer, is_there=is_there)
        rows.append((f"{'✓' if is_there else '–'} {name}", about))
    return rows


def _about(tool: Tool, offer: ToolOffer, *, is_there: bool) -> str:
    if is_there:
        return tool.description
    if not tool.is_allowed(offer.toolbox.allowed):
        needed = "edit" if tool.effects == "edit" and offer.edit_mode_edits else "agent"
        return f"not in mode {offer.request.mode}; /mode {needed} has it"
    return offer.why_not(tool)


async def tell_context(chat: Chat, request: ChatRequest) -> str:
    """What the model would be told if something were asked now."""
    detection, offer = await chat.look(request)
    context = detection.context
    mode = "inline" if request.location == "cell" else request.mode
    system = chat.prompts.system_prompt(
        mode, has_notebook=context is not None, may_edit=chat.edit_mode_edits
    )
    lines = [
        f"system prompt  {len(system.text):,} characters of {', '.join(system.names)}",
        f"tools          {', '.join(offer.names) or 'none'}",
        f"conversation   {len(chat.history):,} messages",
    ]
    if context is None:
        return "\n".join([*lines, f"notebook       none. {detection.reason}"])
    state = render_context(context)
    lines.append(f"notebook       {len(state):,} characters about {one_line(context.path)}:")
    return "\n".join([*lines, "", state])
