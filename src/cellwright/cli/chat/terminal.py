"""A chat on a terminal: finished blocks and cards stand, only the open one is drawn again."""

from __future__ import annotations

import asyncio
import time

from rich.style import Style
from rich.text import Text

from cellwright.assistant.chat import ToolResultEvent, TurnStartEvent
from cellwright.cli.chat.blocks import Blocks
from cellwright.cli.render.cards.frame import INDENT
from cellwright.cli.render.cards.sources import hunk_parts
from cellwright.cli.render.layout import BOLD, DIM, Lines, Margin
from cellwright.outputs.sanitize import make_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import RenderableType

    from cellwright.assistant.chat import ChatEvent
    from cellwright.cli.chat.canvas import Canvas
    from cellwright.cli.chat.display import CellChange
    from cellwright.cli.render.cards.card import Card
    from cellwright.cli.render.cards.frame import Frame
    from cellwright.errors import CellwrightError

_TYPE = Style(color="cyan")
_FRAME = 1 / 30
_TICK = 1.0
_PATIENCE = 0.7  # before it is worth saying that nothing has come yet


class TerminalDisplay:
    """Shows a chat on a terminal.

    Args:
        canvas: where it is printed.
        brief: shows a finished call otherwise, such as in a line of stderr; whole by default.
    """

    def __init__(self, canvas: Canvas, brief: Callable[[Card], None] | None = None) -> None:
        self._canvas = canvas
        self._brief = brief
        self._blocks: Blocks | None = None
        self._card: Card | None = None
        self._waits_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # -- what happens -----------------------------------------------------------------------

    def event(self, event: ChatEvent) -> None:
        """The model has the floor when a turn begins, and when a tool has answered."""
        self._waits_since = (
            time.monotonic() if isinstance(event, (TurnStartEvent, ToolResultEvent)) else None
        )
        if self._waits_since is not None:
            self._draw_soon(_PATIENCE)

    def said(self, text: str) -> None:
        """Print what is finished of it, and draw what is not."""
        if self._blocks is None:
            if not text.strip():
                return
            self._blocks = Blocks()
        finished = self._blocks.feed(text)
        if finished:
            self._canvas.print_blocks(finished)
        self._draw_soon()

    def called(self, card: Card) -> None:
        """Draw the call until it is over."""
        self._end_answer()
        self._card = card
        self._draw_soon()

    def changed(self, card: Card) -> None:
        """Draw it again."""
        if card is self._card:
            self._draw_soon()

    def returned(self, card: Card) -> None:
        """Print it for good."""
        self._card = None
        self._cancel_timer()
        if self._brief is None:
            self._canvas.print_card(card, expanded=False)
        else:
            self._canvas.clear()
            self._brief(card)
        if self._waits_since is not None:
            self._draw_soon(_PATIENCE)

    def over(self) -> None:
        """Print what is still open."""
        self._waits_since = None
        self._end_answer()
        if self._card is not None:
            self.returned(self._card)

    def pause(self) -> None:
        """Take the open lines away, for somebody else to print; the next change draws them."""
        self._cancel_timer()
        self._canvas.clear()

    # -- what we say ------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """Text as it is, right of the gutter."""
        lines = [Text(line) for line in make_visible(text).rstrip("\n").split("\n")]
        self.show([Text(), Margin(Lines(lines), INDENT)])

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names in a column, and beside it what is folded where it has to be."""
        widest = max((len(name) for name, _ in rows), default=0)
        rest = " " * (len(INDENT) + widest + 2)
        parts = [
            Margin(
                Text(make_visible(about)), f"{INDENT}{make_visible(name):{widest}}  ", rest, Style()
            )
            for name, about in rows
        ]
        self.show([Text(), *parts])

    def change(self, change: CellChange) -> None:
        """A head as that of a card, and the lines that are new and gone."""
        width = self._canvas.view.width
        head = Text(INDENT, no_wrap=True, overflow="crop").append(change.action, BOLD)
        looks = ((change.name, None), (change.kind, _TYPE), (change.path, DIM), (change.place, DIM))
        for text, style in looks:
            if text:
                head.append(f"  {make_visible(text)}", style)
        head.append(" ")
        head.truncate(width, overflow="ellipsis")
        head.append("─" * (width - head.cell_len), DIM)
        body = hunk_parts(change.diff, change.kind, change.language, self.frame)
        self.show([Text(), head, *body])

    def gap(self) -> None:
        """An empty line."""
        self.show([Text()])

    def note(self, text: str) -> None:
        """A dim line."""
        self.show([Margin(Text(make_visible(text), DIM), INDENT)])

    def problem(self, error: CellwrightError) -> None:
        """What went wrong, and what to do next."""
        parts = [Text.assemble(("error: ", Style(color="red")), make_visible(error.message))]
        if error.hint:
            parts.append(Text.assemble(("hint: ", Style(color="cyan")), make_visible(error.hint)))
        self.show([Text(), *(Margin(part, INDENT) for part in parts)])

    def expand(self, card: Card) -> None:
        """All of a card."""
        self._canvas.print_card(card, expanded=True)

    def show(self, parts: Iterable[RenderableType]) -> None:
        """Parts that were made for a terminal, for good."""
        self._cancel_timer()
        self._canvas.print(parts)

    @property
    def frame(self) -> Frame:
        """What parts of a card stand beside."""
        return self._canvas.frame

    # -- drawing ----------------------------------------------------------------------------

    def _draw_soon(self, delay: float = _FRAME) -> None:
        """Draw, but not more often than anybody can see."""
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
            self._canvas.open(self._canvas.card(self._card))
        elif self._blocks is not None and self._blocks.open.strip():
            self._canvas.open(self._canvas.block(self._blocks.open))
        elif self._waits_since is not None:
            seconds = int(time.monotonic() - self._waits_since)
            told = Text.assemble(("●", _TYPE), (f" waiting  {seconds} s", DIM))
            self._canvas.open(["", *self._canvas.lines(Margin(told, INDENT))])
            self._draw_soon(_TICK)

    def _end_answer(self) -> None:
        self._cancel_timer()
        left = self._blocks.end() if self._blocks is not None else []
        self._blocks = None
        if left:
            self._canvas.print_blocks(left)
        else:
            self._canvas.clear()  # that we wait is no news any more

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
