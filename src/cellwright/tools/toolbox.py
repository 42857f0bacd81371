"""The tools of one door: which there are in a mode, and how they are called."""

from __future__ import annotations

import difflib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cellwright.errors import CellwrightError, ModeForbids, NotebookNotFound
from cellwright.tools.errors import describe_error
from cellwright.tools.fence import reveal, reveal_data
from cellwright.tools.params import InvalidParameters
from cellwright.tools.tool import EFFECT_ORDER, ToolResult, allowed_effects
from cellwright.tools.wording import find_similar_notebooks, quote_name, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import ValidationError

    from cellwright.tools.tool import Tool, ToolCaller
    from cellwright.workspace.api.requests import Mode


class Toolbox:
    """Some tools, and which of them a mode allows.

    A tool of which the mode allows nothing is not listed and cannot be called. What the mode
    forbids of another tool is refused by the workspace.

    Args:
        tools: in the order in which they are listed; names must differ.
        mode: what is allowed.
        edit_mode_edits: whether mode `edit` may change notebooks.
    """

    def __init__(
        self, tools: Sequence[Tool], mode: Mode = "agent", *, edit_mode_edits: bool = False
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.mode = mode
        self.edit_mode_edits = edit_mode_edits
        self.allowed = allowed_effects(mode, edit_mode_edits=edit_mode_edits)

    def list_tools(self) -> list[Tool]:
        """The tools of which the mode allows something."""
        return [tool for tool in self._tools.values() if tool.is_allowed(self.allowed)]

    def table(self) -> list[dict[str, Any]]:
        """The listed tools as data: name, description and the schema of the parameters."""
        return [
            {
                "name": tool.name,
                "title": tool.title or tool.name,
                "description": tool.describe(self.allowed),
                "inputSchema": tool.schema(self.allowed),
                "tags": sorted(tool.tags),
                "toolReferenceName": tool.reference or None,
                "canBeReferencedInPrompt": bool(tool.reference),
            }
            for tool in self.list_tools()
        ]

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None, caller: ToolCaller
    ) -> ToolResult:
        """Call a tool by name; whatever goes wrong is a result that says what to do next.

        Nothing is hidden in what the model gets, whatever the tool has put there.
        """
        return reveal_result(await self._call(name, arguments, caller))

    async def _call(
        self, name: str, arguments: Mapping[str, Any] | None, caller: ToolCaller
    ) -> ToolResult:
        from pydantic import ValidationError

        tool = self._tools.get(name)
        if tool is None:
            text = f"error: {self.describe_unknown(name)}"
            return ToolResult(text, {"code": "UNKNOWN_TOOL"}, is_error=True)
        if not tool.is_allowed(self.allowed):
            return describe_error(self.forbid(tool, f"call {tool.name} to {tool.weakest_effect}"))
        try:
            params = tool.model.model_validate(dict(arguments or {}))
        except ValidationError as error:
            return _describe_invalid(tool, error)
        try:
            return await tool.call(caller, params)
        except ModeForbids as error:  # said in the same words whatever the profile
            return describe_error(error)
        except CellwrightError as error:
            if isinstance(error, NotebookNotFound):
                await _suggest_path(error, caller)
            if tool.refused is not None:
                return tool.refused(error)
            return describe_error(error, [tool.name for tool in self.list_tools()])

    def forbid(self, tool: Tool, what: str) -> ModeForbids:
        """The error for a tool that the mode does not allow, with the mode that does."""
        is_edit = tool.weakest_effect == "edit" and self.edit_mode_edits
        return ModeForbids(what, self.mode, "edit" if is_edit else "agent")

    def has(self, name: str) -> bool:
        """Whether there is a tool of that name, whatever the mode allows of it."""
        return name in self._tools

    def describe_unknown(self, name: str) -> str:
        """Say that there is no such tool, and which there are."""
        near = difflib.get_close_matches(name, self._tools, n=2)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        known = ", ".join(tool.name for tool in self.list_tools())
        return f"There is no tool {quote_name(name)}.{meant} There are {known}"


def reveal_result(result: ToolResult) -> ToolResult:
    """A result in which nothing is hidden."""
    return replace(result, text=reveal(result.text), data=reveal_data(result.data))


def _describe_invalid(tool: Tool, error: ValidationError) -> ToolResult:
    problems = []
    wrong: dict[str, None] = {}
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(quote_name(str(step)) for step in problem["loc"]) or "parameters"
        wrong[str(problem["loc"][0]) if problem["loc"] else ""] = None
        said = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "model_type":  # pydantic would name a class of ours
            said = "Input should be an object"
        problems.append(shorten(f"{place}: {said}", 300))
    if tool.refused is not None:
        return tool.refused(InvalidParameters("; ".join(problems[:3])))
    properties = tool.schema(frozenset(EFFECT_ORDER))["properties"]
    shapes = {name: properties[name] for name in wrong if name in properties}
    text = "\n".join(
        [
            f"error: {tool.name} was called with parameters it cannot take; nothing was done",
            *(f"- {problem}" for problem in problems[:10]),
            *(f"{name} has the shape {json.dumps(shape)}" for name, shape in shapes.items()),
            f"hint: It takes {', '.join(properties)}",
        ]
    )
    return ToolResult(text, {"code": "INVALID_PARAMETERS"}, is_error=True)


async def _suggest_path(error: NotebookNotFound, caller: ToolCaller) -> None:
    near = await find_similar_notebooks(caller.workspace, error.path)
    if near:
        paths = " or ".join(f"`{shorten(path, 100)}`" for path in near)
        error.hint = f"Did you mean {paths}?"
