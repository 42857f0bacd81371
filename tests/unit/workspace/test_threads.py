"""A workspace that several threads use at once."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from cellwright import Workspace
from cellwright.workspace import hub as hubs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_threads_that_come_at_the_same_moment_share_one_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hubs.Hub
    both = threading.Barrier(2)

    def slow(*words: object, **facts: object) -> hubs.Hub:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.3)  # until the other one is here as well, if it can be
        return made(*words, **facts)  # type: ignore[arg-type]

    monkeypatch.setattr(hubs, "Hub", slow)
    found: list[hubs.Hub] = []
    with Workspace(tmp_path) as workspace:
        threads = [
            threading.Thread(target=lambda: found.append(workspace.caller.hub)) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found[0] is found[1]
