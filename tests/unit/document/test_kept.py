"""Habits of other programs, each of which some notebook tool has normalised away: all are kept."""

from __future__ import annotations

import pytest

from cellwright import Notebook
from tests.property import checks
from tests.property.strategies import Style, write

CELLS = (
    (
        b'{"cell_type": "code", "execution_count": 1, "id": "one", "metadata": {"a": 1}, "outputs": [],'
        b' "source": ["x\\n", "y"]}'
    ),
    b'{"cell_type": "markdown", "id": "two", "metadata": {}, "source": "text"}',
)


def assert_all_edits_keep_the_rest(data: bytes) -> None:
    """Nothing outside what an edit is about changes, by the measure of another parser."""
    notebook = Notebook(data)
    assert notebook.to_bytes() == data
    count = len(notebook.cells)
    for index in range(count):
        copy = Notebook(data)
        copy.apply({"op": "replace", "cell": index, "source": "new\nsource"})
        checks.assert_only_cell_changed(data, copy.to_bytes(), index)
        copy = Notebook(data)
        copy.apply({"op": "set_metadata", "cell": index, "metadata": {"x_new": {"a": [1]}}})
        checks.assert_only_cell_changed(data, copy.to_bytes(), index)
        copy = Notebook(data)
        copy.apply({"op": "delete", "cell": index})
        checks.assert_only_deleted(data, copy.to_bytes(), index)
        copy = Notebook(data)
        copy.apply({"op": "move", "cell": index, "at": count})
        checks.assert_only_moved(data, copy.to_bytes(), index, count - 1)
    for index in range(count + 1):
        copy = Notebook(data)
        copy.apply({"op": "insert", "source": "new\nsource", "at": index})
        checks.assert_only_inserted(data, copy.to_bytes(), index)
    copy = Notebook(data)
    change = copy.apply({"op": "set_metadata", "metadata": {"x_new": {"a": [1]}}})
    checks.assert_only_metadata_changed(data, copy.to_bytes())
    copy.apply(change.inverse())
    assert copy.to_bytes() == data


def around(cell: bytes, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """A notebook in which that cell stands between two ordinary ones."""
    cells = b",\n  ".join([CELLS[0], cell, CELLS[1]])
    return (
        b'{\n "cells": [\n  '
        + cells
        + b'\n ],\n "metadata": {"k": 1},'
        + before
        + b'\n "nbformat": 4,'
        b'\n "nbformat_minor": 5' + after + b"\n}\n"
    )


def indented(indent: str | None) -> bytes:
    style = Style(indent, "\n", ": ", ", ", False, False, 0, False, "\n", "")
    value = {
        "cells": [
            {"cell_type": "raw", "id": "one", "metadata": {"a": {"b": []}}, "source": ["x\n", "y"]},
            {"cell_type": "code", "id": "two", "metadata": {}, "source": [], "outputs": []},
        ],
        "metadata": {"k": {"n": [1, 2]}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return write(value, style)


MIXED = (
    b'{\n\t"cells": [{"cell_type":"raw",\n  "id":"a",\n"metadata":{\n\t\t\t"k":1}, "source":[\n"x"\n'
    b']},\n\n\n    {\n"cell_type":"raw","id":"b","metadata":{},"source":""}   ,{"cell_type": "raw",'
    b'\n         "id":"c","metadata":{  },"source":[]}\n\t\t ],"metadata":{},\n\n"nbformat":4\n,'
    b'"nbformat_minor":5}'
)


@pytest.mark.parametrize(
    "data",
    [*[indented(indent) for indent in (*(" " * n for n in range(9)), "\t", "\t ", None)], MIXED],
    ids=[*map(str, range(9)), "tab", "tab and space", "minified", "mixed"],
)
def test_indentation_is_kept(data: bytes) -> None:
    assert_all_edits_keep_the_rest(data)


@pytest.mark.parametrize(
    "cell",
    [
        b'{"source": [], "metadata": {"z": 1, "a": 2}, "id": "odd", "cell_type": "raw"}',
        b'{"id" : "odd" , "source":[] ,"cell_type" :"raw", "metadata"  :  {"z":1 , "a" : 2}  }',
        b'{ "cell_type":"raw","id":"odd","metadata":{ },"source":[ ] }',
        b'{"cell_type"\n:\n"raw"\n,\n"id"\t:\t"odd","metadata":{"a"\r:1},"source":["x" ,"y"]}',
    ],
)
def test_key_order_and_spacing_are_kept(cell: bytes) -> None:
    assert_all_edits_keep_the_rest(around(cell))


@pytest.mark.parametrize(
    "text",
    [
        rb"\u001b[0m \u001B[0m",
        rb"\u00e9 \u00E9 \u65e5\u672C",
        "é 日本 \U0001f600".encode(),
        "é ".encode() + rb"\u00e9",
        rb"\ud83d\ude00 \uD83D\uDE00",
        rb"\ud800 \udfff",
        rb"\/ \" \\ \b \f \n \r \t \u0041 \u002f",
        b"\x7f \xc2\x85 \xe2\x80\xa8 \xef\xbb\xbf",
        b"</script>",
        b"\\u2028",
    ],
)
def test_escapes_are_kept_as_they_are_spelled(text: bytes) -> None:
    cell = (
        b'{"cell_type": "code", "execution_count": null, "id": "odd", "metadata": {"%s": "%s"}, '
        b'"outputs": [{"name": "stdout", "output_type": "stream", "text": ["%s"]}], "source": ["%s"]}'
    )
    assert_all_edits_keep_the_rest(around(cell.replace(b"%s", text)))
    top = b'\n "x_top": {"' + text + b'": "' + text + b'"},'
    assert_all_edits_keep_the_rest(around(CELLS[1].replace(b"two", b"odd"), before=top))


@pytest.mark.parametrize(
    "number",
    [
        b"1e400",
        b"-1E+2",
        b"0.10",
        b"1.0",
        b"-0",
        b"-0.0",
        b"1e-007",
        b"0e0",
        b"12345678901234567890123",
        b"3.14159265358979323846264338327950288",
        b"9" * 5000,
        b"NaN",
        b"-Infinity",
    ],
    ids=lambda number: number[:12].decode(),
)
def test_numbers_are_kept_as_they_are_spelled(number: bytes) -> None:
    cell = (
        b'{"cell_type": "code", "execution_count": %s, "id": "odd", "metadata": {"n": [%s, {"m": %s}]'
        b'}, "outputs": [{"data": {"application/json": %s}, "metadata": {"n": %s}, "output_type": '
        b'"display_data"}], "source": []}'
    )
    top = b'\n "x_top": [%s],'
    data = around(cell.replace(b"%s", number), before=top.replace(b"%s", number))
    assert_all_edits_keep_the_rest(data)


@pytest.mark.parametrize(
    "source",
    [
        b'"one string\\nof two lines"',
        b'""',
        b"[]",
        b'[""]',
        b'["a", "b"]',
        b'["a\\nb\\n", "", "c"]',
        b'[ "a\\n" ]',
        b'[\n"a\\n"\n,"b"]',
        b'["a\\r\\n", "b\\r", "c\\u2028"]',
    ],
)
def test_a_source_of_any_form_is_kept(source: bytes) -> None:
    cell = b'{"cell_type": "raw", "id": "odd", "metadata": {}, "source": ' + source + b"}"
    assert_all_edits_keep_the_rest(around(cell))


@pytest.mark.parametrize("ends", [[b"\r\n"], [b"\n", b"\r\n"], [b"\r\n", b"\n", b"\n"], [b"\r"]])
def test_line_ends_are_kept_also_where_they_are_mixed(ends: list[bytes]) -> None:
    lines = around(CELLS[1].replace(b"two", b"odd")).split(b"\n")
    data = b"".join(line + ends[number % len(ends)] for number, line in enumerate(lines[:-1]))
    assert_all_edits_keep_the_rest(data)


@pytest.mark.parametrize(
    "data",
    [
        around(CELLS[1].replace(b"two", b"odd")),
        b'{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}',
    ],
)
def test_a_byte_order_mark_is_accepted_and_kept(data: bytes) -> None:
    for space in (b"", b"\n", b" \r\n"):
        marked = b"\xef\xbb\xbf" + space + data
        assert_all_edits_keep_the_rest(marked)
        assert [cell.raw for cell in Notebook(marked).cells] == [
            cell.raw for cell in Notebook(data).cells
        ]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n", b" ", b"\t\n \n"])
def test_the_end_of_the_file_is_kept(end: bytes) -> None:
    assert_all_edits_keep_the_rest(around(CELLS[1].replace(b"two", b"odd")).rstrip() + end)


def test_unknown_fields_are_kept_at_every_level() -> None:
    cell = (
        b'{"x_cell": {"a": [null]}, "cell_type": "code", "execution_count": null, "id": "odd", '
        b'"metadata": {"x_meta": 1, "jupyter": {"x_deep": {}}}, "outputs": [{"x_output": 1, "data": '
        b'{"x/mime": "1", "application/x+json": [1]}, "metadata": {"x_out_meta": 1}, "output_type": '
        b'"display_data"}, {"output_type": "x_unknown", "y": 2}, 5], "source": [], "y_cell": false}'
    )
    top = b'\n "x_top": {"deep": [1, {"er": 2}]},'
    data = around(cell, before=top, after=b',\n "z_top": null')
    assert_all_edits_keep_the_rest(data)
    copy = Notebook(data)
    copy.apply({"op": "replace", "cell": "odd", "source": "x"})
    assert copy.cells[1].raw == cell.replace(b'"source": []', b'"source": ["x"]')
