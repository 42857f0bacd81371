"""A folder with notebooks, workspaces in every mode over it, and kernels without a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cellwright import AsyncWorkspace
from tests.memory_kernel import start_in_memory
from tests.unit.assistant import notebooks
from tests.unit.assistant.chatting import Conversation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.memory_kernel import MemoryKernel


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder we are in, with the notebooks `sales.ipynb` and `other.ipynb`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.ipynb").write_bytes(notebooks.SALES)
    (tmp_path / "other.ipynb").write_bytes(notebooks.many(30))
    return tmp_path


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[MemoryKernel]:
    """Every kernel that is started is one in memory, and is put down here."""
    return start_in_memory(monkeypatch)


class MemoryKeyring:
    """A keyring that is gone with its test."""

    def __init__(self) -> None:
        self.keys: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, account: str) -> str | None:
        return self.keys.get((service, account))

    def set_password(self, service: str, account: str, key: str) -> None:
        self.keys[service, account] = key

    def delete_password(self, service: str, account: str) -> None:
        del self.keys[service, account]


@pytest.fixture
def empty_keyring(monkeypatch: pytest.MonkeyPatch) -> MemoryKeyring:
    """The keyring of this process, so that nobody's real one is asked."""
    import keyring.core

    memory = MemoryKeyring()
    monkeypatch.setattr(keyring.core, "_keyring_backend", memory)
    return memory


@pytest.fixture
async def workspace(folder: Path, kernels: list[MemoryKernel]) -> AsyncIterator[AsyncWorkspace]:
    del kernels
    async with AsyncWorkspace(folder, cwd=str(folder), actor="test:ada") as workspace:
        yield workspace


@pytest.fixture
async def conversation(
    folder: Path, kernels: list[MemoryKernel]
) -> AsyncIterator[Callable[..., Conversation]]:
    """Makes chats in the folder."""
    del kernels
    made: list[Conversation] = []

    def make(*args: Any, **options: Any) -> Conversation:
        made.append(Conversation(folder, *args, **options))
        return made[-1]

    yield make
    for each in made:
        await each.workspaces.close()
