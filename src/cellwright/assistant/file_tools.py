"""Tools for files that are no notebooks: what a general coding assistant works with.

They are those of the profile `text`, and as confined to the root. A notebook is refused, whatever
its name: it has tools of its own, once it is attached to the chat and open beside it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cellwright.errors import InvalidEdit
from cellwright.tools.profiles.text import TEXT

if TYPE_CHECKING:
    from cellwright.tools.tool import Caller, Tool, ToolResult

_ABOUT = {
    "read": "Read a file of text, or some of its lines.",
    "edit": "Replace texts in a file of text.",
    "write": "Write a whole file of text.",
}
_NOTEBOOK = ".ipynb"


def _for_text(tool: Tool) -> Tool:
    async def call(caller: Caller, params: Any) -> ToolResult:
        path: str = params.path
        names = (path.lower(), caller.workspace.open(path).real.lower())
        # Behind a colon there may be a choice of lines.
        if any(name.endswith(_NOTEBOOK) or f"{_NOTEBOOK}:" in name for name in names):
            raise InvalidEdit(
                f"{path} is a notebook",
                hint="Its tools are there when it is attached to the chat and open beside it",
            )
        return await tool.call(caller, params)

    return replace(tool, description=_ABOUT[tool.name], call=call)


FILE_TOOLS = tuple(_for_text(tool) for tool in TEXT if tool.name in _ABOUT)
"""`read`, `edit` and `write`; give them to a `Chat` beside those of the notebook."""
