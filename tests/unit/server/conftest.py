"""A server's chats in a folder with notebooks, kernels in memory, and models that follow scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cellwright.app import chats as app_chats
from cellwright.app.chats import Conversations
from cellwright.assistant.models.scripted import ScriptedModel
from tests.unit.assistant.conftest import empty_keyring, folder, kernels
from tests.unit.server.pages import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.memory_kernel import MemoryKernel

__all__ = ["empty_keyring", "folder", "kernels"]


@pytest.fixture
async def chats(folder: Path, kernels: list[MemoryKernel]) -> AsyncIterator[Conversations]:
    del kernels
    made = Conversations(str(folder), actor="chat:ada", engine=False)
    yield made
    await made.close()


@pytest.fixture
def page(chats: Conversations) -> Page:
    return Page(chats)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedModel]:
    """Have a model say what a script says."""

    def make(*steps: Any) -> ScriptedModel:
        model = ScriptedModel(*steps)
        monkeypatch.setattr(app_chats, "choose_model", lambda *_, **__: model)
        return model

    return make
