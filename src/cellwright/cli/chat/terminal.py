"""A chat on a terminal: finished text and cards are printed once, the current part is redrawn."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from dataclasses import replace
from itertools import pairwise

from rich.cells import cell_len
from rich.markdown import Markdown
from rich.style import Style
from rich.text import Text

from cellwright.assistant.chat import ToolResultEvent, TurnStartEvent
from cellwright.cli.chat.display import ChatDisplay
from cellwright.cli.output import complete_hint
from cellwright.cli.render.cards.card import RenderedLines, lay_out
from cellwright.cli.render.cards.frame import INDENT, CardFrame, hunk_parts
from cellwright.cli.render.layout import BOLD, DIM, FoldedLines, Gate, Margin
from cellwright.cli.render.markdown import MarkdownView
from cellwright.cli.render.screen import NARROWEST, PIPE_WIDTH
from cellwright.outputs.sanitize import make_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import RenderableType

    from cellwright.assistant.chat import ChatEvent
    from cellwright.cli.chat.display import DisplayedChange
    from cellwright.cli.render.cards.card import Card
    from cellwright.cli.render.screen import Screen, ScreenView
    from cellwright.errors import CellwrightError

_TYPE = Style(color="cyan")
_FRAME = 1 / 30
_TICK = 1.0
_PATIENCE = 0.7  # seconds without an answer before the display says that it waits
_HIGHEST_PICTURE = 18  # rows of a picture on a card
_style_code = re.compile(r"\x1b\[[0-9;]*m")
_BEGIN = "\x1b[?2026h\x1b[?25l"  # hide the cursor, and show nothing before all is written
_END = "\x1b[?25h\x1b[?2026l"


class TerminalDisplay(ChatDisplay):
    """Shows a chat on a terminal.

    Args:
        canvas: where it is printed.
        brief: prints a finished call in its own way, such as a line on stderr; by default the
            card is printed.
    """

    def __init__(self, canvas: Canvas, brief: Callable[[Card], None] | None = None) -> None:
        self._canvas = canvas
        self._brief = brief
        self._blocks: MarkdownBlocks | None = None
        self._card: Card | None = None
        self._waits_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # -- the turn ---------------------------------------------------------------------------

    def handle_event(self, event: ChatEvent) -> None:
        """Note when the display starts to wait for the model."""
        self._waits_since = (
            time.monotonic() if isinstance(event, (TurnStartEvent, ToolResultEvent)) else None
        )
        if self._waits_since is not None:
            self._draw_soon(_PATIENCE)

    def add_text(self, text: str) -> None:
        """Print the blocks that are finished, and draw the one that is not."""
        if self._blocks is None:
            if not text.strip():
                return
            self._blocks = MarkdownBlocks()
        finished = self._blocks.feed(text)
        if finished:
            self._canvas.print_blocks(finished)
        self._draw_soon()

    def begin_call(self, card: Card) -> None:
        """Draw the card until its call ends."""
        self._end_answer()
        self._card = card
        self._draw_soon()

    def update_call(self, card: Card) -> None:
        """Redraw the card."""
        if card is self._card:
            self._draw_soon()

    def end_call(self, card: Card) -> None:
        """Print the finished card."""
        self._card = None
        self._cancel_timer()
        if self._brief is None:
            self._canvas.print_card(card, expanded=False)
        else:
            self._canvas.clear()
            self._brief(card)
        if self._waits_since is not None:
            self._draw_soon(_PATIENCE)

    def end_turn(self) -> None:
        """Print what is still being drawn."""
        self._waits_since = None
        self._end_answer()
        if self._card is not None:
            self.end_call(self._card)

    def pause(self) -> None:
        """Remove what is being drawn, to let others print; the next change draws it again."""
        self._cancel_timer()
        self._canvas.clear()

    # -- messages ---------------------------------------------------------------------------

    def print_text(self, text: str) -> None:
        """Print text right of the gutter."""
        lines = [Text(line) for line in make_visible(text).rstrip("\n").split("\n")]
        self.print_parts([Text(), Margin(FoldedLines(lines), INDENT)])

    def print_table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print the names in a column, and the descriptions folded beside it."""
        widest = max((len(name) for name, _ in rows), default=0)
        rest = " " * (len(INDENT) + widest + 2)
        parts = [
            Margin(
                Text(make_visible(about)), f"{INDENT}{make_visible(name):{widest}}  ", rest, Style()
            )
            for name, about in rows
        ]
        self.print_parts([Text(), *parts])

    def print_change(self, change: DisplayedChange) -> None:
        """Print a head like that of a card, and the diff."""
        width = self._canvas.view.width
        head = Text(INDENT, no_wrap=True, overflow="crop").append(change.action, BOLD)
        styles = ((change.name, None), (change.kind, _TYPE), (change.path, DIM))
        for text, style in (*styles, (change.position, DIM)):
            if text:
                head.append(f"  {make_visible(text)}", style)
        head.append(" ")
        head.truncate(width, overflow="ellipsis")
        head.append("─" * (width - head.cell_len), DIM)
        body = hunk_parts(change.diff, change.kind, change.language, self.frame)
        self.print_parts([Text(), head, *body])

    def print_gap(self) -> None:
        """Print an empty line."""
        self.print_parts([Text()])

    def print_note(self, text: str) -> None:
        """Print a dim line."""
        self.print_parts([Margin(Text(make_visible(text), DIM), INDENT)])

    def print_error(self, error: CellwrightError) -> None:
        """Print an error with its hint."""
        parts = [Text.assemble(("error: ", Style(color="red")), make_visible(error.message))]
        hint = complete_hint(error, "chat")
        if hint:
            parts.append(Text.assemble(("hint: ", Style(color="cyan")), make_visible(hint)))
        self.print_parts([Text(), *(Margin(part, INDENT) for part in parts)])

    def expand_card(self, card: Card) -> None:
        """Print a card in full."""
        self._canvas.print_card(card, expanded=True)

    def print_parts(self, parts: Iterable[RenderableType]) -> None:
        """Print parts that are made for a terminal."""
        self._cancel_timer()
        self._canvas.print(parts)

    @property
    def frame(self) -> CardFrame:
        """The frame for parts of a card."""
        return self._canvas.frame

    # -- drawing ----------------------------------------------------------------------------

    def _draw_soon(self, delay: float = _FRAME) -> None:
        """Draw after a delay; calls within the delay are drawn together."""
        when = asyncio.get_running_loop().time() + delay
        if self._timer is None or self._timer.when() > when:
            self._cancel_timer()
            self._timer = asyncio.get_running_loop().call_at(when, self._draw)

    def _draw(self) -> None:
        self._timer = None
        self._canvas.fit()
        if self._card is not None:
            if self._card.status == "running":
                self._card.tick()
                self._draw_soon(_TICK)
            self._canvas.draw(self._canvas.render_card(self._card))
        elif self._blocks is not None and self._blocks.unfinished.strip():
            self._canvas.draw(self._canvas.render_block(self._blocks.unfinished))
        elif self._waits_since is not None:
            seconds = int(time.monotonic() - self._waits_since)
            status = Text.assemble(("●", _TYPE), (f" waiting  {seconds} s", DIM))
            self._canvas.draw(["", *self._canvas.render(Margin(status, INDENT))])
            self._draw_soon(_TICK)

    def _end_answer(self) -> None:
        self._cancel_timer()
        left = self._blocks.finish() if self._blocks is not None else []
        self._blocks = None
        if left:
            self._canvas.print_blocks(left)
        else:
            self._canvas.clear()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Canvas:
    """Prints parts as lines, in the current width of the terminal.

    Args:
        screen: where they are printed.
        view: the colours and pictures to use.
        size: measures columns and rows of the terminal; by default those of stdout.
    """

    def __init__(
        self, screen: Screen, view: ScreenView, size: Callable[[], tuple[int, int]] | None = None
    ) -> None:
        self._screen = screen
        self._measure = size or _measure_stdout
        self._live = LiveLines(self._write, self._size)
        self.view = view
        self.fit()

    def fit(self) -> None:
        """Adapt to the current size of the terminal."""
        columns, rows = self._size()
        self._screen.width = columns
        self.view = replace(self.view, width=columns, screen_rows=min(rows, _HIGHEST_PICTURE))

    @property
    def frame(self) -> CardFrame:
        """The frame for parts of a card."""
        return CardFrame(replace(self.view, width=max(1, self.view.width - len(INDENT))), "")

    def draw(self, lines: list[str]) -> None:
        """Draw lines that may change, in place of those drawn before."""
        self._live.draw(lines)

    def clear(self) -> None:
        """Remove the drawn lines."""
        self._live.finish(())

    def print(self, parts: Iterable[RenderableType]) -> None:
        """Print parts in place of the drawn lines."""
        self.fit()
        found = lay_out(self._screen, parts, self.view.width)
        self._live.finish([line for part in found for line in self.render(part)])

    def print_blocks(self, blocks: Iterable[str]) -> None:
        """Print blocks of Markdown in place of the drawn lines."""
        self.fit()
        self._live.finish([line for block in blocks for line in self.render_block(block)])

    def print_card(self, card: Card, *, expanded: bool) -> None:
        """Print a card in place of the drawn lines."""
        self.fit()
        lines = [""]
        for part in card.draw(self._screen, self.view, expanded=expanded):
            if isinstance(part, RenderedLines):
                lines += self.render(part)
            else:  # a picture that the terminal draws itself
                self._live.finish(lines)
                self._screen.show(part)
                lines = []
        self._live.finish(lines)

    def render_card(self, card: Card) -> list[str]:
        """Render a card without its pictures, after an empty line."""
        drawn = card.draw(self._screen, self.view, expanded=False)
        texts = [part for part in drawn if isinstance(part, RenderedLines)]
        return ["", *(line for part in texts for line in self.render(part))]

    def render_block(self, source: str) -> list[str]:
        """Render a block of Markdown, after an empty line."""
        part = Margin(MarkdownView(source.strip("\n"), self.frame.view), INDENT)
        return ["", *self.render(part)]

    def render(self, part: RenderableType) -> list[str]:
        """Render a part as lines; `RenderedLines` have passed the gate already."""
        with self._screen.capture() as captured:
            self._screen.print(part if isinstance(part, RenderedLines) else Gate(part), crop=False)
        return captured.get().removesuffix("\n").split("\n")

    def _size(self) -> tuple[int, int]:
        columns, rows = self._measure()
        return max(NARROWEST, columns), max(4, rows)

    def _write(self, text: str) -> None:
        self._screen.file.write(text)
        self._screen.file.flush()


def _measure_stdout() -> tuple[int, int]:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return PIPE_WIDTH, 24
    return found.columns, found.lines


class LiveLines:
    """The last lines of a terminal, which are drawn again when they change.

    Lines are never wider than the terminal. The cursor is on the line below them.

    Args:
        write: prints text at once.
        size: measures columns and rows of the terminal.
    """

    def __init__(self, write: Callable[[str], object], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self._lines: list[str] = []
        self._columns = 0

    def draw(self, lines: Sequence[str]) -> None:
        """Draw lines in place of the current ones; if there are too many, the last ones."""
        _, rows = self._size()
        # A line that has scrolled out of the screen cannot be drawn again.
        self._replace(list(lines)[-max(1, rows - 2) :])

    def finish(self, lines: Sequence[str]) -> None:
        """Print lines in place of the current ones; they never change again."""
        self._replace(list(lines))
        self._lines = []

    def _replace(self, new: list[str]) -> None:
        columns, _ = self._size()
        if columns != self._columns:
            # The terminal has folded the old lines in its own way: they cannot be drawn again.
            self._lines, self._columns = [], columns
        old = self._lines
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        self._lines = new
        if same == len(old) == len(new):
            return
        back = f"\x1b[{len(old) - same}A\r" if len(old) > same else ""
        text = "".join(f"{self._clear_rest(line)}\n" for line in new[same:])
        below = "\x1b[J" if len(old) > len(new) else ""
        self._write(f"{_BEGIN}{back}{text}{below}{_END}")

    def _clear_rest(self, line: str) -> str:
        """A line that also erases the rest of its row; a full line would erase its own end."""
        is_full = cell_len(_style_code.sub("", line)) >= self._columns
        return line if is_full else f"{line}\x1b[K"


class MarkdownBlocks:
    """Splits growing Markdown into finished blocks and one unfinished block.

    Only the last block at the top level can still change: a paragraph may become a heading, a
    list may become longer.
    """

    def __init__(self) -> None:
        self.unfinished = ""

    def feed(self, text: str) -> list[str]:
        """Add text; returns the blocks that are finished now."""
        self.unfinished += text
        if "\n" not in self.unfinished:
            return []
        starts = _find_starts(self.unfinished)
        if len(starts) < 2:
            return []
        lines = self.unfinished.split("\n")
        finished = ["\n".join(lines[first:last]) for first, last in pairwise(starts)]
        self.unfinished = "\n".join(lines[starts[-1] :])
        return finished

    def finish(self) -> list[str]:
        """End the text; returns the last block, if there is one."""
        left, self.unfinished = self.unfinished, ""
        return [left] if left.strip() else []


def _find_starts(text: str) -> list[int]:
    """The first lines of the blocks at the top level."""
    return [
        token.map[0]
        for token in Markdown(text).parsed
        if token.level == 0 and token.nesting >= 0 and token.map is not None
    ]
