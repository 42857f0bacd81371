"""A page of an answer: what does not fit is counted."""

from __future__ import annotations

import re

from cellwright.tools.page import Page


def test_lines_that_have_no_room_are_counted() -> None:
    page = Page(300)
    page.say_all([f"line {number} of many" for number in range(500)], "lines")
    said = page.text().splitlines()
    found = re.fullmatch(r"LEFT OUT: (\d+) lines", said[-1])
    assert found is not None, said[-1]
    assert len(said) - 1 + int(found[1]) == 500
    assert len(said) > 10


def test_rows_that_are_counted_as_shown_are_shown_whole() -> None:
    rows = [f"{number} cell{number} 1-4 code x{number} = {number}" for number in range(2000)]
    page = Page(2000)
    shown = page.show_rows("rows", rows)
    assert 0 < shown < len(rows)
    assert page.text().split("\n")[1:-1] == rows[:shown]
