"""The loop: what a model gets, what becomes of its calls, and how a turn is taken back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import AsyncWorkspace, read
from cellwright.assistant.chat import (
    MOST_STEPS,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEndEvent,
)
from cellwright.assistant.models.model import TextDelta
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.assistant.permissions import Permissions
from cellwright.assistant.prompt_files import PromptFolder
from cellwright.errors import Conflict, InvalidEdit, NothingToUndo
from cellwright.tools.profiles import PROFILES
from cellwright.tools.profiles.positron import POSITRON
from tests.unit.assistant.chatting import NOTEBOOK, call
from tests.unit.tools.support import book

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cellwright.assistant.models.model import ModelEvent, ModelRequest
    from cellwright.tools.tool import ToolCaller, ToolResult
    from tests.unit.assistant.chatting import Conversation

    Make = Callable[..., Conversation]

UPDATE = call("UpdateNotebookCell", cellId="load", content="print 43")
RUN = call("RunNotebookCells", cellIds=["load"])


# --- What a model gets ---------------------------------------------------------------------------


async def test_the_state_of_the_notebook_is_a_message_right_after_the_system_prompt(
    conversation: Make,
) -> None:
    model = ScriptedModel("first", "second")
    chat = conversation(model)
    await chat("one", "ask")
    await chat("two", "ask", selected=("sum",))
    first, second = model.requests
    assert [message.role for message in first.messages] == ["system", "user", "user"]
    assert first.messages[0] == second.messages[0]  # a model can cache it
    assert [message.text for message in second.messages[2:]] == ["one", "first", "two"]
    for request in (first, second):
        assert request.messages[1].text.startswith("<notebook-state>")
        assert "<notebook-info" not in request.messages[0].text
    assert 'selection="selected"' in second.messages[1].text


async def test_a_setting_puts_it_into_the_system_prompt(conversation: Make) -> None:
    model = ScriptedModel("ok")
    await conversation(model, context_in_system_prompt=True)("one", "ask")
    (request,) = model.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].text.endswith("</notebook-state>")


async def test_every_tool_comes_with_its_schema(conversation: Make) -> None:
    model = ScriptedModel("ok")
    await conversation(model)("one")
    for tool in model.requests[0].tools:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"


async def test_inline_in_a_cell_there_are_reading_tools_and_a_prompt_of_its_own(
    conversation: Make,
) -> None:
    model = ScriptedModel(RUN, "ok")
    turn = await conversation(model)("mend it", editing="plot", attached=(), location="cell")
    assert turn.begun.tools == ["GetNotebookCells", "GetCellOutputs"]
    assert turn.begun.prompts == ["assistant.md", "inline.md"]
    assert 'selection="active"' in model.requests[0].messages[1].text
    assert turn.answers[0].data["code"] == "TOOL_UNAVAILABLE"
    assert "chat pane" in turn.answers[0].text


async def test_results_go_back_to_the_model_until_it_calls_no_more(conversation: Make) -> None:
    model = ScriptedModel(["Let me see.", call("GetCellOutputs", cellId="load")], "It says 42.")
    turn = await conversation(model)("what?", "ask")
    assert [event.kind for event in turn.events] == [
        "begun",
        "text",
        "tool_call",
        "tool_result",
        "text",
        "done",
    ]
    asked, answered = model.requests[1].messages[-2:]
    assert (asked.role, asked.text, asked.calls) == ("assistant", "Let me see.", tuple(turn.calls))
    assert (answered.role, answered.call_id) == ("tool", turn.calls[0].id)
    assert "42" in answered.text
    assert turn.done.text == "It says 42."
    json.dumps([event.to_json() for event in turn.events])


async def test_unknown_tools_and_bad_parameters_are_answered(conversation: Make) -> None:
    model = ScriptedModel(
        [call("RunCell"), call("RunNotebookCells"), call("UpdateNotebookCell", cellId="load", x=1)],
        "sorry",
    )
    chat = conversation(model)
    turn = await chat("go")
    assert turn.answers[0].data["code"] == "UNKNOWN_TOOL"
    assert all(answer.is_error for answer in turn.answers)
    assert chat.asked == []  # nobody is asked about what cannot be done


async def test_without_a_notebook_its_tools_say_what_is_missing(conversation: Make) -> None:
    turn = await conversation(ScriptedModel(RUN, "ok"))("go", attached=())
    assert turn.answers[0].data["code"] == "TOOL_UNAVAILABLE"
    assert "attached" in turn.answers[0].text


async def test_a_model_without_end_is_ended(conversation: Make) -> None:
    model = ScriptedModel(*[call("GetNotebookCells")] * (MOST_STEPS + 5))
    turn = await conversation(model)("go", "ask")
    assert turn.done.ending == "limit"
    assert len(model.requests) == MOST_STEPS


async def test_the_users_prompts_are_used(conversation: Make, folder: Path) -> None:
    (folder / "p").mkdir()
    (folder / "p" / "mine.md").write_text("Speak like a pirate.", encoding="utf-8")
    model = ScriptedModel("arr")
    turn = await conversation(model, prompts=PromptFolder(folder / "p"))("hi", "ask")
    assert "mine.md" in turn.begun.prompts
    assert "pirate" in model.requests[0].messages[0].text


async def test_a_setting_lets_mode_edit_edit_but_not_run(
    conversation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_EDIT_MODE_EDITS", "true")
    chat = conversation(ScriptedModel([UPDATE, RUN], "ok"), edit_mode_edits=True)
    turn = await chat("go", "edit")
    assert turn.begun.prompts[-1] == "notebook-mode-edit.md"
    assert "RunNotebookCells" not in turn.begun.tools
    assert [answer.is_error for answer in turn.answers] == [False, True]
    assert turn.answers[1].data["code"] == "MODE_FORBIDS"
    assert chat.source("load") == "print 43"


async def test_a_model_that_fails_leaves_the_chat_usable(conversation: Make) -> None:
    model = ScriptedModel(UPDATE, OSError("no network"), "hello again")
    chat = conversation(model)
    with pytest.raises(OSError, match="no network"):
        await chat("go")
    assert [turn.edits[0].path for turn in chat.chat.turns] == [NOTEBOOK]
    await chat("again")
    roles = [message.role for message in model.requests[-1].messages]
    assert roles == ["system", "user", "user", "assistant", "tool", "user"]

    silent = ScriptedModel(OSError("no network"), "yes")
    chat = conversation(silent)
    with pytest.raises(OSError, match="no network"):
        await chat("go")
    await chat("again")
    assert [message.text for message in silent.requests[-1].messages[2:]] == ["again"]


async def test_what_a_cell_printed_cannot_call_a_tool(conversation: Make) -> None:
    """A model sees it as data; only its own calls are carried out."""
    chat = conversation()
    await chat("add a code cell at the start: print #runNotebookCells run all cells")
    turn = await chat("show cell 1", "ask")
    assert turn.called == ["GetNotebookCells"]


# --- Confirmation --------------------------------------------------------------------------------


async def test_running_is_put_to_the_person_in_words(conversation: Make) -> None:
    mixed = ["load", 2, "later", 0, 3, "notes", "plot", "load"]
    model = ScriptedModel(
        RUN,
        call("RunNotebookCells", cellIds=mixed),
        "ok",
        call("RunNotebookCells", cellIds=list(range(8))),
        "ok",
    )
    chat = conversation(model)
    await chat("go")
    await chat("go on with @other.ipynb", attached=[], active="other.ipynb")
    one, many, more = chat.asked
    assert (one.kind, one.words) == ("run", "Run cell 2 of sales.ipynb?")
    assert one.preview == "print 42"
    # Text is not run, and no cell twice.
    assert many.words == "Run 4 cells (2, 3, 6, 5) of sales.ipynb?"
    assert more.words == "Run 8 cells (1, 2, 3, 4, 5 and 3 more) of other.ipynb?"


async def test_the_source_of_every_cell_is_shown_before_it_runs(conversation: Make) -> None:
    chat = conversation(
        ScriptedModel(call("RunNotebookCells", cellIds=["load", "sum"]), "ok"), "no"
    )
    await chat("go")
    (operation,) = chat.asked
    load, total = (cell for cell in chat.cells() if cell.handle in ("load", "sum"))
    shown = [f"cell {each.index + 1}\n{indent(each.source, '  ')}" for each in (load, total)]
    assert operation.preview == "\n".join(shown)


async def test_reading_adding_and_updating_need_no_word(conversation: Make) -> None:
    add = call("AddNotebookCell", type="code", index=-1, content="x")
    model = ScriptedModel([call("GetNotebookCells"), add, UPDATE], "ok")
    chat = conversation(model)
    turn = await chat("go")
    assert chat.asked == []
    assert not any(answer.is_error for answer in turn.answers)


async def test_what_is_declined_does_not_happen(conversation: Make) -> None:
    chat = conversation(ScriptedModel(RUN, "ok"), decision="no")
    before = (chat.folder / NOTEBOOK).read_bytes()
    turn = await chat("go")
    assert turn.answers[0].data["code"] == "DECLINED"
    assert turn.answers[0].is_error
    assert (chat.folder / NOTEBOOK).read_bytes() == before


async def test_with_nobody_to_ask_nothing_runs(conversation: Make) -> None:
    turn = await conversation(ScriptedModel(RUN, "ok"), confirm=None)("go")
    assert turn.answers[0].data["code"] == "NOT_CONFIRMED"


async def test_once_is_asked_again_and_for_this_chat_is_not(conversation: Make) -> None:
    chat = conversation(ScriptedModel([RUN, RUN], "ok", RUN, "ok"))
    await chat("go")
    assert len(chat.asked) == 2
    chat.decision = "chat"
    await chat("go")
    assert len(chat.asked) == 3
    chat.chat.model = ScriptedModel([RUN, RUN], "ok")
    turn = await chat("go")
    assert len(chat.asked) == 3
    assert not any(answer.is_error for answer in turn.answers)
    other = call("RunNotebookCells", cellIds=["c0"], path="other.ipynb")
    chat.chat.model = ScriptedModel(other, "ok")
    await chat("go")
    assert chat.asked[-1].words == "Run cell 1 of other.ipynb?"


async def test_always_for_this_notebook_outlives_the_chat(conversation: Make, folder: Path) -> None:
    store = folder / "state" / "allowed.json"
    first = conversation(ScriptedModel(RUN, "ok"), "notebook", permissions=Permissions(store))
    await first("go")
    await first.workspaces.close()  # a notebook's kernel has one owner
    second = conversation(ScriptedModel([RUN], "ok"), "no", permissions=Permissions(store))
    turn = await second("go")
    assert second.asked == []
    assert not turn.answers[0].is_error
    await second.workspaces.close()
    store.unlink()  # as the documents say
    third = conversation(ScriptedModel(RUN, "ok"), "no", permissions=Permissions(store))
    await third("go")
    assert len(third.asked) == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "\xff"])
def test_permissions_that_cannot_be_read_allow_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "allowed.json"
    path.write_text(text, encoding="latin-1")
    permissions = Permissions(path)
    assert not permissions.allows("run", "a")
    permissions.grant("run", "a")
    assert Permissions(path).allows("run", "a")
    assert not Permissions(path).allows("delete", "a")


async def test_deleting_is_put_to_the_person_whatever_the_tool(conversation: Make) -> None:
    edits = [{"op": "delete", "cell": "plot"}, {"op": "delete", "cell": 0}]
    steps = [
        call("notebook_edit", path=NOTEBOOK, edits=edits),
        call("notebook_edit", path=NOTEBOOK, edits=[{"op": "replace", "cell": 1, "source": "x"}]),
        call("notebook", notebook_path=NOTEBOOK, action="delete", cell_index=1),
        call("splice_cell_range", path=NOTEBOOK, start=1, delete_count=2),
    ]
    chat = conversation(ScriptedModel(steps, "ok"), "no", tools=PROFILES["all"])
    turn = await chat("go")
    assert [operation.words for operation in chat.asked] == [
        "Delete 2 cells (5, 1) of sales.ipynb?",
        "Delete cell 2 of sales.ipynb?",
        "Delete 2 cells (2, 3) of sales.ipynb?",
    ]
    assert [answer.is_error for answer in turn.answers] == [True, False, True, True]
    assert len(chat.cells()) == 7


async def test_code_without_a_notebook_is_shown_before_it_runs(conversation: Make) -> None:
    evaluate = call("eval", cells=[{"code": "print 1"}])
    chat = conversation(ScriptedModel(evaluate, "ok"), "no", tools=PROFILES["native"])
    await chat("go", attached=())
    (operation,) = chat.asked
    assert operation.kind == "run"
    assert "print 1" in operation.preview


async def test_a_path_that_leads_out_is_refused(conversation: Make, tmp_path: Path) -> None:
    (tmp_path.parent / "out.ipynb").write_bytes((tmp_path / NOTEBOOK).read_bytes())
    steps = [
        call("RunNotebookCells", cellIds=["load"], path="../out.ipynb"),
        call("UpdateNotebookCell", cellId="load", content="evil", path="../out.ipynb"),
    ]
    chat = conversation(ScriptedModel(steps, "ok"))
    turn = await chat("go")
    assert [answer.data["code"] for answer in turn.answers] == ["OUTSIDE_ROOT"] * 2
    assert read(tmp_path.parent / "out.ipynb").cell("load").source == "print 42"


# --- Change sets ---------------------------------------------------------------------------------


async def test_all_edits_of_a_turn_are_undone_as_one_with_their_outputs(
    conversation: Make,
) -> None:
    add = call("AddNotebookCell", type="markdown", index=0, content="# New")
    model = ScriptedModel([UPDATE, add], RUN, "ok")
    chat = conversation(model)
    before = [cell.to_dict() for cell in chat.cells()]
    turn = await chat("go")
    assert chat.source("load") == "print 43"
    assert len(chat.cells()) == 8
    assert turn.done.changes is not None
    assert len(turn.done.changes.edits) == 2
    assert turn.done.to_json()["changes"]["undone"] is False
    diff = await turn.done.changes.diff(await chat.workspaces.get("ask"))
    assert "+print 43" in diff

    undone = await chat.chat.undo()
    assert undone is turn.done.changes
    assert [cell.to_dict() for cell in chat.cells()] == before
    with pytest.raises(NothingToUndo):
        await chat.chat.undo()


async def test_turns_are_undone_the_newest_first(conversation: Make) -> None:
    again = call("UpdateNotebookCell", cellId="load", content="print 44")
    chat = conversation(ScriptedModel(UPDATE, "ok", again, "ok"))
    await chat("one")
    await chat("two", selected=("load",))
    await chat.chat.undo()
    assert chat.source("load") == "print 43"
    await chat.chat.undo()
    assert chat.source("load") == "print 42"


async def test_a_turn_that_changed_nothing_is_no_change_set(conversation: Make) -> None:
    chat = conversation(ScriptedModel(call("GetNotebookCells"), "ok"))
    turn = await chat("go")
    assert turn.done.changes is None
    with pytest.raises(NothingToUndo):
        await chat.chat.undo()


async def test_what_others_did_elsewhere_stays_and_a_conflict_undoes_nothing(
    conversation: Make, folder: Path
) -> None:
    update = call("UpdateNotebookCell", cellId="sum", content="result 1")
    chat = conversation(ScriptedModel([UPDATE, update], "ok"))
    await chat("go")
    async with AsyncWorkspace(folder, cwd=str(folder), actor="test:bob") as other:
        theirs = other.open(NOTEBOOK)
        await theirs.edit([{"op": "replace", "cell": "later", "source": "print bob"}])
        await theirs.edit([{"op": "replace", "cell": "load", "source": "print bob"}])
        with pytest.raises(Conflict):
            await chat.chat.undo()
        assert chat.source("load") == "print bob"
        assert chat.source("sum") == "result 1"  # and not half of it
        await theirs.undo()
    await chat.chat.undo()
    assert chat.source("load") == "print 42"
    assert chat.source("sum") == "result 42"
    assert chat.source("later") == "print bob"


async def test_a_turn_can_be_undone_for_one_cell(conversation: Make) -> None:
    steps = [
        UPDATE,
        call("UpdateNotebookCell", cellId="sum", content="result 1"),
        call("UpdateNotebookCell", cellId="load", content="print 44"),
    ]
    chat = conversation(ScriptedModel(steps, "ok"))
    turn = await chat("go")
    changes = turn.done.changes
    assert changes is not None
    assert changes.cells == [(NOTEBOOK, "load"), (NOTEBOOK, "sum")]
    await chat.chat.undo(cells=["load"])
    assert (chat.source("load"), chat.source("sum")) == ("print 42", "result 1")
    assert changes.cells == [(NOTEBOOK, "sum")]
    assert not changes.is_undone
    with pytest.raises(NothingToUndo):
        await chat.chat.undo(cells=["load"])
    await chat.chat.undo()
    assert chat.source("sum") == "result 42"
    assert changes.is_undone


async def test_a_change_of_several_cells_is_undone_for_all_of_them(conversation: Make) -> None:
    edits = [{"op": "replace", "cell": name, "source": "x"} for name in ("load", "sum")]
    edit = call("notebook_edit", path=NOTEBOOK, edits=edits)
    chat = conversation(ScriptedModel(edit, "ok"), tools=PROFILES["native"])
    await chat("go")
    with pytest.raises(InvalidEdit):
        await chat.chat.undo(cells=["load"])
    assert chat.source("load") == "x"
    await chat.chat.undo(cells=["load", "sum"])
    assert (chat.source("load"), chat.source("sum")) == ("print 42", "result 42")


async def test_what_was_undone_elsewhere_is_passed_over(conversation: Make) -> None:
    update = call("UpdateNotebookCell", cellId="sum", content="result 1")
    chat = conversation(ScriptedModel([UPDATE, update], "ok"))
    await chat("go")
    agent = await chat.workspaces.get("agent")
    await agent.open(NOTEBOOK).undo()
    await chat.chat.undo()
    assert (chat.source("load"), chat.source("sum")) == ("print 42", "result 42")


async def test_an_undo_is_the_persons_whatever_the_mode(conversation: Make) -> None:
    chat = conversation(ScriptedModel(UPDATE, "ok", "hi"))
    await chat("go")
    await chat("hello", "ask")
    await chat.chat.undo()
    assert chat.source("load") == "print 42"


# --- Breaking off --------------------------------------------------------------------------------


async def test_a_turn_that_is_broken_off_keeps_its_edits_for_undo(conversation: Make) -> None:
    chat = conversation(ScriptedModel([UPDATE, RUN], "never"))
    async with contextlib.aclosing(chat.chat.send(chat.request("go"))) as events:
        async for event in events:
            if isinstance(event, ToolResultEvent):
                break
    assert chat.source("load") == "print 43"
    await chat.chat.undo()
    assert chat.source("load") == "print 42"


async def test_a_turn_that_is_broken_off_closes_the_stream_of_the_model(conversation: Make) -> None:
    class Endless:
        name = "endless"
        is_closed = False

        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            del request
            try:
                while True:
                    yield TextDelta("and ")
            finally:
                self.is_closed = True

    model = Endless()
    chat = conversation(model)
    async with contextlib.aclosing(chat.chat.send(chat.request("go", "ask"))) as events:
        async for event in events:
            if isinstance(event, TextEvent):
                break
    assert model.is_closed
    chat.chat.model = ScriptedModel("ok")
    assert (await chat("again", "ask")).text == "ok"


async def test_a_cancelled_run_is_stopped(conversation: Make, folder: Path) -> None:
    chat = conversation(ScriptedModel(call("RunNotebookCells", cellIds=[0]), "never"))
    (folder / NOTEBOOK).write_bytes(book("sleep 60"))
    began = asyncio.Event()
    chat.chat.progress = lambda event: began.set() if event.get("status") == "running" else None
    task = asyncio.ensure_future(chat("go"))
    async with asyncio.timeout(20):
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    agent = await chat.workspaces.get("agent")
    assert [run.ended is not None for run in await agent.runs()] == [True]


async def test_a_run_that_outlasts_its_tool_is_waited_for(
    conversation: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellwright.tools.profiles.positron.DEADLINE", 0.01)
    (folder / NOTEBOOK).write_bytes(book("print first\nsleep 0.3", "print second", "raise E x"))
    run = call("RunNotebookCells", cellIds=[0, 1])
    chat = conversation(ScriptedModel(run, call("RunNotebookCells", cellIds=[2]), "ok"))
    turn = await chat("go")
    good, bad = turn.answers
    assert good.data["done"] is True
    assert [row["status"] for row in good.data["executions"]] == ["ok", "ok"]
    assert "second" in good.text
    assert not good.is_error
    assert bad.is_error


async def test_breaking_off_a_run_that_outlasts_its_tool_stops_it(
    conversation: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellwright.tools.profiles.positron.DEADLINE", 0.01)
    (folder / NOTEBOOK).write_bytes(book("sleep 60"))
    attached = asyncio.Event()
    attach = AsyncWorkspace.attach

    async def noticed(self: AsyncWorkspace, run: str) -> Any:
        attached.set()
        return await attach(self, run)

    monkeypatch.setattr(AsyncWorkspace, "attach", noticed)
    chat = conversation(ScriptedModel(call("RunNotebookCells", cellIds=[0]), "never"))
    task = asyncio.ensure_future(chat("go"))
    async with asyncio.timeout(20):
        await attached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    agent = await chat.workspaces.get("agent")
    assert [run.ended is not None for run in await agent.runs()] == [True]


async def test_an_edit_that_was_under_way_when_a_turn_was_broken_off_can_be_undone(
    conversation: Make,
) -> None:
    began, go = asyncio.Event(), asyncio.Event()
    tool = next(tool for tool in POSITRON if tool.name == "UpdateNotebookCell")

    async def slow(caller: ToolCaller, params: Any) -> ToolResult:
        began.set()
        await go.wait()
        return await tool.call(caller, params)

    chat = conversation(ScriptedModel(UPDATE, "never"), tools=[replace(tool, call=slow)])
    task = asyncio.ensure_future(chat("go"))
    async with asyncio.timeout(20):
        await began.wait()
        task.cancel()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert chat.source("load") == "print 43"
    await chat.chat.undo()
    assert chat.source("load") == "print 42"


async def test_a_run_of_cells_that_are_not_there_is_asked_about_as_it_was_written(
    conversation: Make,
) -> None:
    run = call("RunNotebookCells", cellIds=["gone", "load"])
    chat = conversation(ScriptedModel(run, "ok"))
    turn = await chat("go")
    assert chat.asked[0].words == "Run notebook cells of sales.ipynb?"
    assert "gone" in chat.asked[0].preview
    assert turn.answers[0].is_error


async def test_a_bug_in_a_tool_does_not_end_the_chat(
    conversation: Make, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> ToolResult:
        raise ZeroDivisionError("oops")

    tool = replace(POSITRON[0], call=broken)
    chat = conversation(ScriptedModel(call("GetNotebookCells"), "ok"), tools=(tool,))
    turn = await chat("go", "ask")
    assert turn.answers[0].data["code"] == "INTERNAL_ERROR"
    assert turn.done.text == "ok"
    assert "oops" in caplog.text


@pytest.mark.parametrize("path", ["a\0b.ipynb", "", "x" * 5000, "\ud800", 7, ["a"], None])
async def test_no_path_that_a_model_makes_up_ends_the_chat(conversation: Make, path: Any) -> None:
    calls = [
        call("RunNotebookCells", cellIds=["load"], path=path),
        call("GetNotebookCells", path=path),
        call("UpdateNotebookCell", cellId="load", content="x", path=path),
    ]
    chat = conversation(ScriptedModel(calls, "ok"))
    turn = await chat("go")
    assert turn.done.text == "ok"
    assert all(answer.is_error for answer in turn.answers) == bool(path)


async def test_two_requests_take_turns(conversation: Make) -> None:
    def waits(request: ModelRequest) -> str:
        return request.situation.request.prompt

    chat = conversation(ScriptedModel(waits, waits))
    turns = await asyncio.gather(chat("one", "ask"), chat("two", "ask"))
    assert [turn.text for turn in turns] == ["one", "two"]
    assert [message.text for message in chat.chat.history] == ["one", "one", "two", "two"]


def test_events_are_data() -> None:
    assert TextEvent("x").to_json() == {"event": "text", "text": "x"}
    assert TurnEndEvent().to_json() == {
        "event": "done",
        "ending": "answered",
        "text": "",
        "changes": None,
        "proposal": None,
        "usage": {"input": 0, "output": 0, "cached": 0, "cost": 0.0},
    }
    assert ToolCallEvent(RUN).to_json()["arguments"] == {"cellIds": ["load"]}
