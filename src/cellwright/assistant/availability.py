"""Which tools a request has, and which of them the person named."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cellwright.assistant.requests import ToolAttachment
from cellwright.errors import ModeForbids
from cellwright.tools.modes import Reference, enabled, find_references
from cellwright.tools.tool import ToolResult
from cellwright.tools.toolbox import Toolbox, failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.assistant.requests import ChatRequest
    from cellwright.tools.tool import Tool

_half_typed = re.compile(r"(?<![\w#/&])#([A-Za-z0-9]*)$").search


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of one request.

    `there` are those that the model is given; `known` all that some request could have.
    `references` are those that the person named with `#` or attached: hints for the model, which
    neither add a tool nor make anybody use it.
    """

    request: ChatRequest
    known: tuple[Tool, ...]
    there: tuple[Tool, ...]
    has_notebook: bool
    edit_mode_edits: bool = False
    references: tuple[Reference, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the tools that are there."""
        return [tool.name for tool in self.there]

    @property
    def toolbox(self) -> Toolbox:
        """The tools that are there, to be listed and called."""
        return Toolbox(self.there, self.request.mode, edit_mode_edits=self.edit_mode_edits)

    def complete(self, prompt: str) -> list[str]:
        """How the `#word` at the end of a prompt can go on; only with tools that are there."""
        found = _half_typed(prompt)
        if found is None:
            return []
        names = [tool.reference for tool in self.there if tool.reference]
        return [f"#{name}" for name in names if name.lower().startswith(found[1].lower())]

    def attachable(self) -> list[tuple[ToolAttachment, str]]:
        """The tools that can be attached, each with what it does."""
        return [
            (ToolAttachment(tool.reference), tool.description)
            for tool in self.there
            if tool.reference
        ]

    def find(self, name: str) -> Tool | None:
        """A tool that is there."""
        return next((tool for tool in self.there if tool.name == name), None)

    def refuse(self, name: str) -> ToolResult | None:
        """Why a tool that is called is not there; None if nobody knows it either."""
        tool = next((tool for tool in self.known if tool.name == name), None)
        if tool is None:
            return None
        mode = self.request.mode
        if not tool.is_allowed(self.toolbox.allowed):
            needed = "edit" if tool.effects == "edit" and self.edit_mode_edits else "agent"
            return failure(ModeForbids(f"use {tool.name}", mode, needed))
        note = self.why_not(tool)
        return ToolResult(f"error: {note}", {"code": "TOOL_UNAVAILABLE"}, is_error=True)

    def why_not(self, tool: Tool) -> str:
        """What keeps a tool away that the mode would allow."""
        if self.has_notebook and self.request.location == "cell":
            return f"{tool.name} can be used in the chat pane only."
        return f"{tool.name} needs a notebook that is attached and open in the active editor."


def offer_tools(
    request: ChatRequest,
    tools: Sequence[Tool],
    *,
    has_notebook: bool,
    edit_mode_edits: bool = False,
) -> Offer:
    """What a request has of all tools there are.

    Args:
        request: its mode, its location, its prompt and what is attached to it.
        tools: all there are.
        has_notebook: whether it is about a notebook.
        edit_mode_edits: whether mode `edit` may change notebooks.
    """
    there = enabled(
        tools,
        request.mode,
        has_active_notebook=has_notebook,
        in_chat_pane=request.location == "pane",
        edit_mode_edits=edit_mode_edits,
    )
    offer = Offer(request, tuple(tools), tuple(there), has_notebook, edit_mode_edits)
    by_name = {tool.name: tool.reference for tool in tools}
    attached = [
        f"#{by_name.get(each.name, each.name.removeprefix('#'))}"
        for each in request.references
        if isinstance(each, ToolAttachment)
    ]
    written = " ".join([request.prompt, *attached])
    found = find_references(written, tools, there, request.mode)
    allowed = offer.toolbox.allowed
    by_reference = {tool.reference: tool for tool in tools if tool.reference}
    told = []
    for reference in found:
        tool = by_reference.get(reference.name)
        if reference.tool is None and tool is not None and tool.is_allowed(allowed):
            told.append(replace(reference, note=offer.why_not(tool)))  # it is not the mode
        else:
            told.append(reference)
    return replace(offer, references=tuple(told))


def render_references(references: Sequence[Reference]) -> str:
    """What a model is told about the tools that the person named; empty if there are none."""
    if not references:
        return ""
    lines = ["The person named these tools; whether one of them is of use is for you to decide:"]
    for reference in references:
        if reference.tool is not None:
            lines.append(f"- #{reference.name}: the tool {reference.tool.name}")
        else:
            lines.append(f"- #{reference.name}: not available. {reference.note}")
    return "\n".join(lines)
