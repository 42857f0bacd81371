"""One hundredth of `./dev soak`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engines import engine_of_its_own
from tests.integration.engine.soak import soak

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(180)
def test_an_engine_that_has_worked_has_no_more_than_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CELLWRIGHT_SPARE_KERNEL")
    with engine_of_its_own(monkeypatch):
        report = soak(tmp_path, 0.01)
    assert (report.executions, report.restarts, report.edits) == (200, 5, 20)
    assert len(report.looks) == 40
    # So few executions say nothing about memory.
    assert report.problems(judges_memory=False) == [], str(report)
