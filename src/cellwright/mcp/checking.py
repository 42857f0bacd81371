"""Look at a server as a client sees it: start one, call it, and tell what came back."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

from cellwright.errors import ConfigError

_WITHIN = 60.0
_ASKED = "6 * 7"
_EXPECTED = "42"


def look(root: str) -> dict[str, Any]:
    """Start a server over stdio, as a client would, and make a real call.

    Raises:
        ConfigError: it did not start, or did not answer as it should.
    """
    try:
        return asyncio.run(_look(root))
    except TimeoutError:
        raise ConfigError(f"No answer within {_WITHIN:g} s", hint="Is the machine busy?") from None
    except BaseExceptionGroup as group:
        raise ConfigError(
            f"The server failed: {_first(group)}", hint="Try `cellwright mcp`"
        ) from None


async def _look(root: str) -> dict[str, Any]:
    import mcp_types as types
    from mcp import Client, StdioServerParameters

    from cellwright.mcp.clients import command_line

    command, *words = command_line()
    server = StdioServerParameters(
        command=command, args=[*words, "mcp", "--root", root], env=dict(os.environ)
    )
    who = types.Implementation(name="cellwright-doctor", version="1")
    started = time.perf_counter()
    async with asyncio.timeout(_WITHIN), Client(server, client_info=who) as client:
        ready = time.perf_counter()
        tools = (await client.list_tools()).tools
        listed = await client.call_tool("notebook_list", {})
        called = time.perf_counter()
        ran = await client.call_tool("eval", {"cells": [{"code": _ASKED}]})
        done = time.perf_counter()
        version = client.session.protocol_version
    said = "\n".join(part.text for part in ran.content if isinstance(part, types.TextContent))
    if ran.is_error or _EXPECTED not in said:
        raise ConfigError(f"eval of {_ASKED} answered {said[:300]!r}", hint="Try `cellwright eval`")
    schemas = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    facts = listed.structured_content or {}
    return {
        "protocol": version,
        "tools": len(tools),
        "tokens": f"≈{len(json.dumps(schemas)) // 4}",
        "notebooks": facts.get("total", 0),
        "started in": f"{ready - started:.2f} s",
        f"eval of {_ASKED}": f"{_EXPECTED} in {done - called:.2f} s",
    }


def _first(group: BaseExceptionGroup[Any]) -> str:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return f"{type(found).__name__}: {found}"
