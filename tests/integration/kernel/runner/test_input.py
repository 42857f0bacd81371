"""`input()` and its relatives ask the host, and never hang."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.events import InputRequested
from cellwright.kernel.transport import Code

if TYPE_CHECKING:
    from tests.integration.kernel.runner.conftest import Driver, Ran


async def ask(cells: Driver, source: str, *answers: str) -> tuple[list[InputRequested], Ran]:
    from tests.integration.kernel.runner.conftest import Ran

    ran, asked, left = Ran(), [], list(answers)
    async with asyncio.timeout(20):
        async for event in cells.runner.execute(Code(source)):
            ran.events.append(event)
            if isinstance(event, InputRequested):
                asked.append(event)
                await cells.runner.answer_input(left.pop(0))
    assert not left
    return asked, ran


@pytest.mark.parametrize(
    ("source", "asked", "answer", "result"),
    [
        ("input('name? ')", InputRequested("name? "), "Ann", "'Ann'"),
        ("input()", InputRequested(), "", "''"),
        ("input(5)", InputRequested("5"), "line\n", "'line'"),
        (
            "import getpass; getpass.getpass('pw: ')",
            InputRequested("pw: ", password=True),
            "s",
            "'s'",
        ),
        ("import sys; sys.stdin.readline()", InputRequested(), "x", "'x\\n'"),
        ("import sys; sys.stdin.read()", InputRequested(), "", "''"),
        ("import sys; list(sys.stdin)", InputRequested(), "y", "['y\\n']"),
    ],
)
async def test_questions_are_put_and_answered(
    cells: Driver, source: str, asked: InputRequested, answer: str, result: str
) -> None:
    questions, ran = await ask(cells, source, answer)
    assert questions == [asked]
    assert ran.result == result


async def test_what_was_printed_stands_before_the_question(cells: Driver) -> None:
    _, ran = await ask(
        cells, "print('hello', end=' ')\nfor _ in range(2): print(input('?'))", "a", "b"
    )
    assert ran.stdout == "hello a\nb\n"
    kinds = [type(event).__name__ for event in ran.events]
    assert kinds.index("StreamEvent") < kinds.index("InputRequested")


async def test_an_unanswered_question_can_be_interrupted_and_its_late_answer_is_dropped(
    cells: Driver,
) -> None:
    async with asyncio.timeout(20):
        async for event in cells.runner.execute(Code("input('first')")):
            if isinstance(event, InputRequested):
                await cells.runner.interrupt()
    await cells.runner.answer_input("too late")
    questions, ran = await ask(cells, "input('second')", "right")
    assert questions == [InputRequested("second")]
    assert ran.result == "'right'"


async def test_a_thread_may_ask_too(cells: Driver) -> None:
    source = (
        "import threading\ngot = []\n"
        "t = threading.Thread(target=lambda: got.append(input('t')))\nt.start(); t.join()\ngot"
    )
    _, ran = await ask(cells, source, "deep")
    assert ran.result == "['deep']"


async def test_a_thread_that_still_asks_when_its_cell_has_ended_is_let_go(cells: Driver) -> None:
    source = (
        "import threading, time\ngot = []\ndef ask():\n    try: input('t')\n"
        "    except EOFError as e: got.append(e)\n"
        "t = threading.Thread(target=ask)\nt.start(); time.sleep(0.1)"
    )
    await cells.ok(source)
    assert (await cells.ok("t.join(10); len(got)")).result == "1"


async def test_a_question_that_nobody_follows_ends(cells: Driver) -> None:
    source = "try:\n    input('anyone?')\nexcept EOFError:\n    gave_up = True"
    events = cells.runner.execute(Code(source))
    await anext(events)
    await events.aclose()  # type: ignore[attr-defined]
    assert (await cells.ok("gave_up")).result == "True"


async def test_children_and_forks_get_an_end_of_file(cells: Driver) -> None:
    source = (
        "import os\nos.system('read x; echo $?')\n"
        "if not os.fork():\n    try: input()\n    except EOFError: os._exit(9)\n"
        "os.waitstatus_to_exitcode(os.wait()[1])"
    )
    ran = await cells.ok(source)
    assert (ran.stdout, ran.result) == ("1\n", "9")
