"""A server and clients of both kinds, in one process."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import Client
from pydantic import BaseModel

from cellwright.mcp.server import McpServer
from cellwright.tools.native import NATIVE
from cellwright.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from cellwright.tools.tool import ToolCaller, ToolResult

ERAS = ("legacy", "2026-07-28")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Anything(BaseModel):
    """Parameters of a tool of a test."""

    text: str = ""


def tool(
    name: str, call: Callable[[ToolCaller, Any], Awaitable[ToolResult]], **options: Any
) -> Tool:
    """A tool that does what a test wants."""
    settings: dict[str, Any] = {"effects": "read", "description": "For a test.", **options}
    return Tool(name=name, model=Anything, call=call, **settings)


def door(root: Path, *, tools: tuple[Tool, ...] = NATIVE, **options: Any) -> McpServer:
    """A server whose kernels live in this process."""
    return McpServer(str(root), tools=tools, engine=False, say=lambda _: None, **options)


@contextlib.asynccontextmanager
async def serving(
    made: McpServer, era: str = "2026-07-28", **options: Any
) -> AsyncIterator[Client]:
    """A client that is connected to a server."""
    # In process a client of today gets no lifespan, which hangs up at the end.
    try:
        async with Client(made.server, mode=era, **options) as client:
            yield client
    finally:
        await made.close()


def make_root(place: Path) -> Path:
    """A folder of notebooks, with secrets beside it that no client must see."""
    folder = place / "root"
    (folder / "deep er").mkdir(parents=True)
    notebook(folder / "a.ipynb", ("one", "x = 1"), ("two", "print('é')"))
    notebook(folder / "deep er" / "ü.ipynb", ("only", "1"))
    notebook(place / "secret.ipynb", ("s", "TOP SECRET"))
    notebook(place / "root-evil.ipynb", ("s", "TOP SECRET"))
    (place / "secret.txt").write_text("TOP SECRET")
    (folder / "link.ipynb").symlink_to(place / "secret.ipynb")
    return folder


def named(name: str) -> types.Implementation:
    """Who a client says it is."""
    return types.Implementation(name=name, version="1")


def text_of(result: types.CallToolResult) -> str:
    """All text of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


def notebook(path: Path, *cells: tuple[str, str], outputs: dict[str, Any] | None = None) -> Path:
    """Write a notebook of code cells, given as id and source."""
    made = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": name,
            "metadata": {},
            "outputs": (outputs or {}).get(name, []),
            "source": source.splitlines(keepends=True),
        }
        for name, source in cells
    ]
    whole = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return path
