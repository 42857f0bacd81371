"""Sessions, runs and artifacts belong to the root that made them, and exist for no other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.errors import CellwrightError
from cellwright.workspace.api import requests
from cellwright.workspace.verbs import perform_on_loop
from tests.unit.workspace import memory

if TYPE_CHECKING:
    from pathlib import Path


async def ask(workspace: Workspace, request: requests.Request[Any]) -> Any:
    return await perform_on_loop(workspace.caller, request)


async def refuse(workspace: Workspace, request: requests.Request[Any]) -> str:
    with pytest.raises(CellwrightError) as caught:
        await ask(workspace, request)
    return caught.value.code


async def test_what_one_root_made_does_not_exist_for_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    hub = memory.make_hub(memory.MemoryKernels(), loop=asyncio.get_running_loop())
    here = str(tmp_path)
    a, b, within, free = (
        Workspace(root, cwd=here, hub=hub)
        for root in (tmp_path / "a", tmp_path / "b", tmp_path, None)
    )
    for workspace, value in ((a, "1"), (b, "2")):
        code = [f"set x {value}", "flood 9000"]
        await ask(workspace, requests.EvalRequest(code, session="s", kernel="memory"))
    # One name and one folder, and yet two sessions.
    again = requests.EvalRequest(["get x"], session="s", kernel="memory")
    assert (await ask(a, again)).cells[0].text.strip() == "1"
    assert (await ask(b, again)).cells[0].text.strip() == "2"
    assert [len(await ask(each, requests.SessionsRequest())) for each in (a, b, within, free)] == [
        *(1, 1, 0, 2)
    ]
    mine = (await ask(a, requests.RunsRequest()))[-1]
    assert len(await ask(b, requests.RunsRequest())) == 2
    assert await ask(within, requests.RunsRequest()) == []
    assert len(await ask(free, requests.RunsRequest())) == 4
    for other in (b, within):
        assert await refuse(other, requests.AttachRequest(mine.run)) == "RUN_NOT_FOUND"
        assert await refuse(other, requests.CancelRequest(mine.run)) == "RUN_NOT_FOUND"
    assert (await ask(a, requests.AttachRequest(mine.run))).done
    status = requests.KernelRequest("shutdown", "s")
    assert await refuse(within, status) == "SESSION_NOT_FOUND"
    await ask(b, status)
    assert len(await ask(a, requests.SessionsRequest())) == 1
    store = hub.artifacts
    (artifact,) = [each.id for each in store.list() if each.origin == a.caller.origin]
    assert (await ask(a, requests.ArtifactRequest(artifact))).size > 0
    assert (await ask(free, requests.ArtifactRequest(artifact))).size > 0
    for other in (b, within):
        assert await refuse(other, requests.ArtifactRequest(artifact)) == "ARTIFACT_NOT_FOUND"
        near = requests.ArtifactRequest(artifact[:-1])
        with pytest.raises(CellwrightError) as caught:
            await ask(other, near)
        assert artifact not in f"{caught.value.message} {caught.value.hint}"
    await hub.end_kernels()
    hub.release_resources()
