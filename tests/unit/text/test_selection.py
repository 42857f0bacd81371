"""Parts of a text: lines, cells, sections and the outline."""

from __future__ import annotations

import pytest

from cellwright import Notebook
from cellwright.errors import AmbiguousCell, CellNotFound, InvalidSelector
from cellwright.text.selection import OutlineEntry, SelectedLine, select, select_raw
from cellwright.text.view import parse_text, render_text
from tests.unit.text.samples import STREAM, book, cell, text

# With the lines that each cell has in the text.
LONG = (
    cell("markdown", "# Analysis\nof things", "intro"),  # 1-3
    cell("code", "import pandas as pd\n\ndf = pd.DataFrame()", "load", outputs=[STREAM]),  # 4-7
    cell("markdown", "## Load the **data**\nSome words.\n### Details", "words"),  # 8-11
    cell("code", "", "empty"),  # 12
    cell("markdown", "## Plots", "plots"),  # 13-14
    cell("code", "\nplot(df)", "7"),  # 15-17
    cell("raw", "\\raw", "twice"),  # 18-19
    cell("markdown", "# Appendix\n## Details", "twice"),  # 20-22
)


@pytest.fixture
def notebook() -> Notebook:
    return book(*LONG, minor=5)


def test_every_form_of_range_selects_its_lines(notebook: Notebook) -> None:
    """In the text, and with `raw` in the file."""
    view, file = render_text(notebook), notebook.to_bytes().decode()
    for selector, lines in {
        "7": [7],
        "20-": [20, 21, 22],
        "5-7": [5, 6, 7],
        "5+3": [5, 6, 7],
        "20-21,5-6": [5, 6, 20, 21],
    }.items():
        for found, source in (
            (select(view, selector), view.lines),
            (select_raw(file, f"{selector}:raw"), file.split("\n")),
        ):
            shown = [(line.number, line.text) for line in found.lines if not line.context]
            assert shown[: len(lines)] == [(n, source[n - 1]) for n in lines]
            assert len(shown) == len(lines) or selector == "20-"
    whole = select_raw(file, "raw").lines
    assert "".join(line.text + "\n" for line in whole).rstrip("\n") == file.rstrip("\n")


def test_a_cell_a_section_and_the_outline_can_be_selected(notebook: Notebook) -> None:
    assert lines_of(notebook, "cell=plots") == [13, 14]
    assert lines_of(notebook, "section=Plots") == [13, 14, 15, 16, 17, 18, 19]
    found = select(render_text(notebook), "outline").outline
    assert [entry.title for entry in found if entry.kind == "heading"] == [
        "Analysis",
        "Load the **data**",
        "Details",
        "Plots",
        "Appendix",
        "Details",
    ]


def lines_of(notebook: Notebook, selector: str) -> list[int]:
    """The numbers of the lines that were asked for, context left out."""
    return [
        line.number for line in select(render_text(notebook), selector).lines if not line.context
    ]


def test_lines_are_counted_on_the_text_and_not_on_the_file(notebook: Notebook) -> None:
    """S3: line selectors operate on the virtual text."""
    found = select(render_text(notebook), "5-7")
    assert found.text == "import pandas as pd\n\ndf = pd.DataFrame()"
    assert (found.total_lines, found.total_cells) == (22, 8)


def test_several_ranges_are_shown_exactly_and_in_order(notebook: Notebook) -> None:
    """S3: multi-range selectors."""
    assert select(render_text(notebook), "20-21,2,5-6").lines == [
        SelectedLine(2, "# Analysis"),
        SelectedLine(5, "import pandas as pd"),
        SelectedLine(6, ""),
        SelectedLine(20, "# %% [markdown] cell:7"),
        SelectedLine(21, "# Appendix"),
    ]


@pytest.mark.parametrize(
    ("selector", "before", "asked", "after"),
    [
        ("5", [4], [5], [6, 7, 8]),
        ("5-6", [4], [5, 6], [7, 8, 9]),
        ("5+2", [4], [5, 6], [7, 8, 9]),
        ("1", [], [1], [2, 3, 4]),
        ("21-22", [20], [21, 22], []),
        ("20-21", [19], [20, 21], [22]),
        ("20-999", [19], [20, 21, 22], []),
        ("20+999999999999999999", [19], [20, 21, 22], []),
        ("21-", [], [21, 22], []),
        ("5-5,6", [], [5, 6], []),
    ],
)
def test_a_single_bounded_range_comes_with_its_surroundings(
    notebook: Notebook, selector: str, before: list[int], asked: list[int], after: list[int]
) -> None:
    view = render_text(notebook)
    found = select(view, selector).lines
    assert [line.number for line in found] == before + asked + after
    assert [line.number for line in found if not line.context] == asked
    assert all(line.text == view.lines[line.number - 1] for line in found)


@pytest.mark.parametrize("selector", ["23", "23-", "23-24", "5,23", "0", "5-4", "5+0"])
def test_lines_that_are_not_there_are_refused(notebook: Notebook, selector: str) -> None:
    with pytest.raises(InvalidSelector) as raised:
        select(render_text(notebook), selector)
    assert raised.value.selector == selector


def test_a_notebook_without_cells_has_no_line_to_select() -> None:
    view = render_text(book())
    with pytest.raises(InvalidSelector):
        select(view, "1-")
    with pytest.raises(InvalidSelector):
        select(view, "section=A")
    with pytest.raises(CellNotFound):
        select(view, "cell=0")
    found = select(view, "outline")
    assert (list(found.outline), found.total_lines, found.total_cells) == ([], 0, 0)


@pytest.mark.parametrize(
    ("ref", "lines"),
    [
        ("load", [4, 5, 6, 7]),
        ("cell-1", [4, 5, 6, 7]),
        ("empty", [12]),
        ("7", [15, 16, 17]),
        ("cell-07", [20, 21, 22]),
    ],
)
def test_a_cell_is_selected_by_id_or_position(
    notebook: Notebook, ref: str, lines: list[int]
) -> None:
    assert lines_of(notebook, f"cell={ref}") == lines


def test_a_cell_is_selected_by_index_where_ids_are_no_numbers() -> None:
    notebook = book(cell("code", "a"), cell("code", "b"))
    assert lines_of(notebook, "cell=1") == lines_of(notebook, "cell=-1") == [3, 4]


def test_a_cell_that_is_unknown_or_ambiguous_is_an_error(notebook: Notebook) -> None:
    with pytest.raises(CellNotFound) as raised:
        select(render_text(notebook), "cell=lod")
    assert raised.value.near == ("load",)
    with pytest.raises(AmbiguousCell):
        select(render_text(notebook), "cell=twice")


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("Analysis", 1, 19),
        ("analysis", 1, 19),
        ("load the data", 8, 12),
        ("Load the **data**", 8, 12),
        ("PLOTS", 13, 19),
        ("Appendix", 20, 22),
    ],
)
def test_a_section_is_selected_by_its_heading(
    notebook: Notebook, name: str, first: int, last: int
) -> None:
    assert lines_of(notebook, f"section={name}") == list(range(first, last + 1))


def test_a_heading_written_exactly_so_comes_before_one_with_other_markup() -> None:
    notebook = book(cell("markdown", "# Data\n# **Data**\n# `Data`"))
    assert lines_of(notebook, "section=data") == [1, 2]
    assert lines_of(notebook, "section=**DATA**") == [3]
    with pytest.raises(InvalidSelector):
        select(render_text(notebook), "section=*Data*")


def test_a_section_that_begins_a_cell_is_text_that_can_be_parsed(notebook: Notebook) -> None:
    found = select(render_text(notebook), "section=Plots")
    assert [(c.type, c.number) for c in parse_text(found.text)] == [
        ("markdown", 4),
        ("code", 5),
        ("raw", 6),
    ]


def test_a_section_of_an_ambiguous_name_is_an_error_that_tells_the_lines(
    notebook: Notebook,
) -> None:
    with pytest.raises(InvalidSelector) as raised:
        select(render_text(notebook), "section=Details")
    assert raised.value.hint == "Ask for the lines: 11-12 or 22-22"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Plot", "Did you mean `Plots`?"),
        ("Anlysis", "Did you mean `Analysis`?"),
        ("data", "Did you mean `Load the **data**`?"),
        ("Conclusion of it all", "`outline` lists the 6 headings"),
    ],
)
def test_a_section_of_an_unknown_name_is_an_error_with_near_misses(
    notebook: Notebook, name: str, hint: str
) -> None:
    with pytest.raises(InvalidSelector) as raised:
        select(render_text(notebook), f"section={name}")
    assert raised.value.hint == hint


def test_the_outline_lists_headings_and_cells_with_their_lines(notebook: Notebook) -> None:
    found = select(render_text(notebook), "outline")
    assert list(found.lines) == []
    assert (found.total_lines, found.total_cells) == (22, 8)
    intro = (0, "intro", "intro", "markdown", False)
    words = (2, "words", "words", "markdown", False)
    plots = (4, "plots", "plots", "markdown", False)
    appendix = (7, "cell-7", "twice", "markdown", False)
    assert found.outline == [
        OutlineEntry("heading", 1, "Analysis", 1, 19, *intro),
        OutlineEntry("cell", 1, "# Analysis", 1, 3, *intro),
        OutlineEntry("cell", 1, "import pandas as pd", 4, 7, 1, "load", "load", "code", True),
        OutlineEntry("heading", 2, "Load the **data**", 8, 12, *words),
        OutlineEntry("cell", 2, "## Load the **data**", 8, 11, *words),
        OutlineEntry("heading", 3, "Details", 11, 12, *words),
        OutlineEntry("cell", 3, "", 12, 12, 3, "empty", "empty", "code", False),
        OutlineEntry("heading", 2, "Plots", 13, 19, *plots),
        OutlineEntry("cell", 2, "## Plots", 13, 14, *plots),
        OutlineEntry("cell", 2, "plot(df)", 15, 17, 5, "7", "7", "code", False),
        OutlineEntry("cell", 2, "\\raw", 18, 19, 6, "cell-6", "twice", "raw", False),
        OutlineEntry("heading", 1, "Appendix", 20, 22, *appendix),
        OutlineEntry("cell", 1, "# Appendix", 20, 22, *appendix),
        OutlineEntry("heading", 2, "Details", 22, 22, *appendix),
    ]
    assert found.outline[2].to_json() == {
        "kind": "cell",
        "level": 1,
        "title": "import pandas as pd",
        "first": 4,
        "last": 7,
        "cell": 1,
        "handle": "load",
        "id": "load",
        "type": "code",
        "has_outputs": True,
    }


def test_the_outline_of_a_cell_with_outputs_too_deep_to_decode_says_that_it_has_some() -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    shallow = book(cell("code", "x", outputs=["HERE"])).to_bytes()
    view = render_text(Notebook(shallow.replace(b'"HERE"', deep)))
    assert [entry.has_outputs for entry in select(view, "outline").outline] == [True]


def test_every_line_of_the_outline_can_be_asked_for(notebook: Notebook) -> None:
    view = render_text(notebook)
    for entry in select(view, "outline").outline:
        shown = select(view, f"{entry.first}-{entry.last}")
        wanted = view.lines[entry.first - 1 : entry.last]
        assert shown.text == text(*wanted)


RAW = '{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n'


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [
        ("raw", [1, 2, 3, 4, 5, 6]),
        ("2-3:raw", [2, 3]),
        ("raw:2-3", [2, 3]),
        ("5-:raw", [5, 6]),
        ("1,6:raw", [1, 6]),
        ("6-99:raw", [6]),
    ],
)
def test_with_raw_the_lines_are_those_of_the_file(selector: str, numbers: list[int]) -> None:
    found = select_raw(RAW, selector)
    assert [line.number for line in found.lines if not line.context] == numbers
    assert found.text == text(*(RAW.split("\n")[n - 1] for n in numbers))
    assert (found.total_lines, found.total_cells) == (6, None)


def test_the_text_and_the_file_are_not_mixed_up(notebook: Notebook) -> None:
    for selector in ("raw", "5:raw"):
        with pytest.raises(InvalidSelector):
            select(render_text(notebook), selector)
    for selector in ("5", "outline", "cell=load", "7:raw"):
        with pytest.raises(InvalidSelector):
            select_raw(RAW, selector)
