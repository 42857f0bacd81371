"""Where the person types: what is completed, what keys do, what is asked, and what Ctrl-C means."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from typing import TYPE_CHECKING, Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from cellwright.app.workspaces import open_chat_workspaces
from cellwright.assistant.availability import FILE_TOOLS
from cellwright.assistant.chat import Chat
from cellwright.assistant.models.direct import DirectModel
from cellwright.assistant.permissions import Operation
from cellwright.assistant.requests import ChatState
from cellwright.cli.chat.confirmation import Confirmer
from cellwright.cli.chat.prompt import Completer, CtrlC, FileNames, Prompt
from cellwright.cli.chat.turn import ChatInterrupts
from cellwright.kernel.events import InputRequested
from tests.unit.cli import samples
from tests.unit.cli.cards import card
from tests.unit.cli.chatting import chat_folder
from tests.unit.cli.glass import Glass
from tests.unit.cli.test_chat_streaming import display_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from prompt_toolkit.input.base import PipeInput

__all__ = ["chat_folder"]  # a fixture
pytestmark = pytest.mark.usefixtures("chat_folder")


# --- Completion ------------------------------------------------------------------------------------


@pytest.fixture
async def state(chat_folder: Path) -> ChatState:
    return ChatState(cwd=str(chat_folder))


@pytest.fixture
async def complete(state: ChatState, chat_folder: Path) -> AsyncIterator[Callable[[str], Any]]:
    workspaces = open_chat_workspaces(chat_folder)
    completer = Completer(Chat(workspaces, DirectModel(), file_tools=FILE_TOOLS), state)

    async def names(text: str) -> list[str]:
        found = await completer.complete(text)
        assert all(
            text[len(text) - each.length :].startswith(("@", "#", "/", "")) for each in found
        )
        return [each.text for each in found]

    yield names
    await workspaces.close()


async def test_files_are_offered_behind_an_at_notebooks_first(
    complete: Any, chat_folder: Path
) -> None:
    (chat_folder / "data").mkdir()
    (chat_folder / "data" / "more sales.ipynb").write_bytes(b"{}")
    (chat_folder / ".hidden").write_text("x", encoding="utf-8")
    assert await complete("look at @") == [
        "@other.ipynb",
        "@sales.ipynb",
        '@"data/more sales.ipynb"',
        "@notes.txt",
    ]
    assert await complete("look at @sal") == ["@sales.ipynb", '@"data/more sales.ipynb"']
    assert await complete('look at @"data/mo') == ['@"data/more sales.ipynb"']
    assert await complete("mail me@sal") == []


async def test_only_tools_that_are_there_are_offered(complete: Any, state: ChatState) -> None:
    assert await complete("#get") == []
    state.open, state.files = "sales.ipynb", ["sales.ipynb"]
    assert await complete("please #") == ["#getNotebookCells", "#getCellOutputs"]
    assert await complete("#run") == []
    state.mode = "agent"
    assert await complete("#run") == ["#runNotebookCells"]
    assert await complete("x#run") == []


async def test_a_notebook_that_the_line_attaches_counts(complete: Any, state: ChatState) -> None:
    state.open = "sales.ipynb"
    assert await complete("#getN") == []
    assert await complete("@sales.ipynb #getN") == ["#getNotebookCells"]


async def test_commands_and_what_stands_behind_them_are_offered(
    complete: Any, state: ChatState
) -> None:
    assert await complete("/mo") == ["/mode", "/model"]
    assert await complete("/mode a") == ["ask", "agent"]
    assert await complete("/open ") == ["other.ipynb", "sales.ipynb"]
    assert await complete("/attach no") == ["notes.txt"]
    assert await complete("/select ") == []
    state.open, state.files, state.tools = "sales.ipynb", ["sales.ipynb"], ["getCellOutputs"]
    assert await complete("/attach #get") == ["#getNotebookCells", "#getCellOutputs"]
    assert await complete("/detach ") == ["sales.ipynb", "#getCellOutputs"]
    assert await complete("/select load p") == ["plot"]
    assert await complete("/help re") == ["review"]
    assert await complete("/tools x") == []


async def test_files_are_looked_up_now_and_then_and_not_everywhere(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "node_modules").mkdir(parents=True)
    (top / "node_modules" / "x.ipynb").write_text("", encoding="utf-8")
    files = FileNames(str(top))
    assert await files.find() == []
    (top / "new.ipynb").write_text("", encoding="utf-8")
    assert await files.find() == []  # looked up a moment ago
    files._when = -100
    assert await files.find() == ["new.ipynb"]


# --- Keys ------------------------------------------------------------------------------------------


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


class Nothing:
    """Offers nothing."""

    async def complete(self, text: str) -> list[Any]:
        del text
        return []


def prompt(history: Path | None = None) -> Prompt:
    made = Nothing()
    return Prompt(made, history, status=lambda: "state", expand=lambda: None)  # type: ignore[arg-type]


async def typed(pipe: PipeInput, text: str, history: Path | None = None) -> str:
    made = prompt(history)  # it takes its keys from where it is made
    pipe.send_text(text)
    return await asyncio.wait_for(made.read("ask"), 10)


async def test_enter_sends_and_alt_enter_begins_a_line(keys: PipeInput) -> None:
    assert await typed(keys, "one\x1b\rtwo\r") == "one\ntwo"


async def test_ctrl_c_empties_the_line_and_at_an_empty_one_it_is_told(keys: PipeInput) -> None:
    assert await typed(keys, "wrong\x03right\r") == "right"
    with pytest.raises(CtrlC):
        await typed(keys, "\x03")


async def test_ctrl_d_leaves(keys: PipeInput) -> None:
    with pytest.raises(EOFError):
        await typed(keys, "\x04")


async def test_history_is_in_a_file_for_its_owner_alone(keys: PipeInput, tmp_path: Path) -> None:
    place = tmp_path / "state" / "history"
    await typed(keys, "first\r", place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert "+first" in place.read_text(encoding="utf-8")
    assert await typed(keys, "\x10\r", place) == "first"  # Ctrl-P, the one before


async def test_a_long_history_is_cut(keys: PipeInput, tmp_path: Path) -> None:
    place = tmp_path / "history"
    place.write_text("\n# 2026\n+old\n" * 100_000, encoding="utf-8")
    await typed(keys, "new\r", place)
    assert place.stat().st_size < 600_000
    assert await typed(keys, "\x10\x10\r", place) == "old"


@pytest.mark.parametrize(
    ("text", "found"), [("y", "y"), ("N", "n"), ("xzq y", "y"), ("\x03", None)]
)
async def test_one_key_answers_a_question(text: str, found: str | None, keys: PipeInput) -> None:
    made = prompt()
    keys.send_text(text)
    assert await asyncio.wait_for(made.key({"y": "yes", "n": "no"}), 10) == found


async def test_a_line_for_a_cell_can_be_refused(keys: PipeInput) -> None:
    made = prompt()
    keys.send_text("Ada\r")
    assert await made.line("Your name? ") == "Ada"
    pressed: list[bool] = []
    made.on_interrupt = lambda: pressed.append(True)
    keys.send_text("\x04")
    assert await made.line("Your name? ") is None
    assert pressed == []
    keys.send_text("\x03")
    assert await made.line("Your name? ") is None
    assert pressed == [True]


# --- What is asked during a turn -------------------------------------------------------------------


class Person:
    """Presses a key, and says what they were asked."""

    def __init__(self, key: str | None) -> None:
        self._key = key
        self.asked: list[str] = []

    async def line(self, prompt: str, *, password: bool = False) -> str | None:
        self.asked.append(f"{prompt}{password}")
        return self._key

    async def key(self, choices: Mapping[str, str]) -> str | None:
        self.asked.append(" ".join(choices))
        return self._key


RUN = Operation(
    kind="run",
    notebook="sales.ipynb",
    tool="RunNotebookCells",
    words="Run cell 2 of sales.ipynb?",
    preview="print 42\n\x1b[2J",
)


@pytest.mark.parametrize(
    ("key", "decision", "said"),
    [
        ("y", "once", "allowed once"),
        ("c", "chat", "allowed in this chat"),
        ("a", "notebook", "always allowed for this notebook"),
        ("n", "no", "not allowed"),
        (None, "no", "not allowed"),
    ],
)
async def test_running_is_put_to_the_person_in_words_and_with_a_preview(
    key: str | None, decision: str, said: str
) -> None:
    glass, person = Glass(80, 24), Person(key)
    display = display_on(glass)
    confirmer = Confirmer(display, person)
    confirmer.card = card("RunNotebookCells", {"cellIds": ["load"]})
    display.begin_call(confirmer.card)
    display._draw()
    assert await confirmer(RUN) == decision
    display._cancel_timer()
    assert glass.text[:5] == [
        "",
        "  ? Run cell 2 of sales.ipynb?",
        "  │ total = 41",
        "  │ print(total)",
        f"    {said}",
    ]
    assert person.asked == ["y c a n"]
    assert confirmer.card.status == ("pending" if decision == "no" else "running")


async def test_every_cell_that_would_run_is_shown() -> None:
    glass = Glass(80, 60)
    display = display_on(glass)
    confirmer = Confirmer(display, Person("n"))
    long = samples.code("long", "\n".join(f"x{number}" for number in range(20)))
    many = [samples.code(f"c{number}", f"print {number}") for number in range(8)]
    handles = ["long", *(f"c{number}" for number in range(8))]
    confirmer.card = card(
        "RunNotebookCells", {"cellIds": handles}, before=samples.write(long, *many)
    )
    await confirmer(RUN)
    assert glass.text[2:13] == [
        "  ▸ cell 1  long",
        *(f"  │ x{number}" for number in range(8)),
        "  … 12 more lines (see the notebook)",
        "  ▸ cell 2  c0",
    ]
    assert "  … 3 more cells (see the notebook)" in glass.text


async def test_without_a_notebook_the_preview_is_shown_and_drives_nothing() -> None:
    glass = Glass(80, 24)
    await Confirmer(display_on(glass), Person("n"))(RUN)
    assert glass.text[2:4] == ["  │ print 42", "  │ ␛[2J"]


async def test_whoever_said_yes_beforehand_is_not_asked() -> None:
    person = Person("n")
    assert await Confirmer(display_on(Glass(80, 24)), person, yes=True)(RUN) == "once"
    assert person.asked == []


async def test_a_cell_asks_for_input_without_driving_the_terminal() -> None:
    person = Person("Ada")
    confirmer = Confirmer(display_on(Glass(80, 24)), person)
    asked = InputRequested("Name\x1b[2J? ", password=True)
    assert await confirmer.answer_input(asked) == "Ada"
    assert person.asked == ["    Name␛[2J? True"]
    assert await Confirmer(display_on(Glass(80, 24)), None).answer_input(asked) is None


# --- Ctrl-C during a turn --------------------------------------------------------------------------


class Turn:
    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.ended = 0
        self.said: list[str] = []
        self.interrupts = ChatInterrupts(self._stop, self._end, self.said.append)

    async def _stop(self, run: str) -> None:
        self.stopped.append(run)

    def _end(self) -> None:
        self.ended += 1

    async def press(self) -> None:
        self.interrupts.press()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


async def test_the_kernel_is_interrupted_first_and_the_turn_second() -> None:
    turn = Turn()
    turn.interrupts.set_run("r1")
    await turn.press()
    assert (turn.stopped, turn.ended) == (["r1"], 0)
    assert "Ctrl-C again" in turn.said[0]
    await turn.press()
    assert (turn.stopped, turn.ended) == (["r1"], 1)


async def test_while_the_model_speaks_the_turn_is_ended_at_once() -> None:
    turn = Turn()
    await turn.press()
    assert (turn.stopped, turn.ended) == ([], 1)


async def test_another_run_is_interrupted_first_again() -> None:
    turn = Turn()
    turn.interrupts.set_run("r1")
    await turn.press()
    turn.interrupts.set_run(None)
    turn.interrupts.set_run("r2")
    await turn.press()
    assert (turn.stopped, turn.ended) == (["r1", "r2"], 0)
