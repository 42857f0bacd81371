"""`cellwright chat` in pipes: one shot, lines, events, scenarios, modes and exit codes."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import read
from cellwright.config.directories import state_directory
from cellwright.errors import ModelRefused, ModelUnavailable
from tests.unit.cli.calling import call
from tests.unit.cli.chatting import (
    ALL_TOOLS,
    NOTEBOOK_TOOLS,
    chat,
    chat_folder,
    source,
    tool,
    use,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.chatting import Use

__all__ = ["chat_folder", "use"]  # fixtures
pytestmark = pytest.mark.usefixtures("chat_folder")


# --- One shot ------------------------------------------------------------------------------------


def test_the_answer_goes_to_stdout_and_the_rest_to_stderr() -> None:
    said = chat("sales.ipynb", "-p", "show the output of cell 2")
    assert said.code == 0
    assert said.text.startswith("The output of cell 2:")
    assert "42" in said.text
    assert "✓ Read outputs of cell 2 · load · sales.ipynb · complete" in said.err
    assert said.err.startswith("No language model is set up")


def test_quiet_leaves_only_the_answer() -> None:
    said = chat("sales.ipynb", "-q", "-p", "show the output of cell 2")
    assert said.text
    assert said.err == ""


def test_the_prompt_may_come_from_stdin() -> None:
    said = chat("sales.ipynb", "-p", "-", stdin="show the output\nof cell 2\n")
    assert said.text.startswith("The output of cell 2:")


def test_every_line_of_a_pipe_is_a_prompt_or_a_command(use: Use) -> None:
    model = use("one", "two")
    said = chat("sales.ipynb", stdin="first\n\n/mode agent\n  second\n/quit\nthird\n")
    assert said.text == "one\ntwo\n"
    assert [request.situation.request.prompt for request in model.requests] == ["first", "second"]
    assert [request.situation.request.mode for request in model.requests] == ["ask", "agent"]


def test_text_of_a_model_cannot_drive_the_terminal_at_the_other_end(use: Use) -> None:
    use("\x1b]0;owned\x07\x1b[2Jhello \u202e")
    said = chat("-p", "x")
    assert "\x1b" not in said.text
    assert "\u202e" not in said.text
    assert "hello" in said.text


def test_without_a_prompt_and_a_terminal_to_read_from_there_is_nothing_to_do() -> None:
    said = chat("sales.ipynb")
    assert (said.code, said.text) == (0, "")


# --- Events --------------------------------------------------------------------------------------


def test_events_are_the_only_thing_on_stdout_and_name_the_tools_that_were_meant() -> None:
    said = chat("sales.ipynb", "--json", "-p", "#getNotebookCells #runNotebookCells show all cells")
    kinds = [event["event"] for event in said.events]
    assert kinds == ["begun", "text", "done"]
    meant = said.only("begun")["tool_references"]
    assert [each["name"] for each in meant] == ["getNotebookCells", "runNotebookCells"]
    assert [each["tool"] for each in meant] == ["GetNotebookCells", None]
    assert "agent" in meant[1]["note"]
    assert said.err == ""


def test_calls_and_results_are_events_with_their_facts(use: Use) -> None:
    use(tool("UpdateNotebookCell", cellId="load", content="print 43"), "done")
    said = chat("sales.ipynb", "--mode", "agent", "--json", "-p", "change it")
    assert said.only("tool_call")["arguments"] == {"cellId": "load", "content": "print 43"}
    assert said.only("tool_result")["is_error"] is False
    (edit,) = said.only("done")["changes"]["edits"]
    assert edit["cells"] == ["load"]
    assert source("load") == "print 43"


# --- When it is about a notebook -------------------------------------------------------------------

SCENARIOS = {
    1: ("ask", ["sales.ipynb"], NOTEBOOK_TOOLS),
    2: ("edit", ["sales.ipynb"], NOTEBOOK_TOOLS),
    3: ("agent", ["sales.ipynb"], ALL_TOOLS),
    4: (None, ["sales.ipynb", "--open", "other.ipynb"], None),
    5: (None, ["--open", "sales.ipynb"], None),
    6: (None, ["sales.ipynb", "other.ipynb"], NOTEBOOK_TOOLS),
    7: ("agent", ["sales.ipynb", "other.ipynb"], ALL_TOOLS),
    8: (None, ["--attach", "sales.ipynb", "--attach", "other.ipynb"], None),
}
READING = ["read", "search"]
FILE_TOOLS = {"ask": READING, "edit": READING, "agent": [*READING, "edit", "write"]}
CASES = [
    (number, each, words, tools if tools is not None else FILE_TOOLS[each])
    for number, (mode, words, tools) in SCENARIOS.items()
    for each in ([mode] if mode else ["ask", "edit", "agent"])
    if not (number == 6 and each == "agent")
]


@pytest.mark.parametrize(("number", "mode", "words", "tools"), CASES)
def test_every_scenario_has_its_tools(
    number: int, mode: str, words: list[str], tools: list[str], use: Use
) -> None:
    model = use("ok")
    said = chat(*words, "--mode", mode, "--json", "-p", "hello")
    assert said.only("begun")["tools"] == tools
    assert [each["name"] for each in model.requests[0].tools] == tools
    is_on = number not in (4, 5, 8)
    assert said.only("begun")["notebook"] == ("sales.ipynb" if is_on else None)
    states = [m for m in model.requests[0].messages if m.text.startswith("<notebook-state>")]
    assert bool(states) == is_on
    assert (said.only("begun")["reason"] == "") == is_on


def test_a_switch_names_the_prompt_files_of_a_turn(use: Use) -> None:
    use("ok")
    said = chat("sales.ipynb", "--mode", "agent", "--show-prompts", "-p", "hello")
    assert "Prompt files: " in said.err
    assert "notebook-mode-agent.md" in said.err
    use("ok")
    assert "Prompt files" not in chat("sales.ipynb", "-p", "hello").err


COMMANDS = {
    1: "/open sales.ipynb\n/attach sales.ipynb\n",
    2: "/open sales.ipynb\n/attach sales.ipynb\n/mode edit\n",
    3: "/open sales.ipynb\n/attach sales.ipynb\n/mode agent\n",
    4: "/open other.ipynb\n/attach sales.ipynb\n",
    5: "/open sales.ipynb\n",
    6: "/open sales.ipynb\n/attach sales.ipynb other.ipynb\n",
    7: "/open sales.ipynb\n/attach sales.ipynb\n/attach other.ipynb\n/mode agent\n",
    8: "/attach sales.ipynb\n/attach other.ipynb\n/open sales.ipynb\n/open\n",
}


@pytest.mark.parametrize("number", COMMANDS)
def test_every_scenario_can_be_reached_by_commands(number: int, use: Use) -> None:
    use("ok")
    said = chat("--json", stdin=f"{COMMANDS[number]}hello\n")
    expected = {3: ALL_TOOLS, 7: ALL_TOOLS, 4: READING, 5: READING, 8: READING}
    assert said.only("begun")["tools"] == expected.get(number, NOTEBOOK_TOOLS)


def test_a_mention_attaches_too(use: Use) -> None:
    use("ok")
    said = chat("--open", "sales.ipynb", "--json", "-p", "look at @sales.ipynb")
    assert said.only("begun")["notebook"] == "sales.ipynb"


def test_selected_cells_are_told(use: Use) -> None:
    model = use("ok", "ok")
    chat("sales.ipynb", "--select", "load,plot", "-p", "x")
    assert model.requests[0].situation.request.editor is not None
    assert model.requests[0].situation.request.editor.selected == ("load", "plot")
    chat("sales.ipynb", stdin="/select 2-3 later\nx\n")
    assert model.requests[1].situation.request.editor is not None
    assert model.requests[1].situation.request.editor.selected == ("load", "sum", "later")


def test_files_that_are_no_notebooks_are_named_to_a_language_model(use: Use) -> None:
    model = use("ok")
    chat("--attach", "notes.txt", "-p", "what is it about?")
    assert "Attached files: notes.txt" in model.requests[0].messages[-1].text


def test_all_attached_notebooks_are_named_and_attached_files_can_be_read(
    use: Use, chat_folder: Path
) -> None:
    model = use("ok", "ok", "ok")
    (chat_folder / "other.ipynb").write_bytes((chat_folder / "sales.ipynb").read_bytes())
    chat("sales.ipynb", "other.ipynb", "-p", "compare them")
    assert "Attached notebooks: other.ipynb" in model.requests[0].messages[-1].text
    names = [[tool["name"] for tool in each.tools] for each in model.requests]
    assert "read" not in names[0]
    chat("sales.ipynb", "--mode", "agent", "--attach", "notes.txt", "-p", "use the notes")
    names = [tool["name"] for tool in model.requests[1].tools]
    assert "read" in names
    assert {"edit", "write"}.isdisjoint(names)  # a notebook is not changed as a file


def test_a_file_that_is_not_there_is_not_attached(use: Use) -> None:
    model = use("ok")
    said = chat("-p", "what is in @missing.csv?")
    assert said.code == 2
    assert "missing.csv" in said.err
    assert model.requests == []
    assert chat("-p", "what does @property do, and @app.route?").code == 0


# --- What has to be allowed ------------------------------------------------------------------------


def test_in_a_pipe_running_is_refused_unless_it_was_allowed_beforehand() -> None:
    before = (read("sales.ipynb").to_bytes(), "sales.ipynb")
    said = chat("sales.ipynb", "--mode", "agent", "--json", "-p", "run cell 2")
    assert said.only("tool_result")["data"]["code"] == "NOT_CONFIRMED"
    assert said.code == 5
    assert read("sales.ipynb").to_bytes() == before[0]
    said = chat("sales.ipynb", "--mode", "agent", "--yes", "--json", "-p", "run cell 2")
    assert said.only("tool_result")["data"]["executions"][0]["status"] == "ok"
    assert said.code == 0


def test_what_was_allowed_for_a_notebook_for_good_is_not_asked_again(chat_folder: Path) -> None:
    place = state_directory() / "assistant" / "allowed.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({str((chat_folder / "sales.ipynb").resolve()): ["run"]}))
    assert chat("sales.ipynb", "--mode", "agent", "-p", "run cell 2").code == 0


def test_what_is_logged_is_said_beside_the_answer_and_not_in_it(use: Use) -> None:
    place = state_directory() / "assistant" / "allowed.json"
    place.parent.mkdir(parents=True)
    place.write_text("{", encoding="utf-8")
    use("hello", "hello")
    said = chat("sales.ipynb", "-p", "x")
    assert said.text == "hello\n"
    assert "warning: " in said.err
    assert "allowed.json cannot be read, so that nothing is allowed" in said.err
    assert chat("sales.ipynb", "--json", "-p", "x").err == ""


# --- How it ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ["sales.ipynb", "-p", "show all cells"]),
        (0, ["-p", "hello"]),
        (1, ["sales.ipynb", "--mode", "agent", "--yes", "-p", "run cell 5"]),
        (5, ["sales.ipynb", "-p", "run cell 2"]),
        (5, ["sales.ipynb", "--mode", "edit", "-p", "update cell 2 to: x"]),
        (5, ["sales.ipynb", "-p", "#runNotebookCells run cell 2"]),
        (5, ["sales.ipynb", "--mode", "agent", "-p", "run cell 2"]),
        (3, ["nowhere.ipynb", "-p", "x"]),
        (3, ["sales.ipynb", "--select", "nope", "-p", "x"]),
        (3, ["sales.ipynb", "--cell", "nope", "-p", "x"]),
        (3, ["--root", ".", "/etc/hosts.ipynb", "-p", "x"]),
        (2, ["--attach", "nowhere.txt", "-p", "x"]),
        (2, ["--attach", "#nowhere", "-p", "x"]),
        (2, ["--select", "load", "-p", "x"]),
        (2, ["sales.ipynb", "--accept", "-p", "x"]),
        (2, ["--cell", "load", "-p", "x"]),
        (2, ["--model", "nobody:x", "-p", "x"]),
        (2, ["--model", "claude", "-p", "x"]),
        (2, ["--root", "nowhere", "-p", "x"]),
        (2, ["-p", "/nonsense"]),
        (2, ["-p", "/mode fly"]),
        (2, ["-p", "/undo"]),
        (3, ["--resume", "20200101-000000-0000", "-p", "x"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_the_exit_code_says_how_it_went(code: int, words: list[str]) -> None:
    said = chat(*words)
    assert said.code == code, said
    assert "Traceback" not in said.err


def test_who_is_not_there_to_say_yes_is_told_of_the_option() -> None:
    words = ("sales.ipynb", "--mode", "agent", "-p", "run cell 2")
    assert "hint: `--yes` " in chat(*words).err
    assert "--yes" not in chat(*words, "--yes").err


def test_a_tool_that_failed_is_no_failure_of_a_language_model_that_answers(use: Use) -> None:
    use(tool("RunNotebookCells", cellIds=["plot"]), "It raises NameError.")
    said = chat("sales.ipynb", "--mode", "agent", "--yes", "-p", "run it")
    assert said.code == 0
    assert "✗ Run cell 5 · plot · sales.ipynb · error" in said.err


@pytest.mark.parametrize(
    ("error", "code"),
    [(ModelUnavailable("x", "gone"), 4), (ModelRefused("x", "no"), 4)],
    ids=["unavailable", "refused"],
)
def test_a_model_that_fails_is_told_with_its_code(error: Exception, code: int, use: Use) -> None:
    use(["The answ", error])
    said = chat("-p", "x")
    assert said.code == code
    assert said.text == "The answ\n"
    assert said.err.splitlines()[0].startswith("error: ")
    use(error)
    said = chat("--json", "-p", "x")
    assert said.code == code
    assert said.events[-1]["event"] == "error"
    assert said.events[-1]["error"]["code"] == error.code  # type: ignore[attr-defined]


def test_a_turn_without_an_end_is_ended(use: Use) -> None:
    use(*[tool("GetNotebookCells")] * 30)
    said = chat("sales.ipynb", "--json", "-p", "x")
    assert said.only("done")["ending"] == "limit"
    assert said.code == 1
    use(*[tool("GetNotebookCells")] * 30)
    assert "Stopped after 25 calls of the model" in chat("sales.ipynb", "-p", "x").err


def test_the_first_failure_of_many_lines_is_the_exit_code(use: Use) -> None:
    use("one", ModelUnavailable("x", "gone"), "three")
    said = chat(stdin="a\nb\n/nonsense\nc\n")
    assert said.code == 4
    assert said.text == "one\nthree\n"


# --- Inside a cell ---------------------------------------------------------------------------------

PROPOSAL = "Better:\n\n```\nprint 43\n```\n"


def test_inside_a_cell_a_change_is_proposed_as_a_diff_and_not_made(use: Use) -> None:
    model = use(PROPOSAL)
    said = chat("sales.ipynb", "--cell", "load", "-p", "one more")
    assert model.requests[0].situation.request.location == "cell"
    assert said.text.startswith(PROPOSAL)
    assert "-print 42\n+print 43\n" in said.text
    assert "--accept" in said.err
    assert source("load") == "print 42"


def test_accepted_beforehand_it_is_the_source(use: Use) -> None:
    use(PROPOSAL)
    said = chat("sales.ipynb", "--cell", "1", "--accept", "--json", "-p", "one more")
    assert said.code == 0
    assert said.only("done")["proposal"]["source"] == "print 43"
    assert said.only("accepted")["changes"]["edits"][0]["cells"] == ["load"]
    assert source("load") == "print 43"


def test_a_cell_that_was_changed_meanwhile_is_a_conflict(use: Use) -> None:
    def meddle(_: Any) -> str:
        assert call("edit", "sales.ipynb", "replace", "load", "mine").code == 0
        return PROPOSAL

    use(meddle)
    said = chat("sales.ipynb", "--cell", "load", "--accept", "-p", "one more")
    assert said.code == 6
    assert source("load") == "mine"


# --- What is kept ----------------------------------------------------------------------------------


def chats() -> list[Path]:
    return sorted((state_directory() / "assistant" / "chats").glob("*.json"))


def test_a_chat_is_kept_for_its_owner_alone(use: Use) -> None:
    use("hello")
    chat("sales.ipynb", "-p", "hi")
    (kept,) = chats()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(kept.parent.parent.stat().st_mode) == 0o700
    found = json.loads(kept.read_text(encoding="utf-8"))
    assert [message["text"] for message in found["messages"]] == ["hi", "hello"]


def test_no_save_keeps_nothing(use: Use) -> None:
    use("hello")
    chat("sales.ipynb", "--no-save", "-p", "hi")
    assert chats() == []


def test_a_setting_keeps_nothing_either(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLWRIGHT_ASSISTANT_TRANSCRIPTS", "false")
    use("hello")
    chat("sales.ipynb", "-p", "hi")
    assert chats() == []


def test_settings_choose_the_prompt_files_and_where_the_state_stands(
    use: Use, monkeypatch: pytest.MonkeyPatch, chat_folder: Path
) -> None:
    (chat_folder / "mine").mkdir()
    (chat_folder / "mine" / "mine.md").write_text("---\norder: 90\n---\nBe brief.\n")
    monkeypatch.setenv("CELLWRIGHT_ASSISTANT_PROMPTS", str(chat_folder / "mine"))
    monkeypatch.setenv("CELLWRIGHT_ASSISTANT_PROMPTS_OFF", "ask:ask.md")
    monkeypatch.setenv("CELLWRIGHT_ASSISTANT_CONTEXT_IN_SYSTEM_PROMPT", "true")
    model = use("hello")
    said = chat("sales.ipynb", "--json", "-p", "hi")
    assert said.only("begun")["prompts"] == ["assistant.md", "notebook-mode-readonly.md", "mine.md"]
    assert "<notebook-state>" in model.requests[0].messages[0].text


def test_a_key_is_never_kept(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    key, other = "zz-secret-of-the-variable", "sk-ant-api03-AAAABBBBCCCCDDDD"
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    use(tool("GetNotebookCells", path=f"{key}.ipynb"), f"your key is {key}, or {other}")
    chat("-p", f"my key: {key}", "--attach", "notes.txt")
    (kept,) = chats()
    text = kept.read_text(encoding="utf-8")
    assert key not in text
    assert other not in text
    assert "a key was here" in text


def test_a_resumed_chat_goes_on_where_it_ended_and_can_be_undone(use: Use) -> None:
    use(tool("UpdateNotebookCell", cellId="load", content="print 43"), "changed")
    chat("sales.ipynb", "--mode", "agent", "--select", "load", "-p", "change it")
    model = use("yes")
    said = chat("--resume", "--json", stdin="do you remember?\n/undo\n")
    assert said.code == 0
    assert [m.text for m in model.requests[0].messages if m.role != "tool"][-3:] == [
        "",
        "changed",
        "do you remember?",
    ]
    assert said.only("begun")["notebook"] == "sales.ipynb"
    assert model.requests[0].situation.request.mode == "agent"
    assert model.requests[0].situation.request.editor is not None
    assert model.requests[0].situation.request.editor.selected == ("load",)
    assert source("load") == "print 42"
    assert len(chats()) == 1


def test_a_chat_is_resumed_by_its_id_or_with_another_notebook(use: Use) -> None:
    use("first")
    chat("sales.ipynb", "-p", "one")
    (kept,) = chats()
    use("second")
    chat("other.ipynb", "-p", "two")
    model = use("third", "fourth")
    chat("--resume", kept.stem, "-p", "three")
    assert "first" in [message.text for message in model.requests[0].messages]
    said = chat("--resume", "other.ipynb", "--json", "-p", "four")
    assert said.only("begun")["notebook"] == "other.ipynb"


def test_another_folder_has_other_chats(use: Use, chat_folder: Path, monkeypatch: Any) -> None:
    use("first")
    chat("sales.ipynb", "-p", "one")
    (chat_folder / "elsewhere").mkdir()
    monkeypatch.chdir(chat_folder / "elsewhere")
    assert chat("--resume", "-p", "x").code == 3


# --- The library that somebody types with, and what is imported ------------------------------------
