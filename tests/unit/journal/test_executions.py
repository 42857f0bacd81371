"""A run on record, as data and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from cellwright.journal import Journal
from cellwright.journal.executions import ExecutionRecord
from tests.unit.journal.conftest import notebook_bytes

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_as_data_has_all_that_it_is() -> None:
    run = ExecutionRecord(
        cell="a",
        index=1,
        hash="h",
        source="x = 1",
        kernel="k",
        status="ok",
        count=2,
        began=1.5,
        seconds=0.25,
        actor="test:ada",
        order=7,
    )
    assert list(run.to_json()) == [field.name for field in fields(ExecutionRecord)]
    assert ExecutionRecord(**run.to_json()) == run


def test_a_run_that_was_on_record_while_it_ran_is_there_once_when_it_is_over(
    tmp_path: Path,
) -> None:
    """A slow cell used to be two runs: `running` for ever, and how it ended."""
    path = tmp_path / "nb.ipynb"
    path.write_bytes(notebook_bytes("x = 1"))
    begun = ExecutionRecord(
        cell="c0",
        index=0,
        hash="h",
        source="x = 1",
        kernel="k",
        status="running",
        count=None,
        began=1.5,
        seconds=0.0,
        actor="test:ada",
    )
    with Journal() as journal:
        journal.record_execution(path, begun)
        journal.record_execution(path, replace(begun, status="ok", count=1, seconds=2.0))
        journal.record_execution(path, replace(begun, began=9.0))
        assert [(run.status, run.began) for run in journal.executions(path)] == [
            ("ok", 1.5),
            ("running", 9.0),
        ]
        assert journal.forget(path).executions == 2
