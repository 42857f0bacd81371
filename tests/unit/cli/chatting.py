"""Chats over the command line for tests: in this process, with kernels in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import read
from cellwright.app import chats
from cellwright.assistant.models.model import ToolCall
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.kernel.factory import KernelFactory
from cellwright.kernel.transport import Launch
from tests.memory_kernel import MemoryKernel
from tests.unit.assistant import notebooks
from tests.unit.cli.calling import call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright.kernel.factory import KernelRequest

    Use = Callable[..., ScriptedModel]

NOTEBOOK_TOOLS = ["GetNotebookCells", "GetCellOutputs"]
ALL_TOOLS = [*NOTEBOOK_TOOLS, "RunNotebookCells", "AddNotebookCell", "UpdateNotebookCell"]


@dataclass(frozen=True)
class Said:
    """How a chat ended, what it said, and the events that it told of."""

    code: int
    text: str
    err: str
    events: list[dict[str, Any]]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    def only(self, kind: str) -> dict[str, Any]:
        (found,) = self.all(kind)
        return found


def chat(*words: str | Path, stdin: str = "") -> Said:
    """`cellwright chat` with these words; with `--json` its events are read."""
    answer = call("chat", *words, stdin=stdin)
    lines = answer.text.splitlines() if "--json" in words else []
    return Said(answer.code, answer.text, answer.err, [json.loads(line) for line in lines])


def tool(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(f"call-{name}", name, arguments)


def source(ref: str) -> str:
    return read("sales.ipynb").cell(ref).source


@pytest.fixture
def chat_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder we are in, with `sales.ipynb` and `other.ipynb`, and kernels in memory."""

    async def start(_: KernelFactory, order: KernelRequest) -> MemoryKernel:
        kernel = MemoryKernel(Launch(order.cwd, order.env))
        await kernel.start()
        return kernel

    monkeypatch.setattr(KernelFactory, "start", start)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "ada")
    (tmp_path / "sales.ipynb").write_bytes(notebooks.SALES)
    (tmp_path / "other.ipynb").write_bytes(notebooks.many(30))
    (tmp_path / "notes.txt").write_text("a note\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Have a model say what a script says."""

    def make(*steps: Any) -> ScriptedModel:
        model = ScriptedModel(*steps)
        monkeypatch.setattr(chats, "choose_model", lambda *_, **__: model)
        return model

    return make
