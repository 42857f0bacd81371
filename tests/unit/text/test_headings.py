"""Headings of markdown cells, and the sections that they begin."""

from __future__ import annotations

import pytest

from cellwright.text.headings import find_headings, plain_title
from cellwright.text.view import render_text
from tests.unit.text.samples import book, cell, text


def found_in(source: str) -> list[tuple[int, int, str]]:
    """Line of the source counted from 1, level and title."""
    return [
        (h.line - 1, h.level, h.title)
        for h in find_headings(render_text(book(cell("markdown", source))))
    ]


@pytest.mark.parametrize(
    ("line", "level", "title"),
    [
        ("# One", 1, "One"),
        ("###### Six", 6, "Six"),
        ("   ## Indented", 2, "Indented"),
        ("#\tTab", 1, "Tab"),
        ("##  Spaces  inside  ", 2, "Spaces  inside"),
        ("# Closed #", 1, "Closed"),
        ("## Closed ######  ", 2, "Closed"),
        ("# C#", 1, "C#"),
        ("# # x", 1, "# x"),
        ("#", 1, ""),
        ("### ###", 3, ""),
        ("# Windows\r", 1, "Windows"),
        ("# %% [code]", 1, "%% [code]"),
    ],
)
def test_a_line_of_hashes_and_text_is_a_heading(line: str, level: int, title: str) -> None:
    assert found_in(line) == [(1, level, title)]


@pytest.mark.parametrize(
    "line", ["#One", "####### Seven", "    # code", "\t# code", "\\# x", "text # x", "#hashtag x"]
)
def test_other_lines_with_hashes_are_none(line: str) -> None:
    assert found_in(line) == []


def test_headings_in_fenced_code_are_none() -> None:
    source = text(
        *("# A", "```python", "# comment", "~~~", "# comment", "``", "```", "# B"),
        *("~~~~", "# c", "~~~", "# c", "~~~~  ", "# C", "```x``` is no fence", "# D"),
        *("```", "# never closed"),
    )
    assert [title for _, _, title in found_in(source)] == ["A", "B", "C", "D"]


def test_underlined_paragraphs_are_headings() -> None:
    source = text(
        *("Title", "=====", "text", "", "Sub title", "---", "two", "lines", "===", ""),
        *("- item", "---", "", "> quote", "---", "", "| table |", "---", "", "---", "x", "--"),
    )
    assert found_in(source) == [(1, 1, "Title"), (5, 2, "Sub title"), (7, 1, "two lines")]


def test_a_paragraph_ends_where_code_begins() -> None:
    assert found_in(text("words", "```", "code", "```", "---")) == []
    assert found_in(text("words", "# Title", "---")) == [(2, 1, "Title")]


def test_headings_are_found_where_lines_end_as_on_windows() -> None:
    source = text("Title\r", "===\r", "```\r", "# code\r", "```\r", "## Sub ##\r")
    assert found_in(source) == [(1, 1, "Title"), (6, 2, "Sub")]


def test_only_markdown_cells_have_headings() -> None:
    assert find_headings(render_text(book(cell("code", "# a"), cell("raw", "# b")))) == []
    assert find_headings(render_text(book())) == []


def test_a_section_goes_up_to_the_next_heading_of_its_level_or_a_higher_one() -> None:
    view = render_text(
        book(
            cell("code", "import x"),  # 1-2
            cell("markdown", "# A"),  # 3-4
            cell("code", "a"),  # 5-6
            cell("markdown", "intro\n## A.1\ntext"),  # 7-10
            cell("code", "a1\na1"),  # 11-13
            cell("markdown", "\n### A.1.1\n## A.2"),  # 14-17
            cell("markdown", "# B\n## B.1"),  # 18-20
            cell("raw", ""),  # 21
        )
    )
    assert [(h.title, h.line, h.first, h.last, h.cell) for h in find_headings(view)] == [
        ("A", 4, 3, 17, 1),
        ("A.1", 9, 9, 16, 3),
        ("A.1.1", 16, 14, 16, 5),
        ("A.2", 17, 17, 17, 5),
        ("B", 19, 18, 21, 6),
        ("B.1", 20, 20, 21, 6),
    ]


@pytest.mark.parametrize(
    "title",
    [
        "Load the data",
        "LOAD  the Data",
        "**Load** the `data`",
        "Load [the data](https://example.com/a)",
        '<a id="load"></a>Load the data',
    ],
)
def test_a_title_is_known_without_its_markup(title: str) -> None:
    assert plain_title(title) == "load the data"
