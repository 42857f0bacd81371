"""What code in a kernel can ask about its session: who it is, where artifacts go, which tools it has.

    from cellwright_kernel import session

    session.info()["notebook"]
    session.save_artifact("table.csv", text)
    session.call_tool("notebook_read", path="analysis.ipynb")["text"]

It reads the variables that Cellwright sets before each cell, under our names or those of other tools.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

_OTHER_NAMES = {"ARTIFACTS_DIR": ("PI_ARTIFACTS_DIR", "ARTIFACTS")}


def _find(name: str) -> str:
    names = (f"CELLWRIGHT_{name}", *_OTHER_NAMES.get(name, (f"PI_{name}",)))
    found = next((os.environ[each] for each in names if os.environ.get(each)), None)
    if found is None:
        raise LookupError(f"{names[0]} is not set: this code does not run in Cellwright")
    return found


def info() -> dict[str, Any]:
    """Return the session: `session`, `notebook`, `root` and `mode`."""
    facts = json.loads(Path(_find("SESSION_FILE")).read_text(encoding="utf-8"))
    return {name: facts.get(name) for name in ("session", "notebook", "root", "mode")}


def artifacts_dir() -> Path:
    """Return the folder of artifacts, which exists."""
    folder = Path(_find("ARTIFACTS_DIR"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save_artifact(name: str, data: str | bytes) -> Path:
    """Write a file into the folder of artifacts, and return its path."""
    if not name or Path(name).name != name:
        raise ValueError(f"{name!r} is not the name of a file")
    path = artifacts_dir() / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def list_tools(profile: str | None = None) -> list[dict[str, Any]]:
    """Return the tools that this session may call, of a profile or the native ones."""
    found: list[dict[str, Any]] = _ask("/tools", None, profile)["tools"]
    return found


def call_tool(tool: str, /, *, profile: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a tool; the answer has `ok`, `text`, `data` and `images`."""
    return _ask(f"/tools/{quote(tool, safe='')}", arguments, profile)


def _ask(target: str, body: dict[str, Any] | None, profile: str | None) -> dict[str, Any]:
    address = _find("TOOL_BRIDGE_URL") + target
    if profile is not None:
        address += f"?profile={quote(profile, safe='')}"
    request = Request(  # noqa: S310  # the address is the bridge's
        address,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {_find('TOOL_BRIDGE_TOKEN')}"},
    )
    with urlopen(request) as response:  # noqa: S310  # as above
        answer: dict[str, Any] = json.load(response)
    return answer
