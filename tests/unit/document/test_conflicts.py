"""An edit that was made against something else than the notebook holds now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cellwright.errors import Conflict
from tests.unit.document.samples import (
    RESULT,
    STREAM,
    book,
    code,
    markdown,
    refusal,
    sources,
    write,
)

if TYPE_CHECKING:
    from cellwright import Notebook, Snapshot

TEXTS = ("zero", "one", "two", "three")


def notebook_of(texts: tuple[str, ...] = TEXTS, *, ids: bool = True) -> Notebook:
    """Cells with ids (`id-0` …) in nbformat 4.5, or without in 4.4."""
    cells = [code(text, f"id-{i}" if ids else None) for i, text in enumerate(texts)]
    return book(*cells, minor=5 if ids else 4)


with_and_without_ids = pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])


def seen_then(notebook: Notebook, *since: dict[str, Any]) -> Snapshot:
    """What a reader saw before somebody else made those edits."""
    seen = notebook.snapshot()
    for edit in since:
        notebook.apply(edit)
    return seen


# --- expect --------------------------------------------------------------------------------------

EXPECTING = [
    {"op": "replace", "cell": "id-1", "source": "x"},
    {"op": "replace_text", "cell": "id-1", "old": "one", "new": "x"},
    {"op": "delete", "cell": "id-1"},
    {"op": "split", "cell": "id-1", "line": 1},
    {"op": "set_type", "cell": "id-1", "type": "raw"},
]


@pytest.mark.parametrize("edit", EXPECTING, ids=lambda edit: edit["op"])
def test_an_edit_that_expects_what_the_cell_holds_is_made(edit: dict[str, Any]) -> None:
    notebook = notebook_of(("zero", "one\nmore"))
    assert notebook.apply({**edit, "expect": notebook.cells[1].hash})


@pytest.mark.parametrize("edit", EXPECTING, ids=lambda edit: edit["op"])
def test_an_edit_that_expects_something_else_is_a_conflict_that_shows_the_cell(
    edit: dict[str, Any],
) -> None:
    notebook = notebook_of(("zero", "one\nmore"))
    expected = notebook.cells[1].hash
    notebook.apply({"op": "replace", "cell": "id-1", "source": "somebody else's"})

    error = refusal(notebook, [{"op": "delete", "cell": "id-0"}, {**edit, "expect": expected}])

    assert (error.code, error.retryable) == ("CONFLICT", False)
    (cell,) = error.cells
    assert (cell.handle, cell.index, cell.current) == ("id-1", 1, "somebody else's")
    assert (cell.base, cell.other) == (None, edit.get("source"))


def test_expect_is_about_the_cell_before_the_list() -> None:
    notebook = notebook_of()
    expected = notebook.cells[1].hash

    notebook.apply(
        [
            {"op": "replace", "cell": "id-1", "source": "a", "expect": expected},
            {"op": "replace_text", "cell": "id-1", "old": "a", "new": "b", "expect": expected},
        ]
    )

    assert sources(notebook) == ["zero", "b", "two", "three"]


def test_all_cells_that_conflict_are_named_at_once() -> None:
    notebook = notebook_of()
    wrong = "0" * 12

    error = refusal(
        notebook,
        [
            {"op": "delete", "cell": "id-0", "expect": wrong},
            {"op": "replace", "cell": "id-1", "source": "x"},
            {"op": "replace", "cell": "id-2", "source": "x", "expect": wrong},
        ],
    )

    assert [(cell.handle, cell.current) for cell in error.cells] == [
        ("id-0", "zero"),
        ("id-2", "two"),
    ]


def test_outputs_and_metadata_do_not_spoil_an_expectation() -> None:
    notebook = book(code("x", "aa", outputs=[STREAM], execution_count=1))
    expected = notebook.cells[0].hash
    notebook.apply(
        [{"op": "clear_outputs"}, {"op": "set_metadata", "cell": 0, "metadata": {"k": 1}}]
    )
    assert notebook.apply({"op": "replace", "cell": "aa", "source": "y", "expect": expected})


# --- base: changes elsewhere are merged ----------------------------------------------------------

ELSEWHERE = {
    "nothing": [],
    "a cell added before": [{"op": "insert", "source": "new", "at": 0}],
    "a cell added after": [{"op": "insert", "source": "new"}],
    "a cell deleted before": [{"op": "delete", "cell": 0}],
    "a cell deleted after": [{"op": "delete", "cell": 3}],
    "a cell edited before": [{"op": "replace", "cell": 0, "source": "new"}],
    "many things": [
        {"op": "insert", "source": "new", "at": 0},
        {"op": "delete", "cell": 1},
        {"op": "insert", "source": "newer", "at": 3},
    ],
}


@with_and_without_ids
@pytest.mark.parametrize("since", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("ref", [2, -2, "cell-2", "2"])
def test_a_reference_means_the_cell_of_the_base(
    ref: Any, since: list[dict[str, Any]], ids: bool
) -> None:
    notebook = notebook_of(ids=ids)
    seen = seen_then(notebook, *since)
    now = sources(notebook)

    notebook.apply({"op": "replace", "cell": ref, "source": "mine"}, base=seen)

    assert sources(notebook) == ["mine" if text == "two" else text for text in now]


def test_an_id_is_found_wherever_the_cell_has_gone() -> None:
    notebook = notebook_of()
    seen = seen_then(notebook, {"op": "move", "cell": "id-2", "at": 0})

    notebook.apply(
        [
            {"op": "replace", "cell": "id-2", "source": "mine"},
            {"op": "replace", "cell": 0, "source": "also mine"},
        ],
        base=seen,
    )

    assert sources(notebook) == ["mine", "also mine", "one", "three"]


@with_and_without_ids
@pytest.mark.parametrize(
    ("place", "before"),
    [
        ({"after": 1}, 2),
        ({"before": 2}, 2),
        ({"at": 2}, 2),
        ({"after": "cell-3"}, 4),
        ({"at": 0}, 0),
        ({"before": 0}, 0),
        ({}, 4),
    ],
    ids=repr,
)
def test_a_place_is_one_between_the_cells_of_the_base(
    place: dict[str, Any], before: int, ids: bool
) -> None:
    notebook = notebook_of(ids=ids)
    seen = seen_then(notebook, {"op": "insert", "source": "new", "at": 1})
    notebook.apply({"op": "insert", "source": "mine", **place}, base=seen)
    found = sources(notebook)
    found.remove("new")
    assert found == [*TEXTS[:before], "mine", *TEXTS[before:]]


@with_and_without_ids
def test_a_place_beside_a_deleted_cell_is_beside_its_neighbour(ids: bool) -> None:
    for place in ({"after": 1}, {"before": 1}, {"at": 1}, {"at": 2}):
        notebook = notebook_of(ids=ids)
        seen = seen_then(notebook, {"op": "delete", "cell": 1})
        notebook.apply({"op": "insert", "source": "mine", **place}, base=seen)
        assert sources(notebook) == ["zero", "mine", "two", "three"]


@with_and_without_ids
def test_a_move_and_a_delete_find_their_cell_after_others_were_inserted(ids: bool) -> None:
    notebook = notebook_of(ids=ids)
    seen = seen_then(notebook, {"op": "insert", "source": "new", "at": 2})

    notebook.apply([{"op": "move", "cell": 3, "at": 0}, {"op": "delete", "cell": 1}], base=seen)

    assert sources(notebook) == ["three", "zero", "new", "two"]


@with_and_without_ids
def test_a_splice_replaces_the_cells_of_the_base(ids: bool) -> None:
    notebook = notebook_of(ids=ids)
    seen = seen_then(notebook, {"op": "insert", "source": "new", "at": 0})
    cells = [{"cell_type": "code", "source": "mine"}]

    notebook.apply({"op": "splice", "start": 1, "delete_count": 2, "cells": cells}, base=seen)

    assert sources(notebook) == ["new", "zero", "mine", "three"]


@with_and_without_ids
def test_a_run_since_then_is_no_conflict_and_its_outputs_stay(ids: bool) -> None:
    cells = [code(text, f"id-{i}" if ids else None) for i, text in enumerate(TEXTS)]
    minor = 5 if ids else 4
    seen = book(*cells, minor=minor).snapshot()
    ran = {**cells[1], "execution_count": 7, "outputs": [RESULT]}
    notebook = book(cells[0], ran, *cells[2:], minor=minor)

    notebook.apply({"op": "replace", "cell": 1, "source": "mine"}, base=seen)

    mine = {**ran, "source": ["mine"]}
    assert notebook.to_bytes() == write(cells[0], mine, *cells[2:], minor=minor)


def test_the_current_revision_is_a_base_like_any_other() -> None:
    notebook = notebook_of()
    assert notebook.apply({"op": "delete", "cell": 0}, base=notebook.revision)
    assert notebook.apply({"op": "delete", "cell": 0}, base=notebook.snapshot())
    assert sources(notebook) == ["two", "three"]


# --- base: what was touched is a conflict --------------------------------------------------------

TOUCHING = [
    {"op": "replace", "cell": 1, "source": "mine"},
    {"op": "replace_text", "cell": 1, "old": "one", "new": "mine"},
    {"op": "delete", "cell": 1},
    {"op": "split", "cell": 1, "line": 1},
    {"op": "merge", "cells": [1, 2]},
    {"op": "merge", "cells": [0, 1]},
    {"op": "set_type", "cell": 1, "type": "markdown"},
    {"op": "set_metadata", "cell": 1, "metadata": {"k": 1}},
    {"op": "splice", "start": 1, "delete_count": 1},
]


@with_and_without_ids
@pytest.mark.parametrize("edit", TOUCHING, ids=lambda edit: edit["op"])
def test_a_touched_cell_that_was_edited_since_is_a_conflict(
    edit: dict[str, Any], ids: bool
) -> None:
    notebook = notebook_of(("zero", "one\nmore", "two", "three"), ids=ids)
    seen = seen_then(
        notebook,
        {"op": "replace", "cell": 1, "source": "theirs"},
        {"op": "insert", "source": "new", "at": 0},
    )

    error = refusal(notebook, [{"op": "insert", "source": "mine"}, edit], base=seen)

    assert isinstance(error, Conflict)
    (cell,) = error.cells
    assert (cell.handle, cell.index, cell.current) == (
        "id-1" if ids else "cell-2",
        2,
        "theirs",
    )


@with_and_without_ids
@pytest.mark.parametrize(
    "edit", [*TOUCHING, {"op": "move", "cell": 1, "at": 0}], ids=lambda edit: edit["op"]
)
def test_a_touched_cell_that_was_deleted_since_is_a_conflict(
    edit: dict[str, Any], ids: bool
) -> None:
    notebook = notebook_of(("zero", "one\nmore", "two", "three"), ids=ids)
    seen = seen_then(notebook, {"op": "delete", "cell": 1})

    error = refusal(notebook, edit, base=seen)

    assert error.code == "CONFLICT"
    (cell,) = error.cells
    assert (cell.handle, cell.index, cell.current) == ("id-1" if ids else "cell-1", None, None)


def test_moving_or_clearing_a_cell_that_was_edited_since_loses_nothing_and_is_done() -> None:
    notebook = book(code("a", "aa", outputs=[STREAM]), code("b", "bb"))
    seen = seen_then(notebook, {"op": "replace", "cell": "aa", "source": "theirs"})

    notebook.apply(
        [{"op": "move", "cell": "aa", "at": 2}, {"op": "clear_outputs", "cells": ["aa"]}], base=seen
    )

    assert notebook.to_bytes() == write(code("b", "bb"), code("theirs", "aa"))


def test_clearing_what_was_deleted_since_has_nothing_to_do() -> None:
    notebook = notebook_of()
    seen = seen_then(notebook, {"op": "delete", "cell": 1})
    assert not notebook.apply({"op": "clear_outputs", "cells": [1]}, base=seen)


def test_a_type_change_since_is_an_edit() -> None:
    notebook = notebook_of()
    seen = seen_then(notebook, {"op": "set_type", "cell": 1, "type": "raw"})
    assert refusal(notebook, {"op": "replace", "cell": 1, "source": "x"}, base=seen).code == (
        "CONFLICT"
    )


def test_a_cell_that_was_edited_and_put_back_is_no_conflict() -> None:
    notebook = notebook_of()
    seen = seen_then(
        notebook,
        {"op": "replace", "cell": 1, "source": "theirs"},
        {"op": "replace", "cell": 1, "source": "one"},
    )
    assert notebook.apply({"op": "delete", "cell": 1}, base=seen)


@with_and_without_ids
def test_nothing_of_the_base_is_there_any_more(ids: bool) -> None:
    notebook = notebook_of(ids=ids)
    seen = notebook.snapshot()
    notebook.apply([{"op": "splice", "start": 0, "delete_count": 4}])

    error = refusal(notebook, [{"op": "delete", "cell": i} for i in range(4)], base=seen)

    assert (error.code, len(error.cells)) == ("CONFLICT", 4)
    notebook.apply({"op": "insert", "source": "mine", "after": 2}, base=seen)
    assert sources(notebook) == ["mine"]


def test_an_unknown_cell_of_the_base_is_not_looked_for_in_the_notebook() -> None:
    notebook = notebook_of()
    seen = seen_then(notebook, {"op": "insert", "id": "new"})
    assert refusal(notebook, {"op": "delete", "cell": "new"}, base=seen).code == "CELL_NOT_FOUND"
    assert refusal(notebook, {"op": "delete", "cell": 4}, base=seen).code == "CELL_NOT_FOUND"
    assert refusal(notebook, {"op": "insert", "at": 5}, base=seen).code == "INVALID_EDIT"
    outside = {"op": "splice", "start": 4, "delete_count": 1}
    assert refusal(notebook, outside, base=seen).code == "INVALID_EDIT"


def test_expect_counts_also_with_a_base() -> None:
    notebook = notebook_of()
    seen = seen_then(notebook, {"op": "replace", "cell": 1, "source": "theirs"})
    now = notebook.cells[1].hash

    assert notebook.apply({"op": "replace", "cell": 1, "source": "mine", "expect": now}, base=seen)


def test_a_new_id_may_be_the_one_of_a_cell_that_is_gone() -> None:
    notebook = notebook_of()
    seen = seen_then(notebook, {"op": "delete", "cell": 1})
    notebook.apply({"op": "insert", "id": "id-1", "source": "mine"}, base=seen)
    assert sources(notebook) == ["zero", "two", "three", "mine"]


# --- base: a revision that nobody remembers ------------------------------------------------------


@with_and_without_ids
@pytest.mark.parametrize("edits", [[], [{"op": "insert"}], [{"op": "delete", "cell": 1}]])
def test_a_revision_that_is_not_the_current_one_is_unknown(
    edits: list[dict[str, Any]], ids: bool
) -> None:
    notebook = notebook_of(ids=ids)
    old = notebook.revision
    notebook.apply({"op": "insert", "source": "new", "at": 0})

    for revision in (old, "", "000000000000", notebook.revision.upper() + "x"):
        error = refusal(notebook, edits, base=revision)
        assert (error.code, error.revision) == ("UNKNOWN_REVISION", revision)
        assert isinstance(error, LookupError)


def test_a_revision_that_comes_back_is_known_again() -> None:
    notebook = notebook_of()
    old = notebook.revision
    change = notebook.apply({"op": "insert", "source": "new", "at": 0})
    notebook.apply(change.inverse())
    assert notebook.apply({"op": "delete", "cell": 0}, base=old)


# --- Cells that share an id ----------------------------------------------------------------------


def test_cells_that_share_an_id_are_told_apart_by_what_they_say() -> None:
    notebook = book(code("a", "same"), code("b", "same"), markdown("c", "cc"))
    seen = seen_then(notebook, {"op": "insert", "source": "new", "at": 0})

    notebook.apply({"op": "replace", "cell": "cell-1", "source": "mine"}, base=seen)

    assert sources(notebook) == ["new", "a", "mine", "c"]


def test_a_cell_without_an_id_among_others_is_found_by_what_it_says() -> None:
    notebook = book(code("a", "aa"), code("b"), code("c", "cc"))
    seen = seen_then(notebook, {"op": "move", "cell": "aa", "at": 3})

    notebook.apply({"op": "replace", "cell": 1, "source": "mine"}, base=seen)

    assert sources(notebook) == ["mine", "c", "a"]


def test_of_cells_that_say_the_same_the_one_that_stayed_in_order_is_meant() -> None:
    notebook = book(code("x"), code("y"), code("x"), minor=4)
    seen = seen_then(notebook, {"op": "insert", "source": "x", "at": 0})

    notebook.apply({"op": "replace", "cell": 2, "source": "mine"}, base=seen)

    assert sources(notebook) == ["x", "x", "y", "mine"]
