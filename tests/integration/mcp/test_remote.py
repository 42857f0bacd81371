"""An agent uses the kernels of a remote Jupyter server: named by the user, listed, told, ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import AsyncWorkspace
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from tests.integration.kernel.remote.servers import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.integration.kernel.remote.servers import RealServer

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with running("server", tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
async def workspace(
    tmp_path: Path, remote: RealServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AsyncWorkspace]:
    monkeypatch.setenv("CELLWRIGHT_SERVERS", remote.url)
    monkeypatch.setenv("CELLWRIGHT_SERVER_TOKEN", remote.token)
    async with AsyncWorkspace(tmp_path, cwd=str(tmp_path), engine=False) as found:
        yield found


async def call(workspace: AsyncWorkspace, tool: str, **arguments: Any) -> str:
    done = await Toolbox(PROFILES["native"]).call(tool, arguments, ToolCaller(workspace=workspace))
    return done.text


async def test_eval_and_notebooks_run_on_the_server_that_they_are_connected_to(
    workspace: AsyncWorkspace, remote: RealServer, tmp_path: Path
) -> None:
    said = await call(workspace, "kernel", action="connect", server=remote.url, session="far")
    assert "Connected: eval with session=far runs there" in said
    assert remote.url in said
    assert remote.token not in said
    where = "import os; print(os.getcwd())"
    assert str(remote.root) in await call(workspace, "eval", cells=[where], session="far")
    again = [{"code": where, "reset": True}]
    assert str(remote.root) in await call(workspace, "eval", cells=again, session="far")
    listed = await call(workspace, "kernel")
    assert f'python3 on "{remote.url}"' in listed

    edits = [{"op": "insert", "source": "import os; print(os.getcwd())"}]
    await call(workspace, "notebook_edit", path="n.ipynb", edits=edits, create=True)
    await call(workspace, "kernel", action="connect", server=remote.url, path="n.ipynb")
    ran = await call(workspace, "notebook_run", path="n.ipynb")
    assert str(remote.root) in ran
    stored = json.loads((tmp_path / "n.ipynb").read_text())["cells"][0]["outputs"]
    assert str(remote.root) in json.dumps(stored)
    refused = await call(workspace, "kernel", action="connect", server=remote.url, path="n.ipynb")
    assert "KERNEL_CANNOT" in refused
    await call(workspace, "kernel", action="shutdown", path="n.ipynb")
    assert str(tmp_path) in await call(workspace, "notebook_run", path="n.ipynb")


async def test_a_kernel_that_runs_there_is_attached_to_by_its_id(
    workspace: AsyncWorkspace, remote: RealServer
) -> None:
    await call(workspace, "kernel", action="connect", server=remote.url, session="one")
    await call(workspace, "eval", cells=["x = 41"], session="one")
    (row,) = [row for row in await workspace.sessions() if row.session == "one"]
    assert row.server == remote.url
    listed = await workspace.kernel("connect", "two", server=remote.url, server_token=remote.token)
    running_there = [each.id for each in listed.kernels or ()]
    await call(workspace, "kernel", action="shutdown", session="two")
    for kernel in running_there:
        said = await call(
            workspace, "kernel", action="connect", server=remote.url, session=kernel, kernel=kernel
        )
        assert "Connected" in said
    answers = [
        await call(workspace, "eval", cells=["print(x + 1)"], session=kernel)
        for kernel in running_there
    ]
    assert any("42" in answer for answer in answers)


@pytest.mark.parametrize("path", ["", "/other", "@evil.example", ".evil.example"])
async def test_only_servers_that_the_user_named_get_the_token(
    workspace: AsyncWorkspace, remote: RealServer, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not path:
        monkeypatch.setenv("CELLWRIGHT_SERVERS", "https://hub.example/user/ada")
    async with AsyncWorkspace(workspace.root, engine=False) as fresh:
        said = await call(fresh, "kernel", action="connect", server=remote.url + path, session="s")
    assert "KERNEL_CANNOT" in said or "KERNEL_UNREACHABLE" in said
    assert "cellwright " not in said.replace("cellwright/", "")
