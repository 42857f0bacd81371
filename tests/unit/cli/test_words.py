"""A coloured diff shows which words of a line changed."""

from __future__ import annotations

import re

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellwright.cli.changes import fold_line, highlight_words

DIFF = """--- a/nb.ipynb
+++ b/nb.ipynb
@@ cell load (code, index 1) edited @@
 import os
-total = price * count
+total = price * number
"""


def spans(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is shown in reverse."""
    found = []
    reverse = False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", text):
        if piece.startswith("\x1b"):
            codes = piece[2:-1].split(";")
            reverse = "7" in codes if "0" not in codes and "27" not in codes else False
        elif piece:
            found.append((piece, reverse))
    return found


def changed_words(text: str) -> list[str]:
    return [piece for piece, reverse in spans(text) if reverse]


def test_only_the_words_that_differ_are_shown_in_reverse() -> None:
    assert changed_words("".join(highlight_words(DIFF))) == ["count", "number"]


def test_removed_lines_are_red_and_added_ones_green() -> None:
    shown = "".join(highlight_words(DIFF))
    assert click.style("-", fg="red") in shown
    assert click.style("+", fg="green") in shown
    assert click.style("--- a/nb.ipynb\n", bold=True) in shown
    assert click.style("@@ cell load (code, index 1) edited @@\n", fg="cyan") in shown
    assert " import os\n" in shown


def test_lines_that_have_hardly_a_word_in_common_are_coloured_as_a_whole() -> None:
    shown = "".join(highlight_words("-alpha beta gamma delta\n+one two, three! four?\n"))
    assert changed_words(shown) == []


@pytest.mark.parametrize("lines", ["-a b\n-c d\n+a x\n+c y\n", "-a b\n+a x\n-c d\n+c y\n"])
def test_blocks_of_equal_length_are_compared_line_by_line(lines: str) -> None:
    assert sorted(changed_words("".join(highlight_words(lines)))) == ["b", "d", "x", "y"]


def test_blocks_of_different_length_are_coloured_line_by_line() -> None:
    shown = "".join(highlight_words("-a b\n+a x\n+c\n"))
    assert changed_words(shown) == []
    assert click.style("-a b\n", fg="red") in shown


lines = st.lists(
    st.tuples(st.sampled_from("-+ @"), st.text("ab cd=()", max_size=12)).map("".join), max_size=12
)


@given(lines)
def test_colours_change_no_word(shown: list[str]) -> None:
    diff = "".join(f"{line}\n" for line in shown)
    assert click.unstyle("".join(highlight_words(diff))) == diff


@pytest.mark.parametrize("line", ["-- a comment in SQL", "++ x"])
def test_a_source_line_that_looks_like_a_file_name_is_still_a_change(line: str) -> None:
    """Removing `-- x` gives `--- x`, which is no name of a file."""
    sign = line[0]
    diff = f"--- a/nb.ipynb\n+++ b/nb.ipynb\n@@ cell x (raw, index 0) edited @@\n{sign}{line}\n"
    color = "red" if sign == "-" else "green"
    shown = "".join(highlight_words(diff))
    assert click.style(f"{sign}{line}\n", fg=color) in shown


def test_a_folded_line_keeps_its_colours_and_all_of_its_text() -> None:
    line = "".join(highlight_words(f"-{'a ' * 60}b\n+{'a ' * 60}c\n")).split("\n")[0]
    rows = fold_line(line, 40).split("\n")
    assert [len(click.unstyle(row)) <= 40 for row in rows] == [True] * 4
    assert all(row.startswith(" ↪ \x1b[31m") for row in rows[1:])
    assert "".join(click.unstyle(row).removeprefix(" ↪ ") for row in rows) == click.unstyle(line)
    assert changed_words("".join(rows)) == ["b"]
