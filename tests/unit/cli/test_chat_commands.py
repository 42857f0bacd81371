"""The commands of a chat: what each does, and what it says when it cannot."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest

from cellwright import read
from cellwright.cli.chat.review import split_diff
from cellwright.cli.chat.slash_commands import COMMANDS, WrongCommand, is_command, parse_command
from tests.conftest import ROOT
from tests.unit.cli.calling import call
from tests.unit.cli.chatting import chat, chat_folder, source, tool, use

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.chatting import Use

__all__ = ["chat_folder", "use"]  # fixtures
pytestmark = pytest.mark.usefixtures("chat_folder")

UPDATE = tool("UpdateNotebookCell", cellId="load", content="print 43")
ADD = tool("AddNotebookCell", type="markdown", index=-1, content="# New")


def talk(*lines: str, words: tuple[str, ...] = ("sales.ipynb",)) -> str:
    """What was said to stdout and stderr, by commands that all work."""
    said = chat(*words, stdin="".join(f"{line}\n" for line in lines))
    assert said.code == 0, said
    return said.text + said.err


def complaint(*lines: str, words: tuple[str, ...] = ("sales.ipynb",)) -> str:
    """What was said about commands of which one does not work."""
    said = chat(*words, stdin="".join(f"{line}\n" for line in lines))
    assert said.code, said
    return said.err[said.err.index("error: ") :]


# --- How they are written --------------------------------------------------------------------------


def test_every_command_is_carried_out_by_something() -> None:
    from cellwright.cli.chat.slash_commands import SlashCommands

    assert all(callable(getattr(SlashCommands, f"_{name}", None)) for name in COMMANDS)


def test_help_lists_them_all_and_the_page_too() -> None:
    said = talk("/help")
    page = (ROOT / "docs" / "chat.md").read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        assert f"{command.usage} " in said
        assert command.about in said
        assert f"`/{name}" in page
    assert talk("/help mode").count("\n") < 5


@pytest.mark.parametrize(
    ("line", "meant"),
    [("/mdoe agent", "/mode"), ("/reveiw", "/review"), ("/unod", "/undo"), ("/toolz", "/tools")],
)
def test_a_misspelt_command_is_answered_with_the_one_that_is_near(line: str, meant: str) -> None:
    assert f"Did you mean {meant}" in complaint(line)


def test_a_command_that_is_near_nothing_is_answered_with_the_list() -> None:
    assert "hint: /help lists the commands" in complaint("/xyzzy")


def test_words_may_be_quoted_and_names_have_short_forms() -> None:
    assert parse_command("/open 'my file.ipynb'") == ("open", ["my file.ipynb"])
    assert parse_command("/q") == ("quit", [])
    with pytest.raises(WrongCommand):
        parse_command("/open 'my file")


def test_a_path_at_the_beginning_of_a_sentence_is_no_command() -> None:
    assert is_command("/mode")
    assert not is_command("/data/x.csv is missing, why?")
    assert not is_command("what is /mode?")


# --- What lies on the desk ---------------------------------------------------------------------------


def test_what_is_open_is_not_thereby_attached_and_the_other_way_round() -> None:
    said = talk("/open sales.ipynb", "/attach other.ipynb", words=())
    assert "sales.ipynb is open, 7 cells; /attach sales.ipynb lets the assistant see it" in said
    assert "other.ipynb attached; /open other.ipynb makes it" in said


def test_a_notebook_that_is_not_there_cannot_be_opened() -> None:
    assert "nowhere.ipynb" in complaint("/open nowhere.ipynb")
    assert "is not a valid file name" in complaint("/open ''")
    assert "outside" in complaint("/open ../x.ipynb", words=("--root", ".")).lower()


def test_a_number_that_the_chat_shows_selects_the_same_cell() -> None:
    said = talk("/select 2-3,plot", "/select 5", "/select")
    assert "cell 2 (load), cell 3 (sum), cell 5 (plot)" in said
    assert "Selected cell 5 (plot)" in said
    assert "Did you mean " in complaint("/select 0")
    assert "The notebook has the cells 1 to 7" in complaint("/select 9")
    assert "Nothing is selected" in said
    assert "CELL_NOT_FOUND" not in complaint("/select nope")
    assert "No notebook is open" in complaint("/select 1", words=())


def test_what_is_attached_can_be_taken_away() -> None:
    said = talk("/attach notes.txt", "/detach notes.txt", "/detach", "/tools")
    assert "notes.txt is no longer attached" in said
    assert "Notebook mode is off." in said
    assert "Attached: sales.ipynb" in complaint("/detach notes.txt")
    assert "A name is missing" in complaint("/attach")


def test_a_tool_can_be_attached_and_is_told_to_the_model(use: Use) -> None:
    use("ok")
    said = chat("sales.ipynb", "--json", stdin="/attach #GETNotebookCells\nhello\n")
    assert [each["name"] for each in said.only("begun")["tool_references"]] == ["getNotebookCells"]
    assert "not available now" in talk("/attach #runNotebookCells")
    assert "Did you mean #getCellOutputs?" in complaint("/attach #getCellOutput")


def test_modes_are_told_in_words() -> None:
    said = talk("/mode", "/mode edit", "/mode AGENT")
    assert "Mode ask: the assistant reads" in said
    assert "Mode agent: the assistant reads, changes and runs" in said
    assert "hint: ask, edit or agent" in complaint("/mode fly")


def test_a_model_is_named_and_changed() -> None:
    assert "Model direct. No language model is set up" in talk("/model")
    assert "Model ollama:qwen" in talk("/model ollama:qwen")
    assert "it needs a key" in complaint("/model openai:gpt-x")
    assert "hint: Did you mean `openai:gpt-x`?" in complaint("/model opnai:gpt-x")


# --- What one may want to know -------------------------------------------------------------------------


def test_tools_are_listed_with_why_others_are_not_there() -> None:
    said = talk("/tools")
    assert "✓ #getNotebookCells" in said
    assert "– #runNotebookCells    not in mode ask; /mode agent has it" in said
    off = talk("/mode agent", "/tools", words=("--open", "sales.ipynb"))
    assert "RunNotebookCells needs a notebook that is attached" in off
    assert "sales.ipynb is open in the active editor, but not attached" in off


def test_the_context_is_what_the_model_gets(use: Use) -> None:
    model = use("ok")
    said = talk("/select load", "/context", "hello")
    state = model.requests[0].messages[1].text
    assert state.startswith("<notebook-state>")
    assert state in said
    assert "notebook-mode-readonly.md" in said
    assert "notebook       none." in talk("/context", words=())


# --- What turns have changed ---------------------------------------------------------------------------


def test_a_review_shows_each_cell_and_rejects_what_is_named(use: Use) -> None:
    use([UPDATE, ADD], "done")
    said = talk("/mode agent", "change it", "/review", "/review reject load", "/review")
    assert "Updated cell 2 · load · code · sales.ipynb · 1 of 2" in said
    assert "-print 42\n+print 43" in said
    assert "+# New" in said
    assert "rejected load" in said
    assert "Added cell 8 · " in said
    assert source("load") == "print 42"
    assert len(read("sales.ipynb").cells) == 8
    use([UPDATE, ADD], "done")
    assert "rejected load" in talk("/mode agent", "change it", "/review reject 2")


def test_a_review_shows_files_and_rejects_one_of_them(use: Use, chat_folder: Path) -> None:
    path = str(chat_folder / "a.md")
    name = f"a-md-{blake2b(path.encode(), digest_size=2).hexdigest()}"
    use(
        [tool("write", path="a.md", content="one\n"), tool("write", path="b.md", content="two\n")],
        "done",
    )
    said = talk(
        *("/mode agent", "write them", "/review", f"/review reject {name}", "/review"), words=()
    )
    assert f"Added file · {name} · raw · a.md · 1 of 2" in said
    assert "+two" in said
    assert f"rejected {name}" in said
    assert not (chat_folder / "a.md").exists()
    assert (chat_folder / "b.md").read_text() == "two\n"


def test_what_was_accepted_is_not_shown_again(use: Use) -> None:
    use(UPDATE, "done")
    said = talk("/mode agent", "change it", "/review accept", "/review")
    assert "accepted load" in said
    assert "All changes are accepted" in said
    assert source("load") == "print 43"


def test_a_cell_that_somebody_changed_since_is_not_taken_back(use: Use) -> None:
    def meddle(_: object) -> str:
        assert call("edit", "sales.ipynb", "replace", "load", "mine").code == 0
        return "ok"

    use(UPDATE, "done", meddle)
    said = chat("sales.ipynb", stdin="/mode agent\nchange it\nnow\n/review reject\n")
    assert "error: " in said.err
    assert source("load") == "mine"


def test_undo_takes_a_turn_back_and_says_what_stays(use: Use) -> None:
    use([UPDATE, ADD], "done")
    before = read("sales.ipynb").to_bytes()
    said = talk("/mode agent", "change it", "/undo")
    assert "Undid the turn's changes to 2 cells of sales.ipynb; variables in kernels" in said
    assert read("sales.ipynb").to_bytes() == before
    assert "nothing to undo" in complaint("/undo")
    assert "nothing to review" in complaint("/review")


def test_a_cell_cannot_forge_the_head_of_a_section() -> None:
    diff = "--- a\n+++ b\n@@ notebook @@\n+x\n@@ cell a (code, index 0) edited @@\n+@@ cell b @@\n@@ -9 @@\n-y\n"
    assert split_diff(diff) == ["@@ cell a (code, index 0) edited @@\n+@@ cell b @@\n@@ -9 @@\n-y"]


# --- What is kept ------------------------------------------------------------------------------------


def test_a_chat_is_saved_as_markdown_or_json_and_nothing_is_overwritten(
    use: Use, chat_folder: Path
) -> None:
    use(tool("GetNotebookCells"), "seven `cells`")
    talk("how many?", "/save talk.md", "/save talk.json", "/save")
    told = (chat_folder / "talk.md").read_text(encoding="utf-8")
    assert "## You\n\nhow many?" in told
    assert "### Call of `GetNotebookCells`" in told
    assert "## Assistant\n\nseven `cells`" in told
    assert "<data " not in told
    saved = json.loads((chat_folder / "talk.json").read_text(encoding="utf-8"))
    assert [message["role"] for message in saved["messages"]] == [
        *("user", "assistant", "tool", "assistant")
    ]
    assert len(list(chat_folder.glob("chat-*.md"))) == 1
    assert "talk.md" in complaint("/save talk.md")
    assert "cannot be written" in complaint("/save nowhere/talk.md")


def test_a_card_is_expanded_by_its_number(use: Use) -> None:
    use(tool("GetNotebookCells"), "ok")
    assert talk("read", "/expand 1").count("✓ Read all cells") == 2
    use(tool("GetNotebookCells"), "ok")
    assert "hint: 1 to 1" in complaint("read", "/expand 2")
    assert "There is no card yet" in complaint("/expand")


# --- Earlier chats -----------------------------------------------------------------------------------


def test_earlier_chats_are_listed_and_one_is_continued(use: Use) -> None:
    use("first answer")
    chat("-p", "what is the first question?")
    use("second answer")
    chat("-p", "and the second?")
    rows = json.loads(chat("--list", "--json").text)["data"]["chats"]
    assert [row["title"] for row in rows] == ["and the second?", "what is the first question?"]
    assert all(row["questions"] == 1 for row in rows)
    assert rows[0]["id"] in chat("--list").text
    model = use("third answer")
    said = talk("/chats", "/chats 2", "go on", words=())
    assert "what is the first question?" in said
    assert f"Continuing chat {rows[1]['id']}, 1 questions so far" in said
    asked = [message.text for message in model.requests[0].messages if message.role == "user"]
    assert asked[0].startswith("what is the first question?")
    (newest, other) = json.loads(chat("--list", "--json").text)["data"]["chats"]
    assert (newest["id"], newest["questions"]) == (rows[1]["id"], 2)  # saved as the same chat
    assert other["id"] == rows[0]["id"]
    assert "There is no chat 7" in complaint("/chats 7", words=())


def test_an_earlier_chat_is_renamed_and_deleted(use: Use) -> None:
    use("first answer")
    chat("-p", "first question")
    use("second answer")
    chat("-p", "second question")
    use("third answer")
    said = talk("third", "/chats rename 1 mine", "/chats rename 3 The old one", words=())
    assert "is called The old one now" in said
    rows = json.loads(chat("--list", "--json").text)["data"]["chats"]
    assert sorted(row["title"] for row in rows) == ["The old one", "mine", "second question"]
    (old,) = (row["id"] for row in rows if row["title"] == "The old one")
    assert f"Deleted chat {old}; its changes stay" in talk(f"/chats delete {old}", words=())
    rows = json.loads(chat("--list", "--json").text)["data"]["chats"]
    assert sorted(row["title"] for row in rows) == ["mine", "second question"]
    assert "hint: /chats rename N TITLE" in complaint("/chats rename 1", words=())
    assert "the one you are in" in complaint("/chats 1", "/chats delete 1", words=())
