"""An agent uses the kernels of a remote Jupyter server: named by the user, listed, told, ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client

from cellwright import AsyncWorkspace
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from tests.integration.kernel.remote.servers import running
from tests.integration.mcp.process import parameters
from tests.unit.mcp.serving import notebook, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.integration.kernel.remote.servers import RealServer

pytestmark = pytest.mark.timeout(120)
WHERE = "import os; print(os.getcwd())"


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
    specs = await call(workspace, "kernel", action="specs", server=remote.url)
    assert f'python3 on "{remote.url}" · python (default here)' in specs
    assert remote.url in said
    assert remote.token not in said
    assert str(remote.root) in await call(workspace, "eval", cells=[WHERE], session="far")
    again = [{"code": WHERE, "reset": True}]
    assert str(remote.root) in await call(workspace, "eval", cells=again, session="far")
    listed = await call(workspace, "kernel")
    assert f'python3 on "{remote.url}"' in listed

    edits = [{"op": "insert", "source": WHERE}]
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
        address = remote.url + path
        for said in (
            await call(fresh, "kernel", action="connect", server=address, session="s"),
            await call(fresh, "kernel", action="specs", server=address),
        ):
            assert "KERNEL_CANNOT" in said or "KERNEL_UNREACHABLE" in said
            assert "cellwright " not in said.replace("cellwright/", "")


async def test_who_names_no_server_is_told_which_there_are(
    workspace: AsyncWorkspace, remote: RealServer
) -> None:
    said = await call(workspace, "kernel", action="connect", session="s")
    assert f"One of the setting `servers`; now {remote.url}" in said


@pytest.mark.parametrize("chosen", ["connect", "setting"])
async def test_a_client_chooses_a_server_for_a_notebook_and_a_setting_for_all(
    chosen: str, remote: RealServer, tmp_path: Path
) -> None:
    notebook(tmp_path / "a.ipynb", ("one", WHERE))
    name = "CELLWRIGHT_SERVERS" if chosen == "connect" else "CELLWRIGHT_SERVER"
    variables = {name: remote.url, "CELLWRIGHT_SERVER_TOKEN": remote.token}
    async with Client(parameters(tmp_path, "--no-engine", **variables)) as client:

        async def ask(tool: str, **arguments: Any) -> str:
            return text_of(await client.call_tool(tool, arguments))

        if chosen == "connect":
            await ask("kernel", action="connect", server=remote.url, path="a.ipynb")
        ran = await ask("notebook_run", path="a.ipynb")
        shared = await ask("eval", notebook="a.ipynb", cells=[WHERE])
        alone = await ask("eval", cells=[WHERE])
        specs = await ask("kernel", action="specs")
    assert str(remote.root) in ran
    assert str(remote.root) in shared
    assert (str(remote.root) in alone) == (chosen == "setting")
    assert (f'python3 on "{remote.url}"' in specs) == (chosen == "setting")
