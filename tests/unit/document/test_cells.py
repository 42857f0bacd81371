"""The cells of a notebook as read-only views of their bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from cellwright import BrokenCell, Cell, CodeCell, MarkdownCell, Notebook, RawCell, Stream
from cellwright.errors import InvalidCell, TooDeep
from tests.unit.document.samples import (
    IMAGE,
    MINIFIED,
    RESULT,
    STREAM,
    book,
    code,
    markdown,
    raw,
    write,
)

CELLS = (
    code("a\nb", "aa", execution_count=3, outputs=[STREAM], metadata={"tags": ["t"]}),
    markdown("c", "bb", attachments=IMAGE),
    raw("", "cc"),
)


def test_a_cell_is_of_the_class_of_its_type() -> None:
    cells = book(*CELLS, 5).cells
    assert [type(cell) for cell in cells] == [CodeCell, MarkdownCell, RawCell, BrokenCell]
    assert all(isinstance(cell, Cell) for cell in cells)
    assert [cell.type for cell in cells][:3] == ["code", "markdown", "raw"]


def test_a_cell_shows_what_it_holds() -> None:
    cell = book(*CELLS).cells[0]
    assert (cell.index, cell.id, cell.handle) == (0, "aa", "aa")
    assert (cell.type, cell.source, cell.problem) == ("code", "a\nb", None)
    assert cell.metadata == {"tags": ["t"]}
    assert cell.execution_count == 3
    assert cell.outputs == (Stream("stdout", "1\n"),)
    assert cell.attachments == {}
    assert cell.to_dict() == CELLS[0]
    assert book(*CELLS).cells[1].attachments == IMAGE


def test_a_cell_without_something_has_a_default_for_it() -> None:
    cell = book({"cell_type": "code", "source": "x"}).cells[0]
    assert (cell.id, cell.metadata, cell.outputs, cell.attachments) == (None, {}, (), {})
    assert cell.execution_count is None
    for count in ("3", None, 1.5, [], True):
        assert book(code("x", "aa", execution_count=count)).cells[0].execution_count is None
    assert book(code("x", "aa", metadata=[])).cells[0].metadata == {}
    assert book(markdown("x", "aa", attachments=[])).cells[0].attachments == {}


def test_a_source_is_one_text_however_it_is_written() -> None:
    for source in ("a\nb", ["a\n", "b"], ["a", "\n", "", "b"], ["a\nb"]):
        assert book({**CELLS[0], "source": source}).cells[0].source == "a\nb"
    for source in ("", [], [""]):
        assert book({**CELLS[0], "source": source}).cells[0].source == ""


def test_raw_bytes_are_those_of_the_file() -> None:
    data = write(*CELLS, style=MINIFIED)
    cells = Notebook(data).cells
    assert [json.loads(cell.raw) for cell in cells] == list(CELLS)
    assert data.count(cells[1].raw) == 1


def test_what_is_handed_out_is_a_copy() -> None:
    notebook = book(*CELLS, metadata={"k": [1]})
    notebook.cells[0].metadata["tags"].append("changed")
    notebook.cells[0].to_dict()["source"] = "changed"
    notebook.cells[1].attachments.clear()
    notebook.metadata["k"].append(2)
    assert notebook.cells[0].to_dict() == CELLS[0]
    assert notebook.cells[1].attachments == IMAGE
    assert notebook.metadata == {"k": [1]}
    assert notebook.to_bytes() == write(*CELLS, metadata={"k": [1]})


def test_a_cell_is_as_it_stood_when_it_was_asked_for() -> None:
    notebook = book(*CELLS)
    cell, cells = notebook.cells[0], notebook.cells
    notebook.apply([{"op": "replace", "cell": "aa", "source": "new"}, {"op": "delete", "cell": 1}])
    assert (cell.source, cell.index) == ("a\nb", 0)
    assert len(cells) == 3
    assert len(notebook.cells) == 2
    assert notebook.cell("aa").source == "new"


def test_a_cell_is_found_by_any_reference() -> None:
    notebook = book(*CELLS)
    for ref in ("bb", 1, -2, "cell-1", "1"):
        assert notebook.cell(ref).id == "bb"


@pytest.mark.parametrize("name", ["id", "source", "type", "hash", "metadata", "outputs", "raw"])
def test_a_cell_cannot_be_changed(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(book(*CELLS).cells[0], name, "changed")


@pytest.mark.parametrize(
    ("outputs", "types"),
    [
        ([], []),
        ([STREAM], ["stream"]),
        ([RESULT, STREAM, STREAM], ["execute_result", "stream", "stream"]),
        ([{"output_type": "error", "ename": "", "evalue": "", "traceback": []}], ["error"]),
        (None, []),
        ({}, []),
    ],
)
def test_the_kinds_of_outputs_are_told_without_decoding_them(outputs: Any, types: Any) -> None:
    assert book(code("x", "aa", outputs=outputs)).cells[0].output_types == types


# --- The sequence --------------------------------------------------------------------------------


def test_cells_are_a_sequence() -> None:
    cells = book(*CELLS).cells
    assert isinstance(cells, Sequence)
    assert len(cells) == 3
    assert [cell.id for cell in cells] == ["aa", "bb", "cc"]
    assert [cell.id for cell in reversed(cells)] == ["cc", "bb", "aa"]
    assert [cells[i].id for i in (0, -1, 2, -3)] == ["aa", "cc", "cc", "aa"]
    assert [cell.index for cell in cells] == [0, 1, 2]
    assert cells[-1].index == 2
    assert bool(cells)
    assert not book().cells


@pytest.mark.parametrize("index", [3, -4, 10**30])
def test_a_position_that_does_not_exist_is_an_index_error(index: int) -> None:
    with pytest.raises(IndexError):
        book(*CELLS).cells[index]


@pytest.mark.parametrize("index", ["aa", None, 1.0])
def test_a_position_is_an_integer(index: Any) -> None:
    with pytest.raises(TypeError):
        book(*CELLS).cells[index]


@pytest.mark.parametrize(
    "part", [slice(None), slice(1, None), slice(None, -1), slice(0, 99), slice(None, None, -1)]
)
def test_a_slice_of_cells_is_a_tuple_of_them(part: slice) -> None:
    cells = book(*CELLS).cells
    found = cells[part]
    assert isinstance(found, tuple)
    assert [cell.id for cell in found] == ["aa", "bb", "cc"][part]
    assert [cell.index for cell in found] == [0, 1, 2][part]


def test_nothing_shows_the_content_of_a_cell_by_accident() -> None:
    secret = code("password = 'hunter2'", "aa", metadata={"token": "hunter2"})
    notebook = Notebook(write(secret, {"secret": "hunter2"}), path="x.ipynb")
    assert repr(notebook) == "<Notebook x.ipynb with 2 cells>"
    assert repr(notebook.cells) == "<2 cells>"
    assert [repr(cell) for cell in notebook.cells] == [
        "<CodeCell aa at 0>",
        "<BrokenCell cell-1 at 1>",
    ]
    assert repr(book()) == "<Notebook unsaved with 0 cells>"


# --- Cells that are broken -----------------------------------------------------------------------

BROKEN = [
    5,
    None,
    True,
    "text",
    [],
    {},
    {"source": "x"},
    {"cell_type": "code"},
    {"cell_type": "heading", "source": "x"},
    {"cell_type": 5, "source": "x"},
    {"cell_type": "code", "source": 5},
    {"cell_type": "code", "source": None},
    {"cell_type": "code", "source": {"a": 1}},
    {"cell_type": "code", "source": ["a", 5]},
]


@pytest.mark.parametrize("value", BROKEN, ids=repr)
def test_a_broken_cell_is_named_by_its_position_while_the_others_can_be_used(value: Any) -> None:
    notebook = book(CELLS[0], value, CELLS[1])
    broken = notebook.cells[1]
    assert isinstance(broken, BrokenCell)
    assert broken.problem
    assert "\n" not in broken.problem
    assert broken.handle == "cell-1"
    assert json.loads(broken.raw) == value
    assert [cell.source for cell in notebook.cells][::2] == ["a\nb", "c"]
    notebook.apply({"op": "replace", "cell": "bb", "source": "new"})
    assert notebook.to_bytes() == write(CELLS[0], value, {**CELLS[1], "source": ["new"]})


@pytest.mark.parametrize("value", [5, None, "text", []], ids=repr)
def test_what_is_no_object_has_no_members(value: Any) -> None:
    cell = book(CELLS[0], value).cells[1]
    assert (cell.metadata, cell.outputs, cell.attachments) == ({}, (), {})
    assert (cell.execution_count, cell.output_types) == (None, [])
    with pytest.raises(InvalidCell) as caught:
        cell.to_dict()
    assert (caught.value.code, caught.value.index) == ("INVALID_CELL", 1)


# --- What Python cannot hold ---------------------------------------------------------------------


def deep_notebook() -> Notebook:
    """Outputs of one cell and metadata of another are nested 3,000 levels."""
    deep = "[" * 3000 + "]" * 3000
    output = (
        f'{{"output_type":"display_data","metadata":{{}},"data":{{"application/json":{deep}}}}}'
    )
    data = (
        '{"cells":[{"cell_type":"code","execution_count":7,"id":"aa","metadata":{"k":1},'
        f'"outputs":[{output}],"source":"x"}},{{"cell_type":"markdown","id":"bb",'
        f'"metadata":{{"deep":{deep}}},"source":["y"]}},{{"cell_type":"raw","id":"cc",'
        f'"metadata":{{}},"source":["z"]}}],"metadata":{{"deep":{deep}}},"nbformat":4,'
        '"nbformat_minor":5}'
    )
    return Notebook(data.encode())


def test_only_the_part_that_is_nested_too_deeply_cannot_be_decoded() -> None:
    notebook = deep_notebook()
    assert [cell.source for cell in notebook.cells] == ["x", "y", "z"]
    assert [cell.handle for cell in notebook.cells] == ["aa", "bb", "cc"]
    first, second, third = notebook.cells
    assert (first.metadata, first.execution_count, third.metadata) == ({"k": 1}, 7, {})
    assert second.outputs == ()
    assert first.output_types == ["display_data"]
    for read in (
        lambda: first.outputs,
        first.to_dict,
        lambda: second.metadata,
        lambda: notebook.metadata,
    ):
        with pytest.raises(TooDeep) as caught:
            read()
        assert caught.value.code == "TOO_DEEP"


def test_a_notebook_that_is_nested_too_deeply_is_edited_and_kept() -> None:
    notebook = deep_notebook()
    data = notebook.to_bytes()

    change = notebook.apply(
        [
            {"op": "replace", "cell": "aa", "source": "X"},
            {"op": "replace", "cell": "bb", "source": "Y"},
            {"op": "set_metadata", "cell": "aa", "metadata": {"k": 2}},
            {"op": "insert", "source": "new", "type": "raw", "id": "new"},
            {"op": "move", "cell": "cc", "at": 0},
        ]
    )

    assert [cell.source for cell in notebook.cells] == ["z", "X", "Y", "new"]
    assert notebook.to_bytes().count(b"[" * 3000) == 3
    notebook.apply(change.inverse())
    assert notebook.to_bytes() == data


def test_clearing_the_outputs_that_are_too_deep_makes_the_cell_readable() -> None:
    notebook = deep_notebook()
    notebook.apply({"op": "clear_outputs"})
    assert notebook.cells[0].to_dict() == {
        **code("", "aa", metadata={"k": 1}),
        "source": "x",
    }


def test_integers_beyond_python_s_limit_are_kept_and_read_as_numbers() -> None:
    digits = "9" * 5000
    data = (
        f'{{"cells":[{{"cell_type":"code","execution_count":{digits},"id":"aa",'
        f'"metadata":{{"n":{digits},"small":12}},"outputs":[],"source":"x"}}],'
        f'"metadata":{{"n":-{digits}}},"nbformat":4,"nbformat_minor":5}}'
    ).encode()
    notebook = Notebook(data)
    assert notebook.cells[0].metadata == {"n": float("inf"), "small": 12}
    assert notebook.cells[0].execution_count is None
    assert notebook.metadata == {"n": float("-inf")}

    notebook.apply(
        [
            {"op": "replace", "cell": "aa", "source": "y"},
            {"op": "set_metadata", "cell": "aa", "metadata": {"small": 13}},
            {"op": "set_metadata", "metadata": {"k": 1}},
        ]
    )

    expected = data.replace(b'"x"', b'"y"').replace(b'"small":12', b'"small":13')
    assert notebook.to_bytes() == expected.replace(b'{"n":-9', b'{"k":1,"n":-9')


def test_numbers_that_are_none_are_read_and_kept_and_never_newly_written() -> None:
    data = (
        b'{"cells":[{"cell_type":"raw","id":"aa","metadata":{"a":NaN,"b":[Infinity,-Infinity]},'
        b'"source":[]}],"metadata":{"n":NaN},"nbformat":4,"nbformat_minor":5}'
    )
    notebook = Notebook(data)
    assert repr(notebook.cells[0].metadata) == "{'a': nan, 'b': [inf, -inf]}"
    notebook.apply({"op": "set_metadata", "cell": "aa", "metadata": {"b": None, "c": 1}})
    notebook.apply({"op": "set_metadata", "metadata": {"m": 1}})
    assert notebook.to_bytes() == data.replace(b',"b":[Infinity,-Infinity]', b',"c":1').replace(
        b'{"n":NaN}', b'{"m":1,"n":NaN}'
    )
