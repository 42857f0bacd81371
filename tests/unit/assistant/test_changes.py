"""A turn taken back: one step for each notebook, and nothing if one of them cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright import AsyncWorkspace
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.errors import Conflict, NothingToUndo
from tests.unit.assistant.chatting import NOTEBOOK, call

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.assistant.chatting import Conversation

    Make = Callable[..., Conversation]

OTHER = "other.ipynb"
STEPS = [
    call("UpdateNotebookCell", cellId="load", content="print 43"),
    call("UpdateNotebookCell", cellId="c0", content="print other", path=OTHER),
    call("UpdateNotebookCell", cellId="load", content="print 44"),
    call("AddNotebookCell", type="markdown", index=0, content="# New"),
    call("UpdateNotebookCell", cellId="c1", content="print more", path=OTHER),
]


async def kinds(chat: Conversation, name: str) -> list[str]:
    agent = await chat.workspaces.get("agent")
    return [entry.kind for entry in await agent.open(name).log()]


async def test_each_notebook_of_a_turn_is_taken_back_in_one_step(conversation: Make) -> None:
    chat = conversation(ScriptedModel(STEPS, "ok"))
    before = {name: (chat.folder / name).read_bytes() for name in (NOTEBOOK, OTHER)}
    turn = await chat("go")
    assert not any(answer.is_error for answer in turn.answers)
    changes = await chat.chat.undo()
    assert {name: (chat.folder / name).read_bytes() for name in before} == before
    assert await kinds(chat, NOTEBOOK) == ["undo", "edit", "edit", "edit"]
    assert await kinds(chat, OTHER) == ["undo", "edit", "edit"]
    assert changes.is_undone
    assert changes.notebooks == [NOTEBOOK, OTHER]


async def test_a_conflict_in_one_notebook_leaves_the_others_as_they_were(
    conversation: Make,
) -> None:
    chat = conversation(ScriptedModel(STEPS, "ok"))
    await chat("go")
    async with AsyncWorkspace(chat.folder, cwd=str(chat.folder), actor="test:bob") as other:
        theirs = other.open(OTHER)
        await theirs.edit([{"op": "replace", "cell": "c1", "source": "print bob"}])
        now = {name: (chat.folder / name).read_bytes() for name in (NOTEBOOK, OTHER)}
        with pytest.raises(Conflict):
            await chat.chat.undo()
        assert {name: (chat.folder / name).read_bytes() for name in now} == now
        assert chat.source("load") == "print 44"
        assert not chat.chat.turns[0].is_undone
        await theirs.undo()
    await chat.chat.undo()
    assert chat.source("load") == "print 42"
    assert [cell.source for cell in chat.cells(OTHER)][:2] == ["print 0", "print 1"]
    with pytest.raises(NothingToUndo):
        await chat.chat.undo()


async def test_cells_are_kept_and_rejected_one_by_one(conversation: Make) -> None:
    steps = [each for each in STEPS if "path" not in each.arguments]
    chat = conversation(ScriptedModel(steps, "ok"))
    turn = await chat("go")
    changes = turn.done.changes
    assert changes is not None
    _, added = [cell for _, cell in changes.cells]
    await chat.chat.undo(changes, cells=[added])
    assert len(chat.cells()) == 7
    assert chat.source("load") == "print 44"
    assert changes.cells == [(NOTEBOOK, "load")]
    await chat.chat.undo(changes, cells=["load"])
    assert chat.source("load") == "print 42"
    assert await kinds(chat, NOTEBOOK) == ["undo", "undo", "edit", "edit", "edit"]
    assert changes.is_undone
