"""A run on record, as data and back."""

from __future__ import annotations

from dataclasses import fields

from cellwright.journal.executions import ExecutionRecord


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
