"""Markdown as text for a terminal."""

from __future__ import annotations

import pytest

from cellwright.cli.render.markdown import MarkdownView, protect_formulas
from cellwright.cli.render.screen import ScreenView
from tests.unit.cli.show_rendering import SGR, draw


def shown(source: str, width: int = 60) -> list[str]:
    return draw(MarkdownView(source, ScreenView(width=width)), width).splitlines()


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("# One", ["One", "═══"]),
        ("## Two *words*", ["Two words", "─────────"]),
        ("### Three", ["### Three"]),
        ("Title\n===", ["Title", "═════"]),
        ("a\nb  \nc", ["a b", "c"]),
        ("one\n\ntwo", ["one", "", "two"]),
        ("**b** *i* ~~s~~ `c`", ["b i s `c`"]),
        ("[text](https://e.com)", ["text (https://e.com)"]),
        ("[see *this*][1]\n\n[1]: https://e.com", ["see this (https://e.com)"]),
        ("<https://e.com>", ["https://e.com"]),
        ("[up](#top) [me](mailto:a@b.c)", ["up me (mailto:a@b.c)"]),
        (
            "![a cat](cat.png) [![badge](b.svg)](https://e.com)",
            ["[image: a cat] [image: badge] (https://e.com)"],
        ),
        ("![](attachment:x.png)", ["[image: attachment:x.png]"]),
        ("- a\n- b\n  - c\n\n    more\n", ["• a", "• b", "  • c", "", "    more"]),
        ("3. a\n4. b", ["3. a", "4. b"]),
        ("- a\n\n- b", ["• a", "", "• b"]),
        ("- [ ] todo\n-", ["• [ ] todo", "•"]),
        ("> quote\n> > more", ["▎ quote", "▎", "▎ ▎ more"]),
        ("```python\nx = 1\n\ny\n```", ["  x = 1", "", "  y"]),
        ("    indented", ["  indented"]),
        ("a\n\n---\n\nb", ["a", "", "─" * 60, "", "b"]),
        ("<b>x</b> y<br>z &amp; &copy;", ["x y", "z & ©"]),
        ("<div>in <b>HTML</b></div>\n\nout", ["in HTML", "", "out"]),
        ("<table><tr><td>1</td><td>2</td></tr></table>", ["1  2"]),
        ("<!-- nothing -->", []),
        (
            "| a | b |\n|---|--:|\n| x | 1 |\n| long | 22 |",
            ["a      b", "────────", "x      1", "long  22"],
        ),
        ("[bold]x[/bold] :smile: {x}", ["[bold]x[/bold] :smile: {x}"]),
        ("", []),
    ],
)
def test_markdown_reads_well_without_colours(source: str, lines: list[str]) -> None:
    assert shown(source) == lines


def test_prose_is_no_wider_than_is_good_to_read() -> None:
    assert max(map(len, shown("word " * 100, 200))) <= 100
    assert len(shown("word " * 20, 40)) == 3


def test_items_and_quotes_go_on_below_themselves() -> None:
    assert shown("- " + "word " * 12, 40) == [
        "• word word word word word word word",
        "  word word word word word",
    ]
    assert all(line.startswith("▎ word") for line in shown("> " + "word " * 12, 40))


def test_long_cells_of_a_table_are_wrapped() -> None:
    lines = shown(f"| a | b |\n|---|---|\n| x | {'word ' * 20} |", 40)
    assert len(lines) > 4
    assert max(map(len, lines)) <= 40


def test_looks_are_styles_when_there_are_colours() -> None:
    view = ScreenView(width=60, colors=True)
    text = draw(
        MarkdownView("# T\n\n**b** `c` [l](u)\n\n```python\ndef f(): pass\n```", view), colors=True
    )
    assert "\x1b[1;34mT\x1b[0m" in text
    assert "\x1b[1mb\x1b[0m" in text
    assert "\x1b[36mc\x1b[0m" in text
    assert "\x1b[4ml\x1b[0m" in text
    assert "\x1b[35mdef\x1b[0m" in text
    assert "\x1b]8" not in text
    assert SGR.sub("", text).splitlines()[3] == "b c l (u)"


# -- formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("so $a_i * b_i \\\\ c*$ is *it*", ["so $a_i * b_i \\\\ c*$ is it"]),
        ("it costs $5 and *not* $6", ["it costs $5 and not $6"]),
        ("`$a*b*$` and $x^*$", ["`$a*b*$` and $x^*$"]),
        ("see\n$$\na_1 *= b \\\\\n$$\nthen", ["see", "", "  a_1 *= b \\\\", "", "then"]),
        ("$$E = m c^2$$", ["  E = m c^2"]),
        (
            "\\begin{align}\nx &= 1\n\\end{align}",
            ["  \\begin{align}", "  x &= 1", "  \\end{align}"],
        ),
        ("$$ never closed\n\n**b**", ["$$ never closed", "", "b"]),
        ("```\n$a*b*$\n$$\n```\n*x*", ["  $a*b*$", "  $$", "", "x"]),
        ("    $a*b*$", ["  $a*b*$"]),
    ],
)
def test_formulas_stay_as_they_were_written(source: str, lines: list[str]) -> None:
    assert shown(source) == lines


def test_text_without_formulas_is_left_alone() -> None:
    assert protect_formulas("*a* _b_") == "*a* _b_"
