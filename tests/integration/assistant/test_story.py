"""A whole chat in Agent mode on a notebook with a real kernel."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from cellwright.app.workspaces import open_chat_workspaces
from cellwright.assistant.models.scripted import ScriptedModel
from tests.engines import engine_of_its_own
from tests.unit.assistant import notebooks
from tests.unit.assistant.chatting import NOTEBOOK, Conversation, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(params=["in this process", "in the engine"])
async def chat(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Conversation]:
    (folder / NOTEBOOK).write_bytes(notebooks.PYTHON)
    made = Conversation(folder)
    with contextlib.ExitStack() as stack:
        if request.param == "in the engine":
            stack.enter_context(engine_of_its_own(monkeypatch))
            made.workspaces = open_chat_workspaces(folder, actor="chat:test", engine=True)
            made.chat.workspaces = made.workspaces
        yield made
        await made.workspaces.close()


async def test_ask_edit_run_look_and_undo(chat: Conversation) -> None:
    before = [cell.source for cell in chat.cells()]
    ran = await chat("run all cells")
    assert "Cell 2 (`double`): ok" in ran.text
    assert "84" in ran.text

    changed = await chat("update cell 1 to total = 50")
    assert changed.called == ["UpdateNotebookCell"]
    detection, _ = await chat.chat.look(chat.request("", "ask", selected=("double",)))
    assert detection.context is not None
    (double,) = detection.context.selected_cells
    assert double.run is not None
    assert (double.run.success, double.run.order) == (True, 2)
    assert "84" in (double.outputs or "")
    assert double.stale  # it used a value that is not there any more
    assert detection.context.kernel_language == "python"
    assert detection.context.kernel_id

    again = await chat("run cells 1 and 2")
    assert "100" in again.text
    shown = await chat("show the output of cell 2", "ask")
    assert "100" in shown.text

    steps = [
        call("AddNotebookCell", type="code", index=-1, content="1 / 0"),
        call("UpdateNotebookCell", cellId="double", content="twice = 0"),
    ]
    chat.chat.model = ScriptedModel(steps, call("RunNotebookCells", cellIds=["double", 3]), "ok")
    turn = await chat("try something")
    assert "ZeroDivisionError" in turn.answers[-1].text
    assert turn.answers[-1].is_error
    await chat.chat.undo()
    assert [cell.source for cell in chat.cells()] == ["total = 50", *before[1:]]
    assert "100" in str(chat.cells()[1].to_dict()["outputs"])
