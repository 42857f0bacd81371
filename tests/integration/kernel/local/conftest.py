"""Kernels for the tests of this folder, and words for what they say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.events import Finished, KernelEvent
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import StreamEvent
from tests.integration.kernel.processes import eventually, with_mark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path


def launch(cwd: Path | str = "/", **env: str) -> Launch:
    return Launch(cwd=str(cwd), env={**os.environ, **env}, kernel_name="python3")


async def run(kernel: LocalKernel, source: str, **more: object) -> list[KernelEvent]:
    """Everything that one cell says."""
    return [event async for event in kernel.execute(Code(source, **more))]  # type: ignore[arg-type]


def text(events: Sequence[KernelEvent], name: str = "stdout") -> str:
    return "".join(e.text for e in events if isinstance(e, StreamEvent) and e.name == name)


def verdict(events: Sequence[KernelEvent]) -> Finished:
    """The last event, and the only one of its kind."""
    [finished] = [event for event in events if isinstance(event, Finished)]
    assert events[-1] is finished
    return finished


def mark_of(kernel: LocalKernel) -> str:
    assert kernel._process is not None
    assert kernel._process.kept is not None
    return kernel._process.kept.mark


async def assert_nothing_is_left(mark: str, places: Path) -> None:
    """No process of the kernel's, no socket and no connection file."""
    assert await eventually(lambda: not with_mark(mark))
    assert not leftovers(places)


def leftovers(places: Path) -> list[str]:
    """The folders of kernels that are still there."""
    return [path.name for path in (places / "run").glob("cellwright/k-*")]


@pytest.fixture
async def kernel() -> AsyncIterator[LocalKernel]:
    """A kernel of the test's own."""
    kernel = LocalKernel(launch())
    await kernel.start()
    yield kernel
    await kernel.shutdown(now=True)


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalKernel]:
    """A kernel for all tests of a module that leave it as it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CELLWRIGHT_RUNTIME_DIR", str(_short_folder(tmp_path_factory)))
        kernel = LocalKernel(launch())
        await kernel.start()
    yield kernel
    await kernel.shutdown(now=True)


def _short_folder(factory: pytest.TempPathFactory) -> Path:
    folder = factory.mktemp("k")
    folder.chmod(0o700)
    return folder
