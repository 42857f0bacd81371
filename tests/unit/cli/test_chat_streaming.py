"""Markdown as it comes: finished blocks stand, the open one is drawn over, no line is lost."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellwright.cli.chat.terminal import Canvas, LiveLines, MarkdownBlocks, TerminalDisplay
from cellwright.cli.render.cards.frame import INDENT
from cellwright.cli.render.layout import Margin
from cellwright.cli.render.markdown import MarkdownView
from cellwright.cli.render.screen import ScreenView, make_screen
from tests.unit.cli.cards import card, ran
from tests.unit.cli.glass import Glass
from tests.unit.cli.show_rendering import SGR, draw

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = """# What we found

The mean is **16.0**, and `total` is 96. This paragraph is long enough to be folded at eighty \
columns, and to be folded elsewhere, or not at all, at a hundred and forty of them.
It goes on in a line of its own.

Setext
------

| region | units | a longer remark about it |
|:-------|------:|:-------------------------|
| north  |  1204 | steady |
| south  |   987 | new depot, and a crew that is new as well |
| 東京   |  1044 | 🚀 up |

1. first
2. second
   - below it
   - and once more

   with a paragraph
3. third

```python
def mean(values):
    # a blank line and a heading inside do not end the block

    return sum(values) / len(values)
```

> quoted
> twice

***

Done: *all* of it.
""" + "\n".join(f"\n- item {number}\n" for number in range(30))  # more than a screen


class File:
    """What rich writes to."""

    def __init__(self, glass: Glass) -> None:
        self.write = glass.write

    def flush(self) -> None:
        pass


def display_on(glass: Glass, *, colors: bool = False) -> TerminalDisplay:
    view = ScreenView(width=glass.columns, colors=colors)
    screen = make_screen(File(glass), glass.columns, colored=colors)  # type: ignore[arg-type]
    return TerminalDisplay(Canvas(screen, view, glass.size))


def expected(text: str, columns: int) -> list[str]:
    part = Margin(MarkdownView(text, ScreenView(width=columns - len(INDENT))), INDENT)
    return ["", *(line.rstrip() for line in draw(part, columns).splitlines())]


def cut(text: str, places: Sequence[int]) -> list[str]:
    marks = sorted({0, *(place % len(text) for place in places), len(text)})
    return [text[first:last] for first, last in pairwise(marks)]


# -- which blocks are finished ------------------------------------------------------------------


@given(st.lists(st.integers(0, 10_000), max_size=60))
def test_blocks_are_the_same_however_the_text_was_cut(places: list[int]) -> None:
    blocks = MarkdownBlocks()
    found = [block for piece in cut(TEXT, places) for block in blocks.feed(piece)] + blocks.finish()
    assert "\n".join(found) == TEXT
    whole = MarkdownBlocks()
    assert found == whole.feed(TEXT) + whole.finish()


@given(st.text(alphabet="ab#-*`>|1. \n", max_size=120), st.lists(st.integers(0, 200), max_size=9))
def test_nothing_is_lost_of_any_text(text: str, places: list[int]) -> None:
    if not text:
        return
    blocks = MarkdownBlocks()
    found = [block for piece in cut(text, places) for block in blocks.feed(piece)] + blocks.finish()
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_block_is_open_until_another_begins() -> None:
    blocks = MarkdownBlocks()
    assert blocks.feed("one") == []
    assert blocks.feed("\n\n") == []
    assert blocks.feed("t") == ["one\n"]
    assert blocks.feed("wo\n---\n") == []
    assert blocks.unfinished == "two\n---\n"
    assert blocks.feed("```\n\ncode\n\n") == ["two\n---"]
    assert blocks.feed("# no heading\n") == []
    assert blocks.feed("```\n") == []
    assert blocks.finish() == ["```\n\ncode\n\n# no heading\n```\n"]
    assert blocks.finish() == []


# -- what a terminal shows of it ----------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 140])
@settings(max_examples=15)
@given(places=st.lists(st.integers(0, 10_000), min_size=5, max_size=60))
async def test_a_streamed_answer_reads_as_one_that_was_printed_at_once(
    columns: int, places: list[int]
) -> None:
    glass = Glass(columns, 24)
    display = display_on(glass)
    for piece in cut(TEXT, places):
        display.add_text(piece)
        display._draw()
    display.end_turn()
    assert glass.text == expected(TEXT, columns)


@pytest.mark.parametrize("rows", [4, 8, 24, 60])
async def test_a_block_longer_than_the_screen_loses_no_line(rows: int) -> None:
    text = "```\n" + "\n".join(f"line {number}" for number in range(100)) + "\n```\n\nafter"
    glass = Glass(80, rows)
    display = display_on(glass)
    for piece in cut(text, range(0, 1000, 7)):
        display.add_text(piece)
        display._draw()
    display.end_turn()
    assert glass.text == expected(text, 80)


async def test_what_has_not_changed_is_not_drawn_again() -> None:
    glass = Glass(80, 24)
    display = display_on(glass)
    display.add_text("```\n" + "\n".join(f"line {number}" for number in range(15)))
    display._draw()
    before = len(glass.writes)
    display._draw()
    assert len(glass.writes) == before
    display.add_text("0")
    display._draw()
    (last,) = glass.writes[before:]
    assert "line 140" in SGR.sub("", last)
    assert "line 13" not in last


async def test_colours_do_not_change_what_is_read() -> None:
    glass = Glass(80, 24)
    display = display_on(glass, colors=True)
    for piece in cut(TEXT, range(0, 3000, 50)):
        display.add_text(piece)
        display._draw()
    display.end_turn()
    plain = "\n".join(expected(TEXT, 80)).replace("`", "")
    assert "\n".join(glass.text) == plain


async def test_a_model_cannot_drive_the_terminal() -> None:
    glass = Glass(80, 24)
    display = display_on(glass)
    display.add_text("\x1b[2J\x1b]0;owned\x07 \u202eabc\n\n\x1b[1;1H")
    display._draw()
    display.end_turn()
    assert "␛[2J␛]0;owned␇ <U+202E>abc" in "\n".join(glass.text)


async def test_another_width_in_the_middle_loses_nothing() -> None:
    glass = Glass(80, 24)
    display = display_on(glass)
    display.add_text("a " * 100)
    display._draw()
    glass.columns = 140
    display.add_text("b " * 10)
    display._draw()
    display.end_turn()
    text = " ".join(" ".join(glass.text).split())
    assert text.endswith("a " * 100 + "b " * 9 + "b")  # above it stands what was drawn before


# -- calls between --------------------------------------------------------------------------------


async def test_a_card_is_drawn_over_until_its_call_is_over() -> None:
    glass = Glass(80, 24)
    display = display_on(glass)
    display.add_text("I run it.")
    one = card("RunNotebookCells", {"cellIds": ["load", "sum"]})
    display.begin_call(one)
    display._draw()
    for step in range(40):
        one.progress({"cell": 1, "handle": "load", "text": f"step {step}\n"})
        display.update_call(one)
        display._draw()
    assert "  │ step 39" in glass.text
    one.end(ran(("load", 1, "ok", 1.0), ("sum", 2, "ok", 1.0)), one.before)
    display.end_call(one)
    display.add_text("Done.")
    display.end_turn()
    assert glass.text == [
        "",
        "    I run it.",
        "",
        " 1  Ran 2 cells  2, 3  sales.ipynb  ✓ complete  2.00 s ─────────────────────────",
        "  ✓ cell 2  load  complete  1.00 s",
        "  │ 42",
        "  ✓ cell 3  sum   complete  1.00 s",
        "  │ 42",
        "",
        "    Done.",
    ]


async def test_what_we_say_meanwhile_stands_above_the_card() -> None:
    glass = Glass(80, 24)
    display = display_on(glass)
    one = card("RunNotebookCells", {"cellIds": ["load"]})
    display.begin_call(one)
    display._draw()
    display.print_note("Interrupting the kernel")
    display.update_call(one)
    display._draw()
    assert glass.text[0] == "    Interrupting the kernel"
    assert glass.text[2].startswith(" 1  Run cell 2  load")


async def test_that_we_wait_is_said_and_taken_back() -> None:
    glass = Glass(80, 24)
    display = display_on(glass)
    display._waits_since = 0.0
    display._draw()
    assert "● waiting" in glass.text[1]
    display._waits_since = None
    display.add_text("Hello")
    display.end_turn()
    assert glass.text == ["", "    Hello"]


def test_lines_beyond_the_screen_are_only_drawn_when_they_stand() -> None:
    glass = Glass(80, 10)
    live = LiveLines(glass.write, glass.size)
    lines = [f"line {number}" for number in range(30)]
    live.draw(lines)
    assert glass.text == lines[-8:]
    live.finish(lines)
    assert glass.text == lines
