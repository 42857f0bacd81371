"""`notebook_run`, `kernel` and `eval`, in kernels without a process."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.tools.profiles import PROFILES
from cellwright.tools.toolbox import Toolbox
from tests.unit.tools.support import book, outside, refuse_to_save, within

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.kernel.events import InputRequested
    from cellwright.tools.tool import ToolCaller
    from tests.memory_kernel import MemoryKernel
    from tests.unit.tools.conftest import Call


def write(folder: Path, *sources: str) -> None:
    (folder / "nb.ipynb").write_bytes(book(*sources))


def cells(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "nb.ipynb").read_bytes())["cells"]
    return found


async def test_all_code_cells_are_run_and_their_outputs_are_in_the_file(
    call: Call, folder: Path
) -> None:
    write(folder, "print one", "result two")
    answer = await call("notebook_run", path="nb.ipynb")
    lines = outside(answer.text)
    assert lines[0] == "Ran 2 cells: 2 ok."
    assert lines[1].startswith("cell 0 · id c0 · ok · [1] · 0.")
    assert answer.data["done"]
    assert [row["status"] for row in answer.data["executions"]] == ["ok", "ok"]
    assert "one" in within(answer.text)
    assert [cell["execution_count"] for cell in cells(folder)] == [1, 2]


@pytest.mark.parametrize(
    ("words", "ran"),
    [
        ({"cells": ["c1"]}, ["c1"]),
        ({"cells": [0, "2-3"]}, ["c0", "c2", "c3"]),
        ({"which": "all"}, ["c0", "c1", "c2", "c3"]),
        ({"which": "stale"}, ["c0", "c1", "c2", "c3"]),
        ({"which": "above", "cell": "c2"}, ["c0", "c1"]),
        ({"which": "below", "cell": 2}, ["c2", "c3"]),
        ({"cells": []}, ["c0", "c1", "c2", "c3"]),
        ({"cells": ["c1"], "which": "all"}, ["c1"]),
        ({"cells": 3}, ["c3"]),
        ({"cells": "[1, 3]"}, ["c1", "c3"]),
        ({"cells": "c1, 3"}, ["c1", "c3"]),
        ({"cells": "1-2"}, ["c1", "c2"]),
        ({"cells": [1.0, "2"]}, ["c1", "c2"]),
    ],
)
async def test_cells_are_chosen(
    words: dict[str, Any], ran: list[str], call: Call, folder: Path
) -> None:
    write(folder, *(f"print {at}" for at in range(4)))
    answer = await call("notebook_run", path="nb.ipynb", **words)
    assert not answer.is_error, answer.text
    assert [row["cell"] for row in answer.data["executions"]] == ran
    assert answer.text.startswith("Ran" if ran else "Nothing to run.")


async def test_a_cell_that_fails_is_the_first_thing_said(call: Call, folder: Path) -> None:
    write(folder, "print one", "raise Oops too bad", "print two")
    answer = await call("notebook_run", path="nb.ipynb")
    assert answer.is_error
    assert outside(answer.text)[0] == "FAILED at cell 1 (c1): 1 ok, 1 error, 1 pending."
    assert "Oops" in "".join(outside(answer.text))
    assert "too bad" not in "".join(outside(answer.text))  # that is the notebook's word
    assert "too bad" in within(answer.text)
    answer = await call("notebook_run", path="nb.ipynb", keep_going=True)
    assert [row["status"] for row in answer.data["executions"]] == ["ok", "error", "ok"]


async def test_a_run_that_takes_long_is_answered_by_the_deadline_and_can_be_followed(
    call: Call, folder: Path, stuck: asyncio.Event
) -> None:
    write(folder, "print before", "input go on?", "print after")
    gate = asyncio.Event()

    async def ask(_: InputRequested) -> str:
        stuck.set()
        await gate.wait()
        return "yes"

    caller = replace(call.caller, ask=ask)
    box = Toolbox(PROFILES["native"])
    answer = await box.call("notebook_run", {"path": "nb.ipynb", "wait": 0.05}, caller)
    assert not answer.is_error
    assert not answer.data["done"]
    run = answer.data["run"]
    assert f"Still running as {run}: notebook_run with run={run} waits for it" in answer.text
    more = await call("notebook_run", run=run, wait=0.1)
    assert not more.data["done"]
    for each in (answer, more):
        assert re.match(r"RUNNING cell 1 \(c1\) for \d+ s: 1 ok, 1 running", outside(each.text)[0])
        assert "before" in within(each.text)
    gate.set()
    last = await call("notebook_run", run=run, wait=20)
    assert last.data["done"]
    assert outside(last.text)[0] == "Ran 3 cells: 3 ok."
    assert "after" in within(last.text)


@pytest.mark.usefixtures("stuck")
async def test_a_run_that_goes_on_shows_what_its_cell_has_said(call: Call, folder: Path) -> None:
    write(folder, "print so far\nsleep 600")
    answer = await call("notebook_run", path="nb.ipynb", wait=0.05)
    more = await call("notebook_run", run=answer.data["run"], wait=0)
    for each in (answer, more):
        assert "so far" in within(each.text)
    await call("notebook_run", run=answer.data["run"], cancel=True)


@pytest.mark.usefixtures("stuck")
async def test_a_run_that_waits_says_so_and_for_which_run(call: Call, folder: Path) -> None:
    write(folder, "sleep 600", "print two")
    first = (await call("notebook_run", path="nb.ipynb", wait=0.05)).data["run"]
    answer = await call("notebook_run", path="nb.ipynb", cells=["c1"], wait=0)
    more = await call("notebook_run", run=answer.data["run"], wait=0)
    for each in (answer, more):
        head, why = outside(each.text)[:2]
        assert head == "WAITING: 1 pending."
        assert why == f"Another run of the notebook goes first: {first}."
    for run in (answer.data["run"], first):
        await call("notebook_run", run=run, cancel=True)


@pytest.mark.usefixtures("stuck")
async def test_a_run_can_be_cancelled(call: Call, folder: Path) -> None:
    write(folder, "print before", "sleep 600", "print after")
    answer = await call("notebook_run", path="nb.ipynb", wait=0.05)
    last = await call("notebook_run", run=answer.data["run"], cancel=True)
    assert last.is_error
    assert [row["status"] for row in last.data["executions"]] == ["ok", "cancelled", "pending"]


async def test_a_cancelled_call_stops_its_run(call: Call, folder: Path) -> None:
    write(folder, "sleep 600")
    task = asyncio.ensure_future(call("notebook_run", path="nb.ipynb"))
    while not (await call.caller.workspace.runs()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (run,) = await call.caller.workspace.runs()
    assert run.ended is not None


async def test_input_is_answered_from_a_list_or_by_asking(call: Call, folder: Path) -> None:
    write(folder, "input name?\ninput more?")
    answer = await call("notebook_run", path="nb.ipynb", answers=["Ada", "Bob"])
    assert "Ada\nBob" in within(answer.text)
    asked: list[str] = []

    async def ask(request: InputRequested) -> str:
        asked.append(request.prompt)
        return "Eve"

    caller = replace(call.caller, ask=ask)
    words = {"path": "nb.ipynb", "answers": ["Ada"]}
    answer = await Toolbox(PROFILES["native"]).call("notebook_run", words, caller)
    assert "Ada\nEve" in within(answer.text)
    assert asked == ["more?"]


@pytest.mark.parametrize("answers", [[], ["Ada"]])
async def test_input_without_an_answer_raises(answers: list[str], call: Call, folder: Path) -> None:
    write(folder, "\n".join(["input name?"] * (len(answers) + 1)) + "\nprint deleted")
    async with asyncio.timeout(30):
        answer = await call("notebook_run", path="nb.ipynb", answers=answers)
    assert answer.data["executions"][0]["error"] == {"ename": "StdinNotImplementedError"}
    assert "deleted" not in within(answer.text)
    assert "The cell called input(), and there was no answer to give it" in answer.text


async def test_a_check_writes_nothing_and_says_what_differs(call: Call, folder: Path) -> None:
    write(folder, "print one")
    await call("notebook_run", path="nb.ipynb")
    same = await call("notebook_run", path="nb.ipynb", check=True)
    assert not same.is_error
    assert "check: same" in same.text
    await call(
        "notebook_edit", path="nb.ipynb", edits=[{"op": "replace", "cell": 0, "source": "print 1"}]
    )
    before = (folder / "nb.ipynb").read_bytes()
    other = await call("notebook_run", path="nb.ipynb", check=True)
    assert other.is_error
    assert outside(other.text)[0] == "Checked 1 cell: 1 with other outputs than the file has."
    assert "-[stdout] one" in within(other.text)
    assert "+[stdout] 1" in within(other.text)
    assert other.data["executions"][0]["check"] == "differs"
    assert (folder / "nb.ipynb").read_bytes() == before


async def test_a_restart_gives_a_fresh_kernel(
    call: Call, folder: Path, kernels: list[MemoryKernel]
) -> None:
    write(folder, "get x")
    await call("eval", cells=[{"code": "set x 1"}])
    await call("notebook_run", path="nb.ipynb")
    starts = sum(kernel.starts for kernel in kernels)
    await call("notebook_run", path="nb.ipynb", restart=True)
    assert sum(kernel.starts for kernel in kernels) > starts


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({}, "give a path"),
        ({"path": "nb.ipynb", "cells": [0], "which": "stale"}, "not both"),
        ({"path": "nb.ipynb", "which": "above"}, "needs `cell`"),
        ({"path": "nb.ipynb", "cell": 0}, "`cell` goes with"),
        ({"path": "nb.ipynb", "cancel": True}, "cancel needs `run`"),
        ({"path": "nb.ipynb", "wait": -1}, "greater than or equal"),
    ],
)
async def test_parameters_that_contradict_each_other(
    words: dict[str, Any], part: str, call: Call
) -> None:
    answer = await call("notebook_run", **words)
    assert answer.data["code"] == "INVALID_PARAMETERS"
    assert part in answer.text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"run": "r00000000"}, "RUN_NOT_FOUND"),
        ({"path": "nb.ipynb", "cells": ["intro"]}, "INVALID_CELL"),
        ({"path": "nb.ipynb", "cells": ["lod"]}, "CELL_NOT_FOUND"),
        ({"path": "nob.ipynb"}, "NOTEBOOK_NOT_FOUND"),
    ],
)
async def test_what_cannot_be_run(words: dict[str, Any], code: str, call: Call) -> None:
    assert (await call("notebook_run", **words)).data["code"] == code


async def test_progress_is_told_while_cells_run(caller: ToolCaller, folder: Path) -> None:
    write(folder, "print one")
    told: list[dict[str, Any]] = []
    watching = replace(caller, progress=told.append)
    await Toolbox(PROFILES["native"]).call("notebook_run", {"path": "nb.ipynb"}, watching)
    assert "run" in told[0]
    assert any(event.get("status") == "running" for event in told)


# --- kernel --------------------------------------------------------------------------------------


async def test_kernels_are_listed_and_looked_after(call: Call, folder: Path) -> None:
    write(folder, "print one")
    assert (await call("kernel")).text == "No kernel runs; one starts when needed."
    await call("notebook_run", path="nb.ipynb")
    answer = await call("kernel")
    assert answer.text.startswith("1 kernel running.\n")
    assert "idle · memory · 1 execution · 0 waiting" in answer.text
    interrupted = await call("kernel", action="interrupt", path="nb.ipynb")
    assert interrupted.text.endswith("Nothing was running.")
    restarted = await call("kernel", action="restart", path="nb.ipynb")
    assert restarted.text.endswith("Restarted: its variables are gone.")
    ended = await call("kernel", action="shutdown", path="nb.ipynb")
    assert ended.text.endswith("Shut down: its variables are gone.")


async def test_kernels_to_choose_from(call: Call) -> None:
    answer = await call("kernel", action="specs")
    assert answer.text.startswith("Kernels that can be started:")
    assert not answer.is_error


async def test_a_kernel_that_is_not_there(call: Call) -> None:
    answer = await call("kernel", action="restart", session="nobody")
    assert answer.data["code"] == "SESSION_NOT_FOUND"


# --- eval ----------------------------------------------------------------------------------------


async def test_code_is_run_in_a_session_that_keeps_its_state(call: Call) -> None:
    answer = await call("eval", cells=[{"code": "set x 5"}, {"code": "get x", "title": "look"}])
    lines = outside(answer.text)
    assert lines[0] == "Done."
    assert lines[2].startswith("cell 1 (look) · ok · ")
    assert "5" in within(answer.text)
    again = await call("eval", cells=[{"code": "get x"}])
    assert "5" in within(again.text)
    other = await call("eval", cells=[{"code": "get x"}], session="other")
    assert other.is_error
    reset = await call("eval", cells=[{"code": "get x", "reset": True}])
    assert outside(reset.text)[0] == "FAILED at cell 0: error. NameError."


async def test_cells_after_a_failure_are_not_run(call: Call) -> None:
    answer = await call("eval", cells=[{"code": "raise Oops x"}, {"code": "print y"}])
    assert [row["status"] for row in answer.data["cells"]] == ["error", "pending"]


@pytest.mark.usefixtures("stuck")
async def test_eval_that_takes_long_can_be_followed_and_stopped(call: Call) -> None:
    answer = await call("eval", cells=[{"code": "print a\nsleep 600", "timeout": 0}], wait=0.05)
    assert not answer.data["done"]
    assert outside(answer.text)[0] == "Not done yet."
    run = answer.data["run"]
    more = await call("notebook_run", run=run, wait=0.1)
    assert not more.data["done"]
    for each in (answer, more):
        assert [row["status"] for row in each.data["cells"]] == ["running"]
        assert within(each.text) == "a"
    last = await call("notebook_run", run=run, cancel=True)
    assert last.data["done"]
    assert last.data["cells"][0]["status"] == "cancelled"
    assert "a" in within(last.text)


async def test_long_output_of_eval_is_cut_with_its_artifact(call: Call) -> None:
    answer = await call("eval", cells=[{"code": "flood 50000"}], max_tokens=1000)
    last = outside(answer.text)[-1]
    assert last.startswith("LEFT OUT: parts of 50,000 lines; notebook_outputs with artifact=")
    part = await call("notebook_outputs", artifact=last.rpartition("artifact=")[2])
    assert "0\n1\n2\n" in part.text


async def test_pictures_and_json_of_eval(call: Call) -> None:
    from base64 import b64encode

    from tests.unit.tools.support import png

    data = b64encode(png()).decode()
    code = f"show image/png {data}"
    answer = await call("eval", cells=[{"code": code}])
    assert len(answer.images) == 1
    assert data not in answer.text
    assert "picture: image/png" in answer.text


async def test_input_of_eval(call: Call) -> None:
    answer = await call("eval", cells=[{"code": "input name?"}], answers=["Ada"])
    assert "Ada" in within(answer.text)


async def test_a_tool_that_is_not_there_is_answered_with_those_that_are(call: Call) -> None:
    answer = await call("notebook_reed", path="nb.ipynb")
    assert answer.is_error
    assert "Did you mean notebook_read" in answer.text
    assert "There are notebook_list" in answer.text


async def test_cells_in_a_row_that_said_nothing_are_one_line(call: Call, folder: Path) -> None:
    write(folder, "print one", *["set a 1"] * 5, "print two", "set a 2")
    answer = await call("notebook_run", path="nb.ipynb")
    lines = outside(answer.text)
    assert [line.split(" · ")[0] for line in lines[1:]] == [
        "cell 0",
        "cells 1-5",
        "cell 6",
        "cell 7",
    ]
    assert lines[2].startswith("cells 1-5 · 5 ok · ")
    assert len(answer.data["executions"]) == 8


async def test_the_last_cell_and_the_failing_one_are_shown_whatever_the_others_take(
    call: Call, folder: Path
) -> None:
    write(folder, *["print " + "many words " * 20] * 40, "raise Oops too bad", "print end")
    answer = await call("notebook_run", path="nb.ipynb", keep_going=True, max_tokens=800)
    shown = [line.split(" · ")[0] for line in outside(answer.text)]
    assert {"cell 0", "cell 40", "cell 41"} <= set(shown)
    assert "of the run" in answer.text


@pytest.mark.usefixtures("stuck")
@pytest.mark.parametrize(("action", "word"), [("restart", "restarted"), ("shutdown", "shut down")])
async def test_a_kernel_that_is_taken_from_a_run_is_told_as_what_it_is(
    action: str, word: str, call: Call, folder: Path
) -> None:
    write(folder, "set a 1", "print so far\nsleep 600", "print after")
    (folder / "other.ipynb").write_bytes(book("print other"))
    begun = await call("notebook_run", path="nb.ipynb", wait=0.05)
    await call("notebook_run", path="other.ipynb")
    other = await call("kernel", path="other.ipynb", action=action)
    assert "was running" not in other.text
    done = await call("kernel", path="nb.ipynb", action=action)
    assert "Its cell c1 was running, and is stopped." in done.text
    last = await call("notebook_run", run=begun.data["run"], wait=20)
    assert [row["status"] for row in last.data["executions"]] == ["ok", "cancelled", "pending"]
    assert f"The kernel was {word} while the cell ran; its variables are lost" in last.text
    assert "interrupted" not in last.text


@pytest.mark.usefixtures("stuck")
async def test_a_session_that_is_restarted_under_eval_is_told_as_what_it_is(call: Call) -> None:
    begun = await call("eval", cells=["sleep 600"], session="s", wait=0.05)
    await call("kernel", session="s", action="restart")
    last = await call("notebook_run", run=begun.data["run"], wait=20)
    assert "The kernel was restarted while the cell ran; its variables are lost" in last.text


@pytest.mark.parametrize("word", ["notebook", "session"])
async def test_eval_runs_in_the_kernel_of_a_notebook_and_leaves_its_file_alone(
    word: str, call: Call, folder: Path
) -> None:
    write(folder, "set x 1", "get x")
    await call("notebook_run", path="nb.ipynb", cells=[0])
    before = (folder / "nb.ipynb").read_bytes()
    seen = await call("eval", cells=["get x", "set x 2"], **{word: "nb.ipynb"})
    assert not seen.is_error, seen.text
    assert within(seen.text) == "1"
    assert (folder / "nb.ipynb").read_bytes() == before
    ran = await call("notebook_run", path="nb.ipynb", cells=[1])
    assert within(ran.text).endswith("2")
    sessions = (await call("kernel")).data["sessions"]
    assert [row["session"] for row in sessions] == [str(folder / "nb.ipynb")]


async def test_eval_in_a_notebook_that_is_not_there_is_refused(call: Call) -> None:
    for words in ({"notebook": "gone.ipynb"}, {"session": "gone.ipynb"}):
        answer = await call("eval", cells=["print 1"], **words)
        assert answer.data["code"] == "NOTEBOOK_NOT_FOUND"
    answer = await call("eval", cells=["print 1"], notebook="../nb.ipynb")
    assert answer.data["code"] == "OUTSIDE_ROOT"
    assert (await call("kernel")).data["sessions"] == []


async def test_what_is_left_out_of_unsaved_outputs_is_in_the_artifact(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "print " + "long " * 20_000)
    refuse_to_save(monkeypatch)
    done = await call("notebook_run", path="nb.ipynb")
    assert done.is_error
    assert "notebook_outputs with artifact=artifact://" in done.text
    assert "outputs in the notebook" not in done.text
