"""HTML outputs as styled texts and tables."""

from __future__ import annotations

from typing import TypeAlias

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.layout import BOLD, DIM
from cellwright.outputs import html
from cellwright.outputs.tables import Grid

Block: TypeAlias = Text | Grid

_STYLES = {
    "bold": BOLD,
    "italic": Style(italic=True),
    "code": Style(color="cyan"),
    "strike": Style(strike=True),
    "dim": DIM,
}


def read_html(source: str, most_characters: int) -> list[Block]:
    """The paragraphs and tables of a piece of HTML, without its own styles and scripts.

    Only so much of it is read; rows of a table beyond that are counted.
    """
    return [
        block if isinstance(block, Grid) else _styled(block)
        for block in html.read_html(source, most_characters)
    ]


def is_about_tables(blocks: list[Block]) -> bool:
    """Whether there is a table, and not only beside more text than it holds."""
    beside = sum(len(block) for block in blocks if isinstance(block, Text))
    inside = sum(block.characters for block in blocks if isinstance(block, Grid))
    return inside > 0 and beside <= max(40, inside)


def _styled(paragraph: html.Paragraph) -> Text:
    text = Text()
    for run, names in paragraph.runs:
        text.append(run, Style.combine(_STYLES[name] for name in names) if names else None)
    return text
