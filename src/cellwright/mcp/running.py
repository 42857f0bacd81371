"""Run a server: choose its tools, its engine and its transport, and serve until the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cellwright.mcp.http import HttpAddress, TokenFile
    from cellwright.workspace.api.requests import Mode

# Watches of notebooks wait in threads where there is no engine.
_THREADS = 64


def run_server(
    root: str,
    *,
    profile: str = "native",
    mode: Mode = "agent",
    engine: bool = True,
    structured: bool = False,
    listening: HttpAddress | None = None,
    new_token: bool = False,
    key: str | None = None,
    say: Callable[[str], object],
) -> None:
    """Serve the notebooks below a root until the client leaves, or forever over HTTP.

    `key` says who the client over stdio is, so that a later server knows it again.
    """
    wire = None
    if listening is None:
        from cellwright.mcp.stdio import StdioWire

        if os.isatty(0):
            say("this speaks MCP to a client; --print-config shows how clients start it")
        wire = StdioWire()  # first of all: an import may print
    else:
        listening.check()
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(name)s: %(message)s")
    from cellwright.app.workspaces import wants_engine
    from cellwright.config.loading import load
    from cellwright.mcp.server import McpServer, stdio_place
    from cellwright.tools.profiles import PROFILES

    async def serve() -> None:
        mcp_server = McpServer(
            root,
            tools=PROFILES[profile],
            mode=mode,
            engine=engine and wants_engine(),
            edit_mode_edits=load(root).edit_mode_edits,
            place="" if wire is None else key or stdio_place(),
            structured=structured,
            say=say,
        )
        if wire is not None:
            from cellwright.mcp.stdio_streams import serve_stdio

            await serve_stdio(mcp_server.server, wire)
        elif listening is not None:
            from cellwright.mcp.http import TokenFile

            token = TokenFile(root, mode)
            await _serve_over_http(mcp_server.server, token, listening, say, renew=new_token)

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_run_until_terminated(serve()))


async def _serve_over_http(
    server: Any,
    file: TokenFile,
    listening: HttpAddress,
    say: Callable[[str], object],
    *,
    renew: bool,
) -> None:
    from cellwright.mcp.http import serve_http

    token, is_new = file.load(renew=renew)

    def ready(address: str) -> None:
        say(f"listening on {address}")
        if is_new:
            say(f"token, shown this once: {token}")
        say(f"clients send the token in {file.path} as `Authorization: Bearer …`")

    await serve_http(server, file.current, listening, ready)


async def _run_until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it is over, or SIGTERM comes."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, "cellwright"))
    task = asyncio.ensure_future(work)
    with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    await task
