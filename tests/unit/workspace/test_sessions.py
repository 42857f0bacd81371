"""Whose state `eval` uses: a client's own by default, a shared one by name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.cli.output import complete_hint
from cellwright.config.settings import Settings
from cellwright.errors import KernelCannot, KernelMissing, KernelUnreachable
from cellwright.workspace.api.requests import EvalRequest, KernelRequest
from cellwright.workspace.hub import Hub
from cellwright.workspace.verbs import perform_on_loop
from tests.unit.workspace.memory import MemoryKernels, make_hub, make_notebook, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cellwright.workspace.runs.execution import Execution


@pytest.fixture
async def hub(kernels: MemoryKernels) -> AsyncIterator[Hub]:
    hub = make_hub(kernels, loop=asyncio.get_running_loop())
    yield hub
    await hub.end_kernels()
    hub.release_resources()


async def evaluate(workspace: Workspace, code: str | dict[str, Any], **options: Any) -> Execution:
    answer = await perform_on_loop(workspace.caller, EvalRequest([code], **options))
    return answer.cells[0]


async def test_two_clients_do_not_share_a_session_that_they_did_not_name(
    folder: Path, hub: Hub
) -> None:
    ada, bob = (Workspace(folder, actor=f"mcp:{name}", hub=hub) for name in ("ada", "bob"))
    await evaluate(ada, "set x 1")
    assert (await evaluate(bob, "get x")).status == "error"
    assert (await evaluate(bob, "set x 2", session="default")).status == "ok"
    assert (await evaluate(ada, "get x", session="default")).text == "1\n"
    status = await perform_on_loop(ada.caller, KernelRequest("status", "default"))
    assert status.session == "default@mcp:ada"


async def test_a_session_with_a_name_is_shared_on_purpose(folder: Path, hub: Hub) -> None:
    ada, bob = (Workspace(folder, actor=f"mcp:{name}", hub=hub) for name in ("ada", "bob"))
    await evaluate(ada, "set x 1", session="ours")
    assert (await evaluate(bob, "get x", session="ours")).text == "1\n"


async def test_the_commands_of_a_folder_follow_each_other(folder: Path, hub: Hub) -> None:
    for code in ("set x 1", "get x"):
        shell = Workspace(folder, actor="cli:ada", hub=hub)
        shell.caller.owner = f"cli:ada#{code}"  # every command is a connection of its own
        assert (await evaluate(shell, code)).status == "ok"
    assert [session.key.session for session in hub.sessions.pool] == ["default"]


async def test_an_agent_that_opens_many_sessions_evicts_no_one_elses_and_hears_what_it_lost(
    folder: Path, hub: Hub
) -> None:
    ada, bob = (Workspace(folder, actor=f"mcp:{name}", hub=hub) for name in ("ada", "bob"))
    await evaluate(ada, "set x 1")
    for name in ("default", "a", "b", "c", "d"):
        await evaluate(bob, "set x 2", session=name)
    assert (await evaluate(ada, "get x")).text == "1\n"
    lost = await evaluate(bob, "get x")
    assert lost.replaced
    assert lost.notes[0] == (
        "The session `default` was ended to make room, as 4 are kept;"
        " the variables of its 1 cell are lost"
    )
    assert (await evaluate(bob, "set x 3")).notes == []


async def test_a_kernel_that_does_not_start_leaves_neither_a_session_nor_the_notebook_owned(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, "print a")
    book = runner.open("m.ipynb")
    for options in ({}, {"restart": True}):
        with pytest.raises(KernelMissing):
            await run(book, kernel="gone", **options)
        hub = runner.caller.hub
        assert list(hub.sessions.pool) == []
        assert not hub.leases.owns(book.real)
    done = await run(book, kernel="memory")  # and another one can be had at once
    assert done.ok


@pytest.mark.parametrize("again", [False, True])
async def test_a_kernel_that_is_not_there_costs_no_variables(
    folder: Path, hub: Hub, again: bool
) -> None:
    make_notebook(folder, "set x 1", "get x")
    shell = Workspace(folder, actor="cli:ada", hub=hub)
    book = shell.open("m.ipynb")
    assert (await run(book)).ok
    await evaluate(shell, "set x 1")
    with pytest.raises(KernelMissing):  # and no hint to restart for it
        await run(book, kernel="gone", restart=again)
    with pytest.raises(KernelMissing):
        await evaluate(shell, {"code": "1", "reset": again}, kernel="gone")
    assert (await run(book, "c1")).ok
    assert (await evaluate(shell, "get x")).text == "1\n"


async def test_code_that_asks_for_no_kernel_takes_the_one_of_its_session(
    folder: Path, hub: Hub
) -> None:
    shell = Workspace(folder, actor="cli:ada", hub=hub)
    await evaluate(shell, "set x 1", kernel="memory")
    assert (await evaluate(shell, "get x")).text == "1\n"
    with pytest.raises(KernelCannot) as caught:
        await evaluate(shell, "get x", runner=True)
    assert complete_hint(caught.value, "eval") == (
        "Reset the session, or use another: `--reset`, or `-s NAME`"
    )
    with pytest.raises(KernelMissing):
        await evaluate(shell, "1", kernel="gone", session="new")
    assert (await evaluate(shell, "set y 1", session="new")).status == "ok"


async def test_how_much_output_is_kept_is_a_setting(folder: Path, kernels: MemoryKernels) -> None:
    chosen = Settings(output_bytes_kept=1024, output_lines_kept=10)
    for settings, kept in ((Settings(), 500), (chosen, 10)):
        hub = Hub(settings, kernels=kernels, loop=asyncio.get_running_loop())  # type: ignore[arg-type]
        shell = Workspace(folder, actor="cli:ada", hub=hub)
        done = await evaluate(shell, "flood 500")
        assert (done.text.count("\n"), done.truncated) == (kept, kept < 500)
        assert done.total_lines == 500
        await hub.end_kernels()
        hub.release_resources()


async def test_calls_have_kernels_of_their_own_if_the_setting_says_so(
    folder: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_EVAL_MODE", "per-call")
    shell = Workspace(folder, actor="cli:ada", hub=hub)
    await evaluate(shell, "set x 1")
    assert (await evaluate(shell, "get x")).status == "error"
    assert list(hub.sessions.pool) == []
    await evaluate(shell, "set x 1", per_call=False)
    assert (await evaluate(shell, "get x", per_call=False)).text == "1\n"


async def test_an_address_that_is_none_is_called_so(folder: Path, hub: Hub) -> None:
    shell = Workspace(folder, actor="cli:ada", hub=hub)
    for address in ("http://[", "http://[::1", "ftp://x", "http://", "http://a:b@c"):
        with pytest.raises(KernelUnreachable):
            await evaluate(shell, "1", server=address)


async def test_output_that_no_artifact_could_take_is_called_lost_with_the_reason(
    folder: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(hub.artifacts), "create", refuse)
    shell = Workspace(folder, actor="cli:ada", hub=hub)
    done = await evaluate(shell, "flood 20000")
    assert (done.truncated, done.artifact, len(done.notes)) == (True, None, 1)
    assert "lost" in done.notes[0]
    assert "No space left on device" in done.notes[0]
