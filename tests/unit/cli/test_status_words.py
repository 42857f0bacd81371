"""One set of words for how cells and runs are, with the same signs and colours everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.cli.commands.engine import session_rows
from cellwright.cli.commands.history import _group_runs, _log_row
from cellwright.cli.commands.run import _choose_color, _exit_code, run_row, summarize_cells
from cellwright.cli.output import STATUS_CODES, STATUS_SIGNS
from cellwright.cli.render.notebook import CellRenderer, format_seconds
from cellwright.cli.render.screen import ScreenView
from cellwright.document.change import CellChange
from cellwright.document.notebook import Notebook
from cellwright.journal.history import Entry
from cellwright.workspace.api.answers import CellView, LastRun, RunView, SessionView
from cellwright.workspace.runs.execution import Execution
from tests.unit.cli import samples

if TYPE_CHECKING:
    from rich.style import Style

STATUSES = ("never", "pending", "running", "ok", "error", "timed_out", "cancelled", "died")
FAILURES = ("error", "timed_out", "cancelled", "died")


def test_every_status_has_a_sign_and_every_end_an_exit_code() -> None:
    assert STATUS_SIGNS.keys() == set(STATUSES)
    assert all(STATUS_CODES[status] for status in FAILURES)
    assert all(STATUS_SIGNS[status][0] == "✗" for status in FAILURES)
    assert [status for status, (sign, _) in STATUS_SIGNS.items() if sign == "✓"] == ["ok"]


@pytest.mark.parametrize("status", STATUSES)
def test_show_heads_a_cell_with_its_recorded_status(status: str) -> None:
    cell = Notebook(samples.write(samples.code("a", "1"))).cells[0]
    known = {"a": CellView(0, "a", "a", "code", "1", "", status=status)}
    head = CellRenderer(ScreenView(width=60), "python", 2, known).head(cell)
    assert f"  {STATUS_SIGNS[status][0]} {status} ─" in head.plain
    styles: list[str | Style] = [
        span.style for span in head.spans if status in head.plain[span.start : span.end]
    ]
    assert len(styles) == 1


@pytest.mark.parametrize("status", ["pending", "running", "ok", *FAILURES])
def test_a_row_of_runs_has_the_word_of_its_cells(status: str) -> None:
    run = RunView("r1", "run", "/nb", "cli:ada", "done", 1.0, 2.0, 1.0, {"a": status}, None, status)
    assert run_row(run).startswith(f"r1  {STATUS_SIGNS[status][0]} {status} ")


@pytest.mark.parametrize(
    ("statuses", "text", "color", "code"),
    [
        (["ok", "ok"], "nb: 2 ok (2 cells, 1.5 s)", "green", 0),
        (["error"], "nb: 0 ok, 1 failed (1 cell, 1.5 s)", "red", 1),
        (
            ["ok", "died", "pending"],
            "nb: 1 ok, 1 failed, 1 not reached (3 cells, 1.5 s)",
            "red",
            4,
        ),
        (["ok", "pending"], "nb: 1 ok, 1 not reached (2 cells, 1.5 s)", "yellow", 124),
    ],
)
def test_the_last_line_of_a_run_counts_what_became_of_its_cells(
    statuses: list[str], text: str, color: str, code: int
) -> None:
    done = [Execution(status, "a") for status in statuses]
    assert summarize_cells(done, "nb", 1.5) == text
    assert _choose_color(done) == color
    assert _exit_code(done, is_over=True) == code


def test_an_error_that_was_expected_is_no_failure() -> None:
    done = [Execution("error", "a", expected=True)]
    assert summarize_cells(done, "nb", 0) == "nb: 0 ok, 1 failed as expected (1 cell, 0.0 s)"
    assert (_choose_color(done), _exit_code(done, is_over=True)) == ("green", 0)


def entry(number: int, kind: str, *places: int, actor: str = "cli:ada") -> Entry:
    cells = tuple(CellChange("updated", f"c{place}", "code", place, place) for place in places)
    return Entry(
        id=f"id{number}",
        number=number,
        kind=kind,
        actor=actor,
        label=f"{kind} c{places[0]}",
        when="2026-01-01T00:00:00.000Z",
        before="",
        after="",
        cells=cells,
    )


def test_the_log_has_one_row_for_the_cells_of_a_run() -> None:
    log = [
        entry(7, "run", 0),  # a run of its own: it begins at the top again
        entry(6, "run", 2),
        entry(5, "run", 1),
        entry(4, "run", 0),
        entry(3, "run", 3, actor="mcp:bob"),
        entry(2, "edit", 1),
        entry(1, "edit", 0),
    ]
    groups = list(_group_runs(log))
    assert [[each.number for each in group] for group in groups] == [[7], [6, 5, 4], [3], [2], [1]]
    row = _log_row(groups[1], None)
    assert row.startswith("id6 ")
    assert "run of 3 cells  updated c0, updated c1, updated c2, from id4 on" in row


def test_the_log_counts_cells_that_were_saved_together() -> None:
    log = [
        entry(4, "run", 1, 2),
        entry(3, "run", 0),
        entry(2, "run", 0, 1, 2),  # the run before: this one begins at the top again
        entry(1, "run", 0),
    ]
    groups = list(_group_runs(log))
    assert [[each.number for each in group] for group in groups] == [[4, 3], [2], [1]]
    assert "  run of 3 cells  updated c0, " in _log_row(groups[0], None)


def test_show_says_how_long_a_cell_ran_and_why_its_result_is_stale() -> None:
    cell = Notebook(samples.write(samples.code("a", "1"))).cells[0]
    last = LastRun("ok", 1.0, 2.5, 1500, True)
    view = CellView(0, "a", "a", "code", "1", "", status="ok", last_run=last)
    heads = [
        CellRenderer(ScreenView(width=80), "python", 2, {"a": each}).head(cell).plain
        for each in (view, view.replace(stale=True, stale_reason="It was edited."))
    ]
    assert "✓ ok  1.5 s ─" in heads[0]
    assert "✓ ok  1.5 s  ◌ stale: It was edited. ─" in heads[1]
    times = [format_seconds(seconds) for seconds in (0.0312, 99.94, 100, 7260)]
    assert times == ["31 ms", "99.9 s", "1 min 40 s", "2 h 1 min"]


@pytest.mark.parametrize("status", ["ok", "running", *FAILURES])
def test_only_a_result_is_called_stale(status: str) -> None:
    """What failed or runs says so itself."""
    cell = Notebook(samples.write(samples.code("a", "1"))).cells[0]
    view = CellView(0, "a", "a", "code", "1", "", status=status, stale=True, stale_reason="Why.")
    head = CellRenderer(ScreenView(width=60), "python", 2, {"a": view}).head(cell)
    assert ("◌ stale: Why." in head.plain) == (status == "ok")


def test_sessions_are_listed_in_columns() -> None:
    nothing = dict.fromkeys(SessionView.FIELDS)
    sessions = [
        SessionView.from_json(
            {**nothing, "session": name, "state": "idle", "kernel": kernel, "cwd": "/home"}
        )
        for name, kernel in (("default", None), ("/data/a-long-name-of-a.ipynb", "python3"))
    ]
    rows = session_rows(sessions)
    assert len({(row.index("idle"), row.index("/home")) for row in rows}) == 1
    there = SessionView.from_json({**sessions[0].to_json(), "server": "http://there:8888"})
    assert session_rows([there])[0].endswith("  http://there:8888\n")
