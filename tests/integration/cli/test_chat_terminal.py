"""A person chats at a terminal, with a real kernel: completion, confirmation, Ctrl-C, review, undo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import read
from cellwright.assistant.models.model import ToolCall
from cellwright.cli.main import main
from tests.engines import engine_of_its_own, wait_for
from tests.integration.assistant.model_servers import Holds, served
from tests.integration.cli.chat_terminal import ChatTerminal
from tests.unit.cli import samples
from tests.unit.cli.calling import command

if TYPE_CHECKING:
    from pathlib import Path

WIDTHS = pytest.mark.parametrize("columns", [80, pytest.param(140, marks=pytest.mark.all)])
SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(600)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "story.ipynb").write_bytes(
        samples.write(
            samples.code("load", "total = 6 * 7\nprint('total', total)"),
            samples.code("slow", SLOW),
            samples.code("ask", "print('hello', input('Your name? '))"),
        )
    )
    return tmp_path


def source(folder: Path, ref: str) -> str:
    return read(folder / "story.ipynb").cell(ref).source


@WIDTHS
def test_a_whole_sitting(folder: Path, columns: int) -> None:
    with ChatTerminal(folder, columns=columns) as chat:
        chat.wait("No language model is set up")
        chat.wait("ask \u203a ")
        chat.type("/op")
        chat.wait("/open")  # the menu
        chat.type("en st")
        chat.wait("story.ipynb")
        chat.type("ory.ipynb\r")
        chat.wait("story.ipynb is open, 3 cells; /attach story.ipynb")
        chat.say("/attach story.ipynb")
        chat.wait("story.ipynb attached")
        chat.say("/mode agent")
        chat.wait("Mode agent")
        chat.wait("agent \u203a ")
        chat.type("#ru")
        chat.wait("#runNotebookCells")
        chat.type("\t run cell 1\r")
        chat.wait("? Run cell 1 of story.ipynb?")
        chat.wait("total = 6 * 7")
        chat.wait("\u203a ")
        chat.type("y")
        chat.wait("allowed once")
        chat.wait("Ran cell 1  load  code  story.ipynb  ✓ complete")
        chat.wait("│ total 42")

        chat.say("run cell 2")
        chat.wait("? Run cell 2")
        chat.wait("\u203a ")
        chat.type("c")
        chat.wait("● running")
        chat.wait("│ begun")
        chat.type("\x03")
        chat.wait("Interrupting the kernel")
        chat.wait("✗ error")
        chat.wait("KeyboardInterrupt")
        chat.wait("Cell 2 (slow): cancelled")  # the turn went on

        chat.say("run cell 3")  # allowed in this chat
        chat.wait("Your name?")
        chat.type("Ada\r")
        chat.wait("│ hello Ada")

        chat.say("update cell 1 to: total = 43")
        chat.wait("Updated cell 1")
        chat.wait("+ total = 43")
        chat.say("/review")
        chat.wait("Updated cell 1  load  code  story.ipynb  1 of 1")
        chat.wait("- print('total', total)")
        chat.wait("\u203a ")
        chat.type("r")
        chat.wait("rejected load")
        assert source(folder, "load").startswith("total = 6 * 7")
        chat.say("update cell 1 to: total = 44")
        chat.wait("+ total = 44")
        chat.say("/undo")
        chat.wait("Undid the turn's changes to 1 cell")
        assert source(folder, "load").startswith("total = 6 * 7")
        chat.wait("\u203a ")
        chat.type("\x0f")  # Ctrl-O
        chat.wait("Updated cell 1")
        chat.say("/quit")
        assert chat.leave() == 0
        assert "Traceback" not in chat.seen.replace("Traceback (most recent call last)", "")


def test_ctrl_c_twice_at_an_empty_prompt_leaves_and_ctrl_d_too(folder: Path) -> None:
    with ChatTerminal(folder) as chat:
        chat.wait("ask \u203a ")
        chat.type("half a line")
        chat.type("\x03")
        chat.type("\x03")
        chat.wait("Press Ctrl-C again")
        chat.wait("ask \u203a ")
        chat.type("\x03")
        assert chat.leave() == 130
    with ChatTerminal(folder) as chat:
        chat.wait("ask \u203a ")
        chat.type("\x04")
        assert chat.leave() == 0


def test_a_chat_is_resumed_at_the_terminal(folder: Path) -> None:
    with ChatTerminal(folder, "story.ipynb", "--mode", "agent") as chat:
        chat.say("update cell 1 to: total = 43")
        chat.wait("Updated cell 1")
        chat.say("/quit")
        assert chat.leave() == 0
    with ChatTerminal(folder, "--resume") as chat:
        chat.wait("1 questions so far")
        chat.wait("agent \u203a ")
        chat.type("/undo\r")
        chat.wait("Undid")
        chat.say("/quit")
        assert chat.leave() == 0
    assert source(folder, "load").startswith("total = 6 * 7")


def model(url: str) -> dict[str, str]:
    return {"CELLWRIGHT_ASSISTANT_MODEL": "openai:scripted", "CELLWRIGHT_ASSISTANT_BASE_URL": url}


def test_what_is_typed_while_the_model_answers_is_the_next_prompt(folder: Path) -> None:
    asked, typed = threading.Event(), threading.Event()

    def answer_late(_: object) -> str:
        asked.set()
        assert typed.wait(30)
        return "The first answer."

    with (
        served("openai", [answer_late, "The second answer."]) as server,
        ChatTerminal(folder, env=model(server.base_url)) as chat,
    ):
        chat.say("one")
        assert asked.wait(30)
        chat.type("two\r")
        typed.set()
        chat.wait("The first answer.")
        chat.wait("The second answer.")
        chat.say("/quit")
        assert chat.leave() == 0
    assert server.requests[-1].said[-1] == ("user", "two")


@WIDTHS
def test_a_language_model_over_http_streams_calls_and_can_be_broken_off(
    folder: Path, columns: int
) -> None:
    script: list[Any] = [
        [
            "I *update* it.",
            ToolCall("a", "UpdateNotebookCell", {"cellId": "load", "content": "x = 1"}),
        ],
        "Done: **x** is 1.",
        Holds(["Never ending"]),
        "After all.",
    ]
    with (
        served("openai", script) as server,
        ChatTerminal(
            folder, "story.ipynb", "--mode", "agent", columns=columns, env=model(server.base_url)
        ) as chat,
    ):
        chat.say("change it")
        chat.wait("I update it.")
        chat.wait("Updated cell 1  load")
        chat.wait("Done: x is 1.")
        chat.wait("tokens")  # below the prompt
        chat.type("go on\r")
        chat.wait("Never ending")
        chat.type("\x03")
        chat.wait("The turn was stopped")
        chat.say("and now?")
        chat.wait("After all.")
        chat.say("/quit")
        assert chat.leave() == 0
    assert [request.said[-1] for request in server.requests][-1] == ("user", "and now?")


def test_a_second_ctrl_c_ends_the_turn(folder: Path) -> None:
    """The cell does not listen, so that the first one takes its time."""
    (folder / "deaf.ipynb").write_bytes(
        samples.write(
            samples.code(
                "deaf",
                "import time\nprint('begun', flush=True)\nwhile True:\n    try:\n"
                "        time.sleep(600)\n    except KeyboardInterrupt:\n"
                "        print('not me', flush=True)",
            )
        )
    )
    with ChatTerminal(
        folder, "deaf.ipynb", "--mode", "agent", "--yes", env={"CELLWRIGHT_INTERRUPT_GRACE": "1"}
    ) as chat:
        chat.say("run cell 1")
        chat.wait("│ begun")
        chat.type("\x03")
        chat.wait("Interrupting the kernel")
        chat.type("\x03")
        chat.wait("The turn was stopped")
        chat.say("/quit")
        assert chat.leave() == 0


def test_what_was_typed_before_a_question_is_no_answer_to_it(folder: Path) -> None:
    with ChatTerminal(folder, "story.ipynb", "--mode", "agent") as chat:
        chat.wait("\u203a ")
        chat.type("run cell 1\ryyyy")
        chat.wait("Run cell 1 of story.ipynb?")
        chat.wait("\u203a ")
        chat.type("n")
        chat.wait("not allowed")
        chat.wait("✗ refused")
        chat.say("/quit")
        assert chat.leave() == 0


def test_ctrl_c_in_a_pipe_interrupts_the_kernel_and_the_chat_tells_what_happened(
    folder: Path,
) -> None:
    words = ("chat", "story.ipynb", "--mode", "agent", "--yes", "--json", "-p", "run cell 2")
    with subprocess.Popen(
        command(*words),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CELLWRIGHT_RUN_SAVE_INTERVAL": "0.2"},
    ) as running:
        assert running.stdout is not None
        lines: list[str] = []
        while not lines or '"tool_call"' not in lines[-1]:
            lines.append(running.stdout.readline())
            assert lines[-1], "it ended"
        try:
            story = folder / "story.ipynb"
            wait_for(lambda: read(story).cell("slow").outputs, "what the cell prints first")
            running.send_signal(signal.SIGINT)
            rest, complaints = running.communicate(timeout=100)
        finally:
            running.kill()  # it has ended, unless something failed
        assert running.returncode == 130
    events = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert [event["event"] for event in events] == [
        *("begun", "tool_call", "tool_result", "text", "done")
    ]
    assert events[2]["data"]["executions"][0]["status"] == "cancelled"
    assert "Traceback" not in complaints


@pytest.mark.all
def test_a_chat_shares_the_kernel_of_the_engine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of_its_own(monkeypatch):
        for prompt, said in (("run cell 1", "total 42"), ("run cell 2", "84")):
            if prompt == "run cell 2":
                assert (
                    main(["edit", str(folder / "story.ipynb"), "replace", "slow", "total * 2"]) == 0
                )
            with ChatTerminal(folder, "story.ipynb", "--mode", "agent", "--yes") as chat:
                chat.say(prompt)
                chat.wait(f"│ {said}")
                chat.say("/quit")
                assert chat.leave() == 0
        slow = ["edit", str(folder / "story.ipynb"), "replace", "slow", SLOW]
        assert main(slow) == 0
        with ChatTerminal(folder, "story.ipynb", "--mode", "agent", "--yes") as chat:
            chat.say("run cell 2")
            chat.wait("│ begun")
            chat.type("\x03")
            chat.wait("Cell 2 (slow): cancelled")
            chat.say("/quit")
            assert chat.leave() == 0


def test_one_shot_at_a_terminal_asks_on_stderr_and_shows_calls_in_brief(folder: Path) -> None:
    with ChatTerminal(folder, "story.ipynb", "--mode", "agent", "-p", "run cell 1") as chat:
        chat.wait("Run cell 1 of story.ipynb?")
        chat.wait("\u203a ")
        chat.type("y\r")
        chat.wait("✓ Ran cell 1 · load · story.ipynb · complete")
        chat.wait("Cell 1 (load): ok")
        assert chat.leave() == 0


def test_inside_a_cell_a_proposal_is_refined_and_accepted(folder: Path) -> None:
    script = ["```\ntotal = 1\n```", "```\ntotal = 2\n```"]
    with (
        served("openai", script) as server,
        ChatTerminal(folder, "story.ipynb", "--cell", "load", env=model(server.base_url)) as chat,
    ):
        chat.say("simpler")
        chat.wait("+ total = 1")
        chat.wait("\u203a ")
        chat.type("f")
        chat.wait("refine \u203a ")
        chat.type("two\r")
        chat.wait("+ total = 2")
        chat.wait("\u203a ")
        chat.type("a")
        chat.wait("accepted: cell load has its new source")
        chat.say("/quit")
        assert chat.leave() == 0
    assert source(folder, "load") == "total = 2"


def test_without_the_library_the_terminal_is_told_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib.util

    from cellwright.cli.commands import chat as module

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "prompt_toolkit" else found(name)
    )
    monkeypatch.setattr(module, "is_terminal", lambda _: True)
    monkeypatch.chdir(folder)
    assert main(["chat"]) == 2
    said = capsys.readouterr().err
    assert "pip install 'cellwright[assistant]'" in said
    assert "-p" in said
