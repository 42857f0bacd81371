"""The hub: what is shared, when it is let go of, and who owns what meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.config.settings import Settings
from cellwright.errors import ExecutionCancelled
from cellwright.kernel.session import Key
from cellwright.workspace import hub as hubs
from cellwright.workspace.activity import ClientWarnings, act_for
from cellwright.workspace.hub import Hub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REAL = "/somewhere/nb.ipynb"
KEY = Key(REAL, "/somewhere")


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub(Settings())
    try:
        yield hub
    finally:
        hub.close()


def ended(kind: str = "notebook") -> Any:
    return SimpleNamespace(kind=kind, key=KEY)


def test_a_notebook_whose_kernel_ended_is_free(hub: Hub) -> None:
    hub.leases.own(REAL)
    hub._note_end_of_session(ended("eval"))
    assert hub.leases.owns(REAL)
    hub._note_end_of_session(ended())
    assert not hub.leases.owns(REAL)


def test_a_kernel_that_ends_late_does_not_free_a_notebook_that_has_another(hub: Hub) -> None:
    hub.leases.own(REAL)
    hub._sessions = SimpleNamespace(pool=[ended()])  # type: ignore[assignment]
    hub._note_end_of_session(ended())
    assert hub.leases.owns(REAL)
    hub._sessions = None


def test_what_comes_after_the_end_starts_no_kernel(hub: Hub) -> None:
    hub.call(asyncio.sleep(0))
    hub.call(hub.end_kernels())
    with pytest.raises(ExecutionCancelled):
        _ = hub.sessions
    with pytest.raises(ExecutionCancelled):
        _ = hub.runs


def test_warnings_are_each_callers_own_also_in_the_threads_it_starts() -> None:
    warnings = ClientWarnings()

    async def work() -> None:
        await asyncio.to_thread(warnings.append, "of ada")

    with act_for("ada"):
        asyncio.run(work())
        assert "of ada" in warnings
    with act_for("bob"):
        assert (list(warnings), len(warnings)) == ([], 0)
        assert "of ada" not in warnings
        warnings.clear()
    assert list(warnings) == []
    with act_for("ada"):
        assert (list(warnings), len(warnings)) == (["of ada"], 1)
        warnings.clear()
        assert list(warnings) == []
        warnings.append("again")
    warnings.forget("ada")
    with act_for("ada"):
        assert not list(warnings)


def test_threads_that_come_at_the_same_moment_share_one_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Hub
    both = threading.Barrier(2)

    def slow(*words: object, **facts: object) -> Hub:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.3)  # until the other one is here as well, if it can be
        return made(*words, **facts)  # type: ignore[arg-type]

    monkeypatch.setattr(hubs, "Hub", slow)
    found: list[Hub] = []
    with Workspace(tmp_path) as workspace:
        threads = [
            threading.Thread(target=lambda: found.append(workspace.caller.hub)) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found[0] is found[1]
