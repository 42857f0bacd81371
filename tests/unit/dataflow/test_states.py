from __future__ import annotations

from typing import TYPE_CHECKING

from inline_snapshot import snapshot

from cellwright.dataflow.memory import Memory
from cellwright.dataflow.records import DataflowCell, DataflowRun, source_hash
from cellwright.dataflow.states import staleness
from tests.cases import for_each
from tests.unit.dataflow.stories import ABC, LIST, STORIES, Story, kernel_of, play

if TYPE_CHECKING:
    from cellwright.dataflow.records import CellState


def judged(story: Story) -> list[CellState]:
    cells, runs = play(story)
    return staleness(cells, runs, story.language, kernel=kernel_of(story))


def words(state: CellState) -> str:
    """A state as the stories say it."""
    if state.state == "fresh":
        return f"{state.cell} fresh"
    if state.state == "not_code":
        return f"{state.cell} text"
    reason = state.reasons[0]
    return " ".join([state.cell, reason.kind, *reason.names, *filter(None, [reason.cell])])


@for_each("story", STORIES, name=lambda story: story.title)
def test_every_cell_is_judged_as_the_story_says(story: Story) -> None:
    expected = {line.split()[0]: line for line in story.expected}

    found = judged(story)

    assert [words(state) for state in found] == [
        expected.get(state.cell, f"{state.cell} fresh") for state in found
    ]


@for_each("story", STORIES, name=lambda story: story.title)
def test_there_is_a_sentence_for_every_stale_cell_and_for_no_other(story: Story) -> None:
    for state in judged(story):
        assert bool(state.stale_reason) == state.is_stale
        assert bool(state.reasons) == (state.state in {"stale", "never"})
        for reason in (*state.reasons, *state.warnings):
            assert reason.sentence.endswith(".")
            assert reason.sentence[0].isupper()


def sentences(cells: dict[str, str], *steps: str, language: str = "python") -> dict[str, list[str]]:
    states = judged(Story("", cells, list(steps), [], language))
    return {
        state.cell: [each.sentence for each in (*state.reasons, *state.warnings)]
        for state in states
        if state.reasons or state.warnings
    }


def test_the_sentences_say_which_name_which_cell_and_what_happened() -> None:
    assert sentences(ABC, "A B C", "edit A: x = 3 + 3") == snapshot(
        {
            "A": ["It was edited since it ran."],
            "B": ["It uses `x`, which cell 0 (id A) defines; that cell was edited since it ran."],
            "C": [
                "It uses `y`, which cell 1 (id B) defines; that cell is stale itself: cell 0 (id A) was edited."
            ],
        }
    )
    assert sentences(ABC, "A B C", "A") == snapshot(
        {
            "B": ["It uses `x`, which cell 0 (id A) defined again after this cell ran."],
            "C": [
                "It uses `y`, which cell 1 (id B) defines; that cell is stale itself: cell 0 (id A) ran after it."
            ],
        }
    )
    assert sentences(ABC, "A B C", "delete A") == snapshot(
        {
            "B": [
                "It uses `x`, which a deleted cell (id A) had left behind.",
                "It uses `x`, which no cell of the notebook defines.",
            ],
            "C": [
                "It uses `y`, which cell 0 (id B) defines; that cell is stale itself: cell 0 (id B) used what a deleted cell (id A) had left behind."
            ],
        }
    )
    assert sentences(ABC, "A", "error B", "C") == snapshot(
        {
            "B": ["Its last run raised an error."],
            "C": ["It uses `y`, which cell 1 (id B) defines; that cell did not end well."],
        }
    )
    assert sentences(ABC, "A B C", "new kernel", "A") == snapshot(
        {
            "B": ["It ran in a kernel that is gone: what it defined does not exist any more."],
            "C": ["It ran in a kernel that is gone: what it defined does not exist any more."],
        }
    )
    assert sentences(LIST, "A B B C") == snapshot(
        {
            "B": ["It uses `xs`, which its own earlier run had already changed."],
            "C": [
                "It uses `xs`, which cell 1 (id B) changes; that cell is stale itself: cell 1 (id B) ran again on its own result."
            ],
        }
    )
    assert sentences(LIST, "A B C", "A C") == snapshot(
        {
            "C": [
                "It uses `xs`, which cell 0 (id A) had set when it ran; from top to bottom cell 1 (id B) changes it later."
            ]
        }
    )
    assert sentences({"A": "print(x)", "B": "x = 1 + 1"}, "B A") == snapshot(
        {
            "A": [
                "It uses `x`, which cell 1 (id B), below it, had set before it ran.",
                "It uses `x`, which only cell 1 (id B), below it, defines.",
            ]
        }
    )
    assert sentences({"A": "print(x)", "B": "print(_)"}, "A B") == snapshot(
        {
            "A": ["It uses `x`, which no cell above it defines, nor any that ran."],
            "B": ["It uses `_`, an earlier output: which one depends on what ran before."],
        }
    )
    assert sentences({"A": "x = 1 + 1", "B": "exec('x')"}, "A B A") == snapshot(
        {
            "B": [
                "It uses `x`, which cell 0 (id A) defined again after this cell ran.",
                "What it uses and changes cannot be told, because of `exec`.",
            ]
        }
    )
    assert sentences({"A": "x <- 1", "B": "x"}, "A B A", language="R") == snapshot(
        {
            "A": [
                "It uses names that only running it could tell, which its own earlier run had already changed.",
                "Names are not followed in R: only the order of runs counts.",
            ],
            "B": [
                "It uses names that only running it could tell, which cell 0 (id A) may change; that cell is stale itself: cell 0 (id A) ran again on its own result.",
                "Names are not followed in R: only the order of runs counts.",
            ],
        }
    )
    assert sentences({"A": "x = 1 + 1", "B": "print(x)", "C": "x = 0"}, "A B C") == snapshot(
        {"B": ["Run alone now it would use `x` as cell 2 (id C) left it."]}
    )


def test_many_names_are_not_all_told() -> None:
    names = [f"n{k}" for k in range(9)]
    cells = [
        DataflowCell("A", "\n".join(f"{name} = 1 + 1" for name in names)),
        DataflowCell("B", f"print({', '.join(names)})"),
    ]
    runs = [DataflowRun(name, k, source=cells[name == "B"].source) for k, name in enumerate("ABA")]

    reason = staleness(cells, runs)[1].reasons[0]

    assert "`n0`, `n1`, `n2` and 6 more" in reason.sentence
    assert reason.names == tuple(names)


def test_a_text_that_ran_and_is_not_known_any_more_may_have_done_anything() -> None:
    cells = [
        DataflowCell("A", "x = 2 + 2"),
        DataflowCell("B", "y = 1 + 1"),
        DataflowCell("C", "print(y)"),
    ]
    known = [DataflowRun(cell.id, k, hash=source_hash(cell.source)) for k, cell in enumerate(cells)]
    forgotten = [DataflowRun("A", 0, hash="another"), *known[1:]]

    assert [state.state for state in staleness(cells, known)] == ["fresh"] * 3
    found = staleness(cells, forgotten)
    assert [state.state for state in found] == ["stale", "fresh", "stale"]


def test_without_a_kernel_the_last_one_counts() -> None:
    cells, runs = play(Story("", ABC, ["A B C"], []))

    assert {state.state for state in staleness(cells, runs)} == {"fresh"}
    assert {state.state for state in staleness(cells, runs, kernel="other")} == {"stale"}


def test_code_that_is_in_no_cell_counts_as_having_run() -> None:
    cells, runs = play(Story("", ABC, ["A B C"], []))
    runs.insert(1, DataflowRun("eval", 1, kernel="1", source="x = 99"))

    found = staleness(cells, runs)

    assert [reason.kind for reason in found[1].reasons] == ["upstream_deleted"]


def test_an_empty_notebook_has_nothing_to_say() -> None:
    assert staleness([], []) == []


def test_a_thousand_cells_are_judged() -> None:
    cells = [DataflowCell("c0", "x0 = 1 + 1")]
    cells += [
        DataflowCell(f"c{k}", f"x{k} = x{k - 1} + 1\nxs = [x{k}]\nxs.append(1)")
        for k in range(1, 1000)
    ]
    runs = [DataflowRun(cell.id, k, source=cell.source) for k, cell in enumerate(cells)]
    runs.append(DataflowRun("c500", 2000, source=cells[500].source))

    found = staleness(cells, runs)

    assert [state.index for state in found if state.is_stale] == list(range(501, 1000))


def test_a_change_through_another_name_is_seen_although_the_cell_and_its_names_are_as_before() -> (
    None
):
    apart, shared = (
        [
            DataflowCell(name, text)
            for name, text in zip("ABCD", ["a = [1]", b, "a.append(1)", "print(b)"], strict=True)
        ]
        for b in ("b = 0", "b = a")
    )
    runs = [DataflowRun(cell.id, k, source=cell.source) for k, cell in enumerate(shared)]
    memory = Memory()
    for cells in (apart, shared, apart, shared):
        assert staleness(cells, runs, memory=memory) == staleness(cells, runs)


def test_cells_that_an_edit_does_not_concern_are_not_judged_again() -> None:
    cells = [DataflowCell(f"c{k}", f"x{k} = f(x{k})\nprint(x{k})") for k in range(20)]
    memory = Memory()
    first = staleness(cells, [], memory=memory)
    cells[3] = DataflowCell("c3", "x3 = 1\nx5 = 2")

    found = staleness(cells, [], memory=memory)

    assert found == staleness(cells, [])
    assert [k for k in range(20) if found[k] is not first[k]] == [3, 5]


def test_a_memory_does_not_grow_with_the_number_of_edits() -> None:
    cells = [DataflowCell(f"c{k}", f"x{k} = 1") for k in range(5)]
    memory = Memory()
    sizes = set()
    for turn in range(3000):
        cells[turn % 5] = DataflowCell(f"c{turn % 5}", f"y{turn} = {turn}\ndef f(): return y{turn}")
        staleness(cells, [], memory=memory)
        sizes.add(len(memory.tokens))
        assert max(len(memory.facts), len(memory.cells), len(memory.states)) <= 5
    assert max(sizes) < 1100
