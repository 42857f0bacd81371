"""From a notebook to its text."""

from __future__ import annotations

import json

import pytest

from cellwright import Notebook
from cellwright.errors import InvalidCell
from cellwright.text.view import (
    drop_last_newline,
    end_with_newline,
    parse_text,
    render_text,
    to_text,
)
from tests.unit.text.samples import book, cell, text


def test_every_cell_begins_with_a_marker_that_tells_its_type_and_index() -> None:
    """S3: the three markers."""
    notebook = book(cell("code", "x = 1"), cell("markdown", "# Title"), cell("raw", "r"))
    assert to_text(notebook) == text(
        "# %% [code] cell:0", "x = 1", "# %% [markdown] cell:1", "# Title", "# %% [raw] cell:2", "r"
    )


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("", []),
        ("x", ["x"]),
        ("x\n", ["x", ""]),
        ("\n", ["", ""]),
        ("x\n\n", ["x", "", ""]),
        ("\nx", ["", "x"]),
        ("a\r\nb", ["a\r", "b"]),
        ("a\x0cb\x0bc\x85d\u2028e\u2029f\rg\x1ch", ["a\x0cb\x0bc\x85d\u2028e\u2029f\rg\x1ch"]),
    ],
)
def test_only_line_feeds_make_lines_and_all_of_them_show(source: str, shown: list[str]) -> None:
    view = render_text(book(cell("code", source), cell("raw", "after")))
    assert view.lines == ["# %% [code] cell:0", *shown, "# %% [raw] cell:1", "after"]
    assert view.cells[0].last == view.cells[0].marker + len(shown)
    assert parse_text(view.text)[0].source == source


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("# %% [code]", "# %%% [code]"),
        ("# %% [markdown] cell:3", "# %%% [markdown] cell:3"),
        ("# %%% [raw] cell:0", "# %%%% [raw] cell:0"),
        ("# %%%%% [code]", "# %%%%%% [code]"),
        ("# % [code]", "# % [code]"),
        ("#%% [code]", "#%% [code]"),
        (" # %% [code]", " # %% [code]"),
        ("# %% [code] ", "# %%% [code] "),
        ("# %% [code]\r", "# %%% [code]\r"),
        ("# %% [code] cell:", "# %%% [code] cell:"),
        ("# %% [code] cell:\u0663", "# %%% [code] cell:\u0663"),
        ("# %% [Code]", "# %%% [Code]"),
        ("# %% [code]\u2028", "# %%% [code]\u2028"),
        ("# %%", "# %%"),
        ("# %% Title", "# %% Title"),
    ],
)
def test_a_source_line_that_looks_like_a_marker_gains_one_percent_sign(
    line: str, shown: str
) -> None:
    source = text("before", line, line, "after")
    view = render_text(book(cell("code", source), cell("code", line)))
    assert view.lines[1:5] == ["before", shown, shown, "after"]
    assert [parsed.source for parsed in parse_text(view.text)] == [source, line]


def test_a_notebook_without_cells_is_an_empty_text() -> None:
    view = render_text(book())
    assert (view.text, list(view.lines), list(view.cells)) == ("", [], [])
    assert view.cell_at(1) is None


def test_the_view_tells_the_lines_of_every_cell() -> None:
    view = render_text(book(cell("code", "a\nb"), cell("raw", ""), cell("markdown", "c\n")))
    places = [(place.marker, place.first, place.last) for place in view.cells]
    assert places == [(1, 2, 3), (4, 5, 4), (5, 6, 7)]
    at = [place.cell.index if (place := view.cell_at(n)) else None for n in range(9)]
    assert at == [None, 0, 0, 0, 1, 2, 2, 2, None]
    assert view.cells[2].cell.source == "c\n"


def test_a_source_is_joined_from_its_lines() -> None:
    listed = cell("code", "")
    listed["source"] = ["a\n", "b", "c\n", "d"]
    assert to_text(book(listed)) == text("# %% [code] cell:0", "a", "bc", "d")


@pytest.mark.parametrize(
    "broken", [{"cell_type": "code"}, {"cell_type": "heading", "source": "x"}, 3, None]
)
def test_a_broken_cell_has_no_text_and_is_named(broken: object) -> None:
    with pytest.raises(InvalidCell) as raised:
        to_text(book(cell("code", "a"), broken, cell("code", "b")))
    assert raised.value.index == 1


def test_an_old_notebook_has_a_text_too() -> None:
    old = {"cells": [{"cell_type": "code", "input": "x", "language": "python", "outputs": []}]}
    value = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [old]}
    assert to_text(Notebook(json.dumps(value).encode())) == text("# %% [code] cell:0", "x")


@pytest.mark.parametrize("source", ["", "x", "x\n", "x\n\n\n", "\n"])
def test_a_final_newline_is_added_for_a_file_and_taken_back(source: str) -> None:
    plain = to_text(book(cell("code", source)))
    file = end_with_newline(plain)
    assert file == plain + "\n"
    assert drop_last_newline(file) == plain
    assert parse_text(drop_last_newline(file))[0].source == source


def test_an_editor_that_adds_a_final_newline_changes_nothing() -> None:
    plain = to_text(book(cell("code", "a"), cell("code", "x = 1")))
    assert drop_last_newline(plain) == plain
    assert drop_last_newline(plain + "\n") == plain


def test_a_text_without_cells_gets_no_newline() -> None:
    assert end_with_newline("") == drop_last_newline("") == drop_last_newline("\n") == ""
