"""Which tools a request has, what completes a `#`, and what a model is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.assistant.availability import offer_tools, render_references
from cellwright.assistant.requests import ChatRequest, FileReference, ToolAttachment
from cellwright.tools.profiles import PROFILES
from cellwright.tools.profiles.positron import POSITRON

if TYPE_CHECKING:
    from cellwright.assistant.availability import ToolOffer
    from cellwright.assistant.requests import Location
    from cellwright.workspace.api.requests import Mode

MODES: tuple[Mode, ...] = ("ask", "edit", "agent")
READING = ["#getNotebookCells", "#getCellOutputs"]
ALL = [*READING, "#runNotebookCells", "#addNotebookCell", "#updateNotebookCell"]


def offered(
    prompt: str = "",
    mode: Mode = "agent",
    *attached: object,
    has_notebook: bool = True,
    location: Location = "pane",
    edit_mode_edits: bool = False,
) -> ToolOffer:
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
    def code(offer: ToolOffer, name: str) -> object:
        answer = offer.refuse(name)
        return answer and answer.data["code"]

    assert code(offered(mode="ask"), "RunNotebookCells") == "MODE_FORBIDS"
    assert code(offered(has_notebook=False), "RunNotebookCells") == "TOOL_UNAVAILABLE"
    assert code(offered(location="cell"), "RunNotebookCells") == "TOOL_UNAVAILABLE"
    assert code(offered(), "Nothing") is None
    nearest = offered(mode="ask", edit_mode_edits=True).refuse("AddNotebookCell")
    assert nearest is not None
    assert "Switch to mode `edit`" in nearest.text


# --- The eight situations of a chat --------------------------------------------------------------

READING_TOOLS = ["GetNotebookCells", "GetCellOutputs"]
EVERYTHING = [tool.name for tool in POSITRON]
# number: notebooks attached, notebook in the active editor, the modes it speaks of, tools
SCENARIOS: dict[int, tuple[list[str], str | None, tuple[Mode, ...], list[str]]] = {
    1: (["a.ipynb"], "a.ipynb", ("ask",), READING_TOOLS),
    2: (["a.ipynb"], "a.ipynb", ("edit",), READING_TOOLS),
    3: (["a.ipynb"], "a.ipynb", ("agent",), EVERYTHING),
    4: (["a.ipynb"], "b.ipynb", MODES, []),
    5: ([], "a.ipynb", MODES, []),
    6: (["a.ipynb", "b.ipynb"], "b.ipynb", ("ask", "edit"), READING_TOOLS),
    7: (["a.ipynb", "b.ipynb"], "b.ipynb", ("agent",), EVERYTHING),
    8: (["a.ipynb", "b.ipynb"], None, MODES, []),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", SCENARIOS)
def test_the_scenarios_of_the_document_in_every_mode(number: int, mode: Mode) -> None:
    attached, active, modes, tools = SCENARIOS[number]
    is_on = active in attached
    found = offered(mode=mode, has_notebook=is_on).there
    if mode not in modes:  # the same situation in another mode: what its sibling says
        tools = (EVERYTHING if mode == "agent" else READING_TOOLS) if is_on else []
    assert [tool.name for tool in found] == tools


def test_the_scenarios_cover_eight_situations_and_all_modes() -> None:
    assert list(SCENARIOS) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {mode for *_, modes, _ in SCENARIOS.values() for mode in modes} == set(MODES)


def test_outside_the_chat_pane_only_the_reading_tools_are_there() -> None:
    found = offered(location="cell").there
    assert [tool.name for tool in found] == READING_TOOLS


def test_tools_that_need_no_notebook_are_there_without_one() -> None:
    found = offer_tools(
        ChatRequest(prompt="", mode="agent"), PROFILES["all"], has_notebook=False
    ).there
    assert [tool.name for tool in found] == [
        tool.name for tool in PROFILES["all"] if tool not in POSITRON
    ]


# --- References ----------------------------------------------------------------------------------


def refer(prompt: str, mode: Mode, *, is_on: bool = True) -> list[tuple[str, bool, str]]:
    found = offered(prompt, mode, has_notebook=is_on).references
    return [(each.name, each.tool is not None, each.note) for each in found]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["getNotebookCells", "getCellOutputs"])
def test_reading_tools_can_be_referenced_in_every_mode(name: str, mode: Mode) -> None:
    assert refer(f"#{name} show me all cells", mode) == [(name, True, "")]


@pytest.mark.parametrize("name", ["runNotebookCells", "addNotebookCell", "updateNotebookCell"])
def test_the_others_are_answered_with_the_switch_to_agent(name: str) -> None:
    assert refer(f"#{name} execute cell 1", "agent") == [(name, True, "")]
    for mode in ("ask", "edit"):
        ((found, is_there, note),) = refer(f"please #{name} execute cell", mode)
        assert (found, is_there) == (name, False)
        assert f"Mode `{mode}` does not allow" in note
        assert "Switch to mode `agent`" in note


def test_a_reference_does_not_make_a_tool_available() -> None:
    ((_, is_there, note),) = refer("#getNotebookCells", "ask", is_on=False)
    assert not is_there
    assert "attached" in note


def test_a_word_with_a_hash_is_no_reference_unless_it_names_a_tool() -> None:
    assert refer("issue #12, a #tag, C#getNotebookCells and ##getNotebookCells", "agent") == []
    ((_, is_there, note),) = refer("#getNotebookCell", "agent")
    assert not is_there
    assert note == "Did you mean #getNotebookCells?"
