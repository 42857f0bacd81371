"""A folder with a notebook, somebody who calls tools there, and kernels without a process."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import AsyncWorkspace
from cellwright.outputs import images
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from cellwright.workspace.runs.run import Run
from tests.memory_kernel import MemoryKernel, start_in_memory
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cellwright.tools.tool import ToolResult
    from cellwright.workspace.api.requests import Mode


@pytest.fixture(autouse=True)
def _decodes_pictures_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a tool answers, others do not wait while a picture is decoded for it."""
    open_image = images._open

    def open_off_the_loop(image: images.MimeImage) -> Any:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            pytest.fail("a picture was decoded on the loop")
        return open_image(image)

    monkeypatch.setattr(images, "_open", open_off_the_loop)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder we are in, with the sample notebook `nb.ipynb`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


@pytest.fixture
def path(folder: Path) -> Path:
    """The sample notebook."""
    return folder / "nb.ipynb"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[MemoryKernel]:
    """Every kernel that is started is one in memory, and is put down here."""
    return start_in_memory(monkeypatch)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when a cell sleeps. A call waits for a run's end only from then, however slow we are."""
    stuck = asyncio.Event()
    stop_first, wait_for_run = MemoryKernel._first, Run.wait

    async def stop(work: asyncio.Future[Any], *events: asyncio.Event) -> None:
        stuck.set()
        await stop_first(work, *events)

    async def wait(run: Run, seconds: float | None = None) -> bool:
        if seconds is not None and not run.is_over:
            async with asyncio.timeout(30):
                await stuck.wait()
        return await wait_for_run(run, seconds)

    monkeypatch.setattr(MemoryKernel, "_first", staticmethod(stop))
    monkeypatch.setattr(Run, "wait", wait)
    return stuck


@pytest.fixture
async def workspace(folder: Path, kernels: list[MemoryKernel]) -> AsyncIterator[AsyncWorkspace]:
    del kernels
    async with AsyncWorkspace(folder, cwd=str(folder), actor="test:ada") as workspace:
        yield workspace


@pytest.fixture
def caller(workspace: AsyncWorkspace) -> ToolCaller:
    return ToolCaller(workspace=workspace)


class Call:
    """Calls tools of all profiles by name, as a door does."""

    def __init__(self, caller: ToolCaller) -> None:
        self.caller = caller

    async def __call__(self, name: str, profile: str = "native", **arguments: Any) -> ToolResult:
        box = Toolbox(PROFILES[profile], self.caller.workspace.mode)
        return await box.call(name, arguments, self.caller)


@pytest.fixture
async def in_mode(
    folder: Path, kernels: list[MemoryKernel]
) -> AsyncIterator[Callable[[Mode], ToolCaller]]:
    """Callers whose workspace has a mode."""
    del kernels
    async with AsyncExitStack() as stack:
        made: dict[Mode, AsyncWorkspace] = {}
        for mode in ("ask", "edit", "agent"):
            workspace = AsyncWorkspace(folder, cwd=str(folder), mode=mode, actor="test:ada")
            made[mode] = await stack.enter_async_context(workspace)
        yield lambda mode: ToolCaller(workspace=made[mode])


@pytest.fixture
def call(caller: ToolCaller) -> Call:
    return Call(caller)


@pytest.fixture
def profile(caller: ToolCaller) -> Callable[[str], Any]:
    """Calls of one profile: `profile("text")("read", path=…)`."""

    def of(name: str) -> Any:
        async def call(tool: str, **arguments: Any) -> ToolResult:
            return await Toolbox(PROFILES[name]).call(tool, arguments, caller)

        return call

    return of
