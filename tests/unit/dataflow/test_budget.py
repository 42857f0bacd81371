from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.dataflow.analyse import analyse
from cellwright.dataflow.budget import AnalysisStopped
from cellwright.dataflow.memory import Memory
from cellwright.dataflow.plans import replay, stale_closure
from cellwright.dataflow.states import staleness
from tests.unit.dataflow.stories import ABC, Story, play

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.dataflow.records import DataflowCell, DataflowRun

LARGE = "\n".join(f"x{k} = f(x{k}, y)" for k in range(2000))
SMALLER = "\n".join(f"x{k} = f(x{k}, y)" for k in range(300))

QUESTIONS = {
    "staleness": staleness,
    "stale_closure": stale_closure,
    "replay": lambda cells, runs, **options: replay(cells, runs, "B", **options),
}


def ran_in_order(*sources: str, again: str = "") -> tuple[list[DataflowCell], list[DataflowRun]]:
    names = [chr(ord("A") + k) for k in range(len(sources))]
    story = Story("", dict(zip(names, sources, strict=True)), [" ".join(names), again], [])
    return play(story)


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellwright.dataflow.analyse.CELL_LIMIT", 1000)


@pytest.mark.usefixtures("low_limit")
def test_a_cell_that_is_too_much_work_is_not_analysed_and_says_so() -> None:
    found = analyse(LARGE)

    assert found.opaque == ("code too large to analyse",)
    assert not found.defines


@pytest.mark.usefixtures("low_limit")
def test_a_cell_that_was_not_analysed_may_change_anything() -> None:
    cells, runs = ran_in_order("z = 1 + 1", LARGE, "print(z)", again="B")

    found = staleness(cells, runs)

    assert [state.state for state in found] == ["fresh", "stale", "stale"]
    assert any("code too large to analyse" in each.sentence for each in found[1].warnings)


def test_a_notebook_that_is_too_much_work_goes_by_the_order_of_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = [*ABC.values(), "print(1)", "", SMALLER]
    in_order = ran_in_order(*sources)
    cells, runs = ran_in_order(*sources, again="A")
    monkeypatch.setattr("cellwright.dataflow._history.NOTEBOOK_LIMIT", 1000)

    assert {state.state for state in staleness(*in_order)} == {"fresh"}
    found = staleness(cells, runs)
    assert [state.state for state in found] == [*["stale"] * 4, "fresh", "stale"]
    assert all(
        "a notebook too large to analyse" in state.warnings[-1].sentence
        for state in found
        if state.cell != "E"
    )
    assert [cell.id for cell in stale_closure(cells, runs)] == ["A", "B", "C", "D", "F"]
    assert [cell.id for cell in replay(cells, runs, "D", kernel="new")] == ["A", "B", "C"]


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_caller_can_stop_the_analysis(question: Callable[..., object]) -> None:
    cells, runs = ran_in_order(SMALLER, SMALLER)

    with pytest.raises(AnalysisStopped):
        question(cells, runs, should_stop=lambda: True)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_caller_is_asked_equally_often_each_time(question: Callable[..., object]) -> None:
    cells, runs = ran_in_order(SMALLER, SMALLER)
    answers = []
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return False

    for _ in range(2):
        asked = 0
        answers.append((question(cells, runs, should_stop=should_stop), asked))

    assert answers[0] == answers[1]
    assert asked > 5


def test_what_is_known_from_the_last_time_counts_like_the_work_that_it_saves() -> None:
    cells, runs = ran_in_order(SMALLER, SMALLER, again="A")
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return False

    memory, counts = Memory(), []
    for kept in (None, memory, memory):
        asked = 0
        staleness(cells, runs, memory=kept, should_stop=should_stop)
        counts.append(asked)
    assert counts[0] == counts[1] == counts[2] > 5


def test_an_analysis_that_is_too_large_to_be_kept_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells, runs = ran_in_order(SMALLER, "print(x1)")
    memory = Memory()
    staleness(cells, runs, memory=memory)
    assert memory.facts
    monkeypatch.setattr("cellwright.dataflow.memory.MOST_KEPT", 100)
    staleness(cells, runs, memory=memory)
    assert not memory.facts
    assert not memory.cells
