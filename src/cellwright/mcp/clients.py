"""What to write into the settings of the clients that people use."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any

NAMES = ("claude", "claude-desktop", "cursor", "vscode", "codex")
_WORKSPACE = "${workspaceFolder}"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a client's settings: the text, the same as data, and where it goes."""

    text: str
    data: dict[str, Any]
    where: tuple[str, ...]


def snippet(client: str, root: str | None, options: list[str]) -> Snippet:
    """What to write into the settings of one client.

    Args:
        client: one of `NAMES`.
        root: the folder to confine it to; None for what the client works on.
        options: more words for the command line.
    """
    return _MAKERS[client](root, options)


def command_line() -> list[str]:
    """The words that start this very installation, whatever the client's PATH is."""
    here = os.path.dirname(sys.executable)  # noqa: PTH120  # of text
    found = shutil.which("cellwright", path=here)
    return [found] if found else [sys.executable, "-m", "cellwright"]


def _server(root: str | None, options: list[str]) -> dict[str, Any]:
    command, *words = command_line()
    words += ["mcp", *(["--root", root] if root is not None else []), *options]
    return {"command": command, "args": words}


def _as_json(data: dict[str, Any], *where: str) -> Snippet:
    return Snippet(json.dumps(data, indent=2) + "\n", data, where)


def _claude(root: str | None, options: list[str]) -> Snippet:
    # Claude Code starts servers in the project's folder, which is the default root.
    data = {
        "mcpServers": {"cellwright": {"type": "stdio", **_server(root, options)}},
        "permissions": {"deny": ["NotebookEdit"]},
    }
    return _as_json(
        data,
        "`mcpServers` goes into .mcp.json of the project (or ~/.claude.json)",
        "`permissions` goes into .claude/settings.json: two editors of notebooks are one too many",
    )


def _claude_desktop(root: str | None, options: list[str]) -> Snippet:
    data = {"mcpServers": {"cellwright": _server(root or os.getcwd(), options)}}  # noqa: PTH109
    return _as_json(data, "goes into claude_desktop_config.json: Settings, Developer, Edit Config")


def _cursor(root: str | None, options: list[str]) -> Snippet:
    data = {"mcpServers": {"cellwright": _server(root or _WORKSPACE, options)}}
    return _as_json(data, "goes into .cursor/mcp.json of the project")


def _vscode(root: str | None, options: list[str]) -> Snippet:
    server = {"type": "stdio", **_server(root or _WORKSPACE, options)}
    return _as_json(
        {"servers": {"cellwright": server}}, "goes into .vscode/mcp.json of the project"
    )


def _codex(root: str | None, options: list[str]) -> Snippet:
    # Codex starts servers in the folder it works in.
    server = {**_server(root, options), "startup_timeout_sec": 20, "tool_timeout_sec": 120}
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
