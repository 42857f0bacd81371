"""Transcripts: what is kept of a chat, how many are, and what never is."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from cellwright.assistant.changes import ChangeSet, TurnEdit
from cellwright.assistant.models.model import ChatMessage, ToolCall
from cellwright.assistant.transcripts import MOST_KEPT, Transcript, Transcripts, to_markdown
from cellwright.errors import InvalidEdit, WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path

MESSAGES = [
    ChatMessage(role="user", text="run it"),
    ChatMessage(role="assistant", calls=(ToolCall("a", "RunNotebookCells", {"cellIds": ["x"]}),)),
    ChatMessage(role="tool", text="ok", call_id="a", is_error=True, data={"done": True}),
    ChatMessage(role="assistant", text="It ran.\n```\nfenced\n```"),
]
TURNS = [
    ChangeSet("run it", [TurnEdit("n.ipynb", "c1", ("x",)), TurnEdit("n.ipynb", "c2", (), True)])
]


def transcript(**more: object) -> Transcript:
    return Transcript(
        root="/r", model="m", mode="agent", desk={"open": "n.ipynb"}, messages=MESSAGES, turns=TURNS,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_chat_comes_back_as_it_was(tmp_path: Path) -> None:
    kept = Transcripts(tmp_path / "chats")
    made = transcript()
    kept.save(made)
    assert kept.load(made.id) == made
    assert kept.load() == made
    assert kept.load(root="/r") == made
    assert kept.has(made.id)
    assert not kept.has("../../etc/passwd")


def test_there_is_a_limit_to_how_many_are_kept(tmp_path: Path) -> None:
    kept = Transcripts(tmp_path)
    for number in range(MOST_KEPT + 5):
        path = kept.save(transcript(id=f"20260101-000000-{number:04x}"))
        os.utime(path, (number, number))
    kept.save(transcript(id="20260101-000000-ffff"))
    names = sorted(path.stem for path in tmp_path.iterdir())
    assert len(names) == MOST_KEPT
    assert names[0] == "20260101-000000-0006"
    assert names[-1] == "20260101-000000-ffff"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 99}', '{"version": 1, "id": 1}'])
def test_a_file_that_is_none_is_passed_over(content: str, tmp_path: Path) -> None:
    kept = Transcripts(tmp_path)
    (tmp_path / "20300101-000000-0000.json").write_text(content, encoding="utf-8")
    with pytest.raises(WorkspaceError):
        kept.load()
    made = transcript()
    kept.save(made)
    os.utime(tmp_path / "20300101-000000-0000.json", (9e9, 9e9))
    assert kept.load() == made


def test_a_name_that_is_no_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidEdit):
        Transcripts(tmp_path).load("../x")


def test_keys_are_taken_out_wherever_they_stand(tmp_path: Path) -> None:
    key = "the-key-of-somebody"
    kept = Transcripts(tmp_path, hide=[key, "short"])
    made = transcript()
    made.messages = [
        ChatMessage(role="tool", text=f"short {key}", call_id=key, data={key: [{"x": f"a{key}b"}]})
    ]
    text = kept.save(made).read_text(encoding="utf-8")
    assert key not in text
    assert "short" in text
    pasted = kept.without_keys({"a": "my key is sk-ant-api03-abcdefghijklmnop, ok?"})
    assert "sk-ant" not in json.dumps(pasted)
    assert kept.without_keys("task-force-of-the-assistant") == "task-force-of-the-assistant"


def test_a_surrogate_in_a_text_does_not_keep_a_chat_from_being_kept(tmp_path: Path) -> None:
    made = transcript()
    made.messages = [ChatMessage(role="user", text="\ud800")]
    kept = Transcripts(tmp_path)
    kept.save(made)
    assert kept.load(made.id).messages[0].role == "user"


def test_markdown_tells_who_said_what_and_a_fence_inside_ends_nothing() -> None:
    told = to_markdown(transcript())
    assert told.index("## You\n\nrun it") < told.index("### Call of `RunNotebookCells`")
    assert "It failed:\n\n```\nok\n```" in told
    block = to_markdown(
        Transcript(messages=[ChatMessage(role="tool", text="```\nx\n```", call_id="a")])
    )
    assert "````\n```\nx\n```\n````" in block
