"""Who else is at work on a notebook."""

from __future__ import annotations

import pytest

from cellwright.workspace import activity as module
from cellwright.workspace.activity import ActorLog
from cellwright.workspace.api.answers import OtherActor


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_others_are_told_the_newest_first_and_never_oneself(clock: list[float]) -> None:
    seen = ActorLog()
    seen.note("nb", "cli:ada", "edit")
    clock[0] += 3
    seen.note("nb", "mcp:bob", "run")
    seen.note("other", "mcp:eve", "edit")
    clock[0] += 2
    assert seen.list_others("nb", "cli:me") == [
        OtherActor("mcp:bob", "run", 2.0),
        OtherActor("cli:ada", "edit", 5.0),
    ]
    assert [one.actor for one in seen.list_others("nb", "mcp:bob")] == ["cli:ada"]


def test_the_last_thing_counts(clock: list[float]) -> None:
    seen = ActorLog()
    seen.note("nb", "cli:ada", "edit")
    clock[0] += 10
    seen.note("nb", "cli:ada", "undo")
    assert seen.list_others("nb", "x") == [OtherActor("cli:ada", "undo", 0.0)]


def test_it_is_forgotten_after_minutes_and_bounded(clock: list[float]) -> None:
    seen = ActorLog()
    for number in range(100):
        seen.note("nb", f"cli:{number}", "edit")
    assert len(seen.list_others("nb", "x")) == 32
    clock[0] += 301
    assert seen.list_others("nb", "x") == []
    seen.note("another", "cli:ada", "edit")
    assert list(seen._seen) == ["another"]
