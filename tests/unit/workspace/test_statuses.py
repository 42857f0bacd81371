"""How every cell stands: from what runs, what the journal knows, and what Jupyter wrote."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from cellwright import Workspace
from cellwright.document._bytes.slots import Slot
from cellwright.document.change import State
from cellwright.document.notebook import Notebook
from cellwright.errors import ExecutionCancelled, JournalUnavailable
from cellwright.journal import Journal
from cellwright.journal.executions import ExecutionRecord
from cellwright.workspace.activity import act_for
from cellwright.workspace.api.answers import CellView, LastRun
from cellwright.workspace.staleness import find_replay_cells, find_stale_cells
from cellwright.workspace.status import describe_cell, describe_notebook
from tests.unit.workspace.memory import cells_of, make_notebook, run

if TYPE_CHECKING:
    from pathlib import Path

STREAM = {"output_type": "stream", "name": "stdout", "text": "x"}
ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}


def notebook(**members: Any) -> Notebook:
    cell = {
        "cell_type": "code",
        "id": "c",
        "metadata": {},
        "source": "x",
        "execution_count": None,
        "outputs": [],
        **members,
    }
    text = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "y"}
    shape = {"cells": [cell, text], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return Notebook(json.dumps(shape).encode())


def ran(status: str = "ok", count: int | None = 1, began: float = 1000.0) -> ExecutionRecord:
    return ExecutionRecord(
        cell="c",
        index=0,
        hash="",
        source="x",
        kernel="k",
        status=status,
        count=count,
        began=began,
        seconds=1.5,
        actor="test:ada",
        order=1,
    )


def jupyter(began: float, ended: float) -> dict[str, Any]:
    """What JupyterLab writes when it records timing."""
    first, last = (
        f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%fZ}" for moment in (began, ended)
    )
    return {
        "execution": {
            "iopub.execute_input": first,
            "iopub.status.busy": first,
            "iopub.status.idle": last,
            "shell.execute_reply": last,
        }
    }


def described(
    recorded: ExecutionRecord | None = None, now: str | None = None, **members: Any
) -> CellView:
    return describe_cell(notebook(**members).cells[0], recorded, now)


def last(began: float | None, ended: float | None, status: str = "ok") -> LastRun:
    duration = None if began is None or ended is None else round((ended - began) * 1000)
    return LastRun(status, began, ended, duration, status == "ok")


@pytest.mark.parametrize(
    ("members", "recorded", "status", "run"),
    [
        # Nobody knows anything.
        ({}, None, "never", None),
        # The file alone.
        ({"execution_count": 1}, None, "ok", last(None, None)),
        ({"outputs": [ERROR]}, None, "error", last(None, None, "error")),
        # The journal, whose words are more than the file can say.
        ({"execution_count": 1}, ran(), "ok", last(1000, 1001.5)),
        ({"execution_count": 1}, ran("timed_out"), "timed_out", last(1000, 1001.5, "timed_out")),
        ({}, ran("died", None), "died", last(1000, 1001.5, "died")),
        # Outputs were cleared, and the run took place all the same.
        ({}, ran("ok", 7), "ok", last(1000, 1001.5)),
        # Somebody else ran it since.
        ({"execution_count": 9, "outputs": [ERROR]}, ran(), "error", last(None, None, "error")),
        # Jupyter wrote down when.
        (
            {"execution_count": 9, "metadata": jupyter(2000, 2002)},
            ran(),
            "ok",
            last(2000, 2002),
        ),
        ({"execution_count": 1, "metadata": jupyter(2000, 2002)}, None, "ok", last(2000, 2002)),
        ({"execution_count": 1, "metadata": jupyter(2000, 2002)}, ran(), "ok", last(2000, 2002)),
        # It did, of a run before ours.
        ({"execution_count": 1, "metadata": jupyter(10, 20)}, ran(), "ok", last(1000, 1001.5)),
        # Times that make no sense are no times.
        (
            {"execution_count": 1, "metadata": {"execution": {"shell.execute_reply": "soon"}}},
            None,
            "ok",
            last(None, None),
        ),
        ({"execution_count": 1, "metadata": {"execution": []}}, None, "ok", last(None, None)),
    ],
)
def test_the_best_witness_is_heard(
    members: dict[str, Any], recorded: ExecutionRecord | None, status: str, run: LastRun | None
) -> None:
    found = described(recorded, **members)
    assert (found.status, found.last_run) == (status, run)
    assert found.execution_count == members.get("execution_count")
    assert found.has_output == bool(members.get("outputs"))


def test_what_runs_or_waits_now_is_said_beside_its_last_run() -> None:
    found = described(ran(), "running", execution_count=1)
    assert (found.status, found.last_run and found.last_run.status) == ("running", "ok")
    assert described(None, "pending").status == "pending"
    assert described(ran(), "idle", execution_count=1).status == "ok"


def test_a_run_that_is_over_without_a_word_has_died() -> None:
    recorded = ran("running", None)
    assert described(recorded, outputs=[STREAM]).status == "running"  # elsewhere, perhaps
    found = described(recorded, "idle", outputs=[STREAM])
    assert (found.status, found.last_run) == ("died", last(1000.0, None, "died"))


def test_a_notebook_tells_it_of_every_code_cell_and_staleness_on_request() -> None:
    found = notebook(source="x = 2", execution_count=1)
    answer = describe_notebook(found, "nb", [ran()], {"c": "running"})
    code, text = answer.cells
    assert code.status == "running"
    assert "stale" not in code.to_json()
    assert (text.status, text.execution_count, "last_run" in text.to_json()) == (None, None, False)
    code = describe_notebook(found, "nb", [ran()], {}, stale=True).cells[0]
    assert (code.status, code.stale) == ("ok", True)
    assert code.stale_reason == "It was edited since it ran."
    code = describe_notebook(notebook(), "nb", [], stale=True).cells[0]
    assert (code.status, code.stale, code.stale_reason) == ("never", False, None)


# -- as it happens ------------------------------------------------------------------------------


async def test_statuses_survive_the_process(folder: Path, runner: Workspace) -> None:
    make_notebook(folder, "print a", "raise E x", "print c")
    await run(runner.open("m.ipynb"))
    with Workspace(folder) as later:
        book = later.open("m.ipynb")
        runs = later.caller.journal.executions(book.real)
        cells = describe_notebook(book.load(), "m.ipynb", runs, {}).cells
    assert [cell.status for cell in cells] == ["ok", "error", "never"]
    assert [cell.last_run and cell.last_run.success for cell in cells] == [
        True,
        False,
        None,
    ]
    assert all(cell.last_run and cell.last_run.duration_ms is not None for cell in cells[:2])


def test_a_journal_that_cannot_be_read_is_no_witness(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("in the way of a folder")
    with (
        Journal(path / "journal.sqlite3") as journal,
        Workspace(cwd=str(tmp_path), journal=journal) as workspace,
    ):
        assert workspace.caller.open("nb.ipynb").list_executions() == []
        with pytest.raises(JournalUnavailable):
            journal.executions("nb.ipynb")


async def test_the_times_that_jupyter_keeps_in_a_cell_are_kept_true(
    folder: Path, runner: Workspace
) -> None:
    kept = {**jupyter(10, 20), "tags": ["x"]}
    kept["execution"]["theirs"] = "stays"
    make_notebook(folder, "print a", "print b", c0={"metadata": kept})
    book = runner.open("m.ipynb")
    before = datetime.now(UTC).timestamp()
    await run(book)
    first, second = cells_of(book)
    assert (first["metadata"]["tags"], first["metadata"]["execution"]["theirs"]) == (["x"], "stays")
    assert list(first["metadata"]["execution"]) == list(kept["execution"])
    runs = runner.caller.journal.executions(book.real)
    cell = describe_notebook(book.load(), "m.ipynb", runs, {}).cells[0]
    assert cell.last_run is not None
    assert cell.last_run.ended is not None
    assert before - 0.001 <= cell.last_run.ended <= datetime.now(UTC).timestamp()
    assert second["metadata"] == {}  # where Jupyter does not write them, nor do we


async def test_what_died_with_its_process_is_not_called_running(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, "print a")
    book = runner.open("m.ipynb")
    await run(book)
    runner.caller.hub.leases.own(book.real)
    real = runner.caller.journal.executions(book.real)[-1]
    unfinished = replace(real, status="running", seconds=0.0)
    with Workspace(folder) as later, patch.object(Journal, "executions", lambda *_: [unfinished]):
        found = later.open("m.ipynb").read(stale=True).cells[0]
        assert found.status == "running"  # another process owns it
        assert found.stale_reason == "It is still running."
        runner.caller.hub.leases.release(book.real)
        found = later.open("m.ipynb").read(stale=True).cells[0]
        assert (found.status, found.stale_reason) == ("died", "The kernel died while it ran.")
        assert later.open("m.ipynb").stale().cells[0].stale_reason == found.stale_reason


def test_staleness_is_judged_anew_when_anything_that_counts_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cellwright.workspace import staleness

    judge, judged = staleness.staleness, 0

    def count(*args: Any, **options: Any) -> Any:
        nonlocal judged
        judged += 1
        return judge(*args, **options)

    monkeypatch.setattr(staleness, "staleness", count)
    monkeypatch.setattr(staleness, "_recent", ())
    here, edited = notebook(source="x"), notebook(source="x + 1")
    running = ran("running")
    questions: list[tuple[Notebook, list[ExecutionRecord], dict[str, Any]]] = [
        (here, [ran()], {}),
        (here, [], {}),
        (edited, [ran()], {}),
        (here, [ran("error")], {}),
        (here, [running], {"now": {}}),
        (here, [running], {"now": {"c": "running"}}),
    ]
    found = []
    for number, (book, runs, options) in enumerate(questions, start=1):
        first = staleness.describe_staleness(book, runs, **options)
        assert staleness.describe_staleness(book, runs, **options) == first
        assert judged == number
        found.append(first[0].state if not first[0].reasons else first[0].reasons[0].kind)
    assert found == ["unknown_name", "never", "edited", "failed", "failed", "running"]


def test_after_an_edit_the_other_cells_are_as_they_were_and_the_answer_as_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cellwright.workspace import staleness

    monkeypatch.setattr(staleness, "_recent", ())
    texts = ["x = 1", "y = x + 1", "z = 3", "print(z)", "print(y)"]
    book = Notebook()
    book.apply([{"op": "insert", "source": text, "id": f"c{k}"} for k, text in enumerate(texts)])
    runs = [replace(ran(), cell=f"c{k}", source=text, order=k) for k, text in enumerate(texts[:4])]
    staleness.describe_staleness(book, runs)
    for edit in (
        {"op": "replace", "cell": "c4", "source": "print(y, y)"},
        {"op": "replace", "cell": "c0", "source": "x = 2"},
        {"op": "move", "cell": "c1", "after": "c4"},
        {"op": "delete", "cell": "c2"},
    ):
        book.apply(edit)
        found = staleness.describe_staleness(book, runs)
        with monkeypatch.context() as nothing:
            nothing.setattr(staleness, "_recent", ())
            assert staleness.describe_staleness(book, runs) == found


def test_a_cell_is_described_as_it_is_now_whatever_was_described_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cellwright.workspace import status

    monkeypatch.setattr(status, "_views", status.KeptRows())
    chance = random.Random(1)
    book = Notebook()
    book.apply([{"op": "insert", "source": f"x{k}", "id": f"c{k}"} for k in range(20)])
    books = [Notebook(book.to_bytes(), path="a.ipynb"), Notebook(book.to_bytes(), path="b.ipynb")]
    runs: list[ExecutionRecord] = []
    again = 0
    for turn in range(300):
        which, number = chance.randrange(2), chance.randrange(15)
        book = books[which]
        match chance.choice(["replace"] * 5 + ["move", "insert", "run", "run", "nothing"]):
            case "replace":
                book.apply([{"op": "replace", "cell": number, "source": f"y{turn}"}])
            case "move":
                book.apply([{"op": "move", "cell": number, "at": 0}])
            case "insert":
                book.apply([{"op": "insert", "source": f"z{turn}"}])
            case "run":
                kind = chance.choice(["ok", "error", "running"])
                runs.append(replace(ran(kind), cell=f"c{number}", order=turn))
            case _:  # as after a change that moves cells, the file is read again
                book = books[which] = Notebook(book.to_bytes(), path=book.path)
        now = chance.choice([None, {}, {f"c{number}": "running"}])
        with patch.object(status, "describe_cell", wraps=status.describe_cell) as describe:
            found = describe_notebook(book, "n.ipynb", runs, now)
        again += describe.call_count < len(book.cells)
        with monkeypatch.context() as nothing:
            nothing.setattr(status, "_views", status.KeptRows())
            assert describe_notebook(book, "n.ipynb", runs, now) == found
        found.cells.clear()  # the caller's own list
    assert again > 30


def test_a_cell_whose_name_changes_because_of_another_is_described_again() -> None:
    made = Notebook()
    made.apply([{"op": "insert", "source": "x", "id": each} for each in ("a", "b")])
    book = Notebook(made.to_bytes(), path="n.ipynb")
    assert [cell.handle for cell in describe_notebook(book, "n").cells] == ["a", "b"]
    layout = book.state.layout
    twin = Slot.of(book.cells[0].raw.replace(b'"a"', b'"b"'))
    book.become(State(layout.with_replaced({0: twin})))
    assert [cell.handle for cell in describe_notebook(book, "n").cells] == ["cell-0", "cell-1"]


def test_a_reader_does_not_wait_for_staleness_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that is late from the start: the analysis of many names looks at it."""
    source = "\n".join(f"a{number} = a{number - 1} + 1" for number in range(1, 1000))
    found = notebook(source=source)
    monkeypatch.setattr("cellwright.workspace.status.STALE_SECONDS", 60.0)
    whole = describe_notebook(found, "n.ipynb", [ran()], stale=True)
    assert (whole.staleness, whole.cells[0].stale) == (None, True)
    monkeypatch.setattr("cellwright.workspace.status.STALE_SECONDS", -1.0)
    known = describe_notebook(found, "n.ipynb", [ran()], stale=True)  # as it was found before
    assert (known.staleness, known.cells[0].stale) == (None, True)
    never = describe_notebook(notebook(source=f"{source}\n1"), "n.ipynb", [], stale=True)
    assert (never.staleness, never.cells[0].stale) == (None, False)  # there is nothing to find out
    again = replace(ran(), order=2)
    late = describe_notebook(found, "n.ipynb", [again], stale=True)
    assert (late.staleness, late.cells[0].stale) == ("not analysed", None)
    assert late.to_json()["staleness"] == "not analysed"
    assert "staleness" not in describe_notebook(found, "n.ipynb", [ran()]).to_json()


def test_an_analysis_that_no_one_waits_for_ends() -> None:
    notebook = Notebook()
    notebook.apply([{"op": "insert", "source": f"x{n + 1} = x{n}"} for n in range(40)])
    with act_for("gone", lambda: True):
        with pytest.raises(ExecutionCancelled):
            find_stale_cells(notebook, [])
        with pytest.raises(ExecutionCancelled):
            find_replay_cells(notebook, [], notebook.cells[30])
