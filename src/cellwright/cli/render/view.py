"""How a notebook is shown: width, colours, pictures, and how much of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    ImageMode = Literal["kitty", "iterm", "sixel", "blocks", "none"]

# The length of a collapsed output; sources get twice that.
COLLAPSED_LINES = 15
# Longer lines of prose are hard to read.
PROSE_WIDTH = 100
EVERYTHING = sys.maxsize
# Width and height of a character in pixels, for terminals that do not report them.
CELL_SIZE = (10, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLimits:
    """How much is shown; the rest is only counted."""

    source_lines: int
    output_lines: int
    line_characters: int
    outputs: int
    table_rows: int
    html_characters: int
    json_depth: int
    json_items: int
    image_rows: int


COLLAPSED = ViewLimits(
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
EXPANDED = ViewLimits(
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
    """Lets each hint pass once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, words: str) -> list[str]:
        """The hint, or nothing if it was taken before."""
        is_new = words not in self._taken
        self._taken.add(words)
        return [words] if is_new else []


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenView:
    """How to show a notebook."""

    width: int
    expanded: bool = False
    outputs: bool = True
    colors: bool = False
    images: ImageMode = "none"
    cell_size: tuple[int, int] = CELL_SIZE
    screen_rows: int = EVERYTHING
    once: OnceFilter = field(default_factory=OnceFilter, compare=False)

    @property
    def limits(self) -> ViewLimits:
        """How much to show."""
        return EXPANDED if self.expanded else COLLAPSED

    @property
    def image_rows(self) -> int:
        """The most rows of a picture: it must not scroll while it is drawn."""
        return max(1, min(self.limits.image_rows, self.screen_rows - 2))
