"""Every edit of the table, to the byte, and what happens when it cannot be made."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from cellwright import (
    ClearOutputs,
    Delete,
    Edit,
    Insert,
    MergeCells,
    Move,
    Notebook,
    Replace,
    ReplaceText,
    SetMetadata,
    SetType,
    Splice,
    Split,
    parse_edit,
)
from cellwright.document.edits import EDITS
from cellwright.errors import CellwrightError, DuplicateKey, InvalidEdit, TextMismatch
from tests.cases import for_each
from tests.unit.document.samples import (
    IMAGE,
    RESULT,
    STREAM,
    STYLES,
    book,
    code,
    ids,
    lines,
    markdown,
    raw,
    refusal,
    sources,
    values,
    write,
)

NEW = "<an id of our own>"  # stands in an expected cell for the id that the edit made up

CODE = code(
    "x = 1\ny = 2\nz = 3",
    "aa",
    execution_count=3,
    metadata={"tags": ["t"], "x_own": {"n": 1}},
    outputs=[STREAM],
)
TEXT = markdown("# Title\ntext", "bb", metadata={"k": 1}, attachments=IMAGE)
SHORT = code("print(x)", "cc", execution_count=4, outputs=[RESULT])
RAW = raw("raw text", "dd", metadata={"format": "text/html"})
BEFORE = (CODE, TEXT, SHORT, RAW)


def but(cell: dict[str, Any], *without: str, **changes: Any) -> dict[str, Any]:
    """The cell with other members, and without some."""
    return {key: value for key, value in {**cell, **changes}.items() if key not in without}


def text_of(cell: dict[str, Any], source: str) -> dict[str, Any]:
    return but(cell, source=lines(source))


# --- The JSON shape and the typed class ----------------------------------------------------------

SHAPES = [
    (Replace("aa", "x"), {"op": "replace", "cell": "aa", "source": "x"}),
    (
        Replace(-1, "x", type="raw", outputs="clear", expect="0123"),
        {
            "op": "replace",
            "cell": -1,
            "source": "x",
            "type": "raw",
            "outputs": "clear",
            "expect": "0123",
        },
    ),
    (
        ReplaceText("aa", "x", ""),
        {"op": "replace_text", "cell": "aa", "old": "x", "new": ""},
    ),
    (
        ReplaceText("cell-1", "x", "y", count=2, expect="0123"),
        {
            "op": "replace_text",
            "cell": "cell-1",
            "old": "x",
            "new": "y",
            "count": 2,
            "expect": "0123",
        },
    ),
    (Insert(), {"op": "insert"}),
    (
        Insert("# A", "markdown", id="new", metadata={"k": [1]}, after=0),
        {
            "op": "insert",
            "source": "# A",
            "type": "markdown",
            "id": "new",
            "metadata": {"k": [1]},
            "after": 0,
        },
    ),
    (Insert("x", before="aa"), {"op": "insert", "source": "x", "before": "aa"}),
    (Insert("x", at=0), {"op": "insert", "source": "x", "at": 0}),
    (Insert(metadata={}), {"op": "insert", "metadata": {}}),
    (Delete(0), {"op": "delete", "cell": 0}),
    (Delete("aa", expect="0123"), {"op": "delete", "cell": "aa", "expect": "0123"}),
    (Move("aa", after="bb"), {"op": "move", "cell": "aa", "after": "bb"}),
    (Move("aa", before=-1), {"op": "move", "cell": "aa", "before": -1}),
    (Move("aa", at=0), {"op": "move", "cell": "aa", "at": 0}),
    (Split("aa", 1), {"op": "split", "cell": "aa", "line": 1}),
    (Split(0, 2, expect="01"), {"op": "split", "cell": 0, "line": 2, "expect": "01"}),
    (MergeCells(["aa", 1]), {"op": "merge", "cells": ["aa", 1]}),
    (SetType("aa", "raw"), {"op": "set_type", "cell": "aa", "type": "raw"}),
    (
        SetType("aa", "raw", expect="01"),
        {"op": "set_type", "cell": "aa", "type": "raw", "expect": "01"},
    ),
    (SetMetadata({"k": None}), {"op": "set_metadata", "metadata": {"k": None}}),
    (
        SetMetadata({}, "aa", merge=False),
        {"op": "set_metadata", "metadata": {}, "cell": "aa", "merge": False},
    ),
    (ClearOutputs(), {"op": "clear_outputs"}),
    (ClearOutputs([]), {"op": "clear_outputs", "cells": []}),
    (ClearOutputs(["aa", 2]), {"op": "clear_outputs", "cells": ["aa", 2]}),
    (Splice(0), {"op": "splice", "start": 0}),
    (
        Splice(1, 2, [{"cell_type": "raw", "source": ""}]),
        {
            "op": "splice",
            "start": 1,
            "delete_count": 2,
            "cells": [{"cell_type": "raw", "source": ""}],
        },
    ),
]


@pytest.mark.parametrize(("edit", "shape"), SHAPES, ids=lambda value: getattr(value, "op", ""))
def test_a_typed_edit_and_its_json_shape_say_the_same(edit: Edit, shape: dict[str, Any]) -> None:
    assert edit.to_json() == shape
    assert parse_edit(shape) == edit
    assert parse_edit(edit.to_json()) == edit
    assert parse_edit(edit) is edit


def test_the_shapes_above_cover_every_operation() -> None:
    assert {edit.op for edit, _ in SHAPES} == set(EDITS)


@pytest.mark.parametrize(
    "edit",
    [
        MergeCells(("aa", "bb")),
        ClearOutputs(("aa",)),
        ClearOutputs(()),
        Splice(0, 0, ({"cell_type": "raw", "source": ""},)),
        Splice(0, 1, []),
    ],
    ids=lambda edit: edit.op,
)
def test_a_tuple_and_a_list_of_cells_are_the_same_edit(edit: Edit) -> None:
    assert parse_edit(edit.to_json()) == edit


def test_an_optional_field_that_is_null_is_as_if_absent() -> None:
    shape = {"op": "insert", "after": None, "before": None, "at": None, "id": None}
    assert parse_edit({**shape, "metadata": None}) == Insert()
    assert parse_edit({"op": "clear_outputs", "cells": None}) == ClearOutputs()


def test_a_source_may_come_as_the_lines_that_a_notebook_has() -> None:
    assert parse_edit({"op": "insert", "source": ["a\n", "b"]}) == Insert("a\nb")
    assert parse_edit({"op": "replace", "cell": 0, "source": []}) == Replace(0, "")


@pytest.mark.parametrize(
    ("shape", "suggestion"),
    [
        ({"op": "replce", "cell": "aa", "source": ""}, "`replace`"),
        ({"op": "clear", "cells": []}, "clear_outputs"),
        ({"op": "replace", "cell": "aa", "sorce": ""}, "`source`"),
        ({"op": "insert", "befor": 1}, "`before`"),
        ({"op": "delete", "id": "aa"}, "cell"),
    ],
)
def test_an_unknown_word_is_refused_with_the_one_that_was_meant(
    shape: dict[str, Any], suggestion: str
) -> None:
    error = refusal(book(*BEFORE), shape)
    assert (error.code, isinstance(error, ValueError)) == ("INVALID_EDIT", True)
    assert suggestion in (error.hint or "")


@pytest.mark.parametrize(
    "shape",
    [
        None,
        "delete",
        3,
        [],
        {},
        {"op": None},
        {"op": 1},
        {"op": []},
        {"op": {}},
        {"op": "Delete", "cell": "aa"},
        {"cell": "aa", "source": "x"},
        {"op": "delete", "cell": "aa", 1: 2},
    ],
)
def test_what_is_no_edit_at_all_is_refused_by_its_place(shape: Any) -> None:
    error = refusal(book(*BEFORE), [{"op": "delete", "cell": "bb"}, shape])
    assert (error.code, error.position) == ("INVALID_EDIT", 1)


@pytest.mark.parametrize(
    ("shape", "missing"),
    [
        ({"op": "replace", "source": "x"}, {"cell"}),
        ({"op": "replace", "cell": "aa"}, {"source"}),
        ({"op": "replace"}, {"cell", "source"}),
        ({"op": "replace_text", "cell": "aa"}, {"old", "new"}),
        ({"op": "delete"}, {"cell"}),
        ({"op": "move", "at": 0}, {"cell"}),
        ({"op": "split", "cell": "aa"}, {"line"}),
        ({"op": "merge"}, {"cells"}),
        ({"op": "set_type", "cell": "aa"}, {"type"}),
        ({"op": "set_metadata", "cell": "aa"}, {"metadata"}),
        ({"op": "splice", "delete_count": 1}, {"start"}),
    ],
)
def test_a_missing_field_is_refused_and_named(shape: dict[str, Any], missing: set[str]) -> None:
    error = refusal(book(*BEFORE), [shape])
    assert (error.code, error.position) == ("INVALID_EDIT", 0)
    assert set(re.findall(r"`(\w+)`", error.message)) == {shape["op"], *missing}


NO_REF = [True, False, 1.0, None, [], {}, b"aa"]
NO_TEXT = [None, 1, True, b"x", {}, ["a", 1]]
NO_INDEX = [True, -1, 1.0, "1", [], {}]
WRONG = [
    *[{"op": "delete", "cell": wrong} for wrong in NO_REF],
    *[{"op": "move", "cell": "aa", "after": wrong} for wrong in NO_REF if wrong is not None],
    *[{"op": "insert", "before": wrong} for wrong in NO_REF if wrong is not None],
    *[{"op": "insert", "at": wrong} for wrong in NO_INDEX],
    *[{"op": "move", "cell": "aa", "at": wrong} for wrong in NO_INDEX],
    *[{"op": "insert", "source": wrong} for wrong in NO_TEXT],
    *[{"op": "replace", "cell": "aa", "source": wrong} for wrong in NO_TEXT],
    *[{"op": "replace_text", "cell": "aa", "old": "x", "new": wrong} for wrong in [*NO_TEXT, []]],
    *[{"op": "replace_text", "cell": "aa", "old": wrong, "new": ""} for wrong in ["", 1, None]],
    *[
        {"op": "replace_text", "cell": "aa", "old": "x", "new": "y", "count": wrong}
        for wrong in [0, None, *NO_INDEX]
    ],
    *[{"op": "split", "cell": "aa", "line": wrong} for wrong in [0, None, *NO_INDEX]],
    *[{"op": "insert", "type": wrong} for wrong in [None, "", "Code", "heading", 1, ["code"]]],
    *[{"op": "set_type", "cell": "aa", "type": wrong} for wrong in [None, "text", True]],
    *[
        {"op": "replace", "cell": "aa", "source": "", "outputs": wrong}
        for wrong in [None, "", "drop", True, []]
    ],
    *[{"op": "delete", "cell": "aa", "expect": wrong} for wrong in [1, True, b"00"]],
    *[{"op": "insert", "id": wrong} for wrong in [1, True, [], b"id"]],
    *[{"op": "insert", "metadata": wrong} for wrong in [[], "", 1, True]],
    *[{"op": "set_metadata", "metadata": wrong} for wrong in [None, [], "", 1]],
    *[{"op": "set_metadata", "metadata": {}, "merge": wrong} for wrong in [None, 0, 1, "true"]],
    *[{"op": "merge", "cells": wrong} for wrong in [None, "aa", 1, {"aa": 1}, ["aa", True]]],
    *[{"op": "clear_outputs", "cells": wrong} for wrong in ["aa", 1, {"aa": 1}, [None], [1.0]]],
    *[{"op": "splice", "start": wrong} for wrong in [None, *NO_INDEX]],
    *[{"op": "splice", "start": 0, "delete_count": wrong} for wrong in [None, *NO_INDEX]],
    *[{"op": "splice", "start": 0, "cells": wrong} for wrong in [None, {}, "x", ["x"], [None]]],
]


@for_each("shape", WRONG)
def test_a_field_of_the_wrong_type_is_refused(shape: dict[str, Any]) -> None:
    error = refusal(book(*BEFORE), [shape])
    assert (error.code, error.position) == ("INVALID_EDIT", 0)


def test_a_typed_edit_of_the_wrong_type_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidEdit):
        Replace(True, "x")
    with pytest.raises(InvalidEdit):
        Insert("x", type="Code")
    with pytest.raises(InvalidEdit):
        Splice(0, 0, ["x"])


# --- What each operation writes ------------------------------------------------------------------

OPERATIONS = {
    # replace
    "replace": ({"op": "replace", "cell": "aa", "source": "q"}, [text_of(CODE, "q"), TEXT]),
    "replace by many lines": (
        {"op": "replace", "cell": "bb", "source": "a\n\nb\n"},
        [CODE, text_of(TEXT, "a\n\nb\n")],
    ),
    "replace by nothing": (
        {"op": "replace", "cell": "aa", "source": ""},
        [text_of(CODE, ""), TEXT],
    ),
    "replace and clear": (
        {"op": "replace", "cell": "aa", "source": "q", "outputs": "clear"},
        [text_of(but(CODE, outputs=[], execution_count=None), "q"), TEXT],
    ),
    "replace and clear, the same source": (
        {"op": "replace", "cell": "aa", "source": "x = 1\ny = 2\nz = 3", "outputs": "clear"},
        [but(CODE, outputs=[], execution_count=None), TEXT],
    ),
    "replace and clear text": (
        {"op": "replace", "cell": "bb", "source": "q", "outputs": "clear"},
        [CODE, text_of(TEXT, "q")],
    ),
    "replace and keep": (
        {"op": "replace", "cell": "aa", "source": "q", "outputs": "keep"},
        [text_of(CODE, "q"), TEXT],
    ),
    "replace code by markdown": (
        {"op": "replace", "cell": "aa", "source": "q", "type": "markdown"},
        [
            text_of(but(CODE, "outputs", "execution_count", cell_type="markdown"), "q"),
            TEXT,
        ],
    ),
    "replace markdown by code": (
        {"op": "replace", "cell": "bb", "source": "q", "type": "code"},
        [
            CODE,
            text_of(
                but(TEXT, "attachments", cell_type="code", outputs=[], execution_count=None), "q"
            ),
        ],
    ),
    "replace by the same type": (
        {"op": "replace", "cell": "aa", "source": "q", "type": "code"},
        [text_of(CODE, "q"), TEXT],
    ),
    # replace_text
    "replace_text": (
        {"op": "replace_text", "cell": "aa", "old": "y = 2\n", "new": ""},
        [text_of(CODE, "x = 1\nz = 3"), TEXT],
    ),
    "replace_text several times": (
        {"op": "replace_text", "cell": "aa", "old": " = ", "new": "=", "count": 3},
        [text_of(CODE, "x=1\ny=2\nz=3"), TEXT],
    ),
    # insert
    "insert at the end": (
        {"op": "insert", "source": "q\nr"},
        [CODE, TEXT, code("q\nr", NEW)],
    ),
    "insert text before": (
        {"op": "insert", "source": "q", "type": "markdown", "before": "aa"},
        [markdown("q", NEW), CODE, TEXT],
    ),
    "insert raw after": (
        {"op": "insert", "source": "q", "type": "raw", "after": "aa"},
        [CODE, raw("q", NEW), TEXT],
    ),
    "insert with id and metadata": (
        {"op": "insert", "id": "my-id_1", "metadata": {"n": {}, "tags": ["a", "b"]}, "at": 1},
        [CODE, code("", "my-id_1", metadata={"n": {}, "tags": ["a", "b"]}), TEXT],
    ),
    "insert at 0": ({"op": "insert", "at": 0}, [code("", NEW), CODE, TEXT]),
    "insert at the number of cells": ({"op": "insert", "at": 2}, [CODE, TEXT, code("", NEW)]),
    # delete
    "delete the first": ({"op": "delete", "cell": "aa"}, [TEXT]),
    "delete the last": ({"op": "delete", "cell": -1}, [CODE]),
    "delete all": ([{"op": "delete", "cell": 0}, {"op": "delete", "cell": 1}], []),
    # move
    "move down": ({"op": "move", "cell": "aa", "after": "bb"}, [TEXT, CODE]),
    "move up": ({"op": "move", "cell": "bb", "before": "aa"}, [TEXT, CODE]),
    "move to an index": ({"op": "move", "cell": "aa", "at": 2}, [TEXT, CODE]),
    "move to where it is": ({"op": "move", "cell": "aa", "at": 0}, [CODE, TEXT]),
    "move behind itself": ({"op": "move", "cell": "aa", "at": 1}, [CODE, TEXT]),
    # split
    "split code": (
        {"op": "split", "cell": "aa", "line": 1},
        [
            text_of(CODE, "x = 1"),
            text_of(but(CODE, id=NEW, outputs=[], execution_count=None), "y = 2\nz = 3"),
            TEXT,
        ],
    ),
    "split before the last line": (
        {"op": "split", "cell": "aa", "line": 2},
        [
            text_of(CODE, "x = 1\ny = 2"),
            text_of(but(CODE, id=NEW, outputs=[], execution_count=None), "z = 3"),
            TEXT,
        ],
    ),
    "split text": (
        {"op": "split", "cell": "bb", "line": 1},
        [CODE, text_of(TEXT, "# Title"), text_of(but(TEXT, id=NEW), "text")],
    ),
    # merge
    "merge text into code": (
        {"op": "merge", "cells": ["aa", "bb"]},
        [text_of(CODE, "x = 1\ny = 2\nz = 3\n# Title\ntext")],
    ),
    "merge in any order": (
        {"op": "merge", "cells": ["bb", "aa"]},
        [text_of(CODE, "x = 1\ny = 2\nz = 3\n# Title\ntext")],
    ),
    # set_type
    "code to markdown": (
        {"op": "set_type", "cell": "aa", "type": "markdown"},
        [but(CODE, "outputs", "execution_count", cell_type="markdown"), TEXT],
    ),
    "code to raw": (
        {"op": "set_type", "cell": "aa", "type": "raw"},
        [but(CODE, "outputs", "execution_count", cell_type="raw"), TEXT],
    ),
    "markdown to code": (
        {"op": "set_type", "cell": "bb", "type": "code"},
        [CODE, but(TEXT, "attachments", cell_type="code", outputs=[], execution_count=None)],
    ),
    "markdown to raw": (
        {"op": "set_type", "cell": "bb", "type": "raw"},
        [CODE, but(TEXT, cell_type="raw")],
    ),
    "code to code": ({"op": "set_type", "cell": "aa", "type": "code"}, [CODE, TEXT]),
    # set_metadata
    "merge metadata": (
        {"op": "set_metadata", "cell": "aa", "metadata": {"x_own": {"m": [2]}, "tags": None}},
        [but(CODE, metadata={"x_own": {"n": 1, "m": [2]}}), TEXT],
    ),
    "replace metadata": (
        {"op": "set_metadata", "cell": "aa", "metadata": {"a": {}, "z": 1}, "merge": False},
        [but(CODE, metadata={"a": {}, "z": 1}), TEXT],
    ),
    "remove all metadata": (
        {"op": "set_metadata", "cell": "aa", "metadata": {}, "merge": False},
        [but(CODE, metadata={}), TEXT],
    ),
    "remove the last key": (
        {"op": "set_metadata", "cell": "bb", "metadata": {"k": None}},
        [CODE, but(TEXT, metadata={})],
    ),
    "the first key": (
        [
            {"op": "set_metadata", "cell": "bb", "metadata": {"k": None}},
            {"op": "set_metadata", "cell": "bb", "metadata": {"n": {"m": "é"}}},
        ],
        [CODE, but(TEXT, metadata={"n": {"m": "é"}})],
    ),
    # clear_outputs
    "clear all outputs": (
        {"op": "clear_outputs"},
        [but(CODE, outputs=[], execution_count=None), TEXT],
    ),
    "clear no outputs": ({"op": "clear_outputs", "cells": []}, [CODE, TEXT]),
    "clear the outputs of text": ({"op": "clear_outputs", "cells": ["bb"]}, [CODE, TEXT]),
    # splice
    "splice nothing": ({"op": "splice", "start": 2}, [CODE, TEXT]),
    "splice out": ({"op": "splice", "start": 0, "delete_count": 2}, []),
    "splice in": (
        {"op": "splice", "start": 1, "cells": [{"cell_type": "raw", "source": "q"}]},
        [CODE, raw("q", NEW), TEXT],
    ),
    "splice over": (
        {
            "op": "splice",
            "start": 0,
            "delete_count": 1,
            "cells": [
                {"cell_type": "code", "source": "val x = 42", "metadata": {}},
                {"cell_type": "markdown", "source": "# New Section", "metadata": {}},
            ],
        },
        [code("val x = 42", NEW), markdown("# New Section", NEW), TEXT],
    ),
}


@pytest.mark.parametrize("style", STYLES)
@for_each("name", OPERATIONS)
def test_an_operation_writes_exactly_this(name: str, style: dict[str, Any]) -> None:
    edits, after = OPERATIONS[name]
    notebook = book(CODE, TEXT, style=style)

    notebook.apply(edits)

    assert notebook.to_bytes() == write(*named(after, notebook), style=style)
    assert notebook.validate() is None


def named(cells: list[dict[str, Any]], notebook: Notebook) -> list[dict[str, Any]]:
    """The expected cells, with the ids that the edit made up, which must be proper ones."""
    made = []
    for cell, found in zip(cells, notebook.cells, strict=True):
        if cell.get("id") == NEW:
            assert re.fullmatch("[0-9a-f]{8}", found.id or "")
            cell = {**cell, "id": found.id}  # noqa: PLW2901
        made.append(cell)
    used = ids(notebook)
    assert len(set(used)) == len(used)
    return made


def test_every_operation_stands_in_the_table() -> None:
    shapes = [edits for edits, _ in OPERATIONS.values()]
    flat = [edit for edits in shapes for edit in (edits if isinstance(edits, list) else [edits])]
    assert {edit["op"] for edit in flat} == set(EDITS)


def test_a_pretty_notebook_is_edited_to_the_letter() -> None:
    notebook = Notebook(
        b"""{
  "nbformat_minor": 5,
  "cells": [
    {
      "source": ["x = 1"],
      "id": "one",
      "cell_type": "code",
      "metadata": {"tags": []},
      "execution_count": 7,
      "outputs": [{"output_type": "stream", "name": "stdout", "text": "1"}]
    },
    {
      "source": "# kept  as\\u0020it is",
      "id": "two",
      "cell_type": "markdown",
      "metadata": { }
    }
  ],
  "nbformat": 4,
  "metadata": {"a": 1.0}
}"""
    )

    notebook.apply(
        [
            {"op": "replace", "cell": "one", "source": "x = 2"},
            {"op": "insert", "source": "y\nz", "id": "three", "after": "one"},
            {"op": "set_metadata", "metadata": {"b": "é"}},
        ]
    )

    assert (
        notebook.to_bytes().decode()
        == """{
  "nbformat_minor": 5,
  "cells": [
    {
      "source": ["x = 2"],
      "id": "one",
      "cell_type": "code",
      "metadata": {"tags": []},
      "execution_count": 7,
      "outputs": [{"output_type": "stream", "name": "stdout", "text": "1"}]
    },
    {
      "source": ["y\\n", "z"],
      "id": "three",
      "cell_type": "code",
      "metadata": {},
      "execution_count": null,
      "outputs": []
    },
    {
      "source": "# kept  as\\u0020it is",
      "id": "two",
      "cell_type": "markdown",
      "metadata": { }
    }
  ],
  "nbformat": 4,
  "metadata": {"a": 1.0, "b": "é"}
}"""
    )


def test_a_minified_notebook_is_edited_to_the_letter() -> None:
    notebook = Notebook(
        b'{"cells":[{"cell_type":"code","execution_count":1,"id":"one","metadata":{},"outputs":[],'
        b'"source":["x"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}'
    )

    notebook.apply(
        [
            {"op": "replace_text", "cell": "one", "old": "x", "new": "y\nz"},
            {"op": "insert", "source": "a\nb", "type": "markdown", "id": "two"},
            {"op": "set_metadata", "cell": "one", "metadata": {"tags": ["a", "b"]}},
        ]
    )

    assert notebook.to_bytes() == (
        b'{"cells":[{"cell_type":"code","execution_count":1,"id":"one","metadata":{"tags":["a","b"]}'
        b',"outputs":[],"source":["y\\n","z"]},{"cell_type":"markdown","id":"two","metadata":{},'
        b'"source":["a\\n","b"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}'
    )


@pytest.mark.parametrize("style", STYLES)
def test_the_notebooks_metadata_change_when_no_cell_is_named(style: dict[str, Any]) -> None:
    kernel = {"display_name": "Python 3", "name": "python3"}
    notebook = book(*BEFORE, metadata={"kernelspec": kernel, "x": {"a": 1, "b": 2}}, style=style)

    notebook.apply({"op": "set_metadata", "metadata": {"x": {"a": None, "c": [1, 2]}, "y": "é"}})

    expected = {"kernelspec": kernel, "x": {"b": 2, "c": [1, 2]}, "y": "é"}
    assert notebook.to_bytes() == write(*BEFORE, metadata=expected, style=style)
    assert notebook.metadata == expected

    notebook.apply({"op": "set_metadata", "metadata": {"z": 1}, "merge": False})

    assert notebook.to_bytes() == write(*BEFORE, metadata={"z": 1}, style=style)


@pytest.mark.parametrize("kind", ["code", "markdown", "raw"])
@pytest.mark.parametrize("minor", [4, 5])
def test_code_has_outputs_and_a_count_and_text_never_carries_them(kind: str, minor: int) -> None:
    cells = (
        [{k: v for k, v in cell.items() if k != "id"} for cell in BEFORE] if minor < 5 else BEFORE
    )
    given = {"cell_type": kind, "source": "spliced", "outputs": [], "execution_count": None}
    notebook = book(*cells, minor=minor)

    notebook.apply(
        [
            {"op": "insert", "source": "inserted", "type": kind, "at": 0},
            {"op": "splice", "start": 0, "cells": [given]},
            {"op": "set_type", "cell": 0, "type": kind},
            {"op": "replace", "cell": 1, "source": "replaced", "type": kind},
            {"op": "split", "cell": 0, "line": 1},
        ]
    )

    for cell in values(notebook):
        if cell["cell_type"] == "code":
            assert isinstance(cell["outputs"], list)
            assert "execution_count" in cell
        else:
            assert not {"outputs", "execution_count"} & cell.keys()
    for cell in values(notebook)[:2]:
        found = (cell["cell_type"], cell.get("outputs"), cell.get("execution_count", "absent"))
        assert found == ((kind, [], None) if kind == "code" else (kind, None, "absent"))
    assert notebook.validate() is None


def test_a_new_cell_gets_an_unused_id_where_the_file_has_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = iter([b"\0\0\0\xa1", b"\0\0\0\xa2", b"\0\0\0\xa2", b"\0\0\0\xa3"])
    monkeypatch.setattr(os, "urandom", lambda _: next(drawn))
    notebook = book(code("a", "000000a1"))
    notebook.apply([{"op": "insert"}, {"op": "insert"}])
    assert ids(notebook) == ["000000a1", "000000a2", "000000a3"]

    old = book(code("a"), minor=4)
    old.apply([{"op": "insert"}, {"op": "insert", "type": "markdown"}])
    assert old.to_bytes() == write(code("a"), code(""), markdown(""), minor=4)


# --- Rules of single operations ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "count", "source"),
    [(0, 1, "a"), (2, 1, "x x"), (1, 2, "x"), (3, 2, "xxx"), (0, 1, "")],
)
def test_replace_text_refuses_any_other_number_of_places(
    found: int, count: int, source: str
) -> None:
    notebook = book(code(source, "aa"))

    error = refusal(
        notebook, {"op": "replace_text", "cell": "aa", "old": "x", "new": "y", "count": count}
    )

    assert isinstance(error, TextMismatch)
    assert (error.code, error.found) == ("TEXT_MISMATCH", found)


def test_replace_text_finds_text_across_lines_and_takes_it_literally() -> None:
    notebook = book(code("a.b\nc*d\n", "aa"))

    notebook.apply({"op": "replace_text", "cell": "aa", "old": ".b\nc*", "new": "\\1\n$&"})

    assert sources(notebook) == ["a\\1\n$&d\n"]


def test_replace_text_sees_what_the_edits_before_it_wrote() -> None:
    notebook = book(code("a", "aa"))

    notebook.apply(
        [
            {"op": "replace", "cell": "aa", "source": "b b"},
            {"op": "replace_text", "cell": "aa", "old": "b", "new": "c", "count": 2},
        ]
    )

    assert sources(notebook) == ["c c"]


@pytest.mark.parametrize(
    "places",
    [
        {"after": "aa", "before": "bb"},
        {"after": "aa", "at": 1},
        {"before": 1, "at": 1},
        {"after": 0, "before": 1, "at": 1},
        {"at": 5},
    ],
)
@pytest.mark.parametrize("op", [{"op": "insert"}, {"op": "move", "cell": "dd"}])
def test_a_place_is_named_once_and_must_exist(op: dict[str, Any], places: dict[str, Any]) -> None:
    error = refusal(book(*BEFORE), [op | places])
    assert (error.code, error.position) == ("INVALID_EDIT", 0)


def test_move_needs_a_place() -> None:
    assert refusal(book(*BEFORE), {"op": "move", "cell": "aa"}).code == "INVALID_EDIT"


@pytest.mark.parametrize("place", [{"after": "zz"}, {"before": "zz"}, {"after": 4}])
def test_a_place_beside_an_unknown_cell_is_not_guessed(place: dict[str, Any]) -> None:
    assert refusal(book(*BEFORE), {"op": "insert", **place}).code == "CELL_NOT_FOUND"
    assert refusal(book(*BEFORE), {"op": "move", "cell": 0, **place}).code == "CELL_NOT_FOUND"


@pytest.mark.parametrize("id_", ["aa", "", "a b", "é", "a" * 65, "a\n"])
def test_insert_refuses_an_id_that_is_taken_or_invalid(id_: str) -> None:
    assert refusal(book(*BEFORE), {"op": "insert", "id": id_}).code == "INVALID_EDIT"


@pytest.mark.parametrize("id_", ["a" * 64, "-", "_", "0", "cell-7"])
def test_insert_takes_any_valid_id(id_: str) -> None:
    notebook = book(*BEFORE)
    notebook.apply({"op": "insert", "id": id_})
    assert ids(notebook) == ["aa", "bb", "cc", "dd", id_]


def test_an_id_is_taken_also_by_an_insert_of_the_same_list() -> None:
    edits = [{"op": "insert", "id": "new"}, {"op": "insert", "id": "new"}]
    error = refusal(book(*BEFORE), edits)
    assert (error.code, error.position) == ("INVALID_EDIT", 1)


@pytest.mark.parametrize(
    "metadata",
    [
        {"tags": "a"},
        {"tags": ["a", "a"]},
        {"name": ""},
        {"jupyter": 1},
        {"collapsed": 1},
        {"scrolled": "no"},
        {"execution": {"x": 1}},
    ],
)
def test_insert_and_splice_refuse_metadata_that_the_schema_forbids(
    metadata: dict[str, Any],
) -> None:
    cell = {"cell_type": "code", "source": "", "metadata": metadata}
    assert refusal(book(), {"op": "insert", "metadata": metadata}).code == "INVALID_EDIT"
    assert refusal(book(), {"op": "splice", "start": 0, "cells": [cell]}).code == "INVALID_EDIT"


@pytest.mark.parametrize(
    "metadata",
    [
        {"k": float("nan")},
        {"k": [float("inf")]},
        {"k": {1, 2}},
        {"k": b"bytes"},
        {"k": {"n": 1j}},
        {1: "k"},
        {"k": {2: "n"}},
        {"k": [{None: "n"}]},
        {"k": {1: "a", "1": "b"}},
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "edit",
    [
        {"op": "set_metadata", "cell": "aa"},
        {"op": "set_metadata", "cell": "aa", "merge": False},
        {"op": "set_metadata"},
        {"op": "set_metadata", "merge": False},
        {"op": "insert"},
    ],
    ids=["cell", "cell replaced", "notebook", "notebook replaced", "insert"],
)
def test_metadata_that_are_no_json_are_refused(
    edit: dict[str, Any], metadata: dict[Any, Any]
) -> None:
    error = refusal(book(*BEFORE), {**edit, "metadata": metadata})
    # Wrong as a field of the edit, or a value that only writing it shows to be wrong.
    assert error.code in ("INVALID_EDIT", "INVALID_METADATA")


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("cell", [None, "aa"])
def test_metadata_nested_too_deeply_are_refused(cell: str | None, merge: bool) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    edit = {"op": "set_metadata", "cell": cell, "metadata": deep, "merge": merge}
    assert refusal(book(*BEFORE), edit).code == "INVALID_EDIT"


# RFC 7396, appendix A, as far as both sides are objects.
PATCHES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    # and what a shortcut would get wrong
    ({"a": {"b": None}}, {"a": {"b": None}}, {"a": {}}),
    ({"a": {"b": {"c": None}, "d": 1}}, {"a": {"b": {"c": None}}}, {"a": {"b": {}, "d": 1}}),
    ({"a": 1}, {"a": True}, {"a": True}),
    ({"a": 1}, {"a": 1.0}, {"a": 1.0}),
    ({"a": False}, {"a": 0}, {"a": 0}),
    ({"a": 1}, {"a": {"b": None}}, {"a": {}}),
    ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
    ({"a": [1, None]}, {"a": [None]}, {"a": [None]}),
]


@pytest.mark.parametrize(("old", "patch", "new"), PATCHES)
def test_metadata_merge_as_rfc_7396_says(old: Any, patch: Any, new: Any) -> None:
    notebook = book(markdown("", "aa", metadata=old), metadata=old)

    notebook.apply({"op": "set_metadata", "cell": "aa", "metadata": patch})
    notebook.apply({"op": "set_metadata", "metadata": patch, "merge": True})

    assert exactly(notebook.cells[0].metadata) == exactly(new)
    assert exactly(notebook.metadata) == exactly(new)

    notebook.apply({"op": "set_metadata", "cell": "aa", "metadata": patch, "merge": False})
    notebook.apply({"op": "set_metadata", "metadata": patch, "merge": False})

    assert exactly(notebook.cells[0].metadata) == exactly(patch)
    assert exactly(notebook.metadata) == exactly(patch)


def exactly(value: Any) -> str:
    """A value as JSON, in which 1, 1.0 and true are not the same."""
    return json.dumps(value, sort_keys=True)


def test_metadata_that_are_replaced_keep_explicit_nulls() -> None:
    notebook = book(*BEFORE)
    notebook.apply({"op": "set_metadata", "metadata": {"k": None}, "merge": False})
    assert notebook.metadata == {"k": None}


@pytest.mark.parametrize(
    ("edit", "cell"),
    [
        ({"metadata": {"tags": ["a,b"]}}, "aa"),
        ({"metadata": {"collapsed": "yes"}}, "aa"),
        ({"metadata": {"format": 1}}, "dd"),
        ({"metadata": {"kernelspec": {"name": "x"}}}, None),
        ({"metadata": {"language_info": {}}}, None),
        ({"metadata": {"orig_nbformat": 0}}, None),
        ({"metadata": {"authors": {}}}, None),
    ],
)
@pytest.mark.parametrize("merge", [True, False])
def test_metadata_that_the_schema_forbids_are_refused(
    edit: dict[str, Any], cell: str | None, merge: bool
) -> None:
    edit = {"op": "set_metadata", "cell": cell, "merge": merge, **edit}
    assert refusal(book(*BEFORE), edit).code == "INVALID_METADATA"


@pytest.mark.parametrize("line", [3, 4, 99])
def test_split_refuses_a_line_behind_the_last(line: int) -> None:
    error = refusal(book(*BEFORE), [{"op": "split", "cell": "aa", "line": line}])
    assert (error.code, error.position) == ("INVALID_EDIT", 0)


def test_split_then_merge_gives_the_source_back() -> None:
    for source in ["a\nb", "a\n\nb", "\nb", "a\nb\n", "a\r\nb\x0cc\nd"]:
        notebook = book(code(source, "aa"))
        notebook.apply({"op": "split", "cell": "aa", "line": 1})
        assert len(notebook.cells) == 2
        notebook.apply({"op": "merge", "cells": [0, 1]})
        assert sources(notebook) == [source]


def test_merge_joins_several_cells_into_the_first_which_keeps_its_outputs() -> None:
    notebook = book(*BEFORE)

    notebook.apply({"op": "merge", "cells": [0, 1, 2, 3]})

    source = "x = 1\ny = 2\nz = 3\n# Title\ntext\nprint(x)\nraw text"
    assert notebook.to_bytes() == write(text_of(CODE, source))


@pytest.mark.parametrize("style", STYLES)
def test_merge_of_text_joins_the_attachments_and_the_first_ones_win(style: dict[str, Any]) -> None:
    first = markdown("a", "aa", attachments={"x": {"image/png": "AA"}})
    second = raw("b", "bb", attachments={"x": {"image/png": "BB"}, "y": {"image/png": "YY"}})
    third = markdown("c", "cc", attachments={"z": {"image/png": "ZZ"}})
    notebook = book(first, second, third, markdown("d", "dd"), style=style)

    notebook.apply({"op": "merge", "cells": ["aa", "bb", "cc", "dd"]})

    joined = {"x": {"image/png": "AA"}, "y": {"image/png": "YY"}, "z": {"image/png": "ZZ"}}
    (cell,) = values(notebook)
    assert cell == text_of(but(first, attachments=joined), "a\nb\nc\nd")
    assert notebook.validate() is None


def test_merge_gives_attachments_to_a_first_cell_that_had_none() -> None:
    notebook = book(markdown("a", "aa"), markdown("b", "bb", attachments=IMAGE))

    notebook.apply({"op": "merge", "cells": ["aa", "bb"]})

    assert values(notebook) == [markdown("a\nb", "aa", attachments=IMAGE)]


@pytest.mark.parametrize("cells", [[], ["aa"], ["aa", "aa"], ["aa", "cc"], ["bb", 3], [0, 1, 1]])
def test_merge_refuses_what_are_not_different_neighbours(cells: list[Any]) -> None:
    error = refusal(book(*BEFORE), [{"op": "merge", "cells": cells}])
    assert (error.code, error.position) == ("INVALID_EDIT", 0)


def test_a_type_change_drops_metadata_that_the_new_type_forbids_and_keeps_the_rest() -> None:
    notebook = book(markdown("x", "aa", metadata={"collapsed": "half", "k": 1, "format": 3}))

    notebook.apply({"op": "set_type", "cell": "aa", "type": "code"})
    assert notebook.cells[0].metadata == {"k": 1, "format": 3}
    assert notebook.validate() is None

    notebook.apply({"op": "set_type", "cell": "aa", "type": "raw"})
    assert notebook.cells[0].metadata == {"k": 1}
    assert notebook.validate() is None


def test_there_and_back_a_type_change_keeps_source_id_and_metadata() -> None:
    notebook = book(*BEFORE)

    for cell_type in ("markdown", "raw", "code"):
        notebook.apply({"op": "set_type", "cell": "aa", "type": cell_type})

    assert values(notebook)[0] == but(CODE, outputs=[], execution_count=None)


def test_clear_outputs_clears_the_named_cells_or_all() -> None:
    cleared = [but(cell, outputs=[], execution_count=None) for cell in (CODE, SHORT)]
    notebook = book(*BEFORE)
    notebook.apply({"op": "clear_outputs", "cells": ["cc", "bb", 3]})
    assert notebook.to_bytes() == write(CODE, TEXT, cleared[1], RAW)

    notebook = book(*BEFORE)
    notebook.apply({"op": "clear_outputs"})
    assert notebook.to_bytes() == write(cleared[0], TEXT, cleared[1], RAW)


# --- Splice --------------------------------------------------------------------------------------


def test_a_spliced_cell_is_taken_as_it_is_and_completed() -> None:
    given = [
        {
            "cell_type": "code",
            "source": ["a\n", "b"],
            "metadata": {"tags": ["t"], "gone": None, "kept": {"null": None}},
            "execution_count": 5,
            "outputs": [STREAM, {**RESULT, "execution_count": None}],
            "id": "mine",
        },
        {"cell_type": "code", "source": "c", "execution_count": None, "outputs": None},
        {"cell_type": "markdown", "source": "d", "metadata": None, "id": None, "outputs": []},
        {"cell_type": "raw", "source": "", "execution_count": 3, "attachments": IMAGE},
        {"cell_type": "markdown", "source": [], "attachments": None},
    ]
    notebook = book(*BEFORE)

    notebook.apply({"op": "splice", "start": 1, "delete_count": 2, "cells": given})

    expected = [
        CODE,
        code(
            "a\nb",
            "mine",
            metadata={"tags": ["t"], "kept": {"null": None}},
            execution_count=5,
            outputs=[STREAM, {**RESULT, "execution_count": None}],
        ),
        code("c", NEW),
        markdown("d", NEW),
        raw("", NEW, attachments=IMAGE),
        markdown("", NEW),
        RAW,
    ]
    assert values(notebook) == named(expected, notebook)
    assert notebook.validate() is None


def test_a_splice_does_not_change_the_cells_it_was_given() -> None:
    cell = {"cell_type": "code", "source": "", "id": None, "metadata": {"k": None}}
    kept = {**cell, "metadata": {"k": None}}

    book().apply({"op": "splice", "start": 0, "cells": [cell]})

    assert cell == kept


@pytest.mark.parametrize("id_", ["aa", "a b", "", "x" * 65, 7, ["aa"]])
def test_a_spliced_cell_with_a_duplicate_or_invalid_id_gets_a_new_one(id_: Any) -> None:
    notebook = book(*BEFORE)

    cell = {"cell_type": "raw", "source": "q", "id": id_}
    notebook.apply({"op": "splice", "start": 4, "cells": [cell]})

    assert values(notebook) == named([*BEFORE, raw("q", NEW)], notebook)


def test_two_spliced_cells_do_not_share_an_id() -> None:
    cell = {"cell_type": "raw", "source": "q", "id": "same"}
    notebook = book()

    notebook.apply({"op": "splice", "start": 0, "cells": [cell, cell]})

    assert values(notebook) == named([raw("q", "same"), raw("q", NEW)], notebook)


def test_the_id_of_a_cell_that_a_splice_deletes_may_come_back_with_it() -> None:
    notebook = book(*BEFORE)
    swapped = [but(TEXT, source="two"), but(CODE, source="one")]

    notebook.apply({"op": "splice", "start": 0, "delete_count": 2, "cells": swapped})

    assert values(notebook) == [text_of(TEXT, "two"), text_of(CODE, "one"), SHORT, RAW]


def test_an_id_that_another_cell_still_has_does_not_come_back() -> None:
    notebook = book(code("1", "same"), code("2", "same"))

    cell = {"cell_type": "code", "source": "3", "id": "same"}
    notebook.apply({"op": "splice", "start": 0, "delete_count": 1, "cells": [cell]})

    assert values(notebook) == named([code("3", NEW), code("2", "same")], notebook)


def test_a_splice_without_ids_writes_none() -> None:
    notebook = book(code("a"), minor=4)

    cell = {"cell_type": "raw", "source": "q", "id": "mine"}
    notebook.apply({"op": "splice", "start": 0, "cells": [cell]})

    assert notebook.to_bytes() == write(raw("q"), code("a"), minor=4)


@pytest.mark.parametrize(
    ("start", "count"), [(5, 0), (4, 1), (0, 5), (3, 2), (10**9, 0), (0, 10**30)]
)
def test_a_splice_past_the_end_is_refused(start: int, count: int) -> None:
    error = refusal(book(*BEFORE), [{"op": "splice", "start": start, "delete_count": count}])
    assert (error.code, error.position) == ("INVALID_EDIT", 0)


BROKEN_CELLS = [
    {},
    {"cell_type": "code"},
    {"source": "x"},
    {"cell_type": None, "source": "x"},
    {"cell_type": "heading", "source": "x"},
    {"cell_type": ["code"], "source": "x"},
    {"cell_type": "code", "source": None},
    {"cell_type": "code", "source": 1},
    {"cell_type": "code", "source": ["a", 1]},
    {"cell_type": "code", "source": {"a": "b"}},
    {"cell_type": "code", "source": "", "metadata": []},
    {"cell_type": "code", "source": "", "execution_count": "1"},
    {"cell_type": "code", "source": "", "execution_count": -1},
    {"cell_type": "code", "source": "", "execution_count": True},
    {"cell_type": "code", "source": "", "outputs": {}},
    {"cell_type": "code", "source": "", "outputs": [None]},
    {"cell_type": "code", "source": "", "outputs": [{"output_type": "pyout"}]},
    {"cell_type": "code", "source": "", "outputs": [{"output_type": ["stream"]}]},
    {"cell_type": "code", "source": "", "outputs": [{**STREAM, "text": None}]},
    {"cell_type": "code", "source": "", "outputs": [{**STREAM, "extra": 1}]},
    {"cell_type": "code", "source": "", "attachments": {}},
    {"cell_type": "code", "source": "", "x_unknown": 1},
    {"cell_type": "markdown", "source": "", "attachments": []},
    {"cell_type": "markdown", "source": "", "attachments": {"a": {"image/png": 1}}},
    {"cell_type": "markdown", "source": "", 1: 2},
    {"cell_type": "code", "source": "", "outputs": [{**RESULT, "data": {"a/json": float("nan")}}]},
    {
        "cell_type": "code",
        "source": "",
        "outputs": [{**RESULT, "data": {"application/json": float("nan")}}],
    },
]


@pytest.mark.parametrize("cell", BROKEN_CELLS, ids=repr)
def test_a_splice_refuses_a_cell_that_would_be_invalid(cell: dict[Any, Any]) -> None:
    good = {"cell_type": "code", "source": "x"}
    edits = [
        {"op": "delete", "cell": "cc"},
        {"op": "splice", "start": 0, "delete_count": 1, "cells": [good, cell]},
    ]
    error = refusal(book(*BEFORE), edits)
    assert (error.code, getattr(error, "position", None)) == ("INVALID_EDIT", 1)


# --- A list of edits -----------------------------------------------------------------------------

FAILING = [
    ({"op": "delete", "cell": "zz"}, "CELL_NOT_FOUND"),
    ({"op": "delete", "cell": 9}, "CELL_NOT_FOUND"),
    ({"op": "replace", "cell": "cc", "source": "", "expect": "000000000000"}, "CONFLICT"),
    ({"op": "replace_text", "cell": "cc", "old": "zz", "new": ""}, "TEXT_MISMATCH"),
    ({"op": "set_metadata", "cell": "cc", "metadata": {"tags": 1}}, "INVALID_METADATA"),
    ({"op": "set_metadata", "metadata": {"authors": 1}}, "INVALID_METADATA"),
    ({"op": "insert", "id": "cc"}, "INVALID_EDIT"),
    ({"op": "replace", "cell": "cc"}, "INVALID_EDIT"),
    ({"op": "nonsense"}, "INVALID_EDIT"),
    ({"op": "split", "cell": "cc", "line": 1}, "INVALID_EDIT"),
]


@pytest.mark.parametrize(("bad", "error_code"), FAILING, ids=repr)
def test_when_a_later_edit_fails_no_earlier_one_is_made(
    bad: dict[str, Any], error_code: str
) -> None:
    good = [
        {"op": "replace", "cell": "aa", "source": "changed"},
        {"op": "insert", "source": "new", "at": 0},
        {"op": "delete", "cell": "bb"},
        {"op": "set_metadata", "metadata": {"k": 1}},
    ]
    notebook = book(*BEFORE)
    state = notebook.state

    error = refusal(notebook, [*good, bad, *good[1:2]])

    assert error.code == error_code
    assert notebook.state is state
    assert getattr(error, "position", 4) == 4
    notebook.apply(good)  # and the notebook is as usable as before
    assert sources(notebook) == ["new", "changed", "print(x)", "raw text"]


def test_no_edits_at_all_change_nothing() -> None:
    notebook = book(*BEFORE)
    change = notebook.apply([])
    assert not change
    assert notebook.to_bytes() == write(*BEFORE)


def test_references_mean_the_notebook_before_the_list() -> None:
    notebook = book(*[code(str(i), f"c{i}") for i in range(5)])

    notebook.apply(
        [
            {"op": "delete", "cell": 0},
            {"op": "insert", "source": "new", "at": 1},
            {"op": "replace", "cell": 1, "source": "one"},
            {"op": "move", "cell": -1, "at": 0},
            {"op": "replace", "cell": "cell-4", "source": "four"},
            {"op": "replace", "cell": "2", "source": "two"},
        ]
    )

    assert sources(notebook) == ["four", "new", "one", "two", "3"]


def test_a_cell_inserted_by_the_list_cannot_be_named_in_it() -> None:
    edits = [{"op": "insert", "id": "new"}, {"op": "delete", "cell": "new"}]
    assert refusal(book(*BEFORE), edits).code == "CELL_NOT_FOUND"


def test_at_is_before_the_cell_that_had_that_index() -> None:
    notebook = book(code("0"), code("1"), code("2"), minor=4)

    notebook.apply(
        [
            {"op": "delete", "cell": 0},
            {"op": "insert", "source": "before 1", "at": 1},
            {"op": "insert", "source": "before 0", "at": 0},
            {"op": "insert", "source": "at the end", "at": 3},
            {"op": "move", "cell": 2, "at": 1},
        ]
    )

    assert sources(notebook) == ["before 0", "before 1", "2", "1", "at the end"]


def test_several_inserts_at_one_place_keep_the_order_of_the_list() -> None:
    notebook = book(*BEFORE)

    notebook.apply(
        [
            {"op": "insert", "source": "1", "after": "aa"},
            {"op": "insert", "source": "2", "before": "bb"},
            {"op": "insert", "source": "3", "at": 1},
            {"op": "splice", "start": 1, "cells": [{"cell_type": "raw", "source": "4"}]},
            {"op": "insert", "source": "5", "after": "aa"},
            {"op": "insert", "source": "6"},
            {"op": "insert", "source": "7"},
        ]
    )

    found = sources(notebook)
    assert found[1:6] == ["1", "2", "3", "4", "5"]
    assert found[-2:] == ["6", "7"]


@pytest.mark.parametrize("kind", ["code", "markdown", "raw"])
def test_an_insert_without_a_place_goes_to_the_end(kind: str) -> None:
    for cells in ((), (CODE,), BEFORE):
        notebook = book(*cells)
        notebook.apply({"op": "insert", "source": "q", "type": kind})
        *before, last = values(notebook)
        assert before == list(cells)
        assert (last["cell_type"], last["source"]) == (kind, ["q"])


def test_inserts_around_a_deleted_cell_take_its_place() -> None:
    notebook = book(*BEFORE)

    notebook.apply(
        [
            {"op": "delete", "cell": "bb"},
            {"op": "insert", "source": "before", "before": "bb"},
            {"op": "insert", "source": "after", "after": "bb"},
        ]
    )

    assert sources(notebook) == ["x = 1\ny = 2\nz = 3", "before", "after", "print(x)", "raw text"]


TOUCHES = [
    {"op": "replace", "cell": "bb", "source": "x"},
    {"op": "replace_text", "cell": "bb", "old": "text", "new": "x"},
    {"op": "delete", "cell": "bb"},
    {"op": "move", "cell": "bb", "at": 0},
    {"op": "split", "cell": "bb", "line": 1},
    {"op": "merge", "cells": ["aa", "bb"]},
    {"op": "set_type", "cell": "bb", "type": "code"},
    {"op": "set_metadata", "cell": "bb", "metadata": {}},
    {"op": "clear_outputs", "cells": ["bb"]},
    {"op": "splice", "start": 1, "delete_count": 1},
]


@pytest.mark.parametrize("edit", TOUCHES, ids=lambda edit: edit["op"])
@pytest.mark.parametrize(
    "gone",
    [
        {"op": "delete", "cell": "bb"},
        {"op": "splice", "start": 1, "delete_count": 1},
        {"op": "merge", "cells": ["aa", "bb"]},
    ],
    ids=lambda edit: edit["op"],
)
def test_a_cell_that_the_list_has_deleted_cannot_be_edited(
    gone: dict[str, Any], edit: dict[str, Any]
) -> None:
    error = refusal(book(*BEFORE), [gone, edit])
    assert (error.code, error.position) == ("INVALID_EDIT", 1)


@pytest.mark.parametrize(
    "edits",
    [
        [{"op": "move", "cell": "aa", "at": 2}, {"op": "move", "cell": "aa", "at": 3}],
        [{"op": "move", "cell": "aa", "at": 2}, {"op": "split", "cell": "aa", "line": 1}],
        [{"op": "split", "cell": "aa", "line": 1}, {"op": "move", "cell": "aa", "at": 2}],
        [{"op": "split", "cell": "aa", "line": 1}, {"op": "split", "cell": "aa", "line": 2}],
        [{"op": "move", "cell": "aa", "at": 2}, {"op": "merge", "cells": ["aa", "bb"]}],
        [{"op": "move", "cell": "bb", "at": 0}, {"op": "merge", "cells": ["aa", "bb"]}],
        [{"op": "split", "cell": "aa", "line": 1}, {"op": "merge", "cells": ["aa", "bb"]}],
    ],
    ids=lambda edits: " and ".join(edit["op"] for edit in edits),
)
def test_what_would_depend_on_the_order_of_the_list_is_refused(edits: list[dict[str, Any]]) -> None:
    error = refusal(book(*BEFORE), edits)
    assert (error.code, error.position) == ("INVALID_EDIT", 1)


def test_a_cell_may_be_moved_and_edited_in_either_order() -> None:
    one, two = book(*BEFORE), book(*BEFORE)
    move = {"op": "move", "cell": "aa", "at": 4}
    replace = {"op": "replace", "cell": "aa", "source": "q"}

    one.apply([move, replace])
    two.apply([replace, move])

    assert one.to_bytes() == two.to_bytes() == write(TEXT, SHORT, RAW, text_of(CODE, "q"))


def test_a_cell_that_is_moved_and_then_deleted_is_gone() -> None:
    notebook = book(*BEFORE)
    notebook.apply([{"op": "move", "cell": "aa", "at": 4}, {"op": "delete", "cell": "aa"}])
    assert notebook.to_bytes() == write(TEXT, SHORT, RAW)


def test_several_edits_of_one_cell_add_up() -> None:
    notebook = book(*BEFORE)

    notebook.apply(
        [
            {"op": "set_type", "cell": "bb", "type": "code"},
            {"op": "replace", "cell": "bb", "source": "q"},
            {"op": "set_metadata", "cell": "bb", "metadata": {"k": None}},
            {"op": "clear_outputs", "cells": ["bb"]},
        ]
    )

    assert notebook.to_bytes() == write(CODE, code("q", "bb"), SHORT, RAW)


def test_edits_may_come_alone_typed_or_as_any_sequence() -> None:
    expected = write(CODE, TEXT, SHORT)
    shape = {"op": "delete", "cell": "dd"}
    for edits in (shape, Delete("dd"), [shape], (Delete("dd"),), [Delete("dd")]):
        notebook = book(*BEFORE)
        change = notebook.apply(edits)
        assert notebook.to_bytes() == expected
        assert change.edits == (Delete("dd"),)


# --- Keys that stand twice ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "edit"),
    [
        (b'{"cell_type":"raw","id":"aa","metadata":{},"source":["x"],"source":["y"]}', "replace"),
        (b'{"source":[],"cell_type":"raw","cell_type":"code","metadata":{},"id":"aa"}', "set_type"),
        (b'{"cell_type":"raw","id":"bb","id":"aa","metadata":{},"source":[]}', "replace"),
        (b'{"cell_type":"raw","id":"aa","metadata":{},"metadata":{},"source":[]}', "set_metadata"),
        (b'{"cell_type":"raw","id":"aa","metadata":{"k":1,"k":2},"source":[]}', "set_metadata"),
        (b'{"cell_type":"raw","id":"aa","metadata":{"k":{"n":1,"\\u006e":2}},"source":[]}', "deep"),
    ],
)
def test_a_key_that_stands_twice_never_makes_an_edit_hit_the_wrong_one(
    cell: bytes, edit: str
) -> None:
    data = b'{"cells":[' + cell + b'],"metadata":{},"nbformat":4,"nbformat_minor":5}'
    shapes: dict[str, dict[str, Any]] = {
        "replace": {"op": "replace", "cell": 0, "source": "new"},
        "set_type": {"op": "set_type", "cell": 0, "type": "markdown"},
        "set_metadata": {"op": "set_metadata", "cell": 0, "metadata": {"k": 3}},
        "deep": {"op": "set_metadata", "cell": 0, "metadata": {"k": {"n": 3}}},
    }
    notebook = Notebook(data)

    error = refusal(notebook, shapes[edit])

    assert error.code == "DUPLICATE_KEY"
    notebook.apply({"op": "insert", "type": "raw", "id": "new"})  # the rest can be edited
    assert notebook.cells[0].raw == cell


def test_a_key_that_stands_twice_in_the_notebook_is_refused_when_it_is_read() -> None:
    for key in (b'"cells":[]', b'"metadata":{}', b'"nbformat":4', b'"x":1', b'"\\u0078":1,"x":2'):
        with pytest.raises(DuplicateKey):
            Notebook(
                b'{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5,"x":0,' + key + b"}"
            )


# --- Cells that are broken -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        5,
        None,
        "text",
        [],
        {},
        {"cell_type": "code", "metadata": {}},
        {"cell_type": "code", "source": 5},
        {"cell_type": "code", "source": ["a", None]},
        {"source": "x", "metadata": {}},
        {"cell_type": 4, "source": "x"},
    ],
    ids=repr,
)
def test_a_broken_cell_is_refused_by_every_edit_of_it_and_can_be_moved_and_deleted(
    cell: Any,
) -> None:
    def notebook() -> Notebook:
        return book(CODE, cell, SHORT)

    for edit in TOUCHES:
        if edit["op"] in ("delete", "move", "splice", "clear_outputs"):
            continue
        named_edit = {key: 1 if value == "bb" else value for key, value in edit.items()}
        if edit["op"] == "merge":
            named_edit["cells"] = [0, 1]
        error = refusal(notebook(), named_edit)
        assert (edit["op"], error.code) == (edit["op"], "INVALID_CELL")
        assert error.index == 1

    moved = notebook()
    moved.apply({"op": "move", "cell": 1, "at": 0})
    assert moved.to_bytes() == write(cell, CODE, SHORT)
    deleted = notebook()
    deleted.apply({"op": "delete", "cell": 1})
    assert deleted.to_bytes() == write(CODE, SHORT)
    others = notebook()
    others.apply([{"op": "replace", "cell": "aa", "source": "q"}, {"op": "insert", "at": 1}])
    new = code("", others.cells[1].id)
    assert others.to_bytes() == write(text_of(CODE, "q"), new, cell, SHORT)


def test_a_cell_of_an_unknown_type_can_be_given_a_known_one() -> None:
    notebook = book(markdown("# x", "aa", cell_type="heading"))

    assert refusal(notebook, {"op": "replace", "cell": "aa", "source": "y"}).code == "INVALID_CELL"
    notebook.apply({"op": "set_type", "cell": "aa", "type": "markdown"})

    assert notebook.to_bytes() == write(markdown("# x", "aa"))


def test_clearing_all_outputs_leaves_broken_cells_alone() -> None:
    broken = {"cell_type": "code", "outputs": [STREAM]}
    notebook = book(CODE, broken)

    notebook.apply({"op": "clear_outputs"})

    assert notebook.to_bytes() == write(but(CODE, outputs=[], execution_count=None), broken)


def test_every_refusal_of_an_edit_is_an_error_of_ours() -> None:
    notebook = book(*BEFORE)
    for shape in [*WRONG, {"op": "merge", "cells": ["aa", "zz"]}, {"op": "insert", "id": "é"}]:
        with pytest.raises(CellwrightError):
            notebook.apply(shape)
    assert notebook.to_bytes() == write(*BEFORE)
