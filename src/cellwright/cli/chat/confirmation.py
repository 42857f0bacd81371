"""Asks the person before a tool runs or deletes something, with a preview of the cells."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from cellwright.cli.chat.terminal import TerminalDisplay
from cellwright.cli.render.cards.frame import (
    INDENT,
    CardFrame,
    find_cells,
    shorten_name,
    source_parts,
)
from cellwright.cli.render.layout import BOLD, DIM, Margin, Notice
from cellwright.outputs.sanitize import make_visible, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rich.console import RenderableType

    from cellwright.assistant.permissions import Decision, Operation
    from cellwright.cli.chat.display import ChatDisplay
    from cellwright.cli.questions import Asker
    from cellwright.cli.render.cards.card import Card

_MOST_CELLS, _MOST_LINES = 6, 8  # of several cells; a single one is shown as on a card
_DECISIONS: dict[str, Decision] = {"y": "once", "c": "chat", "a": "notebook", "n": "no"}
CHOICES = {
    "y": "yes, once",
    "c": "in this chat",
    "a": "always for this notebook",
    "n": "no",
}
_NOTES = {
    "once": "allowed once",
    "chat": "allowed in this chat",
    "notebook": "always allowed for this notebook",
    "no": "not allowed",
}


class Confirmer:
    """Asks the person to confirm operations; `card` is the current call.

    Args:
        display: shows what is asked.
        asker: asks the person; None where there is no terminal.
        yes: whether everything is confirmed in advance.
    """

    def __init__(self, display: ChatDisplay, asker: Asker | None, *, yes: bool = False) -> None:
        self._display = display
        self._asker = asker
        self._yes = yes
        self.card: Card | None = None

    @property
    def can_decide(self) -> bool:
        """Whether there is a person to ask, or everything is confirmed in advance."""
        return self._yes or self._asker is not None

    async def __call__(self, operation: Operation) -> Decision:
        """Ask; without a person to ask, the answer is no."""
        if self._yes:
            return "once"
        if self._asker is None:
            return "no"
        card, display = self.card, self._display
        if card is not None:
            card.wait()
        if isinstance(display, TerminalDisplay):
            display.pause()
            frame = CardFrame(display.frame.view, "see the notebook")
            display.print_parts(_render_question(operation, card, frame))
        else:
            display.print_note(operation.words)
            if operation.preview:
                display.print_note(operation.preview)
        key = await self._asker.key(CHOICES)
        decision = _DECISIONS.get(key or "n", "no")
        display.print_note(_NOTES[decision])
        if card is not None and decision != "no":
            card.begin()
            display.update_call(card)
        return decision

    async def answer_input(self, request: Any) -> str | None:
        """Ask the person for the line that a cell waits for in `input()`."""
        if self._asker is None:
            return None
        if isinstance(self._display, TerminalDisplay):
            self._display.pause()
        prompt = one_line(str(request.prompt)[:500])
        return await self._asker.line(f"{INDENT}{prompt}", password=bool(request.password))


def _render_question(
    operation: Operation, card: Card | None, frame: CardFrame
) -> Iterator[RenderableType]:
    """Render the question, and the source of each cell that it concerns."""
    yield Text()
    words = Text(make_visible(operation.words), BOLD)
    yield Margin(words, "  ? ", INDENT, style=Style(color="yellow", bold=True))
    language = card.language if card is not None else "python"
    cells = find_cells(list(card.rows), card.before) if card is not None else []
    if not cells and operation.preview:
        yield from source_parts(operation.preview, "code", language, frame)
    for cell in cells[:_MOST_CELLS]:
        if len(cells) > 1:
            yield frame.part(Text(f"cell {cell.index + 1}  {shorten_name(cell.handle)}", DIM))
        most = _MOST_LINES if len(cells) > 1 else None
        yield from source_parts(cell.source, cell.type, language, frame, most=most)
    if len(cells) > _MOST_CELLS:
        yield frame.add_rule(Notice(len(cells) - _MOST_CELLS, "cells"))
