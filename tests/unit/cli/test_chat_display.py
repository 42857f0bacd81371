"""What a display shows beside answers and cards: tables, changes, errors; in pipes and on terminals."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from cellwright.app.workspaces import open_chat_workspaces
from cellwright.assistant.availability import FILE_TOOLS
from cellwright.assistant.chat import Chat
from cellwright.assistant.conversation import Conversation
from cellwright.assistant.models.model import Usage
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.assistant.requests import ChatState
from cellwright.assistant.transcripts import Transcript
from cellwright.cli.chat.confirmation import Confirmer
from cellwright.cli.chat.display import DisplayedChange
from cellwright.cli.chat.session import ChatSession
from cellwright.cli.chat.terminal import Canvas, TerminalDisplay
from cellwright.cli.render.screen import ScreenView, make_screen
from cellwright.config.settings import Settings
from cellwright.errors import CellNotFound
from tests.unit.cli.cards import every_card
from tests.unit.cli.chatting import chat_folder
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
    view = ScreenView(width=80, colors=True, images="iterm")
    canvas = Canvas(make_screen(file, 80, colored=True), view, lambda: (80, 24))
    one = every_card()["a picture"]
    TerminalDisplay(canvas).end_call(one)
    sent = file.getvalue()
    head, picture, pointer = (
        sent.index(text) for text in ("draw", "\x1b]1337;File=inline=1", "artifact://k3m9x2ab")
    )
    assert head < picture < pointer


async def test_the_line_below_the_prompt_tells_what_lies_on_the_desk(chat_folder: Path) -> None:
    workspaces = open_chat_workspaces(chat_folder)
    chat = Chat(workspaces, ScriptedModel("ok"), file_tools=FILE_TOOLS)
    state = ChatState(cwd=str(chat_folder))
    display = display_on(Glass(80, 24))
    opened = Conversation(chat=chat, state=state, settings=Settings(), transcript=Transcript())
    session = ChatSession(opened, display, Confirmer(display, None), asker=None)
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
