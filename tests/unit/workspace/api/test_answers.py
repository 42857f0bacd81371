"""The JSON of answers is a public interface: its fields, and their order, are written down here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cellwright.document.change import CellChange
from cellwright.journal.executions import ExecutionRecord
from cellwright.journal.history import Backup, Entry
from cellwright.workspace.api import answers
from cellwright.workspace.api.answers import (
    AttachAnswer,
    CellView,
    EvalAnswer,
    KernelSpecView,
    LastRun,
    RunView,
)
from cellwright.workspace.api.values import Value
from cellwright.workspace.hosts.host import Presence
from cellwright.workspace.runs.execution import CellError, Execution, Executions, ExitView

# Fields with a question mark are left out while they are None.
RUN = "run kind subject actor state began ended seconds cells error status"
DIFF = "path before revision cells diff"
SESSION = (
    "session cwd kind state owners executions waiting idle_seconds created kernel transport "
    "language pid server"
)
SHAPES: dict[type[Value], str] = {
    answers.ArtifactAnswer: (
        "id mime size sha256 created name origin original_bytes truncated offset next_offset "
        "text? base64?"
    ),
    answers.AttachAnswer: f"{RUN} done answer cancelled?",
    answers.BlameAnswer: "index handle type change kind actor label when",
    answers.CellChangeView: "kind handle type before after follows?",
    answers.CellOutputs: "index id handle type execution_count outputs text left_out",
    answers.CellStaleness: "index cell state stale_reason reasons warnings",
    answers.DiffAnswer: DIFF,
    answers.EditAnswer: (
        f"{DIFF} change changed saved host backup others warnings concerns? run? done? "
        "executions? outputs? stale?"
    ),
    answers.EvalAnswer: "session cells run done",
    answers.ExecutionText: "cell text left_out",
    answers.ForgetAnswer: "path notebooks changes revisions executions artifacts left",
    answers.KernelAnswer: f"{SESSION} interrupted? variables? kernels?",
    answers.RemoteKernelView: "id name state",
    answers.LastRun: "status began ended duration_ms success",
    answers.NotebookRow: "path size person?",
    answers.OtherActor: "actor did seconds",
    answers.OutlineRow: "kind level title first last cell handle id type has_outputs",
    answers.OutputsAnswer: "path revision cells cells_left_out",
    answers.ReadAnswer: "path revision nbformat cells others text? staleness? person?",
    answers.RunFailure: "code message",
    answers.RunView: RUN,
    answers.SelectAnswer: ("path revision? selector total_lines total_cells lines outline text"),
    answers.SessionView: SESSION,
    answers.StaleAnswer: "path cells",
    answers.StaleCell: "cell index reason",
    answers.StaleReason: "kind text names",
    answers.TextLine: "number text context",
    Presence: "active selected mode focused dirty seen?",
    answers.Variable: "name type size value",
    answers.WatchAnswer: "events",
    ExitView: "code signal out_of_memory",
}
# These are more than their fields, and have tests of their own below.
OWN = {CellView, KernelSpecView, CellError, Execution}


def all_answers() -> set[type[Value]]:
    return {
        value
        for value in vars(answers).values()
        if isinstance(value, type) and issubclass(value, Value) and value is not Value
    }


def test_every_answer_is_written_down() -> None:
    assert all_answers() <= {*SHAPES, *OWN}


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.__name__)
def test_the_fields_of_an_answer_are_those_that_are_written_down(kind: type[Value]) -> None:
    written = SHAPES[kind].split()
    full = kind(**dict.fromkeys(kind.FIELDS, 1))
    if kind is AttachAnswer:
        full = full.replace(answer=None)
    assert list(full.to_json()) == [name.rstrip("?") for name in written]
    empty = kind(**dict.fromkeys(kind.FIELDS))
    assert list(empty.to_json()) == [name for name in written if not name.endswith("?")]
    assert kind.from_json(json.loads(json.dumps(empty.to_json()))) == empty


ABOUT_CELL = "index id handle type source hash execution_count status"


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({}, ABOUT_CELL),
        ({"has_output": False}, f"{ABOUT_CELL} has_output last_run"),
        (
            {"has_output": True, "last_run": LastRun("ok", 1.0, 2.0, 1000, True)},
            f"{ABOUT_CELL} has_output last_run",
        ),
        (
            {"has_output": True, "stale": True, "stale_reason": "It was edited."},
            f"{ABOUT_CELL} has_output last_run stale stale_reason",
        ),
        ({"problem": "broken"}, f"{ABOUT_CELL} problem"),
    ],
)
def test_a_cell_has_the_fields_of_its_type(more: dict[str, Any], fields: str) -> None:
    cell = CellView(0, "a", "a", "code", "x", "hash", **more)
    assert list(cell.to_json()) == fields.split()
    assert CellView.from_json(json.loads(json.dumps(cell.to_json()))) == cell


def test_a_kernel_or_why_there_is_none() -> None:
    found = KernelSpecView("python3", "Python 3", "python", "user", "/bin/python", None, True, "x")
    fields = "name display_name language origin python folder default why"
    assert list(found.to_json()) == fields.split()
    missing = KernelSpecView(default=True, problem="no kernel", hint="install one")
    assert list(missing.to_json()) == ["default", "problem", "hint"]
    for each in (found, missing):
        assert KernelSpecView.from_json(each.to_json()) == each


OF_NOTEBOOK = (
    "cell index status execution_count seconds outputs error expected saved stale state_kept lost "
    "replay notes"
)
OF_EVAL = (
    "title status execution_count seconds text truncated total_lines total_bytes artifact json "
    "images events error exit state_kept replaced retried notes"
)


def test_an_execution_has_the_fields_of_a_notebooks_cell_or_of_eval() -> None:
    error = CellError("E", "x", ["E: x"], 3)
    cell = Execution("error", "a", 1, error=error, seconds=0.12345)
    shape = cell.to_json()
    assert list(shape) == OF_NOTEBOOK.split()
    assert (shape["seconds"], list(shape["error"])) == (
        0.123,
        ["ename", "evalue", "traceback", "line"],
    )
    checked = cell.replace(check={"result": "same", "diff": ""}).to_json()
    assert list(checked) == OF_NOTEBOOK.replace(" notes", " check notes").split()
    code = Execution("died", title="t", error=CellError("E", "x"), exit=ExitView(3, None, False))
    shape = code.to_json()
    assert list(shape) == OF_EVAL.split()
    assert (list(shape["error"]), shape["exit"]["code"]) == (["ename", "evalue"], 3)
    assert Execution("pending", title="t").to_json() == {"title": "t", "status": "pending"}
    for each in (cell.replace(seconds=0.5, notes=[], outputs=[], lost=[], replay=[]), code):
        again = Execution.from_json(json.loads(json.dumps(each.to_json())))
        assert again.to_json() == each.to_json()
        assert (again.error, again.exit) == (each.error, each.exit)


def test_the_answer_of_a_run_that_was_followed_is_without_what_the_run_says_itself() -> None:
    view = RunView("r1", "run", "/nb", "test:ada", "done", 1.0, 2.0, 1.0, {"a": "ok"}, None)
    done = Executions([Execution("ok", "a", 0)], run="r1", done=True)
    assert list(done.to_json()) == ["run", "done", "executions"]
    followed = AttachAnswer.extend(view, done=True, answer=done)
    assert list(followed.to_json()["answer"]) == ["executions"]
    assert followed.to_json()["cells"] == {"a": "ok"}
    again = AttachAnswer.from_json(json.loads(json.dumps(followed.to_json())))
    assert isinstance(again.answer, Executions)
    assert (again.answer.run, again.answer.done, again.answer[0].cell) == ("r1", True, "a")
    evaluated = EvalAnswer("s", [Execution("ok", title="t")], "r1", True)
    followed = AttachAnswer.extend(view, done=True, answer=evaluated)
    assert list(followed.to_json()["answer"]) == ["session", "cells"]
    again = AttachAnswer.from_json(json.loads(json.dumps(followed.to_json())))
    assert isinstance(again.answer, EvalAnswer)
    assert (again.answer.run, again.answer.session) == ("r1", "s")


def test_entries_of_the_history_have_their_fields() -> None:
    about = {
        "id": "id",
        "number": 1,
        "kind": "edit",
        "actor": "test:ada",
        "label": "label",
        "when": "2026-01-01T00:00:00+00:00",
    }
    change = CellChange("edited", "a", "code", 0, 0)
    entry = Entry(**about, before="f" * 12, after="e" * 12, cells=(change,))  # type: ignore[arg-type]
    backup = Backup(**about, revision="f" * 12)  # type: ignore[arg-type]
    ran = ExecutionRecord(
        cell="a",
        index=0,
        hash="hash",
        source="x",
        kernel="k",
        status="ok",
        count=1,
        began=1.0,
        seconds=0.5,
        actor="test:ada",
        order=1,
    )
    written: list[tuple[Any, str]] = [
        (entry, "id number kind actor label when before after cells undone_by concerns"),
        (backup, "id number kind actor label when revision"),
        (ran, "cell index hash source kernel status count began seconds actor order"),
    ]
    for value, fields in written:
        assert list(value.to_json()) == fields.split()
        assert type(value).from_json(json.loads(json.dumps(value.to_json()))) == value
    assert list(entry.to_json()["cells"][0]) == ["kind", "handle", "type", "before", "after"]
