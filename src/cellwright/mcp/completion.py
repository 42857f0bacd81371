"""Completion of paths and cell ids, in prompts and in addresses of resources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import mcp_types as types

from cellwright.errors import CellwrightError
from cellwright.mcp.results import clean

if TYPE_CHECKING:
    from cellwright.workspace.workspace import AsyncWorkspace

_MOST = 100  # what the protocol allows


async def completed(
    workspace: AsyncWorkspace, params: types.CompleteRequestParams
) -> types.Completion:
    """What an argument may become: first what begins so, then what contains it."""
    name, value = params.argument.name, params.argument.value
    known = (params.context.arguments if params.context else None) or {}
    if name == "path":
        found = [row["path"] for row in await workspace.list()]
    elif name == "cell":
        found = await _cells(workspace, known.get("path", ""))
    else:
        found = []
    typed = value.lower()
    begins = [text for text in found if text.lower().startswith(typed)]
    contains = [text for text in found if typed in text.lower() and text not in begins]
    values = [clean(text) for text in begins + contains]
    return types.Completion(values=values[:_MOST], total=len(values), has_more=len(values) > _MOST)


async def _cells(workspace: AsyncWorkspace, path: str) -> list[str]:
    if not path:
        return []
    try:
        notebook = await workspace.open(path).load()
    except (CellwrightError, ValueError, OSError):
        return []
    return await asyncio.to_thread(lambda: [cell.handle for cell in notebook.cells])
