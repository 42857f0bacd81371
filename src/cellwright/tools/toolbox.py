"""The tools of one door: which there are, in which mode, and how they are called."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from cellwright.errors import CellwrightError, Conflict, ModeForbids, NotebookNotFound
from cellwright.tools.near import near_paths
from cellwright.tools.page import Page
from cellwright.tools.params import InvalidParameters
from cellwright.tools.tool import EFFECTS_OF_MODES, Answer
from cellwright.tools.words import named, one_line, safe_hint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import ValidationError

    from cellwright.tools.tool import Caller, Tool
    from cellwright.workspace.requests import Effect, Mode


class Toolbox:
    """Some tools, and what the mode allows of them.

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
        self.allowed: frozenset[Effect] = EFFECTS_OF_MODES[mode]
        if mode == "edit" and edit_mode_edits:
            self.allowed |= {"edit"}

    def __len__(self) -> int:
        return len(self._tools)

    def listed(self) -> list[Tool]:
        """The tools of which the mode allows something."""
        return [tool for tool in self._tools.values() if tool.is_allowed(self.allowed)]

    def table(self) -> list[dict[str, Any]]:
        """The listed tools as data: name, description and the schema of the parameters."""
        return [
            {
                "name": tool.name,
                "title": tool.title or tool.name,
                "description": tool.told(self.allowed),
                "inputSchema": tool.schema(self.allowed),
                "tags": sorted(tool.tags),
                "toolReferenceName": tool.reference or None,
                "canBeReferencedInPrompt": bool(tool.reference),
            }
            for tool in self.listed()
        ]

    async def call(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Answer:
        """Call a tool by name; whatever goes wrong is an answer that says what to do next."""
        from pydantic import ValidationError

        tool = self._tools.get(name)
        if tool is None:
            return self._unknown(name)
        if not tool.is_allowed(self.allowed):  # whatever its arguments are
            return failure(self._forbidden(tool, tool.least))
        try:
            params = tool.model.model_validate(dict(arguments or {}))
        except ValidationError as error:
            return _invalid(tool, error)
        try:
            self.require(tool, params.model_dump())
            return await tool.call(caller, params)
        except ModeForbids as error:  # said in the same words whatever the profile
            return failure(error)
        except CellwrightError as error:
            if isinstance(error, NotebookNotFound):
                await _add_near(error, caller)
            return tool.refused(error) if tool.refused is not None else failure(error)

    def require(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raise `ModeForbids` unless the mode allows a call with these arguments."""
        effect = tool.effect(arguments)
        if effect not in self.allowed:
            raise self._forbidden(tool, effect)

    def _forbidden(self, tool: Tool, effect: Effect) -> ModeForbids:
        needed = "edit" if effect == "edit" and self.edit_mode_edits else "agent"
        return ModeForbids(f"call {tool.name} to {effect}", self.mode, needed)

    def _unknown(self, name: str) -> Answer:
        near = difflib.get_close_matches(name, self._tools, n=2)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        known = ", ".join(tool.name for tool in self.listed())
        text = f"error: There is no tool {named(name)}.{meant}\nhint: There are {known}"
        return Answer(text, {"code": "UNKNOWN_TOOL"}, is_error=True)


def _invalid(tool: Tool, error: ValidationError) -> Answer:
    problems = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(map(str, problem["loc"])) or "parameters"
        problems.append(one_line(f"{place}: {problem['msg'].removeprefix('Value error, ')}", 300))
    known = ", ".join(tool.model.model_fields)
    if tool.refused is not None:
        return tool.refused(InvalidParameters("; ".join(problems[:3])))
    text = "\n".join(
        [
            f"error: {tool.name} was called with parameters it cannot take; nothing was done",
            *(f"- {problem}" for problem in problems[:10]),
            f"hint: It takes {known}",
        ]
    )
    return Answer(text, {"code": "INVALID_PARAMETERS"}, is_error=True)


async def _add_near(error: NotebookNotFound, caller: Caller) -> None:
    """Say which notebooks have a similar path."""
    near = await near_paths(caller.workspace, error.path)
    if near:
        told = " or ".join(f"`{one_line(path, 100)}`" for path in near)
        error.hint = f"Did you mean {told}?"


def failure(error: CellwrightError) -> Answer:
    """An error of ours as an answer; a conflict shows what every side holds."""
    page = Page(2000)
    message, hint = one_line(error.message, 400), safe_hint(error) or None
    page.say(f"error: {error.code}: {message}")
    if hint:
        page.say(f"hint: {hint}")
    for cell in error.cells if isinstance(error, Conflict) else ():
        if not page.say(f"cell {named(cell.handle)} (index {cell.index}): {one_line(cell.reason)}"):
            break
        for side, text in (("now", cell.current), ("yours", cell.other)):
            if text is not None:
                page.show(side, text, 2000)
    data = {"code": error.code, "message": message, "hint": hint}
    return Answer(page.text(), {**data, "retryable": error.retryable}, is_error=True)
