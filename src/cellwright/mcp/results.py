"""Tools and their results, as the protocol has them."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import mcp_types as types

from cellwright.tools.fence import reveal, reveal_data

if TYPE_CHECKING:
    from cellwright.tools.tool import Tool, ToolResult
    from cellwright.tools.toolbox import Toolbox
    from cellwright.workspace.api.requests import Effect

FACTS = "cellwright/facts"
"""The key of `_meta` that holds an result's facts for programs."""

# Clients for models, as far as is known, show the model `structuredContent` *instead of* the
# text when there is any. Facts alone would hide from it what the cells said, so only clients
# that are known to be programs get them there; all others find them in `_meta`.
_PROGRAMS = ("cellwright", "inspector", "mcp-inspector", "conformance")


def is_program(client: str) -> bool:
    """Whether a client reads facts rather than shows them to a model."""
    name = client.lower()
    return name in _PROGRAMS or name.startswith(("cellwright-", "inspector-", "mcp-conformance"))


def list_tools(toolbox: Toolbox) -> list[types.Tool]:
    """The tools of which something is allowed, with what may be known before they are called."""
    rows = {row["name"]: row for row in toolbox.table()}
    return [_describe_tool(tool, rows[tool.name], toolbox.allowed) for tool in toolbox.list_tools()]


def _describe_tool(tool: Tool, row: dict[str, Any], allowed: frozenset[Effect]) -> types.Tool:
    effects = tool.possible_effects(allowed)
    reads = effects <= {"read"}
    return types.Tool(
        name=tool.name,
        title=row["title"],
        description=row["description"],
        input_schema=row["inputSchema"],
        annotations=types.ToolAnnotations(
            title=row["title"],
            read_only_hint=reads,
            destructive_hint=not reads and ("destructive" in tool.tags or "run" in effects),
            idempotent_hint=reads,
            # Code reaches whatever the user reaches; our own verbs stay in the root.
            open_world_hint="run" in effects,
        ),
    )


def to_result(result: ToolResult, *, structured: bool) -> types.CallToolResult:
    """A tool's result as text and images, with its facts beside them."""
    content: list[Any] = [types.TextContent(text=clean(result.text))]
    content += [
        types.ImageContent(data=b64encode(image.data).decode("ascii"), mime_type=image.mime)
        for image in result.images
    ]
    facts = reveal_data(result.data)
    return types.CallToolResult(
        content=content,
        structured_content=facts if structured and facts else None,
        is_error=result.is_error,
        _meta={FACTS: facts} if facts else None,
    )


def clean(text: str) -> str:
    """Text in which nothing is hidden, and that UTF-8 can carry.

    Lone halves of surrogate pairs would end the connection.
    """
    return reveal(text).encode("utf-8", "replace").decode()
