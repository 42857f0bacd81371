"""Inline in a cell: an answer proposes a source, and the person accepts, leaves or refines it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.errors import Conflict
from tests.unit.assistant.chatting import NOTEBOOK

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.assistant.changes import Proposal
    from tests.unit.assistant.chatting import Conversation

    Make = Callable[..., Conversation]

ANSWER = "A first idea:\n\n```\nno\n```\n\nBetter:\n\n```python\nprint 1\n\nprint 2\n```\nDone."


async def propose(chat: Conversation, prompt: str = "mend it") -> Proposal | None:
    turn = await chat(prompt, "ask", editing="load", attached=(), location="cell")
    assert turn.done.changes is None
    return turn.done.proposal


async def test_the_last_block_is_proposed_as_a_diff_and_changes_nothing(
    conversation: Make,
) -> None:
    chat = conversation(ScriptedModel(ANSWER))
    proposal = await propose(chat)
    assert proposal is not None
    assert proposal.new == "print 1\n\nprint 2"
    assert proposal.diff.splitlines()[2:] == [
        "@@ -1 +1,3 @@",
        "-print 42",
        "+print 1",
        "+",
        "+print 2",
    ]
    assert proposal.to_json()["cell"] == "load"
    assert chat.source("load") == "print 42"


async def test_accepted_it_is_the_source_and_can_be_undone(conversation: Make) -> None:
    chat = conversation(ScriptedModel(ANSWER))
    before = chat.cells()[1].to_dict()
    proposal = await propose(chat)
    assert proposal is not None
    changes = await chat.chat.accept(proposal)
    assert changes.cells == [(NOTEBOOK, "load")]
    assert chat.source("load") == "print 1\n\nprint 2"
    await chat.chat.undo()
    assert chat.cells()[1].to_dict() == before


async def test_a_cell_that_was_changed_meanwhile_is_not_overwritten(conversation: Make) -> None:
    chat = conversation(ScriptedModel(ANSWER))
    proposal = await propose(chat)
    assert proposal is not None
    agent = await chat.workspaces.get("agent")
    book = agent.open(NOTEBOOK)
    await book.edit([{"op": "replace", "cell": "load", "source": "mine"}])
    with pytest.raises(Conflict):
        await chat.chat.accept(proposal)
    assert chat.source("load") == "mine"


async def test_a_change_of_another_cell_is_no_hindrance(conversation: Make) -> None:
    chat = conversation(ScriptedModel(ANSWER))
    proposal = await propose(chat)
    assert proposal is not None
    agent = await chat.workspaces.get("agent")
    await agent.open(NOTEBOOK).edit([{"op": "insert", "source": "x", "at": 0}])
    await chat.chat.accept(proposal)
    assert chat.source("load") == "print 1\n\nprint 2"


async def test_it_is_refined_by_asking_again(conversation: Make) -> None:
    model = ScriptedModel(ANSWER, "```\nprint 3\n```")
    chat = conversation(model)
    await propose(chat)
    refined = await propose(chat, "shorter")
    assert refined is not None
    assert refined.new == "print 3"
    assert ANSWER in [message.text for message in model.requests[-1].messages]


@pytest.mark.parametrize(
    "answer", ["No code.", "```\nprint 42\n```", "``` inline ```", "```\nnever ends"]
)
async def test_an_answer_with_nothing_new_proposes_nothing(answer: str, conversation: Make) -> None:
    assert await propose(conversation(ScriptedModel(answer))) is None


async def test_in_the_chat_pane_a_block_is_only_shown(conversation: Make) -> None:
    turn = await conversation(ScriptedModel(ANSWER))("mend it", "ask", editing="load")
    assert turn.done.proposal is None


async def test_a_longer_fence_holds_a_shorter_one(conversation: Make) -> None:
    proposal = await propose(conversation(ScriptedModel("````\na\n```\nb\n```\n````")))
    assert proposal is not None
    assert proposal.new == "a\n```\nb\n```"
