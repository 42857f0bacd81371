"""Tools for plain files beside those of the notebook, which they keep away from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.assistant.availability import FILE_TOOLS
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.tools.profiles import plain_files
from cellwright.tools.profiles.positron import POSITRON
from tests.unit.assistant.chatting import NOTEBOOK, call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.assistant.chatting import Conversation

    Make = Callable[..., Conversation]

TOOLS = (*POSITRON, *FILE_TOOLS)


async def test_without_a_notebook_they_are_all_there_is(conversation: Make, folder: Path) -> None:
    (folder / "a.py").write_text("x = 1\n", encoding="utf-8")
    edits = [{"old_text": "1", "new_text": "2"}]
    steps = [call("read", path="a.py"), call("edit", path="a.py", edits=edits)]
    steps += [call("write", path="b.py", content="y = 3\n")]
    chat = conversation(ScriptedModel(steps, "ok"), tools=TOOLS)
    turn = await chat("go", attached=())
    assert turn.begun.tools == ["read", "search", "edit", "write"]
    assert not any(answer.is_error for answer in turn.answers)
    assert "x = 1" in turn.answers[0].text
    assert (folder / "a.py").read_text(encoding="utf-8") == "x = 2\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "y = 3\n"


async def test_as_file_tools_they_are_away_while_the_chat_is_about_a_notebook(
    conversation: Make,
) -> None:
    chat = conversation(ScriptedModel("ok", call("read", path="a.py"), "ok"), file_tools=FILE_TOOLS)
    assert (await chat("go", attached=())).begun.tools == ["read", "search", "edit", "write"]
    turn = await chat("go")
    assert turn.begun.tools == [tool.name for tool in POSITRON]
    assert turn.answers[0].data["code"] == "UNKNOWN_TOOL"


async def test_in_ask_mode_they_read(conversation: Make, folder: Path) -> None:
    steps = [call("read", path="a.py"), call("write", path="a.py", content="")]
    (folder / "a.py").write_text("x = 1\n", encoding="utf-8")
    chat = conversation(ScriptedModel(steps, "ok"), tools=TOOLS)
    turn = await chat("go", "ask", attached=())
    assert turn.begun.tools == ["read", "search"]
    assert turn.answers[1].data["code"] == "MODE_FORBIDS"
    assert (folder / "a.py").read_text(encoding="utf-8") == "x = 1\n"


@pytest.mark.parametrize("path", [NOTEBOOK, "SALES.IPYNB", "link", f"./{NOTEBOOK}:1-3"])
async def test_they_keep_away_from_notebooks(path: str, conversation: Make, folder: Path) -> None:
    (folder / "link").symlink_to(NOTEBOOK)
    before = (folder / NOTEBOOK).read_bytes()
    steps = [
        call("read", path=path),
        call("write", path=path, content="{}"),
        call("edit", path=path, edits=[{"old_text": "Sales", "new_text": "x"}]),
    ]
    turn = await conversation(ScriptedModel(steps, "ok"), tools=TOOLS)("go", attached=())
    assert {answer.data["code"] for answer in turn.answers} == {"INVALID_EDIT"}
    assert (folder / NOTEBOOK).read_bytes() == before


async def test_they_stay_inside_the_root(conversation: Make, folder: Path) -> None:
    steps = [call("read", path="../x"), call("write", path="/tmp/../../x", content="")]  # noqa: S108
    turn = await conversation(ScriptedModel(steps, "ok"), tools=TOOLS)("go", attached=())
    assert [answer.data["code"] for answer in turn.answers] == ["OUTSIDE_ROOT"] * 2
    assert not (folder.parent / "x").exists()


async def test_they_list_folders_and_search_in_files_and_notebooks(
    conversation: Make, folder: Path
) -> None:
    (folder / "deep" / "down").mkdir(parents=True)
    (folder / "deep" / "down" / "a.py").write_text("x = 1\ny = Total\n", encoding="utf-8")
    (folder / "deep" / "b.txt").write_text("a total\n", encoding="utf-8")
    (folder / "deep" / ".hidden").write_text("Total\n", encoding="utf-8")
    (folder / "deep" / "bytes").write_bytes(b"\xff Total")
    (folder / "deep" / "around").symlink_to("..")
    steps = [
        call("read", path="deep"),
        call("search", text="Total", path="deep/down"),
        call("search", text="total", path="deep", ignore_case=True, files="*.*"),
        call("search", text="Sales", path=NOTEBOOK),
        call("search", text="x", path="../other"),
        call("search", text="x", path="not-there"),
    ]
    turn = await conversation(ScriptedModel(steps, "ok"), tools=TOOLS)("go", "ask", attached=())
    listed, exact, loose, book, outside, missing = turn.answers
    assert listed.data["entries"] == ["deep/around/", "deep/b.txt", "deep/bytes", "deep/down/"]
    assert exact.data["lines"] == ["deep/down/a.py:2: y = Total"]
    assert {"deep/down/a.py:2: y = Total", "deep/b.txt:1: a total"} <= set(loose.data["lines"])
    assert not any(".hidden" in line for line in loose.data["lines"])
    assert book.data["lines"]
    assert outside.data["code"] == "OUTSIDE_ROOT"
    assert missing.data["code"] == "NOTEBOOK_NOT_FOUND"


async def test_a_search_says_where_it_stopped(
    conversation: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_files, "_MOST_FILES", 2)
    (folder / "deep").mkdir()
    for name in "abc":
        (folder / "deep" / name).write_text("total\n", encoding="utf-8")
    steps = [call("search", text="total", path="deep"), call("search", text="total", path="deep/c")]
    turn = await conversation(ScriptedModel(steps, "ok"), tools=TOOLS)("go", "ask", attached=())
    many, one = turn.answers
    assert many.data["lines"] == ["deep/a:1: total", "deep/b:1: total"]
    assert "behind the first 2 files" in many.text
    assert (one.data["lines"], "behind" in one.text) == (["deep/c:1: total"], False)


async def test_the_built_in_assistant_reads_and_searches_files(
    conversation: Make, folder: Path
) -> None:
    (folder / "notes.txt").write_text("the total is 3\n", encoding="utf-8")
    chat = conversation(file_tools=FILE_TOOLS)
    read = await chat("#read `notes.txt`", "ask", attached=())
    assert (read.called, "the total is 3" in read.text) == (["read"], True)
    assert "notes.txt" in (await chat("#read", "ask", attached=())).text
    found = await chat("#search total is", "ask", attached=())
    assert "notes.txt:1: the total is 3" in found.text
    assert "such as `#search total`" in (await chat("#search", "ask", attached=())).text


async def test_what_they_write_is_on_record_shown_and_taken_back(
    conversation: Make, folder: Path
) -> None:
    (folder / "a.md").write_text("one\n", encoding="utf-8")
    edits = [{"old_text": "one", "new_text": "two"}]
    steps = [call("edit", path="a.md", edits=edits), call("write", path="b/new.md", content="b\n")]
    steps += [call("write", path="a.md", content="three\n")]
    talk = conversation(ScriptedModel(steps, "ok"), tools=TOOLS)
    turn = await talk("go", attached=())
    assert not any(answer.is_error for answer in turn.answers)
    assert [(each.kind, each.words) for each in talk.asked] == [("overwrite", "Overwrite a.md?")]
    (changes,) = talk.chat.turns
    assert changes.notebooks == ["a.md", "b/new.md"]
    workspace = await talk.workspaces.get("agent")
    diff = await changes.diff(workspace)
    assert "-one" in diff
    assert "+three" in diff
    assert "+b" in diff
    cells = [cell for path, cell in changes.cells if path == "b/new.md"]
    await changes.undo(workspace, cells)  # rejected by itself
    assert not (folder / "b" / "new.md").exists()
    assert (folder / "a.md").read_text(encoding="utf-8") == "three\n"
    await talk.chat.undo()
    assert (folder / "a.md").read_text(encoding="utf-8") == "one\n"
    assert changes.is_undone


async def test_a_file_is_not_overwritten_when_the_person_says_no(
    conversation: Make, folder: Path
) -> None:
    (folder / "a.md").write_text("one\n", encoding="utf-8")
    steps = [
        call("write", path="a.md", content="two\n"),
        call("write", path="a.md", content="one\n"),
    ]
    talk = conversation(ScriptedModel(steps, "ok"), tools=TOOLS, decision="no")
    turn = await talk("go", attached=())
    assert [answer.data.get("code") for answer in turn.answers] == ["DECLINED", None]
    assert (folder / "a.md").read_text(encoding="utf-8") == "one\n"
