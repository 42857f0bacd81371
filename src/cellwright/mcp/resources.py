"""Notebooks and artifacts as resources: `notebook://path`, `notebook://path#cell`, `artifact://id`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cellwright.errors import CellwrightError
from cellwright.mcp.results import clean
from cellwright.outputs.sanitize import visible
from cellwright.text.view import to_text

if TYPE_CHECKING:
    from cellwright.workspace.asynchronous import AsyncWorkspace

NOTEBOOK, ARTIFACT = "notebook://", "artifact://"
TEXT_VIEW = "text/x-cellwright"
_MOST_LISTED = 1000
_MOST_CHARACTERS = 400_000
_MOST_BYTES = 4 * 2**20
_NOT_FOUND_2025 = -32002

TEMPLATES = [
    types.ResourceTemplate(
        name="notebook",
        title="A notebook as text",
        uri_template="notebook://{+path}",
        description="All cells as editable text, one marker line per cell",
        mime_type=TEXT_VIEW,
    ),
    types.ResourceTemplate(
        name="cell",
        title="One cell with its outputs",
        uri_template="notebook://{+path}#{cell}",
        description="A cell by id or 0-based index: its source and what it said",
        mime_type="text/plain",
    ),
    types.ResourceTemplate(
        name="artifact",
        title="Output that was kept aside",
        uri_template="artifact://{id}",
        description="Long output or a picture; ids are in the answers of tools",
    ),
]


def notebook_uri(path: str) -> str:
    """The address of a notebook."""
    return NOTEBOOK + quote(path, safe="/", errors="surrogatepass")


def notebook_path(uri: str) -> tuple[str, str | None]:
    """The path that an address means, and the cell if it names one."""
    rest, mark, cell = uri.removeprefix(NOTEBOOK).partition("#")
    return unquote(rest, errors="surrogatepass"), unquote(cell) if mark else None


async def listed(workspace: AsyncWorkspace) -> list[types.Resource]:
    """The notebooks below the root."""
    return [
        types.Resource(
            name=clean(visible(row["path"])),
            uri=notebook_uri(row["path"]),
            mime_type=TEXT_VIEW,
            size=row["size"],
        )
        for row in (await workspace.list())[:_MOST_LISTED]
    ]


async def read(
    workspace: AsyncWorkspace, uri: str, version: str
) -> list[types.TextResourceContents | types.BlobResourceContents]:
    """What an address leads to.

    Raises:
        MCPError: to nothing that may be read.
    """
    try:
        if uri.startswith(ARTIFACT):
            return [await _artifact(workspace, uri)]
        if uri.startswith(NOTEBOOK):
            path, cell = notebook_path(uri)
            if cell is not None:
                return [await _cell(workspace, uri, path, cell)]
            return [await _notebook(workspace, uri, path)]
    except CellwrightError as error:
        raise _refused(uri, error.message, error.code, version) from None
    except (ValueError, OSError):  # such as a NUL, which no path may hold
        raise _refused(uri, "No such resource", "INVALID_PATH", version) from None
    raise _refused(uri, "No such resource", "UNKNOWN_RESOURCE", version)


def _refused(uri: str, message: str, code: str, version: str) -> MCPError:
    number = types.INVALID_PARAMS if version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND_2025
    return MCPError(number, clean(visible(message)), {"uri": clean(uri), "code": code})


async def _notebook(workspace: AsyncWorkspace, uri: str, path: str) -> types.TextResourceContents:
    notebook = await workspace.open(path).load()
    text = visible(await asyncio.to_thread(to_text, notebook))
    if len(text) > _MOST_CHARACTERS:
        left = len(text) - _MOST_CHARACTERS
        text = f"{text[:_MOST_CHARACTERS]}\nLEFT OUT: {left:,} characters; notebook_read has them"
    return types.TextResourceContents(
        uri=uri, mime_type=TEXT_VIEW, text=clean(text), _meta={"revision": notebook.revision}
    )


async def _cell(
    workspace: AsyncWorkspace, uri: str, path: str, cell: str
) -> types.TextResourceContents:
    from cellwright.tools.native.reading import ReadParams, read_notebook
    from cellwright.tools.tool import Caller

    wanted = ReadParams(path=path, cells=[cell], outputs=True)
    answer = await read_notebook(Caller(workspace=workspace), wanted)
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=clean(answer.text))


async def _artifact(
    workspace: AsyncWorkspace, uri: str
) -> types.TextResourceContents | types.BlobResourceContents:
    part = await workspace.artifact(uri.removeprefix(ARTIFACT), 0, _MOST_BYTES)
    if "text" not in part:
        return types.BlobResourceContents(uri=uri, mime_type=part["mime"], blob=part["base64"])
    text = part["text"]
    if part["next_offset"] is not None:
        text += f"\nLEFT OUT: the rest; notebook_outputs goes on at offset={part['next_offset']}"
    return types.TextResourceContents(uri=uri, mime_type=part["mime"], text=clean(visible(text)))
