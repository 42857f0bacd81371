from __future__ import annotations

from typing import NamedTuple

import pytest

from cellwright.dataflow.plans import replay, stale_closure
from tests.unit.dataflow.stories import ABC, LIST, Story, kernel_of, play


class Plan(NamedTuple):
    title: str
    cells: dict[str, str]
    steps: list[str]
    expected: str


CLOSURES = [
    Plan("nothing to do", ABC, ["A B C"], ""),
    Plan("all of it", ABC, [], "A B C"),
    Plan(
        "an edit and what follows from it",
        ABC | {"D": "print(1)"},
        ["A B C D", "edit A: x = 2 + 2"],
        "A B C",
    ),
    Plan("an edit at the end", ABC, ["A B C", "edit C: print(1)"], "C"),
    Plan("the source ran again", ABC, ["A B C", "A"], "B C"),
    Plan("an append that ran twice needs the list anew", LIST, ["A B C", "B"], "A B C"),
    Plan("a list made anew needs its append for those below", LIST, ["A B C", "A C"], "B C"),
    Plan("an edited append needs the list anew", LIST, ["A B C", "edit B: xs.append(2)"], "A B C"),
    Plan("a new kernel", ABC, ["A B C", "new kernel"], "A B C"),
    Plan("a new kernel, half way", ABC, ["A B C", "new kernel", "A B"], "C"),
    Plan(
        "an added import",
        {"A": "import os", "B": "print(os)"},
        ["A B", "edit A: import os\nimport sys"],
        "A",
    ),
    Plan(
        "text and blank cells are not run",
        ABC | {"D": "", "E": "words"},
        ["type E: markdown"],
        "A B C",
    ),
    Plan(
        "a viewer of what was redefined below",
        {"A": "x = 1 + 1", "B": "print(x)", "C": "x = 2 + 2"},
        ["A B C", "edit B: print(x, x)"],
        "A B C",
    ),
    Plan(
        "after a deletion",
        {"A": "x = 1 + 1", "B": "x = 2 + 2", "C": "print(x)"},
        ["A B C", "delete B"],
        "A C",
    ),
    Plan(
        "nothing helps a name from nowhere", {"A": "print(nowhere)", "B": "print(1)"}, ["A B"], "A"
    ),
    Plan(
        "exec wants all of it",
        {"A": "x = 1 + 1", "B": "exec('x = 2')", "C": "print(x)"},
        ["A B C", "edit B: exec('x = 3')"],
        "A B C",
    ),
]

REPLAYS = [
    Plan("a chain", ABC, ["A B C", "new kernel"], "A B > C"),
    Plan("only what is needed", ABC | {"D": "print(x)"}, ["A B C D", "new kernel"], "A > D"),
    Plan("nothing is needed", ABC | {"D": "print(1)"}, ["new kernel"], "> D"),
    Plan(
        "every change of an object", LIST | {"D": "print(2)"}, ["A B C D", "new kernel"], "A B > C"
    ),
    Plan(
        "a change through another name",
        {"A": "a = []", "B": "b = a", "C": "b.append(1)", "D": "print(a)"},
        ["new kernel"],
        "A B C > D",
    ),
    Plan(
        "what a function reads",
        {"A": "k = 1 + 1", "B": "z = 1", "C": "def f(): return k", "D": "print(f())"},
        ["new kernel"],
        "A C > D",
    ),
    Plan(
        "conditions count",
        {"A": "x = 1 + 1", "B": "if x: x = 0", "C": "print(x)"},
        ["new kernel"],
        "A B > C",
    ),
    Plan(
        "the last definition is enough",
        {"A": "x = 1 + 1", "B": "x = 2 + 2", "C": "print(x)"},
        ["new kernel"],
        "B > C",
    ),
    Plan(
        "what is below is not needed",
        {"A": "x = 1 + 1", "B": "print(x)", "C": "x = 2 + 2"},
        ["A B C", "new kernel"],
        "A > B",
    ),
    Plan(
        "the kernel's set-up",
        {"A": "%load_ext sql", "B": "y = 1", "C": "print(1)"},
        ["A B C", "new kernel"],
        "A > C",
    ),
    Plan("what is there already", ABC, ["A B C", "new kernel", "A"], "B > C"),
    Plan("all is there", ABC, ["A B C"], "> C"),
    Plan("but what was changed since has to be made again", LIST, ["A B C"], "A > B"),
    Plan(
        "what else a cell sets back is made again too",
        {
            "A": "xs = []\nw = [1] + []",
            "B": "xs.append(w)",
            "C": "w.append(2)",
            "D": "print(xs, w)",
            "E": "xs.clear()",
        },
        ["A B C D E"],
        "A B C > D",
    ),
    Plan(
        "exec needs all above it",
        {"A": "x = 1 + 1", "B": "y = 2", "C": "exec('z = x')", "D": "print(z)"},
        ["new kernel"],
        "A B C > D",
    ),
    Plan(
        "a star import",
        {"A": "from math import *", "B": "y = 1 + 1", "C": "print(sin(0))"},
        ["new kernel"],
        "A > C",
    ),
]


def _story(plan: Plan) -> Story:
    return Story(plan.title, plan.cells, plan.steps, [])


@pytest.mark.parametrize("plan", CLOSURES, ids=lambda plan: plan.title)
def test_what_to_run_so_that_nothing_is_stale(plan: Plan) -> None:
    cells, runs = play(_story(plan))

    found = stale_closure(cells, runs, kernel=kernel_of(_story(plan)))

    assert [cell.id for cell in found] == plan.expected.split()


@pytest.mark.parametrize("plan", REPLAYS, ids=lambda plan: plan.title)
def test_what_to_run_first_for_one_cell(plan: Plan) -> None:
    cells, runs = play(_story(plan))
    before, _, target = plan.expected.partition("> ")

    found = replay(cells, runs, target, kernel=kernel_of(_story(plan)))

    assert [cell.id for cell in found] == before.split()


def test_another_language_runs_everything_again() -> None:
    cells, runs = play(Story("", ABC, ["A B C", "edit B: y = x + 2"], []))

    assert [cell.id for cell in stale_closure(cells, runs, "julia")] == ["A", "B", "C"]
    assert [cell.id for cell in replay(cells, runs, "C", "julia", kernel="new")] == ["A", "B"]


def test_a_long_chain_is_found_at_once() -> None:
    chain = {"c0": "x0 = 1 + 1"} | {f"c{k}": f"x{k} = x{k - 1} + 1" for k in range(1, 120)}
    cells, runs = play(Story("", chain, [], []))

    assert len(replay(cells, runs, "c119", kernel="new")) == 119
