"""A folder with a notebook in it, and a workspace there whose kernels have no process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from tests.unit.cli import samples
from tests.unit.workspace.memory import MemoryKernels, make_hub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder we are in, with the sample notebook `nb.ipynb`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


@pytest.fixture
def workspace(folder: Path) -> Iterator[Workspace]:
    with Workspace(folder, actor="test:ada") as workspace:
        yield workspace


@pytest.fixture
def kernels() -> MemoryKernels:
    return MemoryKernels()


@pytest.fixture
async def runner(folder: Path, kernels: MemoryKernels) -> AsyncIterator[Workspace]:
    """A workspace whose kernels live on the loop of the test; `memory.run` runs cells in it."""
    hub = make_hub(kernels, loop=asyncio.get_running_loop())
    yield Workspace(folder, actor="test:ada", hub=hub)
    await hub.end_kernels()
    hub.release_resources()
