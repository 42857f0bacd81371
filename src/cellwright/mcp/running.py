"""Run a server, from its first descriptor to its last."""

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

    from cellwright.mcp.http.listening import Listening
    from cellwright.workspace.requests import Mode

# Watches of notebooks wait in threads where there is no engine.
_THREADS = 64


def run(
    root: str,
    *,
    profile: str = "native",
    mode: Mode = "agent",
    engine: bool = True,
    structured: bool = False,
    listening: Listening | None = None,
    new_token: bool = False,
    say: Callable[[str], object],
) -> None:
    """Serve the notebooks below a root until the client leaves, or forever over HTTP."""
    wire = None
    if listening is None:
        from cellwright.mcp.stdio import Wire

        if os.isatty(0):
            say("this speaks MCP to a client; --print-config shows how clients start it")
        wire = Wire()  # first of all: an import may print
    else:
        listening.check()
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(name)s: %(message)s")
    from cellwright.config.loading import load
    from cellwright.mcp.server import Door, stdio_place, tools_of
    from cellwright.mcp.workspaces import wants_engine

    async def serve() -> None:
        door = Door(
            root,
            tools=tools_of(profile),
            mode=mode,
            engine=engine and wants_engine(),
            edit_mode_edits=load(root).edit_mode_edits,
            place=stdio_place() if wire is not None else "",
            structured=structured,
            say=say,
        )
        if wire is not None:
            from cellwright.mcp import stdio

            await stdio.serve(door.server, wire)
        elif listening is not None:
            await _over_http(door.server, listening, say, new_token=new_token)

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_until_told(serve()))


async def _over_http(
    server: Any, listening: Listening, say: Callable[[str], object], *, new_token: bool
) -> None:
    from cellwright.mcp.http import listening as http
    from cellwright.mcp.http.token import load_token, token_path

    token, is_new = load_token(renew=new_token)

    def ready(address: str) -> None:
        say(f"listening on {address}")
        if is_new:
            say(f"token, shown this once: {token}")
        say(f"clients send the token in {token_path()} as `Authorization: Bearer …`")

    await http.serve(server, token, listening, ready)


async def _until_told(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it is over, or somebody ends the process politely."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, "cellwright"))
    task = asyncio.ensure_future(work)
    with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    await task
