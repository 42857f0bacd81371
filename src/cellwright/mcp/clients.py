"""Clients of the server: what to write into their settings, and a check that plays a client."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from cellwright.app.installation import find_start_command
from cellwright.errors import ConfigError

NAMES = ("claude", "claude-desktop", "cursor", "vscode", "codex")
_WORKSPACE = "${workspaceFolder}"
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a client's settings: the text, the same as data, and where it goes."""

    text: str
    data: dict[str, Any]
    where: tuple[str, ...]


def build_snippet(client: str, root: str | None, options: list[str]) -> Snippet:
    """What to write into the settings of one client.

    Args:
        client: one of `NAMES`.
        root: the folder to confine it to; None for what the client works on.
        options: more words for the command line.
    """
    return _MAKERS[client](root, options)


def command_line() -> list[str]:
    """The words that start this installation, whatever the client's folder and PATH are."""
    return list(find_start_command().words)


def _server_command(root: str | None, options: list[str]) -> dict[str, Any]:
    command, *words = command_line()
    words += ["mcp", *(["--root", root] if root is not None else []), *options]
    return {"command": command, "args": words}


def _as_json(data: dict[str, Any], *where: str) -> Snippet:
    return Snippet(json.dumps(data, indent=2) + "\n", data, where)


def _claude(root: str | None, options: list[str]) -> Snippet:
    # Claude Code starts servers in the project's folder, which is the default root.
    data = {
        "mcpServers": {"cellwright": {"type": "stdio", **_server_command(root, options)}},
        "permissions": {"deny": ["NotebookEdit"]},
    }
    return _as_json(
        data,
        "`mcpServers` goes into .mcp.json of the project (or ~/.claude.json)",
        "`permissions` goes into .claude/settings.json: two editors of notebooks are one too many",
    )


def _claude_desktop(root: str | None, options: list[str]) -> Snippet:
    data = {"mcpServers": {"cellwright": _server_command(root or os.getcwd(), options)}}  # noqa: PTH109
    return _as_json(data, "goes into claude_desktop_config.json: Settings, Developer, Edit Config")


def _cursor(root: str | None, options: list[str]) -> Snippet:
    data = {"mcpServers": {"cellwright": _server_command(root or _WORKSPACE, options)}}
    return _as_json(data, "goes into .cursor/mcp.json of the project")


def _vscode(root: str | None, options: list[str]) -> Snippet:
    server = {"type": "stdio", **_server_command(root or _WORKSPACE, options)}
    return _as_json(
        {"servers": {"cellwright": server}}, "goes into .vscode/mcp.json of the project"
    )


def _codex(root: str | None, options: list[str]) -> Snippet:
    # Codex starts servers in the folder it works in.
    server = {**_server_command(root, options), "startup_timeout_sec": 20, "tool_timeout_sec": 120}
    lines = ["[mcp_servers.cellwright]"]
    # Strings and lists of JSON are strings and lists of TOML.
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in server.items()]
    data = {"mcp_servers": {"cellwright": server}}
    return Snippet("\n".join(lines) + "\n", data, ("goes into ~/.codex/config.toml",))


_MAKERS = {
    "claude": _claude,
    "claude-desktop": _claude_desktop,
    "cursor": _cursor,
    "vscode": _vscode,
    "codex": _codex,
}


def check_server(root: str) -> dict[str, Any]:
    """Start a server over stdio as a client does, and make real calls, none of which runs code.

    Raises:
        ConfigError: it did not start, or did not answer as it should.
    """
    import asyncio

    try:
        return asyncio.run(_call_server(root))
    except TimeoutError:
        raise ConfigError(f"No answer within {_TIMEOUT:g} s", hint="Is the machine busy?") from None
    except BaseExceptionGroup as group:
        raise ConfigError(
            f"The server failed: {_first_error(group)}", hint="Try `cellwright mcp`"
        ) from None


async def _call_server(root: str) -> dict[str, Any]:
    import asyncio
    import time

    import mcp_types as types
    from mcp import Client, StdioServerParameters

    command, *words = command_line()
    server = StdioServerParameters(
        command=command, args=[*words, "mcp", "--root", root], env=dict(os.environ)
    )
    who = types.Implementation(name="cellwright-doctor", version="1")
    started = time.perf_counter()
    async with asyncio.timeout(_TIMEOUT), Client(server, client_info=who) as client:
        ready = time.perf_counter()
        tools = (await client.list_tools()).tools
        listed = await client.call_tool("notebook_list", {})
        called = time.perf_counter()
        version = client.session.protocol_version
    if listed.is_error:
        said = [part.text for part in listed.content if isinstance(part, types.TextContent)]
        raise ConfigError(
            f"notebook_list answered {' '.join(said)[:300]!r}", hint="Try `cellwright mcp`"
        )
    schemas = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    facts = listed.structured_content or {}
    return {
        "protocol": version,
        "tools": len(tools),
        "tokens": f"≈{len(json.dumps(schemas)) // 4}",
        "notebooks": facts.get("total", 0),
        "started in": f"{ready - started:.2f} s",
        "listed in": f"{called - ready:.2f} s",
    }


def _first_error(group: BaseExceptionGroup[Any]) -> str:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return f"{type(found).__name__}: {found}"
