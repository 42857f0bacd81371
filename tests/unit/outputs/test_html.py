"""HTML becomes text that reads well, however hostile it is."""

from __future__ import annotations

import pytest

from cellwright.outputs.html import Paragraph, html_to_text, read_html
from tests.unit.outputs.hostile import FORBIDDEN, SEQUENCES

FRAME = """<div><style scoped>.dataframe td { x }</style>
<table border="1" class="dataframe"><thead>
<tr style="text-align: right;"><th></th><th>name</th><th>score</th></tr></thead><tbody>
<tr><th>0</th><td>Ada</td><td>1.50</td></tr>
<tr><th>1</th><td>Grace Hopper</td><td>22.25</td></tr>
<tr><th>2</th><td>東京</td><td>NaN</td></tr>
</tbody></table><p>3 rows × 2 columns</p></div>"""

MULTI = """<table><thead>
<tr><th></th><th></th><th colspan="2">2024</th></tr>
<tr><th>city</th><th>kind</th><th>min</th><th>max</th></tr></thead><tbody>
<tr><th rowspan="2">Rome</th><th>a</th><td>1</td><td>2</td></tr>
<tr><th>b</th><td>3</td><td>4</td></tr></tbody></table>"""


def test_a_data_frame_is_an_aligned_table() -> None:
    assert html_to_text(FRAME).split("\n") == [
        "   name          score",
        "─  ────────────  ─────",
        "0  Ada            1.50",
        "1  Grace Hopper  22.25",
        "2  東京            NaN",
        "",
        "3 rows × 2 columns",
    ]


def test_spans_of_rows_and_columns_are_laid_out() -> None:
    assert html_to_text(MULTI).split("\n") == [
        "            2024",
        "city  kind   min  max",
        "────  ────  ────  ───",
        "Rome  a        1    2",
        "      b        3    4",
    ]


def test_a_polars_frame_keeps_its_shape_and_types() -> None:
    html = (
        "<div><style>x</style><small>shape: (1, 2)</small><table border='1' class='dataframe'>"
        "<thead><tr><th>a</th><th>b</th></tr><tr><td>i64</td><td>str</td></tr></thead>"
        "<tbody><tr><td>1</td><td>&quot;x&quot;</td></tr></tbody></table></div>"
    )
    assert html_to_text(html).split("\n") == [
        "shape: (1, 2)",
        "",
        "  a  b",
        "i64  str",
        "───  ───",
        '  1  "x"',
    ]


def test_a_caption_stands_above_its_table() -> None:
    html = "<table><caption>A data.frame: 1 × 1</caption><tr><td>1</td></tr></table>"
    assert html_to_text(html) == "A data.frame: 1 × 1\n\n1"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("<h1>Title</h1><h3>Part</h3>text", "# Title\n\n### Part\n\ntext"),
        ("<ul><li>a<li>b<ol><li>c</ol></ul>", "• a\n• b\n  1. c"),
        ('<a href="https://e.com">text</a>', "text (https://e.com)"),
        ('<a href="https://e.com">https://e.com</a>', "https://e.com"),
        ("<pre>a\n   b</pre>", "a\n   b"),
        ("<script>x</script><style>y</style>z", "z"),
        ("<p>1 &lt; 2 &amp; 3</p>", "1 < 2 & 3"),
        ('<img alt="a cat" src="data:x">', "[image: a cat]"),
        ("<b>a</b> <i>b</i><br>c", "a b\nc"),
        ("<table><tr><td>1", "1"),
        ("<table></table>", ""),
    ],
)
def test_html_reads_as_text(html: str, text: str) -> None:
    assert html_to_text(html) == text


def test_styles_are_told_to_those_who_draw() -> None:
    (paragraph,) = read_html("a <b>b <i>c</i></b>")
    assert isinstance(paragraph, Paragraph)
    assert paragraph.runs == [("a ", ()), ("b ", ("bold",)), ("c", ("bold", "italic"))]
    assert paragraph.length == len(paragraph.text) == 5


def test_a_long_table_keeps_both_ends_and_counts_the_rest() -> None:
    rows = "".join(f"<tr><td>{number}</td></tr>" for number in range(1000))
    lines = html_to_text(f"<table>{rows}</table>").split("\n")
    assert len(lines) == 201
    assert lines[134] == "[800 rows left out]"
    assert (lines[0].strip(), lines[-1].strip()) == ("0", "999")


def test_rows_that_are_not_read_are_counted() -> None:
    rows = "".join(f"<tr><td>{number:05}</td></tr>" for number in range(1000))
    text = html_to_text(f"<table>{rows}</table>", 2400)
    assert "00102\n[897 more rows]\n" in text
    assert text.endswith("characters of HTML, not all of them read]")


def test_no_html_brings_anything_hostile() -> None:
    for _, evil, _ in SEQUENCES:
        html = f"<p>{evil}</p><table><tr><th>{evil}<td>{evil}</table><a href='http://{evil}'>x</a>"
        assert FORBIDDEN.search(html_to_text(html)) is None
    assert FORBIDDEN.search(html_to_text("&#27;[2J&#x9b;&#x202e;&zwj;&#0;")) is None
