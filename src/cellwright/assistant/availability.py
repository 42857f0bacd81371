"""Which tools a request has, and what the model learns about the tools that the person named.

It depends on the mode, on whether the request is about a notebook, and on where it was written. Also
the tools for plain files, which a general assistant works with.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cellwright.assistant.requests import ToolAttachment
from cellwright.errors import InvalidEdit
from cellwright.tools.errors import describe_error
from cellwright.tools.profiles.plain_files import SEARCH
from cellwright.tools.profiles.text import TEXT
from cellwright.tools.tool import ToolResult
from cellwright.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.assistant.requests import ChatRequest
    from cellwright.tools.tool import Tool, ToolCaller


_reference = re.compile(r"(?<![\w#/&])#([A-Za-z][A-Za-z0-9]*)").finditer
_half_typed = re.compile(r"(?<![\w#/&])#([A-Za-z0-9]*)$").search
_NOTEBOOK = ".ipynb"
_FILE_DESCRIPTIONS = {
    "read": "Read a file of text, or some of its lines, or list a folder, such as `.`.",
    "edit": "Replace texts in a file of text.",
    "write": "Write a whole file of text.",
}


@dataclass(frozen=True, slots=True)
class ToolReference:
    """A tool that a prompt names with `#`.

    `tool` is None if the request does not have it; `note` then says why, and what to do.
    """

    name: str
    tool: Tool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools of one request.

    `there` are those that the model is given; `known` all that some request could have.
    `references` are those that the person named with `#` or attached: hints for the model, which
    neither add a tool nor force the use of one.
    """

    request: ChatRequest
    known: tuple[Tool, ...]
    there: tuple[Tool, ...]
    has_notebook: bool
    edit_mode_edits: bool = False
    references: tuple[ToolReference, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the tools that are there."""
        return [tool.name for tool in self.there]

    @property
    def toolbox(self) -> Toolbox:
        """The tools that are there, to be listed and called."""
        return Toolbox(self.there, self.request.mode, edit_mode_edits=self.edit_mode_edits)

    def complete(self, prompt: str) -> list[str]:
        """The tools that complete the `#word` at the end of a prompt."""
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
        """The result of calling a tool that is not there; None if it is not known either."""
        tool = next((tool for tool in self.known if tool.name == name), None)
        if tool is None:
            return None
        toolbox = self.toolbox
        if not tool.is_allowed(toolbox.allowed):
            return describe_error(toolbox.forbid(tool, f"use {tool.name}"))
        text = f"error: {self.why_not(tool)}"
        return ToolResult(text, {"code": "TOOL_UNAVAILABLE"}, is_error=True)

    def why_not(self, tool: Tool) -> str:
        """Why a tool is not there."""
        toolbox = self.toolbox
        if not tool.is_allowed(toolbox.allowed):
            error = toolbox.forbid(tool, f"use {tool.name}")
            return f"{error.message}. {error.hint}."
        if self.has_notebook and self.request.location == "cell":
            return f"{tool.name} can be used in the chat pane only."
        return f"{tool.name} needs a notebook that is attached and open in the active editor."


def offer_tools(
    request: ChatRequest,
    tools: Sequence[Tool],
    *,
    has_notebook: bool,
    edit_mode_edits: bool = False,
) -> ToolOffer:
    """Choose the tools of a request.

    Tools that are tagged `requires-notebook` are there only if the request is about a notebook;
    of those, tools that change or run something are there only in the chat pane.

    Args:
        request: its mode, its location, its prompt and what is attached to it.
        tools: all there are.
        has_notebook: whether it is about a notebook.
        edit_mode_edits: whether mode `edit` may change notebooks.
    """
    toolbox = Toolbox(tools, request.mode, edit_mode_edits=edit_mode_edits)
    is_reading_only = request.location == "cell"
    there = [
        tool
        for tool in toolbox.list_tools()
        if "requires-notebook" not in tool.tags
        or (has_notebook and ("read-only" in tool.tags or not is_reading_only))
    ]
    offer = ToolOffer(request, tuple(tools), tuple(there), has_notebook, edit_mode_edits)
    return replace(offer, references=tuple(_find_references(offer)))


def _find_references(offer: ToolOffer) -> list[ToolReference]:
    """The tools that the person wrote as `#name` or attached; another `#word` is a word."""
    by_name = {tool.name: tool.reference for tool in offer.known}
    attached = [
        f"#{by_name.get(each.name, each.name.removeprefix('#'))}"
        for each in offer.request.references
        if isinstance(each, ToolAttachment)
    ]
    by_reference = {tool.reference.lower(): tool for tool in offer.known if tool.reference}
    found: dict[str, ToolReference] = {}
    for match in _reference(" ".join([offer.request.prompt, *attached])):
        tool = by_reference.get(match[1].lower())
        if tool is None:
            near = difflib.get_close_matches(match[1].lower(), by_reference, 1, 0.9)
            if near:
                note = f"Did you mean #{by_reference[near[0]].reference}?"
                found[match[1]] = ToolReference(match[1], None, note)
        elif tool in offer.there:
            found[tool.reference] = ToolReference(tool.reference, tool)
        else:
            found[tool.reference] = ToolReference(tool.reference, None, offer.why_not(tool))
    return list(found.values())


def render_references(references: Sequence[ToolReference]) -> str:
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


def _restrict_to_text(tool: Tool) -> Tool:
    """A tool of the profile `text` that refuses notebooks, which have tools of their own."""

    async def call(caller: ToolCaller, params: Any) -> ToolResult:
        path: str = params.path
        names = (path.lower(), caller.workspace.open(path).real.lower())
        # Behind a colon there may be a choice of lines.
        if any(name.endswith(_NOTEBOOK) or f"{_NOTEBOOK}:" in name for name in names):
            raise InvalidEdit(
                f"{path} is a notebook",
                hint="Its tools are there when it is attached to the chat and open beside it",
            )
        return await tool.call(caller, params)

    return replace(tool, description=_FILE_DESCRIPTIONS[tool.name], call=call)


_READ, *_WRITING = (_restrict_to_text(tool) for tool in TEXT if tool.name in _FILE_DESCRIPTIONS)
FILE_TOOLS = (_READ, SEARCH, *_WRITING)
"""`read` (which also lists folders), `search`, `edit` and `write` for plain files.

Give them to a `Chat` as its `file_tools`.
"""
