"""Our server with the tools that the conformance suite asks for, on a port of this machine.

The suite brings no token, so it is added in front of the guard, which then sees every request as
that of a client who knows it; Host and Origin are checked as always.

    python server.py FOLDER     prints the address
"""

from __future__ import annotations

import asyncio
import base64
import socket
import sys
from typing import TYPE_CHECKING, Any

import mcp_types as types
import uvicorn
from pydantic import BaseModel

from cellwright.kernel.events import InputRequested
from cellwright.mcp import resources
from cellwright.mcp.http import HttpAddress, build_app
from cellwright.mcp.server import McpServer
from cellwright.outputs.images import ModelImage
from cellwright.tools.tool import Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cellwright.tools.tool import ToolCaller

TOKEN = "token-of-the-conformance-suite-0123456789"  # noqa: S105
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Nothing(BaseModel):
    """No parameters."""


class Message(BaseModel):
    """A message for the person."""

    message: str = ""


async def simple(_caller: ToolCaller, _params: Any) -> ToolResult:
    """Text alone."""
    return ToolResult("This is a simple text response for testing.")


async def picture(_caller: ToolCaller, _params: Any) -> ToolResult:
    """An image."""
    size = {"width": 1, "height": 1, "original_width": 1, "original_height": 1}
    return ToolResult("", images=(ModelImage("image/png", PNG, **size, original_bytes=len(PNG)),))


async def fail(_caller: ToolCaller, _params: Any) -> ToolResult:
    """An error."""
    return ToolResult("This tool intentionally returns an error for testing", is_error=True)


async def progress(caller: ToolCaller, _params: Any) -> ToolResult:
    """A run of three cells, told as a run tells it."""
    assert caller.progress is not None
    cells = ("a", "b", "c")
    for cell in cells:
        caller.progress({"cell": cell, "handle": cell, "status": "pending"})
    for cell in cells:
        caller.progress({"cell": cell, "handle": cell, "status": "running"})
        await asyncio.sleep(0.3)
        caller.progress({"cell": cell, "handle": cell, "status": "ok"})
    await asyncio.sleep(0.4)
    return ToolResult("done")


async def ask(caller: ToolCaller, params: Message) -> ToolResult:
    """A question to a person."""
    assert caller.ask is not None
    return ToolResult(f"User response: {await caller.ask(InputRequested(params.message))}")


def tool(
    name: str,
    call: Callable[[ToolCaller, Any], Awaitable[ToolResult]],
    model: type[BaseModel] = Nothing,
) -> Tool:
    """A tool of the suite."""
    return Tool(name=name, description="For the suite.", model=model, call=call, effects="read")


FIXTURES = (
    tool("test_simple_text", simple),
    tool("test_image_content", picture),
    tool("test_error_handling", fail),
    tool("test_tool_with_progress", progress),
    tool("test_elicitation", ask, Message),
)


async def read(workspace: Any, uri: str, version: str) -> list[Any]:
    """The resources of the suite, and ours."""
    if uri == "test://static-binary":
        blob = base64.b64encode(PNG).decode()
        return [types.BlobResourceContents(uri=uri, mime_type="image/png", blob=blob)]
    if uri.startswith("test://"):
        text = f"What {uri} holds."
        return [types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)]
    return await OURS_READ(workspace, uri, version)


async def made(workspace: Any, name: str, arguments: Any) -> types.GetPromptResult:
    """The prompts of the suite, and ours."""
    if not name.startswith("test_"):
        return await OURS_MADE(workspace, name, arguments)
    said = " and ".join(f"{key} is {value}" for key, value in (arguments or {}).items())
    content = types.TextContent(text=f"This is a simple prompt for testing. {said}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


OURS_READ, OURS_MADE = resources.read_resource, resources.build_prompt


def with_token(app: Any) -> Any:
    """Add the token to every request."""

    async def added(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]
            scope = {**scope, "headers": headers}
        await app(scope, receive, send)

    return added


def main(folder: str) -> None:
    """Serve until told to end."""
    resources.read_resource, resources.build_prompt = read, made
    door = McpServer(folder, tools=FIXTURES, engine=False)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = with_token(build_app(door.server, TOKEN, HttpAddress(host="127.0.0.1", port=port)))
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none")
    sys.stdout.write(f"http://127.0.0.1:{port}/mcp\n")
    sys.stdout.flush()
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
