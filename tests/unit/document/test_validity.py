"""Our rules for what may be written, held against nbformat's own schema."""

from __future__ import annotations

from typing import Any

import nbformat.validator
import pytest

from cellwright import Notebook
from cellwright.document._bytes.validity import (
    cell_metadata_problem,
    cell_problem,
    is_valid_id,
    notebook_metadata_problem,
)
from tests.cases import for_each
from tests.unit.document.samples import (
    RESULT,
    STREAM,
    book,
    code,
    markdown,
    raw,
    refusal,
    values,
    write,
)

MINORS = range(6)


def accepts(minor: int, *cells: Any, metadata: Any = None) -> bool:
    """Whether nbformat takes a notebook of that version with those cells."""
    value = {
        "cells": list(cells),
        "metadata": metadata if metadata is not None else {},
        "nbformat": 4,
        "nbformat_minor": minor,
    }
    try:
        nbformat.validator.get_validator(4, minor).validate(value)
    except nbformat.ValidationError:
        return False
    return True


# What a value may be instead of what it should be.
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    "",
    "x",
    "a,b",
    "\n",
    "a\n",
    "auto",
    [],
    ["a"],
    ["a", "b"],
    ["a", "a"],
    ["a,b"],
    ["", "b"],
    ["a", 1],
    [["a"]],
    {},
    {"a": "b"},
    {"a": 1},
    {"a": None},
    {"image/png": "x"},
    {"image/png": ["x", "y"]},
    {"image/png": 1},
    {"application/json": 1},
    {"application/json": None},
    {"application/vnd.x+json": [1]},
    {"application/xjson": [1]},
    {"x/json": {}},
    {"application/json\n": 1},
    {"text/application/json": {}},
    {"a.png": {"image/png": "x"}},
    {"a.png": {"image/png": 1}},
    {"name": "x"},
    {"name": "x", "display_name": "y"},
    {"name": "x", "display_name": 1},
    {"name": "x", "codemirror_mode": 1},
    {"name": "x", "codemirror_mode": {}, "file_extension": ".py"},
    {"name": "x", "pygments_lexer": None},
    {"source_hidden": 1},
]
CELL_METADATA = ["name", "tags", "jupyter", "format", "collapsed", "scrolled", "execution", "x_own"]
BOOK_METADATA = ["kernelspec", "language_info", "orig_nbformat", "title", "authors", "x_own"]
OUTPUTS = [
    STREAM,
    RESULT,
    {"output_type": "display_data", "data": {"image/png": "x"}, "metadata": {}},
    {"output_type": "error", "ename": "E", "evalue": "", "traceback": ["a"]},
]


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("make", [code, markdown, raw], ids=["code", "markdown", "raw"])
@for_each("key", CELL_METADATA)
def test_metadata_of_a_cell_have_a_problem_exactly_where_nbformat_sees_one(
    key: str, make: Any, minor: int
) -> None:
    for value in ODD:
        cell = make("", "id" if minor >= 5 else None, metadata={key: value})
        problem = cell_metadata_problem({key: value}, cell["cell_type"], minor, [key])
        assert (value, problem is None) == (value, accepts(minor, cell))


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("key", BOOK_METADATA)
def test_metadata_of_a_notebook_have_a_problem_exactly_where_nbformat_sees_one(
    key: str, minor: int
) -> None:
    for value in ODD:
        problem = notebook_metadata_problem({key: value}, minor, [key])
        assert (value, problem is None) == (value, accepts(minor, metadata={key: value}))


@pytest.mark.parametrize("key", ["outputs", "attachments", "source", "execution_count", "id"])
@pytest.mark.parametrize("make", [code, markdown, raw], ids=["code", "markdown", "raw"])
@pytest.mark.parametrize("minor", [0, 4, 5])
def test_a_member_of_a_cell_is_a_problem_exactly_where_nbformat_sees_one(
    minor: int, make: Any, key: str
) -> None:
    for value in ODD:
        cell = {**make("", "id" if minor >= 5 else None), key: value}
        assert (value, cell_problem(cell, minor) is None) == (value, accepts(minor, cell))


@for_each("output", OUTPUTS)
def test_members_of_an_output_have_a_problem_exactly_where_nbformat_sees_one(
    output: dict[str, Any],
) -> None:
    for key in output:
        for value in ODD:
            cell = code("", "id") | {"outputs": [{**output, key: value}]}
            assert (key, value, cell_problem(cell, 5) is None) == (key, value, accepts(5, cell))


def test_only_the_named_keys_are_looked_at() -> None:
    metadata = {"tags": 1, "k": 2}
    assert cell_metadata_problem(metadata, "code", 5, ["k", "gone"]) is None
    assert cell_metadata_problem(metadata, "code", 5, ["tags"]) is not None
    assert notebook_metadata_problem({"title": 1, "k": 2}, 5, ["k"]) is None


# --- Edits write only what is valid --------------------------------------------------------------

BARE = {
    "code": {"cell_type": "code", "source": ["x"]},
    "markdown": {"cell_type": "markdown", "source": ["x"]},
    "raw": {"cell_type": "raw", "source": ["x"]},
}
EDITS: list[dict[str, Any]] = [
    {"op": "replace", "source": "y"},
    {"op": "replace", "source": "y", "outputs": "clear"},
    {"op": "replace_text", "old": "x", "new": "y"},
    {"op": "set_metadata", "metadata": {"k": 1}},
    {"op": "set_type", "type": "code"},
    {"op": "set_type", "type": "markdown"},
    {"op": "set_type", "type": "raw"},
]


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("kind", BARE)
@for_each("edit", EDITS)
def test_an_edited_cell_gets_what_it_lacked_and_the_others_stay_as_they_are(
    edit: dict[str, Any], kind: str, minor: int
) -> None:
    bare, broken = BARE[kind], {"cell_type": "code"}
    notebook = book(broken, bare, bare, minor=minor)

    change = notebook.apply({**edit, "cell": 1})

    before, cell, behind = values(notebook)
    assert (before, behind) == (broken, bare)
    if change:
        assert cell_problem(cell, minor) is None
        assert accepts(minor, cell)
    else:
        assert edit == {"op": "set_type", "type": kind}
        assert cell == bare


@pytest.mark.parametrize(
    ("cell", "edited"),
    [
        (markdown("x", "aa", outputs=[], execution_count=1), markdown("y", "aa")),
        (raw("x", "aa", execution_count=None), raw("y", "aa")),
        (code("x", "aa", outputs=None), code("y", "aa")),
        (code("x", "aa", outputs={}), code("y", "aa")),
        (code("x", "aa", metadata=None), code("y", "aa")),
        (code("x", "aa", metadata=[]), code("y", "aa")),
        (code("x", "aa", x_own=1), code("y", "aa", x_own=1)),  # unknown, but never dropped
    ],
    ids=repr,
)
def test_an_edited_cell_loses_what_its_type_must_not_have(
    cell: dict[str, Any], edited: dict[str, Any]
) -> None:
    notebook = book(cell, cell)
    notebook.apply({"op": "replace", "cell": 0, "source": "y"})
    assert values(notebook) == [edited, cell]


@pytest.mark.parametrize("id_", [None, 5, "", "a b", "é", "x" * 65])
def test_an_edited_cell_with_a_missing_or_invalid_id_gets_one(id_: Any) -> None:
    cell = code("x") if id_ is None else code("x", id=id_)
    notebook = book(cell, cell)

    notebook.apply({"op": "replace", "cell": 0, "source": "y"})

    edited, other = values(notebook)
    assert is_valid_id(edited["id"])
    assert edited == code("y", edited["id"])
    assert other == cell


def test_duplicate_missing_and_invalid_ids_keep_nothing_from_being_read_and_edited() -> None:
    cells = [code("1", "same"), code("2", "same"), code("3"), code("4", "a b"), code("5", "ok")]
    cells.append(code("6", id=7))
    notebook = book(*cells)
    assert [cell.source for cell in notebook.cells] == list("123456")
    handles = ["cell-0", "cell-1", "cell-2", "a b", "ok", "cell-5"]
    assert [cell.handle for cell in notebook.cells] == handles

    for index, handle in enumerate(handles):
        notebook = book(*cells)
        notebook.apply({"op": "replace", "cell": handle, "source": "new"})
        found = values(notebook)
        id_ = found[index]["id"]
        assert is_valid_id(id_)
        assert found == [*cells[:index], code("new", id_), *cells[index + 1 :]]
        if is_valid_id(cells[index].get("id")):
            assert id_ == cells[index]["id"]


def test_several_cells_that_get_ids_get_different_ones() -> None:
    notebook = book(*[code("x")] * 20)
    notebook.apply([{"op": "replace", "cell": i, "source": "y"} for i in range(20)])
    found = [cell.id for cell in notebook.cells]
    assert len(set(found)) == 20
    assert all(map(is_valid_id, found))
    assert notebook.validate() is None


def test_looking_and_moving_and_deleting_complete_nothing() -> None:
    bare = BARE["code"]
    notebook = book(bare, bare, bare)
    notebook.apply([{"op": "move", "cell": 0, "at": 3}, {"op": "delete", "cell": 1}])
    assert notebook.to_bytes() == write(bare, bare)


def test_both_halves_of_a_split_are_valid() -> None:
    for minor in (4, 5):
        notebook = book({"cell_type": "code", "source": ["a\n", "b"]}, minor=minor)
        notebook.apply({"op": "split", "cell": 0, "line": 1})
        assert notebook.validate() is None


def test_a_merge_of_cells_makes_a_valid_one() -> None:
    for minor in (4, 5):
        notebook = book(BARE["code"], BARE["markdown"], minor=minor)
        notebook.apply({"op": "merge", "cells": [0, 1]})
        assert notebook.validate() is None


@pytest.mark.parametrize("minor", MINORS)
def test_inserted_and_spliced_cells_are_valid_in_any_notebook(minor: int) -> None:
    notebook = book({"cell_type": "odd"}, 5, minor=minor)
    cell = {"cell_type": "code", "source": "x", "outputs": [STREAM, RESULT]}
    notebook.apply(
        [
            {"op": "insert", "type": "markdown", "metadata": {"name": "n"}},
            {"op": "insert", "type": "raw"},
            {"op": "insert", "source": "x"},
            {"op": "splice", "start": 0, "cells": [cell]},
        ]
    )
    first, _, _, *new = values(notebook)
    assert accepts(minor, first, *new)
    assert [cell_problem(value, minor) for value in (first, *new)] == [None] * 4


def test_what_the_schema_of_the_file_allows_is_allowed() -> None:
    """The rules are those of the file's own version."""
    for minor, allowed in ((2, True), (3, False)):
        cell = code("x", "aa" if minor >= 5 else None)
        notebook = book(cell, minor=minor)
        edit = {"op": "set_metadata", "cell": 0, "metadata": {"jupyter": "no object"}}
        if allowed:
            notebook.apply(edit)
            assert notebook.validate() is None
        else:
            assert refusal(notebook, edit).code == "INVALID_METADATA"


def test_metadata_that_were_invalid_do_not_keep_others_from_being_set() -> None:
    notebook = book(code("x", "aa", metadata={"tags": "odd"}), metadata={"authors": "odd"})
    notebook.apply(
        [
            {"op": "set_metadata", "cell": "aa", "metadata": {"k": 1}},
            {"op": "set_metadata", "metadata": {"k": 1}},
        ]
    )
    assert notebook.cells[0].metadata == {"tags": "odd", "k": 1}
    assert notebook.metadata == {"authors": "odd", "k": 1}


def test_what_is_wrong_is_told_in_one_line() -> None:
    assert book(code("x", "aa")).validate() is None
    for broken in (
        book(code("x")),  # an id is missing
        book(code("x", "aa"), code("y", "aa")),  # an id stands twice
        book(code("x", "aa", outputs=5)),
        book(5),
        book(metadata={"authors": 1}),
        Notebook(b'{"cells":[],"nbformat":4,"nbformat_minor":5}'),
    ):
        problem = broken.validate()
        assert problem
        assert "\n" not in problem
