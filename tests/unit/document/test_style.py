"""What is new is written as the file is written: nobody should see which part was ours."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from cellwright import Notebook
from cellwright.document.edits import SetOutputs
from tests.cases import for_each
from tests.property.strategies import Style, write
from tests.unit.document.samples import code, markdown, raw

# As Jupyter writes; every other style differs from it in one habit or two.
JUPYTER = Style(
    indent=" ",
    newline="\n",
    colon=": ",
    comma=", ",
    escape=False,
    upper=False,
    shuffle=0,
    bom=False,
    tail="\n",
    padding="",
)
STYLES = {
    **{f"indent of {n}": replace(JUPYTER, indent=" " * n) for n in range(9)},
    "tabs": replace(JUPYTER, indent="\t"),
    "spaces and tabs": replace(JUPYTER, indent=" \t"),
    "minified": replace(JUPYTER, indent=None, colon=":", comma=","),
    "one line": replace(JUPYTER, indent=None),
    "one line, wide": replace(JUPYTER, indent=None, colon=" : ", comma=" , "),
    "one line, no space after a colon": replace(JUPYTER, indent=None, colon=":"),
    "one line, no space after a comma": replace(JUPYTER, indent=None, comma=","),
    "space before the colon": replace(JUPYTER, colon=" : "),
    "no space after the colon": replace(JUPYTER, colon=":"),
    "no space, but one before": replace(JUPYTER, colon=" :"),
    "CRLF": replace(JUPYTER, newline="\r\n", tail="\r\n"),
    "CRLF, tabs": replace(JUPYTER, newline="\r\n", indent="\t", colon=" : "),
    "CRLF, no indent": replace(JUPYTER, newline="\r\n", indent=""),
    "byte order mark": replace(JUPYTER, bom=True),
    "byte order mark, minified": replace(JUPYTER, bom=True, indent=None, colon=":", comma=","),
    "no final newline": replace(JUPYTER, tail=""),
    "white space around it": replace(JUPYTER, tail=" \n\n", padding="\n"),
}
every_style = for_each("style", STYLES.values())

ONE = code("a = 1\nb = 2", "one", metadata={"tags": ["x"]})
TWO = markdown("# Two", "two")
SORTED = ("cell_type", "execution_count", "id", "metadata", "outputs", "source")


def value(*cells: Any, metadata: dict[str, Any] | None = None, minor: int = 5) -> dict[str, Any]:
    """A notebook whose cells have their keys in Jupyter's order."""
    return {
        "cells": [{key: cell[key] for key in SORTED if key in cell} for cell in cells],
        "metadata": metadata or {},
        "nbformat": 4,
        "nbformat_minor": minor,
    }


def check(style: Style, before: Any, edits: Any, after: Any) -> None:
    notebook = Notebook(write(before, style))
    notebook.apply(edits)
    assert notebook.to_bytes().decode() == write(after, style).decode()


# --- In every style ------------------------------------------------------------------------------


@every_style
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_new_cell_looks_like_its_neighbours(style: Style, place: int) -> None:
    cells = [ONE, TWO]
    new = code("p\nq\n", "new", metadata={"k": [1, {"a": "b", "c": []}]})
    edit = {"op": "insert", "source": "p\nq\n", "id": "new", "at": place}

    check(
        style,
        value(*cells),
        {**edit, "metadata": new["metadata"]},
        value(*cells[:place], new, *cells[place:]),
    )


@every_style
def test_several_new_cells_are_separated_as_the_others_are(style: Style) -> None:
    edits = [
        {"op": "insert", "source": "p", "type": "raw", "id": "n1", "at": 0},
        {"op": "insert", "source": "", "type": "code", "id": "n2", "at": 0},
        {"op": "insert", "source": "q\nr", "type": "markdown", "id": "n3"},
    ]
    after = [raw("p", "n1"), code("", "n2"), ONE, markdown("q\nr", "n3")]
    check(style, value(ONE), edits, value(*after))


@every_style
def test_the_first_cells_of_an_empty_notebook_follow_its_frame(style: Style) -> None:
    edits = [
        {"op": "insert", "source": "p\nq", "id": "n1"},
        {"op": "insert", "source": "", "type": "markdown", "id": "n2", "metadata": {"k": [1]}},
    ]
    after = [code("p\nq", "n1"), markdown("", "n2", metadata={"k": [1]})]
    check(style, value(), edits, value(*after))


@every_style
def test_a_notebook_that_was_emptied_and_filled_again_looks_the_same(style: Style) -> None:
    notebook = Notebook(write(value(ONE, TWO), style))
    notebook.apply([{"op": "delete", "cell": 0}, {"op": "delete", "cell": 1}])
    assert notebook.to_bytes() == write(value(), style)
    notebook.apply({"op": "splice", "start": 0, "cells": [ONE, TWO]})
    assert notebook.to_bytes() == write(value(ONE, TWO), style)


@every_style
def test_a_source_gets_as_many_lines_as_it_needs(style: Style) -> None:
    texts = ["", "p", "p\n", "p\nq", "p\nq\nr", "r\ns\nt\n"]
    for old in texts:
        for new in texts:
            check(
                style,
                value(ONE, code(old, "it"), TWO),
                {"op": "replace", "cell": "it", "source": new},
                value(ONE, code(new, "it"), TWO),
            )


NEW_METADATA = {"k": {"deep": [1, "two", {"three": None}], "empty": {}, "none": []}}


@every_style
@pytest.mark.parametrize("old", [{}, {"a": 1}, {"a": 1, "b": [2]}], ids=repr)
def test_new_metadata_of_a_cell_look_like_the_rest(style: Style, old: dict[str, Any]) -> None:
    check(
        style,
        value(ONE, markdown("x", "it", metadata=old), TWO),
        {"op": "set_metadata", "cell": "it", "metadata": NEW_METADATA},
        # null in a patch removes, but in a list it is a value
        value(ONE, markdown("x", "it", metadata={**old, **NEW_METADATA}), TWO),
    )


@every_style
def test_metadata_that_are_replaced_look_like_the_rest(style: Style) -> None:
    check(
        style,
        value(ONE, TWO),
        {"op": "set_metadata", "cell": "one", "metadata": NEW_METADATA, "merge": False},
        value({**ONE, "metadata": NEW_METADATA}, TWO),
    )


@every_style
@pytest.mark.parametrize("old", [{}, {"a": 1}, {"a": 1, "b": [2]}], ids=repr)
@pytest.mark.parametrize("merge", [True, False])
def test_new_metadata_of_the_notebook_look_like_the_rest(
    style: Style, old: dict[str, Any], merge: bool
) -> None:
    check(
        style,
        value(ONE, metadata=old),
        {"op": "set_metadata", "metadata": NEW_METADATA, "merge": merge},
        value(ONE, metadata={**old, **NEW_METADATA} if merge else NEW_METADATA),
    )


@every_style
def test_members_that_a_type_needs_are_added_in_their_places(style: Style) -> None:
    check(
        style,
        value(ONE, TWO),
        {"op": "set_type", "cell": "two", "type": "code"},
        value(ONE, code("# Two", "two")),
    )
    check(
        style,
        value(ONE, TWO),
        {"op": "set_type", "cell": "one", "type": "raw"},
        value(raw("a = 1\nb = 2", "one", metadata=ONE["metadata"]), TWO),
    )


@every_style
def test_halves_of_a_cell_look_like_the_whole(style: Style) -> None:
    notebook = Notebook(write(value(ONE, TWO), style))
    notebook.apply({"op": "split", "cell": "one", "line": 1})
    first = code("a = 1", "one", metadata=ONE["metadata"])
    second = code("b = 2", notebook.cells[1].id, metadata=ONE["metadata"])
    assert notebook.to_bytes() == write(value(first, second, TWO), style)


@every_style
def test_a_removed_key_leaves_no_trace(style: Style) -> None:
    old = {"a": 1, "b": {"x": 1, "y": 2}, "c": 3}
    for patch, new in (
        ({"a": None}, {"b": {"x": 1, "y": 2}, "c": 3}),
        ({"b": None}, {"a": 1, "c": 3}),
        ({"c": None}, {"a": 1, "b": {"x": 1, "y": 2}}),
        ({"a": None, "c": None}, {"b": {"x": 1, "y": 2}}),
        ({"a": None, "b": None}, {"c": 3}),
        ({"b": {"x": None}}, {"a": 1, "b": {"y": 2}, "c": 3}),
        ({"b": {"x": None, "y": None}}, {"a": 1, "b": {}, "c": 3}),
        ({"a": None, "b": None, "c": None}, {}),
    ):
        check(
            style,
            value(markdown("x", "it", metadata=old), metadata=old),
            [
                {"op": "set_metadata", "cell": "it", "metadata": patch},
                {"op": "set_metadata", "metadata": patch},
            ],
            value(markdown("x", "it", metadata=new), metadata=new),
        )


# --- Habits that a whole file shows --------------------------------------------------------------


@pytest.mark.parametrize("indent", [" ", None])
@pytest.mark.parametrize(
    ("habit", "escape"),
    [
        ("é", True),  # the file escapes
        ("é", False),  # the file does not
        ("plain", False),  # nothing to tell by
    ],
)
def test_what_is_not_ascii_is_escaped_if_the_file_escapes(
    habit: str, escape: bool, indent: str | None
) -> None:
    style = replace(JUPYTER, indent=indent, escape=escape)
    text = 'é 漢字 \U0001f600\n\u2028 \x1b \x00 \\u00e9 " / \x80'
    check(
        style,
        value(markdown(habit, "old")),
        [
            {"op": "insert", "source": text, "id": "new", "metadata": {"ü": ["ß"]}},
            {"op": "set_metadata", "metadata": {"é": {"ö": "ä"}}},
        ],
        value(
            markdown(habit, "old"),
            code(text, "new", metadata={"ü": ["ß"]}),
            metadata={"é": {"ö": "ä"}},
        ),
    )


def test_a_file_that_does_both_is_not_escaped_further() -> None:
    notebook = Notebook(
        b'{"cells":[],"metadata":{"a":"\\u00e9","b":"\xc3\xa9"},"nbformat":4,"nbformat_minor":5}'
    )
    notebook.apply({"op": "set_metadata", "metadata": {"c": "é"}})
    assert notebook.to_bytes() == (
        b'{"cells":[],"metadata":{"a":"\\u00e9","b":"\xc3\xa9","c":"\xc3\xa9"},'
        b'"nbformat":4,"nbformat_minor":5}'
    )


def test_escapes_of_control_characters_and_of_backslashes_are_no_habit() -> None:
    notebook = Notebook(
        b'{"cells":[],"metadata":{"a":"\\u001b \\\\u00e9"},"nbformat":4,"nbformat_minor":5}'
    )
    notebook.apply({"op": "set_metadata", "metadata": {"a": "é"}})
    assert notebook.metadata == {"a": "é"}
    assert "é".encode() in notebook.to_bytes()


@pytest.mark.parametrize("escape", [True, False])
def test_a_lone_surrogate_is_always_escaped(escape: bool) -> None:
    style = replace(JUPYTER, escape=escape)
    check(
        style,
        value(markdown("é", "old")),
        {"op": "insert", "source": "\ud800 \udc00", "id": "new", "metadata": {"\udfff": "\ud83d"}},
        value(markdown("é", "old"), code("\ud800 \udc00", "new", metadata={"\udfff": "\ud83d"})),
    )


def test_lines_that_stay_keep_their_spelling() -> None:
    notebook = Notebook(
        b'{"cells":[{"cell_type":"raw","id":"a","metadata":{},"source":["\\u00e9\\n","\\/x\\n",'
        b'"\xc3\xa9y\\u000a","z"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}'
    )
    notebook.apply({"op": "replace", "cell": "a", "source": "new é\né\néy\n/x\nz"})
    assert notebook.cells[0].raw == (
        b'{"cell_type":"raw","id":"a","metadata":{},"source":["new \xc3\xa9\\n","\\u00e9\\n",'
        b'"\xc3\xa9y\\u000a","\\/x\\n","z"]}'
    )


@pytest.mark.parametrize("merge", [True, False])
def test_metadata_that_say_the_same_already_keep_their_spelling(merge: bool) -> None:
    metadata = b'{ "a" : 1.50,"e":"\\u00e9" , "l":[ 1,2 ],"o":{"n" :null, "m":1}}'
    patch = {"a": 1.5, "e": "é", "l": [1, 2], "o": {"n": None, "m": 1}}
    if merge:
        patch["o"] = {"m": 1}
    data = (
        b'{"cells":[{"cell_type":"raw","id":"a","metadata":' + metadata + b',"source":[]}],'
        b'"metadata":' + metadata + b',"nbformat":4,"nbformat_minor":5}'
    )
    notebook = Notebook(data)
    for cell in ("a", None):
        edit = {"op": "set_metadata", "cell": cell, "metadata": patch, "merge": merge}
        assert not notebook.apply(edit)
    assert notebook.to_bytes() == data


def test_a_source_that_is_one_string_stays_one() -> None:
    as_string = {**ONE, "source": "a"}
    for new in ("p\nq", "p", ""):
        check(
            JUPYTER,
            value(as_string, TWO),
            {"op": "replace", "cell": "one", "source": new},
            value({**ONE, "source": new}, TWO),
        )


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_new_source_is_one_string_where_its_neighbours_are(place: int) -> None:
    cells = [{**ONE, "source": "a"}, {**TWO, "source": "b"}]
    new = {**code("", "new"), "source": "p\nq"}
    check(
        JUPYTER,
        value(*cells),
        {"op": "insert", "source": "p\nq", "id": "new", "at": place},
        value(*cells[:place], new, *cells[place:]),
    )


def test_an_empty_source_takes_the_form_of_its_neighbours() -> None:
    for empty, form in (("", "p\nq"), ([], ["p\n", "q"])):
        neighbour = {**ONE, "source": "a" if isinstance(form, str) else ["a"]}
        check(
            JUPYTER,
            value(neighbour, {**TWO, "source": ""}),
            {"op": "replace", "cell": "two", "source": "p\nq"},
            value(neighbour, {**TWO, "source": form}),
        )
        check(
            JUPYTER,
            value(neighbour),
            {"op": "insert", "source": "", "type": "markdown", "id": "two"},
            value(neighbour, {**TWO, "source": empty}),
        )


def test_where_nothing_shows_it_a_source_is_a_list() -> None:
    for empty in ("", []):
        cell = {**TWO, "source": empty}
        check(
            JUPYTER,
            value(cell),
            {"op": "insert", "source": "p", "id": "new"},
            value(cell, code("p", "new")),
        )


# --- The order of keys ---------------------------------------------------------------------------


def reordered(cell: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: cell[key] for key in keys if key in cell}


def frame(*cells: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}


def test_a_new_cell_has_its_keys_in_the_order_of_its_neighbours() -> None:
    order = ("source", "outputs", "id", "execution_count", "metadata", "cell_type")
    check(
        JUPYTER,
        frame(reordered(ONE, *order)),
        {"op": "insert", "source": "p", "id": "new"},
        frame(reordered(ONE, *order), reordered(code("p", "new"), *order)),
    )


def test_keys_that_the_neighbours_lack_come_last() -> None:
    order = ("metadata", "source", "id", "cell_type")
    check(
        JUPYTER,
        frame(reordered(TWO, *order)),
        {"op": "insert", "source": "p", "id": "new"},
        frame(
            reordered(TWO, *order),
            reordered(code("p", "new"), *order, "execution_count", "outputs"),
        ),
    )


def test_a_neighbour_of_the_same_type_is_the_better_example() -> None:
    first = reordered(ONE, "source", "cell_type", "metadata", "execution_count", "outputs", "id")
    near = reordered(TWO, "cell_type", "metadata", "source", "id")
    new = reordered(
        code("p", "new"), "source", "cell_type", "metadata", "execution_count", "outputs", "id"
    )
    check(
        JUPYTER,
        frame(first, near, near | {"id": "x"}),
        {"op": "insert", "source": "p", "id": "new"},
        frame(first, near, near | {"id": "x"}, new),
    )


def test_where_keys_are_not_sorted_a_new_one_comes_last() -> None:
    check(
        JUPYTER,
        value(markdown("x", "it", metadata={"b": 1, "a": 2}), metadata={"z": 1, "b": 2}),
        [
            {"op": "set_metadata", "cell": "it", "metadata": {"aa": 3}},
            {"op": "set_metadata", "metadata": {"c": 3}},
        ],
        value(
            markdown("x", "it", metadata={"b": 1, "a": 2, "aa": 3}),
            metadata={"z": 1, "b": 2, "c": 3},
        ),
    )


def test_where_keys_are_sorted_they_stay_sorted() -> None:
    check(
        JUPYTER,
        value(markdown("x", "it", metadata={"b": 1, "d": {"m": 1}}), metadata={"b": 1, "d": 2}),
        [
            {"op": "set_metadata", "cell": "it", "metadata": {"c": 3, "d": {"a": 0}, "e": 1}},
            {"op": "set_metadata", "metadata": {"a": 3, "c": 1}},
        ],
        value(
            markdown("x", "it", metadata={"b": 1, "c": 3, "d": {"a": 0, "m": 1}, "e": 1}),
            metadata={"a": 3, "b": 1, "c": 1, "d": 2},
        ),
    )


# --- Files that mix ------------------------------------------------------------------------------


def edited(data: bytes, *edits: dict[str, Any]) -> str:
    notebook = Notebook(data)
    notebook.apply(edits)
    return notebook.to_bytes().decode()


ONE_LINE_EACH = b"""{
 "cells": [
  {"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": ["x"]},
  {"cell_type": "markdown", "id": "b", "metadata": {}, "source": ["y\\n", "z"]}
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""


def test_cells_on_one_line_each_stay_so() -> None:
    after = edited(
        ONE_LINE_EACH,
        {"op": "insert", "source": "p\nq", "id": "c"},
        {"op": "insert", "source": "r", "type": "markdown", "id": "d", "at": 0},
        {"op": "set_metadata", "cell": "b", "metadata": {"tags": ["t", "u"]}},
        {"op": "replace", "cell": "a", "source": "x\ny"},
    )
    assert (
        after
        == """{
 "cells": [
  {"cell_type": "markdown", "id": "d", "metadata": {}, "source": ["r"]},
  {"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": ["x\\n", "y"]},
  {"cell_type": "markdown", "id": "b", "metadata": {"tags": ["t", "u"]}, "source": ["y\\n", "z"]},
  {"cell_type": "code", "execution_count": null, "id": "c", "metadata": {}, "outputs": [], "source": ["p\\n", "q"]}
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""
    )


INLINE_LISTS = b"""{
  "cells": [
    {
      "cell_type": "code",
      "execution_count": null,
      "id": "a",
      "metadata": {"tags": ["t"]},
      "outputs": [],
      "source": ["x\\n", "y"]
    }
  ],
  "metadata": {},
  "nbformat": 4,
  "nbformat_minor": 5
}"""


def test_lists_on_one_line_stay_so() -> None:
    after = edited(
        INLINE_LISTS,
        {"op": "insert", "source": "p\nq", "id": "b"},
        {"op": "replace", "cell": "a", "source": "x\ny\nz"},
        {"op": "set_metadata", "cell": "a", "metadata": {"name": "n", "tags": ["t", "u"]}},
    )
    assert (
        after
        == """{
  "cells": [
    {
      "cell_type": "code",
      "execution_count": null,
      "id": "a",
      "metadata": {"name": "n", "tags": ["t", "u"]},
      "outputs": [],
      "source": ["x\\n", "y\\n", "z"]
    },
    {
      "cell_type": "code",
      "execution_count": null,
      "id": "b",
      "metadata": {},
      "outputs": [],
      "source": ["p\\n", "q"]
    }
  ],
  "metadata": {},
  "nbformat": 4,
  "nbformat_minor": 5
}"""
    )


@pytest.mark.parametrize("space", [b"", b" ", b"\n ", b"\r\n\t"])
def test_white_space_in_an_empty_list_of_cells_is_kept_until_a_cell_comes(space: bytes) -> None:
    data = b'{\n "cells": [' + space + b'],\n "metadata": {},\n "nbformat": 4\n}'
    assert Notebook(data).to_bytes() == data
    assert edited(data, {"op": "insert", "type": "raw"}) == (
        '{\n "cells": [\n  {\n   "cell_type": "raw",\n   "metadata": {},\n   "source": []\n  }\n ],'
        '\n "metadata": {},\n "nbformat": 4\n}'
    )


def test_mixed_line_ends_and_indents_stay_where_they_are() -> None:
    data = (
        b'{"cells": [\r\n\t{"cell_type":"raw",\n  "id" :"a","metadata"\t:{ } ,\r\n"source": [ ] }'
        b' ,\n\n {"source":"x" , "cell_type": "raw","metadata":{},"id":"b"}\r\n\r\n]\n,"metadata":{'
        b'},"nbformat":4,\t"nbformat_minor":5 }'
    )
    assert edited(data, {"op": "replace", "cell": "b", "source": "y"}).encode() == data.replace(
        b'"x"', b'"y"'
    )
    moved = edited(data, {"op": "move", "cell": "a", "at": 2}).encode()
    first, second = (data.index(b'{"cell_type'), data.index(b'{"source')), data.index(b"\r\n\r\n]")
    one, two = data[first[0] : data.index(b" ,\n\n")], data[first[1] : second]
    assert moved == data.replace(one, b"<1>").replace(two, one).replace(b"<1>", two)


def test_what_the_edit_does_not_touch_in_a_cell_keeps_its_bytes() -> None:
    cell = (
        b'{ "outputs":[ {"output_type":"stream","name":"stdout","text":"\\u00E9"}],'
        b'"x_own": 1E400,"execution_count" : 12345678901234567890,'
        b'\n"metadata" :{"a" : 0.10 , "b":-0},"cell_type":"code","source":"x","id":"a" }'
    )
    data = b'{"cells":[' + cell + b'],"metadata":{},"nbformat":4,"nbformat_minor":5}'
    after = edited(
        data,
        {"op": "replace", "cell": "a", "source": "y"},
        {"op": "set_metadata", "cell": "a", "metadata": {"b": None}},
    ).encode()
    assert after == data.replace(b'"x",', b'"y",').replace(b' , "b":-0', b"")


# --- New files -----------------------------------------------------------------------------------


def test_a_new_notebook_is_written_as_jupyter_writes_one() -> None:
    notebook = Notebook()
    assert notebook.to_bytes().decode() == (
        '{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n'
    )
    notebook.apply([{"op": "insert", "source": "é\nb"}, {"op": "insert", "type": "markdown"}])
    first, second = (cell.id or "" for cell in notebook.cells)
    assert all(re.fullmatch("[0-9a-f]{8}", id_) for id_ in (first, second))
    assert (notebook.version, notebook.validate()) == ("4.5", None)
    assert notebook.to_bytes() == write(value(code("é\nb", first), markdown("", second)), JUPYTER)


@every_style
def test_a_long_text_is_written_in_blocks_as_it_is_in_one(
    style: Style, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        "",
        "a",
        "a\n",
        "é\r\n\n\n \x85b\u2028c\r",
        'two "lines"\\n\n\U0001f600 \ud800\x1b[1m\n' * 9,
    ]
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": text, "more": {"a": [1]}}
        for text in texts
    ]
    written = []
    for long, block in ((2**30, 2**30), (0, 1), (0, 12), (0, 2**30)):
        monkeypatch.setattr("cellwright.document._bytes.cell_writer._LONG_TEXT", long)
        monkeypatch.setattr("cellwright.document._json.writing._BLOCK", block)
        notebook = Notebook(write(value(ONE, TWO), style))
        notebook.apply(SetOutputs("one", outputs, 1))
        written.append(notebook.to_bytes())
    assert written[1:] == written[:1] * 3


@pytest.mark.parametrize("size", [7, 1000, 200_000])
def test_text_in_pieces_is_written_as_the_whole_is(size: int) -> None:
    text = "".join(f"é line {number}\r\n" * (number % 3) + "x" * number for number in range(700))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    written = []
    for given in (text, pieces):
        notebook = Notebook(write(value(ONE, TWO), JUPYTER))
        notebook.apply(SetOutputs("one", [{"output_type": "stream", "name": "a", "text": given}]))
        written.append(notebook.to_bytes())
    assert written[0] == written[1]


def test_a_flood_is_written_with_little_memory_beside_the_file() -> None:
    pieces = ["x" * 99 + "\n"] * 50_000
    notebook = Notebook(write(value(ONE, TWO), JUPYTER))
    notebook.apply(SetOutputs("one", [{"output_type": "stream", "name": "a", "text": ["a\n"]}]))
    tracemalloc.start()
    try:
        notebook.apply(SetOutputs("one", [{"output_type": "stream", "name": "a", "text": pieces}]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * len(notebook.to_bytes())  # it was 3 times that
