"""The test plans of notebook mode, step by step, over the real loop on a notebook on disk.

Each part stands for one plan. What a model is given is looked at with a scripted one; what comes
of a sentence, with the one that is a program.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest

from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.assistant.requests import FileReference, ToolAttachment
from tests.unit.assistant.chatting import Conversation, call

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.workspace.api.requests import Mode

    Make = Callable[..., Conversation]

READING = ["GetNotebookCells", "GetCellOutputs"]
ALL = [*READING, "RunNotebookCells", "AddNotebookCell", "UpdateNotebookCell"]
MODES: tuple[Mode, ...] = ("ask", "edit", "agent")
NOT_AGENT: tuple[Mode, ...] = ("ask", "edit")


async def given(make: Make, mode: Mode, **more: object) -> tuple[list[str], str]:
    """The tools that a model gets, and all that it is told before the prompt."""
    model = ScriptedModel("ok")
    await make(model)("hello", mode, **more)
    (request,) = model.requests
    names = [tool["name"] for tool in request.tools]
    return names, "\n".join(message.text for message in request.messages[:-1])


# --- Test 1: Ask mode ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_only_reading_tools_appear_in_ask_and_edit(conversation: Make, mode: Mode) -> None:
    tools, _ = await given(conversation, mode)
    assert tools == READING


@pytest.mark.parametrize("mode", MODES)
async def test_the_model_is_told_of_the_selected_cell_with_its_status(
    conversation: Make, mode: Mode
) -> None:
    _, told = await given(conversation, mode, selected=("plot",))
    section = re.findall(r"<selected-cells>(.*?)</selected-cells>", told, re.DOTALL)[-1]
    assert 'id="plot"' in section
    assert 'selection="selected"' in section
    assert 'order="4"' in section
    assert 'last-run="failed"' in section
    assert "raise NameError y" in section


async def test_what_does_cell_1_do(conversation: Make) -> None:
    turn = await conversation()("What does cell 1 do?", "ask")
    assert turn.called == ["GetNotebookCells"]
    assert turn.calls[0].arguments == {"cellIds": [0]}
    assert "Cell 1 (`intro`) is a markdown cell" in turn.text
    assert "What we sold." in turn.text


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_run_this_cell_suggests_agent_mode(conversation: Make, mode: Mode) -> None:
    chat = conversation()
    before = (chat.folder / "sales.ipynb").read_bytes()
    turn = await chat("Run this cell", mode, selected=("load",))
    assert turn.called == []
    assert f"in {mode.capitalize()} mode" in turn.text
    assert "Switch to Agent mode" in turn.text
    assert (chat.folder / "sales.ipynb").read_bytes() == before


@pytest.mark.parametrize("mode", MODES)
async def test_a_reference_shows_all_cells(conversation: Make, mode: Mode) -> None:
    turn = await conversation()("#getNotebookCells show me all cells", mode)
    assert turn.called == ["GetNotebookCells"]
    for number, cell in enumerate(("intro", "load", "sum", "results", "plot", "later", "notes"), 1):
        assert f"**Cell {number}** (`{cell}`)" in turn.text


# --- Test 2: Edit mode ---------------------------------------------------------------------------


async def test_show_me_the_output_of_cell_2(conversation: Make) -> None:
    turn = await conversation()("Show me the output of cell 2", "edit")
    assert turn.called == ["GetCellOutputs"]
    assert turn.calls[0].arguments == {"cellId": 1}
    assert "42" in turn.text


async def test_update_cell_3_suggests_agent_mode(conversation: Make) -> None:
    turn = await conversation()("Update cell 3 to add error handling", "edit")
    assert turn.called == []
    assert turn.text == "I cannot change cells in Edit mode. Switch to Agent mode to change cells."


@pytest.mark.parametrize("mode", MODES)
async def test_a_reference_shows_the_outputs_of_a_cell(conversation: Make, mode: Mode) -> None:
    turn = await conversation()("#getCellOutputs show outputs for cell 2", mode)
    assert turn.called == ["GetCellOutputs"]
    assert "42" in turn.text


# --- Test 3: Agent mode --------------------------------------------------------------------------


async def test_all_tools_appear_in_agent_mode(conversation: Make) -> None:
    tools, _ = await given(conversation, "agent")
    assert tools == ALL


async def test_a_modification_uses_update(conversation: Make) -> None:
    chat = conversation()
    turn = await chat("Update cell 2 to:\n```\nprint 43\n```")
    assert turn.called == ["UpdateNotebookCell"]
    assert chat.source("load") == "print 43"
    assert "Cell 2 (`load`) has its new source" in turn.text


async def test_an_execution_uses_run(conversation: Make) -> None:
    turn = await conversation()("Run cell 6")
    assert turn.called == ["RunNotebookCells"]
    assert turn.calls[0].arguments == {"cellIds": [5]}
    assert "Cell 6 (`later`): ok" in turn.text
    assert "later" in turn.answers[0].text


async def test_a_new_cell_uses_add(conversation: Make) -> None:
    chat = conversation()
    turn = await chat("Add a code cell after 2: print 7")
    assert turn.called == ["AddNotebookCell"]
    assert chat.source(2) == "print 7"
    assert "cell 3" in turn.text


async def test_references_run_a_cell_and_add_one(conversation: Make) -> None:
    chat = conversation()
    ran = await chat("#runNotebookCells execute cell 2")
    assert (ran.called, ran.answers[0].is_error) == (["RunNotebookCells"], False)
    added = await chat("#addNotebookCell add a new markdown cell at the end")
    assert (added.called, added.answers[0].is_error) == (["AddNotebookCell"], False)
    assert [cell.type for cell in chat.cells()][-1] == "markdown"
    assert len(chat.cells()) == 8


# --- Test 4: without an attached notebook --------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_without_an_attachment_nothing_is_about_the_notebook(
    conversation: Make, mode: Mode
) -> None:
    tools, told = await given(conversation, mode, attached=())
    assert tools == []
    assert "notebook-state" not in told.replace("`<notebook-state>`", "")
    assert "sales.ipynb" not in told
    assert "# The attached notebook" not in told
    assert f"# {mode.capitalize()} mode" in told


async def test_without_an_attachment_the_person_is_told_what_to_do(conversation: Make) -> None:
    turn = await conversation()("Run cell 1", "agent", attached=())
    assert turn.called == []
    assert "Attach it with @sales.ipynb" in turn.text


# --- Test 5: prompt files ------------------------------------------------------------------------


async def test_the_log_says_which_prompt_files_a_mode_loads(
    conversation: Make, caplog: pytest.LogCaptureFixture
) -> None:
    chat = conversation(ScriptedModel())
    loaded = {}
    for mode in MODES:
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "cellwright.assistant"):
            await chat("hello", mode)
        loaded[mode] = re.findall(r"loads (notebook-mode-\S+)", caplog.text)
    assert loaded == {
        "ask": ["notebook-mode-readonly.md"],
        "edit": ["notebook-mode-readonly.md"],
        "agent": ["notebook-mode-agent.md"],
    }


# --- Test 6: references --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_reading_references_work_in_ask_and_edit(conversation: Make, mode: Mode) -> None:
    chat = conversation()
    assert (await chat("#getNotebookCells show all cells", mode)).called == ["GetNotebookCells"]
    shown = await chat("#getCellOutputs show outputs", mode)
    assert set(shown.called) == {"GetCellOutputs"}
    assert [each.arguments["cellId"] for each in shown.calls] == ["load", "sum", "plot"]


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_a_running_reference_suggests_agent_mode(conversation: Make, mode: Mode) -> None:
    turn = await conversation()("#runNotebookCells execute cell", mode)
    assert turn.called == []
    assert f"Mode `{mode}` does not allow" in turn.text
    assert "Switch to mode `agent`" in turn.text
    (reference,) = turn.begun.to_json()["tool_references"]
    assert (reference["name"], reference["tool"]) == ("runNotebookCells", None)


async def test_changing_references_work_in_agent_mode(conversation: Make) -> None:
    chat = conversation()
    assert (await chat("#runNotebookCells execute cell 1")).called == ["RunNotebookCells"]
    assert (await chat("#addNotebookCell add markdown cell")).called == ["AddNotebookCell"]
    asked = await chat("#updateNotebookCell update cell 2")
    assert asked.called == []
    assert "What is the new source of cell 2? Your next message is all of it" in asked.text
    told = await chat("#updateNotebookCell update cell 2 to `print 1`")
    assert told.called == ["UpdateNotebookCell"]
    assert chat.source("load") == "print 1"


@pytest.mark.parametrize(
    ("prompt", "selected"),
    [
        ("#updateNotebookCell", ("load",)),
        ("#updateNotebookCell cell load", ()),
        ("update cell 2 so that it handles errors", ()),
    ],
)
async def test_a_source_that_is_asked_for_is_the_next_message(
    conversation: Make, prompt: str, selected: tuple[str, ...]
) -> None:
    chat = conversation()
    asked = await chat(prompt, selected=selected)
    assert (asked.called, asked.text.count("What is the new source of cell")) == ([], 1)
    told = await chat("show all cells\n#runNotebookCell")  # whatever it looks like
    assert told.called == ["UpdateNotebookCell"]
    assert chat.source("load") == "show all cells\n#runNotebookCell"
    assert (await chat("show all cells")).called == ["GetNotebookCells"]  # only the next one


async def test_a_source_that_is_asked_for_can_be_in_a_block_or_not_be_given(
    conversation: Make,
) -> None:
    chat = conversation()
    before = chat.source("load")
    for answer in ("cancel", "#getNotebookCells"):
        await chat("#updateNotebookCell cell 2")
        assert "UpdateNotebookCell" not in (await chat(answer)).called
        assert chat.source("load") == before
    await chat("#updateNotebookCell cell 2")
    refused = await chat("print 1", "ask")
    assert "Switch to Agent mode" in refused.text
    await chat("#updateNotebookCell cell 2")
    await chat("```python\nprint 7\nprint 8\n```")
    assert chat.source("load") == "print 7\nprint 8"


async def test_only_the_assistant_asks_for_a_source(conversation: Make) -> None:
    chat = conversation()
    asked = await chat("#updateNotebookCell cell 2")
    await chat("cancel")
    await chat(f"update cell 2 to: {asked.text}")  # now a notebook says the same words
    await chat("show cell 2")
    assert (await chat("print 1")).called == []


@pytest.mark.parametrize("mode", MODES)
async def test_only_available_tools_can_be_attached(conversation: Make, mode: Mode) -> None:
    chat = conversation()
    _, offer = await chat.chat.look(chat.request("", mode))
    names = [attachment.name for attachment, _ in offer.attachable()]
    assert names == [
        f"{name[0].lower()}{name[1:]}" for name in (ALL if mode == "agent" else READING)
    ]


async def test_an_attached_tool_is_in_the_context_of_the_prompt(conversation: Make) -> None:
    model = ScriptedModel("I would rather not.")
    attached = [FileReference("sales.ipynb"), ToolAttachment("getCellOutputs")]
    turn = await conversation(model)("look", "ask", attached=attached)
    assert [each.name for each in turn.begun.tool_references] == ["getCellOutputs"]
    assert "#getCellOutputs: the tool GetCellOutputs" in model.requests[0].messages[-1].text
    assert turn.called == []  # the model decides


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_a_model_that_calls_what_its_mode_forbids_is_refused(
    conversation: Make, mode: Mode
) -> None:
    model = ScriptedModel(
        [call("RunNotebookCells", cellIds=["load"]), call("AddNotebookCell")],
        call("UpdateNotebookCell", cellId="load", content="evil"),
        "done",
    )
    chat = conversation(model)
    before = (chat.folder / "sales.ipynb").read_bytes()
    turn = await chat("#runNotebookCells", mode)
    assert [answer.data["code"] for answer in turn.answers] == ["MODE_FORBIDS"] * 3
    assert all("Switch to mode `agent`" in answer.text for answer in turn.answers)
    assert (chat.folder / "sales.ipynb").read_bytes() == before


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_the_workspace_itself_refuses_too(conversation: Make, mode: Mode) -> None:
    from cellwright.errors import ModeForbids

    workspace = await conversation().workspaces.get(mode)
    book = workspace.open("sales.ipynb")
    with pytest.raises(ModeForbids):
        await book.run(["load"])
    with pytest.raises(ModeForbids):
        await book.edit([{"op": "delete", "cell": 0}])
    with pytest.raises(ModeForbids):
        await book.undo()
