"""What runs or deletes something is put to the person first, in words and with a preview."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from cellwright.cli.chat.terminal import TerminalDisplay
from cellwright.cli.render.cards.frame import INDENT, Frame
from cellwright.cli.render.cards.headline import cell_name, find_cells
from cellwright.cli.render.cards.sources import source_parts
from cellwright.cli.render.layout import BOLD, DIM, Margin, Notice
from cellwright.outputs.sanitize import make_visible, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rich.console import RenderableType

    from cellwright.assistant.permissions import Decision, Operation
    from cellwright.cli.chat.asking import Asker
    from cellwright.cli.chat.display import Display
    from cellwright.cli.render.cards.card import Card

_MOST_CELLS, _MOST_LINES = 6, 8  # of several cells; one alone is shown as on a card
_KEYS: dict[str, Decision] = {"y": "once", "c": "chat", "a": "notebook", "n": "no"}
CHOICES = {
    "y": "yes, once",
    "c": "in this chat",
    "a": "always for this notebook",
    "n": "no",
}
_SAID = {
    "once": "allowed once",
    "chat": "allowed in this chat",
    "notebook": "always allowed for this notebook",
    "no": "not allowed",
}


class Confirmer:
    """Puts operations to the person; `card` is the call that is under way."""

    def __init__(self, display: Display, asker: Asker | None, *, yes: bool = False) -> None:
        self._display = display
        self._asker = asker
        self._yes = yes
        self.card: Card | None = None

    @property
    def can_decide(self) -> bool:
        """Whether anybody can be asked, or has said yes beforehand."""
        return self._yes or self._asker is not None

    async def __call__(self, operation: Operation) -> Decision:
        """Ask; without anybody to ask it is a no."""
        if self._yes:
            return "once"
        if self._asker is None:
            return "no"
        card, display = self.card, self._display
        if card is not None:
            card.wait()
        if isinstance(display, TerminalDisplay):
            display.pause()
            frame = Frame(display.frame.view, "see the notebook")
            display.show(_question(operation, card, frame))
        else:
            display.note(operation.words)
            if operation.preview:
                display.note(operation.preview)
        key = await self._asker.key(CHOICES)
        decision = _KEYS.get(key or "n", "no")
        display.note(_SAID[decision])
        if card is not None and decision != "no":
            card.begin()
            display.changed(card)
        return decision

    async def input(self, request: Any) -> str | None:
        """A cell asks for a line of input."""
        if self._asker is None:
            return None
        if isinstance(self._display, TerminalDisplay):
            self._display.pause()
        prompt = one_line(str(request.prompt)[:500])
        return await self._asker.line(f"{INDENT}{prompt}", password=bool(request.password))


def _question(operation: Operation, card: Card | None, frame: Frame) -> Iterator[RenderableType]:
    """What is asked, and the source of every cell that it is about."""
    yield Text()
    words = Text(make_visible(operation.words), BOLD)
    yield Margin(words, "  ? ", INDENT, style=Style(color="yellow", bold=True))
    language = card.language if card is not None else "python"
    cells = find_cells(list(card.rows), card.before) if card is not None else []
    if not cells and operation.preview:
        yield from source_parts(operation.preview, "code", language, frame)
    for cell in cells[:_MOST_CELLS]:
        if len(cells) > 1:
            yield frame.part(Text(f"cell {cell.index + 1}  {cell_name(cell.handle)}", DIM))
        most = _MOST_LINES if len(cells) > 1 else None
        yield from source_parts(cell.source, cell.type, language, frame, most=most)
    if len(cells) > _MOST_CELLS:
        yield frame.ruled(Notice(len(cells) - _MOST_CELLS, "cells"))
