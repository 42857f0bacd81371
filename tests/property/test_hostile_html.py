"""HTML becomes text that reads well, however hostile it is."""

from __future__ import annotations

import time

import pytest

from cellwright.outputs.html import html_to_text, read_html
from cellwright.outputs.tables import Grid


@pytest.mark.all
def test_a_table_of_too_many_cells_is_cut_and_counted() -> None:
    wide = "<tr>" + "<td>x" * 1000
    (grid,) = read_html("<table>" + wide + "<tr><td>x" * 20_000)
    assert isinstance(grid, Grid)
    assert len(grid.rows) == 1001
    assert grid.more_rows == 20_001 - 1001
    assert all(len(row.cells) == 1000 for row in grid.rows)


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 40_000,
        "<b>" * 60_000,
        "<table><tr><td>" * 10_000,
        "<ul><li>" * 20_000,
        "<a href='http://x'>" * 10_000 + "x" + "</a>" * 10_000,
        "<!--" * 50_000,
        "<p title='" * 20_000,
        "<" * 200_000,
        "</td>x" * 30_000,
        "<table><td>" + "</td>x" * 30_000,
        "<table>" + "<tr><th>x" * 20_000,
        "<table><thead>" + "<tr><th>x" * 20_000,
        "<td colspan=1000 rowspan=1000>x" * 60_000,
        "<table>" + "<td colspan=1000 rowspan=1000>x" * 20_000,
        "&#" + "9" * 1_900_000 + ";",
        "<pre>" + "x" * 1_900_000,
        "<tr><td>cell</td></tr>" * 100_000,
        pytest.param("<tr><td>cell</td></tr>" * 2_500_000, marks=pytest.mark.all),
    ],
    ids=lambda html: html[:24],
)
def test_hostile_html_is_bounded_in_time_and_size(html: str) -> None:
    started = time.thread_time()  # of this thread alone: the machine may be busy
    text = html_to_text(html)
    assert time.thread_time() - started < 30
    assert len(text) < 5_000_000
