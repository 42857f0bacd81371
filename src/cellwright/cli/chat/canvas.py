"""The terminal as a canvas: parts become lines, which stand for good or may still change."""

# itself imported on demand
from __future__ import annotations

import os
import sys
from dataclasses import replace

from cellwright.cli.chat.live import Live
from cellwright.cli.render.cards.cache import Drawn, lay_out
from cellwright.cli.render.cards.frame import INDENT, Frame
from cellwright.cli.render.layout import Gate, Margin
from cellwright.cli.render.markdown import MarkdownView
from cellwright.cli.render.screen import NARROWEST, PIPE_WIDTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import RenderableType

    from cellwright.cli.render.cards.card import Card
    from cellwright.cli.render.limits import View
    from cellwright.cli.render.screen import Screen

_HIGHEST_PICTURE = 18  # rows; on a card a picture is one thing among others


class Canvas:
    """Lines on a terminal, as wide as it is now.

    Args:
        screen: where they are printed.
        view: with which colours and pictures.
        size: columns and rows of the terminal now; by default it is asked.
    """

    def __init__(
        self, screen: Screen, view: View, size: Callable[[], tuple[int, int]] | None = None
    ) -> None:
        self._screen = screen
        self._measure = size or _size_of_stdout
        self._live = Live(self._write, self._size)
        self.view = view
        self.fit()

    def fit(self) -> None:
        """Go by the size that the terminal has now."""
        columns, rows = self._size()
        self._screen.width = columns
        self.view = replace(self.view, width=columns, screen_rows=min(rows, _HIGHEST_PICTURE))

    @property
    def frame(self) -> Frame:
        """What parts of a card stand beside."""
        return Frame(replace(self.view, width=max(1, self.view.width - len(INDENT))), "")

    def open(self, lines: list[str]) -> None:
        """Show lines that may still change, in place of those that are open."""
        self._live.draw(lines)

    def clear(self) -> None:
        """Take the open lines away."""
        self._live.settle(())

    def print(self, parts: Iterable[RenderableType]) -> None:
        """Print parts for good, in place of the open lines."""
        self.fit()
        found = lay_out(self._screen, parts, self.view.width)
        self._live.settle([line for part in found for line in self.lines(part)])

    def print_blocks(self, blocks: Iterable[str]) -> None:
        """Print blocks of Markdown for good."""
        self.fit()
        self._live.settle([line for block in blocks for line in self.block(block)])

    def print_card(self, card: Card, *, expanded: bool) -> None:
        """Print a card for good."""
        self.fit()
        lines = [""]
        for part in card.draw(self._screen, self.view, expanded=expanded):
            if isinstance(part, Drawn):
                lines += self.lines(part)
            else:  # a picture that the terminal draws itself
                self._live.settle(lines)
                self._screen.show(part)
                lines = []
        self._live.settle(lines)

    def card(self, card: Card) -> list[str]:
        """The lines of a card that is still open, with an empty one before them."""
        drawn = card.draw(self._screen, self.view, expanded=False)
        texts = [part for part in drawn if isinstance(part, Drawn)]
        return ["", *(line for part in texts for line in self.lines(part))]

    def block(self, source: str) -> list[str]:
        """The lines of a block of Markdown, with an empty one before them."""
        part = Margin(MarkdownView(source.strip("\n"), self.frame.view), INDENT)
        return ["", *self.lines(part)]

    def lines(self, part: RenderableType) -> list[str]:
        """A part as lines; what has been laid out has passed the gate already."""
        with self._screen.capture() as captured:
            self._screen.print(part if isinstance(part, Drawn) else Gate(part), crop=False)
        return captured.get().removesuffix("\n").split("\n")

    def _size(self) -> tuple[int, int]:
        columns, rows = self._measure()
        return max(NARROWEST, columns), max(4, rows)

    def _write(self, text: str) -> None:
        self._screen.file.write(text)
        self._screen.file.flush()


def _size_of_stdout() -> tuple[int, int]:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return PIPE_WIDTH, 24
    return found.columns, found.lines
