"""`cellwright chat` as a process: a pipe, a model behind HTTP, a reader who leaves."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.assistant.model_servers import served
from tests.unit.assistant import notebooks
from tests.unit.cli.calling import call, command, process
from tests.unit.cli.chatting import (
    ALL_TOOLS,
    NOTEBOOK_TOOLS,
    Said,
    chat_folder,
)

if TYPE_CHECKING:
    from pathlib import Path


__all__ = ["chat_folder"]  # a fixture


def test_as_a_process_it_leaves_nothing_behind(chat_folder: Path) -> None:
    (chat_folder / "py.ipynb").write_bytes(notebooks.PYTHON)
    answer = process(
        "chat", "py.ipynb", "--mode", "agent", "--yes", "--json", "-p", "run all cells"
    )
    assert answer.code == 0
    events = [json.loads(line) for line in answer.text.splitlines()]
    said = Said(answer.code, "", answer.err, events)
    rows = said.only("tool_result")["data"]["executions"]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert sorted(path.name for path in chat_folder.iterdir()) == [
        "notes.txt",
        "other.ipynb",
        "py.ipynb",
        "sales.ipynb",
    ]


@pytest.mark.parametrize(
    ("mode", "tools", "prompt"),
    [
        ("ask", NOTEBOOK_TOOLS, "notebook-mode-readonly.md"),
        pytest.param("edit", NOTEBOOK_TOOLS, "notebook-mode-readonly.md", marks=pytest.mark.all),
        ("agent", ALL_TOOLS, "notebook-mode-agent.md"),
    ],
)
@pytest.mark.usefixtures("chat_folder")
def test_the_request_that_leaves_has_the_tools_and_the_prompt_of_the_mode(
    mode: str, tools: list[str], prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = process if mode == "ask" else call  # one process says enough about processes
    with served("openai", ["Seven."]) as server:
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_MODEL", "openai:scripted")
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_BASE_URL", server.base_url)
        words: list[Any] = ["chat", "sales.ipynb", "--select", "load", "--mode", mode, "--json"]
        answer = start(*words, "-p", "#runNotebookCells how many cells?")
    events = [json.loads(line) for line in answer.text.splitlines()]
    said = Said(answer.code, "", answer.err, events)
    assert answer.code == 0, answer
    assert said.only("begun")["tools"] == tools
    assert prompt in said.only("begun")["prompts"]
    assert said.only("done")["text"] == "Seven."
    assert said.only("done")["usage"]["input"] > 0
    (request,) = server.requests
    assert list(request.tools) == tools
    roles = [role for role, _ in request.said]
    assert roles == ["user", "user"]
    assert 'selection="selected"' in request.said[0][1]
    assert "how many cells?" in request.said[1][1]
    (meant,) = said.only("begun")["tool_references"]
    assert meant["tool"] == ("RunNotebookCells" if mode == "agent" else None)
    assert ("not available" in request.said[1][1]) == (mode != "agent")


@pytest.mark.usefixtures("chat_folder")
def test_a_reader_who_has_had_enough_is_no_error(chat_folder: Path) -> None:
    with subprocess.Popen(
        command("chat", "other.ipynb", "-q", "-p", "show all cells"),
        cwd=chat_folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        said = running.stderr.read()
        assert running.wait(30) == 0
    assert said == b""
