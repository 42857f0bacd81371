"""What is called fresh is what a new start would give: checked by running small notebooks for real."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cellwright.dataflow.analyse import analyse
from cellwright.dataflow.memory import Memory
from cellwright.dataflow.plans import replay, stale_closure
from cellwright.dataflow.records import DataflowCell, DataflowRun
from cellwright.dataflow.states import staleness
from tests.conftest import RUN_ALL
from tests.property.dataflow_oracle import PLAIN, RICH, Kernel, Past, sources, stories

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.dataflow.records import CellState
    from tests.property.dataflow_oracle import Story

pytestmark = pytest.mark.timeout(600)  # thousands of small notebooks, on whatever machine
enough = settings(max_examples=3000 if RUN_ALL else 50)
fewer = settings(max_examples=1000 if RUN_ALL else 20)
EVERYTHING = PLAIN + RICH
SIZES = 60, 120, 240
FRAGMENTS = [
    "x", "=", "(", ")", "[", "]", ":", "\n", "    ", "def f", "class A", "import", "from", "*", "%", "%%",
    "%%time\n", "!", "?", "lambda", "exec", "'", '"""', "f'{", "}'", "@", "match", "case", "async ", "await ",
    "del ", "global ", "if ", "else:", "try:", "except ", "with ", " as ", "for ", " in ", ":=", "\\", "\0", "\r",
]  # fmt: skip
code_like = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)
any_source = st.one_of(st.text(), code_like, sources(EVERYTHING))


def check_fresh(story: Story) -> None:
    """Nothing is called fresh that a run from top to bottom in a new kernel shows otherwise."""
    scratch = story.from_scratch()
    for state in staleness(story.cells, story.runs):
        if state.state == "fresh":
            assert story.seen[state.cell] == scratch[state.cell], state.cell
        else:
            assert state.reasons or state.state == "not_code"


@enough
@given(stories(PLAIN))
def test_fresh_means_what_a_new_start_gives(story: Story) -> None:
    check_fresh(story)


@enough
@given(stories(EVERYTHING))
def test_fresh_means_what_a_new_start_gives_with_all_of_python(story: Story) -> None:
    check_fresh(story)


@fewer
@given(stories(EVERYTHING))
def test_running_what_is_stale_leaves_what_a_new_start_gives(story: Story) -> None:
    scratch = story.from_scratch()
    order = [cell.id for cell in story.cells]
    plan = [cell.id for cell in stale_closure(story.cells, story.runs)]

    for cell in plan:
        story.do("run", order.index(cell), "")

    assert plan == sorted(plan, key=order.index)
    check_fresh(story)
    states = staleness(story.cells, story.runs)
    if all(seen.ended == "ok" for seen in scratch.values()) and not _tangled(story, states):
        assert {state.state for state in states} == {"fresh"}, states


def _tangled(story: Story, states: list[CellState]) -> bool:
    """Whether something in its past cannot be undone without a new kernel."""
    now = {cell.id: cell.source for cell in story.cells}
    beware = {warning.kind for state in states for warning in state.warnings}
    return bool(beware & {"defined_below", "undefined", "cannot_tell"}) or any(
        run.status != "ok"
        or now.get(run.cell) != run.source
        or analyse(run.source or "").opaque
        or analyse(run.source or "").stars
        for run in story.runs
    )


@enough
@given(st.lists(sources(EVERYTHING), min_size=1, max_size=6), st.data())
def test_a_replay_gives_a_cell_what_it_needs(texts: list[str], data: st.DataObject) -> None:
    cells = [DataflowCell(f"c{k}", text) for k, text in enumerate(texts)]
    kernel = Kernel()
    scratch = [kernel.run(text) for text in texts]
    target = data.draw(st.integers(0, len(cells) - 1))
    if any(seen.ended != "ok" for seen in scratch[: target + 1]):
        return  # there is nothing that would give it what it needs

    before = replay(cells, [], f"c{target}", kernel="new")

    again = Kernel()
    for cell in before:
        again.run(cell.source)
    assert again.run(texts[target]) == scratch[target]


@enough
@given(any_source)
def test_any_text_can_be_analysed(source: str) -> None:
    found = analyse(source)

    assert found.perhaps <= found.defines
    assert not found.defines & found.deletes
    assert found == analyse(source)


@enough
@given(st.lists(any_source, min_size=1, max_size=5), st.data())
def test_any_notebook_can_be_judged(texts: list[str], data: st.DataObject) -> None:
    cells = [DataflowCell(f"c{k}", text) for k, text in enumerate(texts)]
    ran = data.draw(st.lists(st.sampled_from(cells), max_size=8))
    runs = [DataflowRun(cell.id, k, source=cell.source) for k, cell in enumerate(ran)]

    states = staleness(cells, runs)

    assert [state.cell for state in states] == [cell.id for cell in cells]
    assert {state.cell for state in states if state.state == "never"} == {
        cell.id for cell in cells
    } - {run.cell for run in runs}


@enough
@given(st.integers(0, 2**48))
def test_what_one_look_leaves_for_the_next_changes_no_answer(seed: int) -> None:
    chance = random.Random(seed)
    past, memory = Past(chance), Memory()
    for _ in range(20):
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            past.change()
        kernel = chance.choice([None, None, None, "k1", "k2"])

        kept = staleness(past.cells, past.runs, kernel=kernel, memory=memory)

        assert kept == staleness(past.cells, past.runs, kernel=kernel)


@enough
@example(["B=0\ndef f():B()", "f=A()", "f"])  # `f` may still be the function, and use `B`
@given(st.lists(any_source, min_size=1, max_size=6))
def test_a_run_from_top_to_bottom_leaves_everything_fresh(texts: list[str]) -> None:
    cells = [DataflowCell(f"c{k}", text) for k, text in enumerate(texts)]
    runs = [DataflowRun(cell.id, k, source=cell.source) for k, cell in enumerate(cells)]

    for state in staleness(cells, runs):
        kinds = {reason.kind for reason in state.reasons}
        assert kinds <= {"unknown_name", "history", "upstream_stale"}, state


def call_graph(n: int, shape: str, chance: random.Random) -> list[str]:
    """Functions that pass their argument on to each other, a call of the first, and its result."""
    calls: dict[str, Callable[[int], list[int]]] = {
        "ring": lambda k: [(k + 1) % n],
        "two rings": lambda k: [(k + 1) % n, (k + 7) % n],
        "chain": lambda k: [k + 1],
        "diamonds": lambda k: [k + 1, k + 2],
        "tree": lambda k: [2 * k + 1, 2 * k + 2],
        "tangle": lambda _: chance.choices(range(n), k=3),
    }
    functions = [
        f"def f{k}(p):\n" + "".join(f"    f{other}(p)\n" for other in calls[shape](k))
        for k in range(n)
    ]
    functions.append(f"def f{n}(p): p.append(k)\ndef f{n + 1}(p): return k\n")
    chance.shuffle(functions)
    return [*functions, "k = 1 + 1", "x = []\ny = f0(x)\nmap(f1, x)", "print(x, y)"]


def chain(n: int, statement: str) -> list[str]:
    """Statements that each use what the one before it made."""
    lines = [statement.format(old=f"x{k}", new=f"x{k + 1}", k=k) for k in range(n)]
    return ["x0 = z = []", *lines, "\n".join(f"print(x{k})" for k in range(n))]


def count_steps(sources: list[str], question: Callable[..., object]) -> int:
    """How often a caller is asked whether to stop, in an analysis after the first cell ran again."""
    cells = [DataflowCell(f"c{k}", text) for k, text in enumerate(sources)]
    runs = [
        DataflowRun(cell.id, k, source=cell.source) for k, cell in enumerate([*cells, cells[0]])
    ]
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return False

    question(cells, runs, should_stop=should_stop)
    return asked


def check_growth(
    make: Callable[[int], list[str]], how_many_cells: str, question: Callable[..., object]
) -> None:
    """Twice the text takes about twice the work, four times the text about four times."""
    steps = []
    for size in SIZES:
        sources = make(size)
        if how_many_cells == "two":
            half = len(sources) // 2
            sources = ["\n".join(sources[:half]), "\n".join(sources[half:])]
        steps.append(count_steps(sources, question))
    once, twice, four_times = steps
    assert twice <= 3 * once + 3, steps
    assert four_times <= 8 * once + 8, steps


questions = st.sampled_from([staleness, stale_closure, partial(replay, target="c1", kernel="new")])
cell_counts = st.sampled_from(["two", "many"])


@pytest.mark.parametrize("shape", ["ring", "two rings", "chain", "diamonds", "tree", "tangle"])
@settings(max_examples=100 if RUN_ALL else 3)
@given(cells=cell_counts, question=questions, seed=st.integers(0, 2**32))
def test_the_work_grows_with_the_number_of_functions(
    shape: str, cells: str, question: Callable[..., object], seed: int
) -> None:
    check_growth(lambda n: call_graph(n, shape, random.Random(seed)), cells, question)


@pytest.mark.parametrize(
    "statement",
    [
        "{new} = {old} + 1",
        "{new} = {old}",
        "{new} = [{old}]\n{new}.append({k})",
        "{new} = f({old})",
        "{old}.append(z)\n{new} = []",
        "if {old}: {new} = {old}\nelse: {new} = z",
        "for i in {old}: {new} = i",
        "try:\n    {new} = {old}[0]\nexcept Exception: pass",
        "{new} = 1\nz = z.merge({old})",
        "def {new}(p=1): return {old}(p)",
        "{new} = lambda p: p.append({old})",
        "class {new}:\n    def m(self): return {old}.m(self)",
    ],
)
@settings(max_examples=60 if RUN_ALL else 2)
@given(cells=cell_counts, question=questions)
def test_the_work_grows_with_the_number_of_statements(
    statement: str, cells: str, question: Callable[..., object]
) -> None:
    check_growth(lambda n: chain(n, statement), cells, question)
