"""How much of a notebook is shown, and how it is asked for."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    ImageMode = Literal["kitty", "iterm", "sixel", "blocks", "none"]

# The length of a collapsed output; sources get twice that.
COLLAPSED_LINES = 15
# Longer lines of prose are hard to read, however wide the terminal is.
PROSE_WIDTH = 100
EVERYTHING = sys.maxsize
# The width and height of a character in pixels, for terminals that do not tell.
CELL_SIZE = (10, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is shown before the rest is only counted."""

    source_lines: int
    output_lines: int
    line_characters: int
    outputs: int
    table_rows: int
    html_characters: int
    json_depth: int
    json_items: int
    image_rows: int


COLLAPSED = Limits(
    source_lines=2 * COLLAPSED_LINES,
    output_lines=COLLAPSED_LINES,
    line_characters=1_000,
    outputs=10,
    table_rows=COLLAPSED_LINES,
    html_characters=200_000,
    json_depth=2,
    json_items=5,
    image_rows=24,
)
EXPANDED = Limits(
    source_lines=EVERYTHING,
    output_lines=EVERYTHING,
    line_characters=EVERYTHING,
    outputs=EVERYTHING,
    table_rows=EVERYTHING,
    html_characters=20_000_000,
    json_depth=6,
    json_items=20,
    image_rows=60,
)


class OnceFilter:
    """Words that are said when they first matter, and not again."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, words: str) -> list[str]:
        """The words, or nothing if they have been said."""
        is_new = words not in self._said
        self._said.add(words)
        return [words] if is_new else []


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How somebody wants to see a notebook."""

    width: int
    expanded: bool = False
    outputs: bool = True
    colors: bool = False
    images: ImageMode = "none"
    cell_size: tuple[int, int] = CELL_SIZE
    screen_rows: int = EVERYTHING
    once: OnceFilter = field(default_factory=OnceFilter, compare=False)

    @property
    def limits(self) -> Limits:
        """How much is shown."""
        return EXPANDED if self.expanded else COLLAPSED

    @property
    def image_rows(self) -> int:
        """How high a picture may be: it must not scroll while it is drawn."""
        return max(1, min(self.limits.image_rows, self.screen_rows - 2))
