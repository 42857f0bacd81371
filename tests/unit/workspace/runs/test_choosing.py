"""Which cells a run is for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.document.notebook import Notebook
from cellwright.errors import CellNotFound, InvalidCell, InvalidEdit
from cellwright.journal.executions import ExecutionRecord
from cellwright.workspace.runs.choice import choose_code, choose_unfinished

if TYPE_CHECKING:
    from collections.abc import Sequence


def notebook(*ids: str, sources: Sequence[str] = ()) -> Notebook:
    """Cells with these ids; those that begin with `m` are text."""
    cells: list[dict[str, Any]] = []
    for number, id_ in enumerate(ids):
        source = sources[number] if sources else "x"
        cell: dict[str, Any] = {
            "cell_type": "markdown",
            "id": id_,
            "metadata": {},
            "source": source,
        }
        if not id_.startswith("m"):
            cell |= {"cell_type": "code", "outputs": [], "execution_count": None}
        cells.append(cell)
    shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return Notebook(json.dumps(shape).encode())


def handles(found: Notebook, *args: Any, **options: Any) -> list[str]:
    return [cell.handle for cell in choose_code(found, *args, **options).cells]


LETTERS = ("a", "m1", "b", "c", "d-e", "f")


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        (["2-3"], ["b", "c"]),
        (["0-2"], ["a", "b"]),  # text in between is passed over
        (["1-2"], ["b"]),  # also at its end
        (["4-"], ["d-e", "f"]),
        (["d-e"], ["d-e"]),  # an id that only looks like a range
        (["b-d-e"], ["b", "c", "d-e"]),
        (["d-e-f"], ["d-e", "f"]),
        (["cell-2-cell-3"], ["b", "c"]),
        (["cell-3"], ["c"]),
        (["-2"], ["d-e"]),
        (["-3--1"], ["c", "d-e", "f"]),
        (["c-"], ["c", "d-e", "f"]),
        (["3-5", "a", 3], ["a", "c", "d-e", "f"]),  # each once, in the notebook's order
        ([2, "f"], ["b", "f"]),
        ([], []),
    ],
)
def test_cells_are_named_by_reference_and_range(refs: list[Any], expected: list[str]) -> None:
    assert handles(notebook(*LETTERS), refs) == expected


@pytest.mark.parametrize("ref", ["x-y", "2-99", "cell-9", "--", "-", "a-zz", "0-cell-99"])
def test_a_range_of_cells_that_are_not_there_is_no_guess(ref: str) -> None:
    with pytest.raises(CellNotFound) as caught:
        choose_code(notebook(*LETTERS), [ref])
    assert caught.value.ref == ref


def test_a_range_that_can_be_read_in_two_ways_is_refused() -> None:
    with pytest.raises(InvalidEdit, match="2 different ranges"):
        choose_code(notebook("a", "a-b", "b-c", "c"), ["a-b-c"])


def test_where_ids_look_like_ranges_a_missing_one_is_not_taken_for_a_range() -> None:
    found = notebook("1-2", "3-4", "5-6")
    assert handles(found, ["3-4"]) == ["3-4"]
    with pytest.raises(CellNotFound):
        choose_code(found, ["0-2"])


def test_a_range_ends_after_it_begins() -> None:
    with pytest.raises(InvalidEdit, match="ends before it begins"):
        choose_code(notebook(*LETTERS), ["5-2"])


def test_text_does_not_run() -> None:
    with pytest.raises(InvalidCell, match="only code can run"):
        choose_code(notebook(*LETTERS), ["m1"])
    with pytest.raises(InvalidCell, match="only code can run"):
        choose_code(notebook(*LETTERS), replay="m1")


def test_above_below_and_all() -> None:
    found = notebook(*LETTERS)
    assert handles(found) == ["a", "b", "c", "d-e", "f"]
    assert handles(found, above="c") == ["a", "b"]
    assert handles(found, below="c") == ["c", "d-e", "f"]
    assert handles(found, above="m1") == ["a"]


@pytest.mark.parametrize(
    "options",
    [
        {"cells": ["a"], "above": "b"},
        {"stale": True, "below": "b"},
        {"replay": "a", "cells": []},
        {"stale": True, "replay": "a"},
    ],
)
def test_the_choice_is_made_once(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidEdit, match="only one of"):
        choose_code(notebook(*LETTERS), **options)


# -- by what ran --------------------------------------------------------------------------------


def ran(
    order: int, cell: str, source: str, kernel: str = "k1", status: str = "ok"
) -> ExecutionRecord:
    return ExecutionRecord(
        cell=cell,
        index=0,
        hash="",
        source=source,
        kernel=kernel,
        status=status,
        count=order,
        began=float(order),
        seconds=0.5,
        actor="test:ada",
        order=order,
    )


SOURCES = ("x = 1", "y = x + 1", "z = 5", "print(y)")


def test_a_replay_is_the_least_that_a_cell_needs_and_the_cell() -> None:
    found = notebook("a", "b", "c", "d", sources=SOURCES)
    runs = [ran(n, id_, SOURCES[n]) for n, id_ in enumerate("abc")]
    assert handles(found, replay="d", executions=lambda: runs) == ["a", "b", "d"]
    assert handles(found, replay="d", executions=lambda: runs, life=lambda: "k1") == ["d"]
    assert handles(found, replay="d", executions=lambda: runs, life=lambda: "k2") == ["a", "b", "d"]
    assert handles(found, replay="c", executions=lambda: runs, life=lambda: "k2") == ["c"]


def test_a_replay_includes_what_was_edited_since() -> None:
    found = notebook("a", "b", "c", "d", sources=("x = 2", *SOURCES[1:]))
    runs = [ran(n, id_, SOURCES[n]) for n, id_ in enumerate("abc")]
    assert handles(found, replay="d", executions=lambda: runs, life=lambda: "k1") == ["a", "b", "d"]


def test_a_cell_on_record_twice_because_it_ran_for_long_has_run_once() -> None:
    found = notebook("a", "b", sources=("x = 1", "x += 1"))
    runs = [ran(1, "a", "x = 1"), ran(2, "b", "x += 1", status="running")]
    ended = ran(3, "b", "x += 1")
    import dataclasses

    runs.append(dataclasses.replace(ended, began=runs[1].began))
    assert handles(found, stale=True, executions=lambda: runs, life=lambda: "k1") == []
    assert handles(found, stale=True, executions=lambda: runs[:2], life=lambda: "k1") == ["a", "b"]


def test_cells_with_the_tag_skip_execution_run_only_if_they_are_named() -> None:
    found = notebook("a", "b", "c")
    found.apply(
        [{"op": "set_metadata", "cell": "b", "metadata": {"tags": ["x", "skip-execution"]}}]
    )
    every = choose_code(found)
    assert [cell.handle for cell in every.cells] == ["a", "c"]
    assert [cell.handle for cell in every.skipped] == ["b"]
    assert handles(found, ["0-2"]) == handles(found, below="a") == ["a", "c"]
    assert handles(found, ["b"]) == handles(found, [1]) == ["b"]
    assert handles(found, ["0-2", "b"]) == ["a", "b", "c"]
    assert handles(found, stale=True) == ["a", "c"]


def test_what_was_stopped_continues_with_the_first_cell_that_has_not_ended_well() -> None:
    found = notebook("a", "m1", "b", "c")
    facts: dict[str, Any] = {"source": "x", "count": 1, "seconds": 0.1, "actor": "t"}

    def ran(cell: str, status: str = "ok", began: float = 5, kernel: str = "k") -> ExecutionRecord:
        hash_ = found.cell("a").hash if cell != "old" else "other"
        return ExecutionRecord(
            cell="b" if cell == "old" else cell,
            index=0,
            hash=hash_,
            kernel=kernel,
            status=status,
            began=began,
            **facts,
        )

    def rest(*runs: ExecutionRecord, life: str = "k") -> str:
        cells, done = choose_unfinished(found, runs, life, since=4)
        assert [*done, *(cell.handle for cell in cells)] == ["a", "b", "c"]
        return "".join(cell.handle for cell in cells)

    assert rest() == "abc"
    assert rest(ran("a"), ran("b", "cancelled")) == "bc"
    assert rest(ran("a"), ran("b"), ran("c")) == ""
    assert rest(ran("a"), ran("b"), ran("c"), life="") == "abc"
    assert rest(ran("a", began=3), ran("b")) == "abc", "an earlier run is another matter"
    assert rest(ran("a", kernel="dead"), ran("b")) == "abc"
    assert rest(ran("a"), ran("b"), ran("old")) == "bc", "it was run with another source"
    assert rest(ran("b"), ran("c")) == "abc"
