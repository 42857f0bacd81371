from __future__ import annotations

from typing import TYPE_CHECKING

from cellwright.engine import aio
from cellwright.errors import EngineUnavailable
from cellwright.mcp.server import ClientWorkspaces
from tests.unit.mcp.serving import door, notebook, serving, text_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def test_without_an_engine_it_works_in_process_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise EngineUnavailable("this test has none")

    said: list[str] = []
    monkeypatch.setattr(aio, "connect", refuse)
    notebook(tmp_path / "a.ipynb", ("one", "1"))
    workspaces = ClientWorkspaces(str(tmp_path), "agent", engine=True, say=said.append)
    first, second = await workspaces.get("mcp:a"), await workspaces.get("mcp:b")
    try:
        edit = {"op": "replace", "cell": "one", "source": "2"}
        await first.open("a.ipynb").edit([edit])
        found = await second.open("a.ipynb").read()
        assert [other.actor for other in found.others] == ["mcp:a"]
        done = await second.open("a.ipynb").run([0])
        assert [row.status for row in done] == ["ok"], "and they share kernels"
        assert await first.sessions() == await second.sessions() != []
    finally:
        await workspaces.close()

    assert len(said) == 1
    assert "in this process alone" in said[0]


CALL = """\
import json, os, urllib.request

asked = urllib.request.Request(
    os.environ["CELLWRIGHT_TOOL_BRIDGE_URL"] + "/tools/notebook_list",
    b"{}",
    {"Authorization": "Bearer " + os.environ["CELLWRIGHT_TOOL_BRIDGE_TOKEN"]},
)
print(json.load(urllib.request.urlopen(asked, timeout=30))["data"]["total"], "notebook")
"""


async def test_kernels_of_this_process_call_tools(tmp_path: Path) -> None:
    notebook(tmp_path / "a.ipynb", ("one", "1"))
    async with serving(door(tmp_path)) as client:
        answer = await client.call_tool("eval", {"cells": [{"code": CALL}]})

    assert not answer.is_error
    assert "1 notebook" in text_of(answer)
