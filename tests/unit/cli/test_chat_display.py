"""What a display shows beside answers and cards: tables, changes, errors; in pipes and on terminals."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from cellwright.assistant.models import Usage
from cellwright.assistant.scripted import ScriptedModel
from cellwright.assistant.transcripts import Transcript
from cellwright.assistant.workspaces import Workspaces
from cellwright.cli.chat.confirmation import Confirmer
from cellwright.cli.chat.display import DisplayedChange
from cellwright.cli.chat.session import ChatSession
from cellwright.cli.chat.startup import PaneChat
from cellwright.cli.chat.state import ChatState
from cellwright.cli.chat.terminal import Canvas, TerminalDisplay
from cellwright.cli.render.screen import make_screen
from cellwright.cli.render.view import View
from cellwright.config.settings import Settings
from cellwright.errors import CellNotFound
from tests.unit.assistant.model_servers import served
from tests.unit.cli.calling import command, process
from tests.unit.cli.cards import every_card
from tests.unit.cli.chatting import ALL_TOOLS, NOTEBOOK_TOOLS, Said, chat_folder
from tests.unit.cli.glass import Glass
from tests.unit.cli.test_chat_streaming import display_on

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["chat_folder"]  # a fixture

CHANGE = DisplayedChange(
    action="Updated cell 2",
    name="load",
    kind="code",
    path="sales.ipynb",
    position="1 of 3",
    diff="@@ cell load (code, index 1) edited @@\n import x\n-a = 1\n+a = 2\n@@ -30,3 +30,3 @@\n b\n+\x1b[2J",
)


def test_a_change_has_a_head_and_its_lines_their_signs() -> None:
    glass = Glass(80, 24)
    display_on(glass).print_change(CHANGE)
    assert glass.text == [
        "",
        "    Updated cell 2  load  code  sales.ipynb  1 of 3 ────────────────────────────",
        "  │ import x",
        "  - a = 1",
        "  + a = 2",
        "  ▸ line 30",
        "  │ b",
        "  + ␛[2J",
    ]


def test_a_proposal_is_shown_without_the_names_of_files() -> None:
    glass = Glass(80, 24)
    diff = "--- load\n+++ load\n@@ -1 +1 @@\n-a\n+b"
    display_on(glass).print_change(replace(CHANGE, diff=diff))
    assert glass.text[2:] == ["  - a", "  + b"]


@pytest.mark.parametrize("columns", [40, 80, 140])
def test_a_table_is_folded_beside_its_names(columns: int) -> None:
    glass = Glass(columns, 24)
    display_on(glass).print_table([("/open [NB]", "word " * 20), ("/q", "leave")])
    assert glass.text[1].startswith("    /open [NB]  word word")
    assert all(cell_len(line) <= columns for line in glass.text)
    assert glass.text[-1] == "    /q          leave"
    assert " ".join(" ".join(glass.text).split()).count("word") == 20


def test_an_error_is_told_with_what_to_do() -> None:
    glass = Glass(80, 24)
    display_on(glass).print_error(CellNotFound("c9", near=["c1"]))
    assert glass.text == ["", "    error: No cell `c9`", "    hint: Did you mean c1?"]


def test_what_is_told_keeps_its_lines() -> None:
    glass = Glass(40, 24)
    display_on(glass).print_text("<a>\n  <b " + "x" * 60 + "\n")
    assert glass.text[1:3] == ["    <a>", "      <b " + "x" * 31]
    assert glass.text[3].startswith("      ↪ ")


def test_a_picture_that_the_terminal_draws_itself_stands_between_the_lines_of_its_card() -> None:
    file = io.StringIO()
    view = View(width=80, colors=True, images="iterm")
    canvas = Canvas(make_screen(file, 80, colored=True), view, lambda: (80, 24))
    one = every_card()["a picture"]
    TerminalDisplay(canvas).end_call(one)
    sent = file.getvalue()
    head, picture, pointer = (
        sent.index(text) for text in ("draw", "\x1b]1337;File=inline=1", "artifact://k3m9x2ab")
    )
    assert head < picture < pointer


async def test_the_line_below_the_prompt_tells_what_lies_on_the_desk(chat_folder: Path) -> None:
    workspaces = Workspaces(chat_folder)
    chat = PaneChat(workspaces, ScriptedModel("ok"))
    state = ChatState(cwd=str(chat_folder))
    display = display_on(Glass(80, 24))
    session = ChatSession(
        chat,
        state,
        display,
        Confirmer(display, None),
        asker=None,
        settings=Settings(),
        transcript=Transcript(),
    )
    assert session.status_line() == " no notebook open · scripted "
    state.open = "sales.ipynb"
    assert session.status_line() == " sales.ipynb (not attached) · scripted "
    state.files, state.tools = ["sales.ipynb", "notes.txt"], ["read"]
    state.selected, state.cell = ("load", "sum"), "load"
    chat.usage = Usage(1200, 34, 0, 0.0123)
    assert session.status_line() == (
        " sales.ipynb · in cell load · 2 selected · +2 attached · scripted · 1,234 tokens · $0.0123 "
    )
    await workspaces.close()


# --- A language model over HTTP, asked by a process -----------------------------------------------


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
    mode: str, tools: list[str], prompt: str
) -> None:
    with served("openai", ["Seven."]) as server:
        env = {
            "CELLWRIGHT_ASSISTANT_MODEL": "openai:scripted",
            "CELLWRIGHT_ASSISTANT_BASE_URL": server.base_url,
        }
        words: list[Any] = ["chat", "sales.ipynb", "--select", "load", "--mode", mode, "--json"]
        answer = process(*words, "-p", "#runNotebookCells how many cells?", **env)
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
