"""Which tools a conversation has: by its mode, and by whether it is about a notebook."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellwright.errors import ModeForbids
from cellwright.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.tools.tool import Tool
    from cellwright.workspace.workspace import Mode

_reference = re.compile(r"(?<![\w#/&])#([A-Za-z][A-Za-z0-9]*)").finditer


@dataclass(frozen=True, slots=True)
class Reference:
    """A tool that a prompt names with `#`.

    `tool` is None if the conversation does not have it; `note` then says why, and what to do.
    """

    name: str
    tool: Tool | None
    note: str = ""


def enabled(
    tools: Sequence[Tool],
    mode: Mode,
    *,
    has_active_notebook: bool,
    in_chat_pane: bool = True,
    edit_mode_edits: bool = False,
) -> list[Tool]:
    """The tools that a conversation has.

    Args:
        tools: all there are.
        mode: what is allowed.
        has_active_notebook: whether it is about a notebook: one is attached and in the active
            editor. Tools that are tagged `requires-notebook` are there only then.
        in_chat_pane: whether it takes place in the chat pane and not in a cell; of the tagged
            tools, those that change or run something are there only then.
        edit_mode_edits: whether mode `edit` may change notebooks.
    """
    found = []
    for tool in Toolbox(tools, mode, edit_mode_edits=edit_mode_edits).list_tools():
        if "requires-notebook" in tool.tags:
            if not has_active_notebook:
                continue
            if "read-only" not in tool.tags and not in_chat_pane:
                continue
        found.append(tool)
    return found


def find_references(
    prompt: str, tools: Sequence[Tool], there: Sequence[Tool], mode: Mode
) -> list[Reference]:
    """The tools that a prompt names, such as `#runNotebookCells`.

    Args:
        prompt: what a person wrote.
        tools: all there are; a `#word` that is none of them is a word.
        there: those that the conversation has.
        mode: what is allowed in it.
    """
    by_name = {tool.reference.lower(): tool for tool in tools if tool.reference}
    found: dict[str, Reference] = {}
    for match in _reference(prompt):
        tool = by_name.get(match[1].lower())
        if tool is None:
            near = difflib.get_close_matches(match[1].lower(), by_name, 1, 0.9)
            if near:
                meant = by_name[near[0]].reference
                found[match[1]] = Reference(match[1], None, f"Did you mean #{meant}?")
        elif tool in there:
            found[tool.reference] = Reference(tool.reference, tool)
        else:
            found[tool.reference] = Reference(tool.reference, None, _why_not(tool, mode))
    return list(found.values())


def _why_not(tool: Tool, mode: Mode) -> str:
    if not tool.is_allowed(Toolbox((), mode).allowed):
        error = ModeForbids(f"use {tool.name}", mode, "agent")
        return f"{error.message}. {error.hint}."
    return f"{tool.name} needs a notebook that is attached and open in the active editor."
