"""Which tools a request has, what completes a `#`, and what a model is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.assistant.availability import offer_tools, render_references
from cellwright.assistant.requests import ChatRequest, FileReference, ToolAttachment
from cellwright.tools.profiles.positron import POSITRON

if TYPE_CHECKING:
    from cellwright.assistant.availability import Offer
    from cellwright.assistant.requests import Location
    from cellwright.workspace.requests import Mode

READING = ["#getNotebookCells", "#getCellOutputs"]
ALL = [*READING, "#runNotebookCells", "#addNotebookCell", "#updateNotebookCell"]


def offered(
    prompt: str = "",
    mode: Mode = "agent",
    *attached: object,
    has_notebook: bool = True,
    location: Location = "pane",
    edit_mode_edits: bool = False,
) -> Offer:
    request = ChatRequest(prompt=prompt, mode=mode, references=attached, location=location)
    return offer_tools(
        request, POSITRON, has_notebook=has_notebook, edit_mode_edits=edit_mode_edits
    )


@pytest.mark.parametrize(("mode", "names"), [("ask", READING), ("edit", READING), ("agent", ALL)])
def test_a_hash_is_completed_with_the_tools_that_are_there(mode: Mode, names: list[str]) -> None:
    assert offered(mode=mode).complete("please #") == names
    assert offered(mode=mode, has_notebook=False).complete("#") == []


def test_what_is_typed_narrows_the_completion() -> None:
    offer = offered()
    assert offer.complete("#get") == READING
    assert offer.complete("x #RUN") == ["#runNotebookCells"]
    assert offer.complete("#getNotebookCells ") == []
    assert offer.complete("C#") == offer.complete("##") == offer.complete("no hash") == []


def test_inline_only_reading_tools_are_there() -> None:
    offer = offered(location="cell")
    assert offer.complete("#") == READING
    ((reference),) = offered("#runNotebookCells", location="cell").references
    assert reference.tool is None
    assert "chat pane" in reference.note


def test_a_setting_lets_mode_edit_edit() -> None:
    offer = offered(mode="edit", edit_mode_edits=True)
    assert offer.complete("#") == [*READING, "#addNotebookCell", "#updateNotebookCell"]


def test_references_come_from_the_prompt_and_from_what_is_attached() -> None:
    attached = [ToolAttachment(name) for name in ("getCellOutputs", "GetNotebookCells", "#getCellOutputs", "nope")]  # fmt: skip
    offer = offered("#runNotebookCells cell 1", "agent", *attached, FileReference("a.ipynb"))
    assert [each.name for each in offer.references] == [
        "runNotebookCells",
        "getCellOutputs",
        "getNotebookCells",
    ]
    assert all(each.tool is not None for each in offer.references)


def test_what_is_not_available_is_told_with_what_to_do() -> None:
    ask = render_references(offered("#runNotebookCells #getCellOutputs", "ask").references)
    assert "#getCellOutputs: the tool GetCellOutputs" in ask
    assert "#runNotebookCells: not available. Mode `ask` does not allow" in ask
    assert "Switch to mode `agent`" in ask
    off = render_references(offered("#getCellOutputs", has_notebook=False).references)
    assert "needs a notebook that is attached" in off
    assert render_references(()) == ""


def test_a_reference_adds_no_tool() -> None:
    assert offered("#runNotebookCells", "ask").names == ["GetNotebookCells", "GetCellOutputs"]


def test_what_cannot_be_called_is_refused_by_the_reason_that_holds() -> None:
    def code(offer: Offer, name: str) -> object:
        answer = offer.refuse(name)
        return answer and answer.data["code"]

    assert code(offered(mode="ask"), "RunNotebookCells") == "MODE_FORBIDS"
    assert code(offered(has_notebook=False), "RunNotebookCells") == "TOOL_UNAVAILABLE"
    assert code(offered(location="cell"), "RunNotebookCells") == "TOOL_UNAVAILABLE"
    assert code(offered(), "Nothing") is None
    nearest = offered(mode="ask", edit_mode_edits=True).refuse("AddNotebookCell")
    assert nearest is not None
    assert "Switch to mode `edit`" in nearest.text
