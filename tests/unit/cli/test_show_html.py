"""HTML outputs as texts and tables."""

from __future__ import annotations

import time

import pytest
from rich.text import Text

from cellwright.cli.render.tables import is_mostly_table, read_html
from cellwright.outputs.html import HtmlTag, walk_tags
from cellwright.outputs.tables import Grid
from tests.unit.cli import show_samples as make
from tests.unit.cli.show_rendering import outputs


def blocks(html: str, most: int = 100_000) -> list[str | list[list[str]]]:
    """Texts, and tables as lists of rows."""
    return [
        block.plain if isinstance(block, Text) else [row.cells for row in block.rows]
        for block in read_html(html, most)
    ]


def grid(html: str) -> Grid:
    (found,) = read_html(html, 100_000)
    assert isinstance(found, Grid)
    return found


# -- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "seen"),
    [
        ("", []),
        ("plain", ["plain"]),
        ("<p>one</p><p>two</p>", ["one", "two"]),
        ("a  \n\t b<br>c", ["a b\nc"]),
        ("<b>a</b> <i>b</i>", ["a b"]),
        ("<style>p { x }</style><script>if (a<b) alert('</p>')</script>x", ["x"]),
        ("<svg><text>no</text></svg>yes", ["yes"]),
        ("<!-- <p>no</p> --><!DOCTYPE html><?php no ?>yes", ["yes"]),
        ("1 < 2 &amp; 3 &gt; 2 &copy; &#65;", ["1 < 2 & 3 > 2 © A"]),
        ("<ul><li>a<li><p>b</p><ul><li>c</ul></ul>", ["• a\n• b\n  • c"]),
        ("<ol><li>a</li><li>b</li></ol>after", ["1. a\n2. b", "after"]),
        ("<pre>a\n  b</pre>", ["a\n  b"]),
        ('<a href="https://e.com">text</a>', ["text (https://e.com)"]),
        ('<a href="https://e.com">https://e.com</a>', ["https://e.com"]),
        ('<a href="javascript:alert(1)">x</a>', ["x"]),
        ('<img src="data:image/png;base64,AAAA" alt="a cat">', ["[image: a cat]"]),
        ("<audio controls src=x></audio>", ["[audio]"]),
        ("<p title='a > b'>x", ["x"]),
        ("</p></td></table></ul></pre></b>x", ["x"]),
        ("<p", []),
        ("x<!-- never closed", ["x"]),
        ("<script>never closed", []),
        ("a &#99999999999; &#xD800; &nosuch; b", ["a \ufffd \ufffd &nosuch; b"]),
    ],
)
def test_html_becomes_readable_text(html: str, seen: list[str]) -> None:
    assert blocks(html) == seen


def test_headings_and_strong_words_are_bold() -> None:
    title, text = read_html("<h2>Title</h2><p>a <strong>b</strong></p>", 1000)
    assert isinstance(title, Text)
    assert isinstance(text, Text)
    assert [str(span.style) for span in title.spans] == ["bold"]
    assert [(span.start, span.end) for span in text.spans] == [(2, 3)]


def test_attributes_are_found_whatever_their_quotes() -> None:
    parts = list(walk_tags("<A HREF='x&amp;y' class=c alt=z><td colspan=\"2\" data-href=no>"))
    assert parts[:2] == [
        HtmlTag("a", False, {"href": "x&y", "alt": "z"}),
        HtmlTag("td", False, {"colspan": "2"}),
    ]


# -- tables -------------------------------------------------------------------------------------


def test_a_data_frame_has_a_head_an_index_and_a_word_below() -> None:
    table, below = read_html(make.FRAME, 100_000)
    assert isinstance(table, Grid)
    assert isinstance(below, Text)
    assert [row.is_header for row in table.rows] == [True, False, False, False, False]
    assert [row.labels for row in table.rows] == [0, 1, 1, 1, 1]
    assert table.rows[0].cells == ["", "region", "units", "revenue", "share", "note"]
    assert table.rows[2].cells[-1] == "new depot & crew"
    assert below.plain == "4 rows × 5 columns"


def test_cells_that_span_leave_their_other_places_empty() -> None:
    found = grid(
        "<table><thead><tr><th rowspan=2>k</th><th colspan=2>both</th></tr>"
        "<tr><th>a</th><th>b</th></tr></thead>"
        "<tr><th rowspan=2>x</th><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>"
    )
    assert [row.cells for row in found.rows] == [
        ["k", "both", ""],
        ["", "a", "b"],
        ["x", "1", "2"],
        ["", "3", "4"],
    ]
    assert [row.is_header for row in found.rows] == [True, True, False, False]
    assert [row.labels for row in found.rows] == [0, 0, 1, 1]


@pytest.mark.parametrize("span", ["0", "-1", "x", "", "999999999999", "1.5"])
def test_a_senseless_span_is_tolerated(span: str) -> None:
    found = grid(f"<table><tr><td colspan='{span}' rowspan='{span}'>a<td>b</tr><tr><td>c</table>")
    assert found.rows[0].cells[0] == "a"
    assert len(found.rows[0].cells) <= 101


def test_rows_without_a_head_or_closing_tags_are_rows() -> None:
    assert blocks("<table><tr><td>a<td>b<tr><td>c") == [[["a", "b"], ["c", ""]]]
    assert blocks("<table><tr><th>h<th>i<tr><td>a<td>b</table>x") == [
        [["h", "i"], ["a", "b"]],
        "x",
    ]


def test_a_table_around_a_table_is_only_layout() -> None:
    html = "<table><tr><td>left</td><td><table><tr><td>1</td></tr></table></td></tr></table>"
    assert blocks(html) == ["left", [["1"]]]


def test_a_caption_stands_before_its_table() -> None:
    assert blocks("<table><caption>Title</caption><tr><td>1</td></tr></table>") == [
        "Title",
        [["1"]],
    ]


def test_an_empty_table_is_none() -> None:
    assert blocks("<table><tr><td> </td></tr></table>") == []
    assert blocks("<table></table>") == []


def test_a_table_beside_much_text_is_not_what_it_is_about() -> None:
    table = "<table><tr><td>1</td></tr></table>"
    assert is_mostly_table(read_html(f"{table}<p>1 row</p>", 1000))
    assert not is_mostly_table(read_html(f"{table}<p>{'text ' * 30}</p>", 1000))
    assert not is_mostly_table(read_html("<p>text</p>", 1000))


def test_rows_that_were_not_read_are_counted() -> None:
    html = "<table>" + "<tr><td>1</td></tr>" * 1000 + "</table>"
    found = read_html(html, 1000)[0]
    assert isinstance(found, Grid)
    assert len(found.rows) + found.more_rows == 1000


# -- how tables look ----------------------------------------------------------------------------


def shown(html: str, width: int = 80, **options: bool) -> list[str]:
    return outputs(make.display({"text/html": html, "text/plain": "plain"}), width=width, **options)


def test_numbers_stand_right_and_words_left() -> None:
    html = (
        "<table><tr><th>word</th><th>number</th></tr><tr><td>a</td><td>1</td></tr>"
        "<tr><td>long one</td><td>-1,234.5</td></tr><tr><td></td><td>NaN</td></tr></table>"
    )
    assert shown(html) == [
        "│ word        number",
        "│ ──────────────────",
        "│ a                1",
        "│ long one  -1,234.5",
        "│                NaN",
    ]


def test_columns_that_do_not_fit_are_left_out_and_counted() -> None:
    lines = shown(make.WIDE, width=60)
    assert lines[0] == "│    feature_00  feature_01  …  feature_22  feature_23"
    assert lines[-1] == "… 20 more columns (--width shows them)"
    assert "more columns" not in shown(make.WIDE, width=400)[-1]


def test_long_cells_are_cut_before_columns_are_left_out() -> None:
    html = f"<table><tr><td>{'word ' * 20}</td><td>{'text ' * 20}</td><td>end</td></tr></table>"
    (line,) = shown(html, width=60)
    assert line.count("…") == 2
    assert line.endswith("  end")


def test_rows_beyond_the_limit_are_counted() -> None:
    html = "<table>" + "".join(f"<tr><td>{n}</td></tr>" for n in range(40)) + "</table>"
    assert shown(html)[-1] == "… 25 more rows (--expanded shows them)"
    assert len(shown(html, expanded=True)) == 40


def test_wide_characters_keep_columns_aligned() -> None:
    html = "<table><tr><td>東京</td><td>x</td></tr><tr><td>abcd</td><td>y</td></tr></table>"
    assert shown(html) == ["│ 東京  x", "│ abcd  y"]


# -- hostile ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        *("<!--", "<a ", "</", "<![", "<a href='", "<td colspan=99>", "<table>", "<b>", "<li>"),
        *(
            "<tr><td rowspan=99>",
            "<script>",
            "<",
            "<a b=\"'>",
            "<ul>",
            "x<br>",
            "</b>",
            "<svg>",
            "&#",
        ),
    ],
)
def test_hostile_html_takes_no_time(part: str) -> None:
    html = part * (100_000 // len(part))
    start = time.process_time()
    read_html(html, len(html))
    assert time.process_time() - start < 5  # minutes, with the standard library's parser
