"""No greedy client makes another's small call wait for a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engines import engine_of_its_own
from tests.integration.engine import neighbours

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.all
@pytest.mark.timeout(300)
@pytest.mark.parametrize("greed", neighbours.GREEDY)
def test_a_small_call_does_not_wait_for_a_greedy_neighbour(
    greed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    neighbours.prepare(tmp_path)
    with engine_of_its_own(monkeypatch):
        found = neighbours.measure(tmp_path, greed)
    assert not found.is_late, str(found)
