"""The text of one answer: what happened, then what there is to see, then what was left out.

Whatever comes in, the page is no longer than its budget and `SLACK`. Text of a notebook goes in
by `show` and `outputs`, which fence it; lines of ours go in by `head` and `say`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cellwright.outputs.describe import CHARACTERS_PER_TOKEN, NOTICE_CHARACTERS, describe
from cellwright.tools.fence import OVERHEAD, Fence, readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cellwright.document.outputs import Output
    from cellwright.outputs.images import ModelImage

SLACK = 1500
"""Characters by which an answer may be longer than its budget: its head, and what is left out."""

IMAGES = 4
"""How many pictures one answer carries."""

_HEADS, _LINE, _LEAST = 3, 240, 80


class Page:
    """One answer on its way."""

    def __init__(self, max_tokens: int, *, images: int = IMAGES) -> None:
        self.room = max_tokens * CHARACTERS_PER_TOKEN
        self.pictures: list[ModelImage] = []
        self._images = images
        self._fence = Fence()
        self._heads: list[str] = []
        self._lines: list[str] = []
        self._left: list[str] = []

    def head(self, line: str) -> None:
        """Say what happened; the first lines are said whatever the budget."""
        if len(self._heads) < _HEADS:
            self._heads.append(line if len(line) <= _LINE else f"{line[: _LINE - 1]}…")

    def say(self, line: str) -> bool:
        """Say a line of ours, if there is room for it."""
        line = line if len(line) <= 2 * _LINE else f"{line[: 2 * _LINE - 1]}…"
        if len(line) + 1 > self.room:
            return False
        self._add(line)
        return True

    def say_all(self, lines: Sequence[str], what: str) -> int:
        """Say as many lines as there is room for; returns how many."""
        said = 0
        for line in lines:
            if not self.say(line):
                self.leave_out(f"{len(lines) - said:,} {what}")
                break
            said += 1
        return said

    def show(self, what: str, text: str, most: int | None = None, *, tail: float = 0) -> int:
        """Show a text of the notebook; returns how many characters of it are not shown.

        Args:
            what: a name for it.
            text: it.
            most: characters that it may take.
            tail: the share of its end, if it has to be cut; else its beginning is kept.
        """
        text = readable(text)
        room = min(self.room - OVERHEAD, self.room if most is None else most)
        if len(text) <= room:
            self._add(self._fence.around(what, text))
            return 0
        if room < _LEAST:
            return len(text)
        room -= 40  # for the sign of the cut
        last = int(room * tail)
        cut = len(text) - room
        kept = f"{text[: room - last]}⟦… {cut:,} characters …⟧{text[len(text) - last :]}"
        self._add(self._fence.around(what, kept if last else f"{text[:room]}⟦…⟧"))
        return cut

    def fits(self, text: str) -> bool:
        """Whether all of a text can be shown."""
        return len(text) + OVERHEAD <= self.room  # what is hidden in it may still make it longer

    def outputs(
        self,
        what: str,
        outputs: Sequence[Output | Mapping[str, Any]],
        most: int | None = None,
        **options: Any,
    ) -> bool:
        """Show outputs of a cell within so many characters; returns whether all of them are."""
        room = self.room - OVERHEAD - NOTICE_CHARACTERS
        tokens = min(room, room if most is None else most) // CHARACTERS_PER_TOKEN
        if tokens < _LEAST // CHARACTERS_PER_TOKEN:
            return False
        found = describe(outputs, tokens, images=self._images - len(self.pictures), **options)
        self.pictures += found.images
        cut = self.show(what, found.text)
        return not cut and not found.left_out

    def leave_out(self, what: str) -> None:
        """Say at the end that something is missing, and how to get it."""
        if what not in self._left:
            self._left.append(what)

    def text(self) -> str:
        """All of it."""
        left = [_short(f"LEFT OUT: {what}") for what in self._left[:_HEADS]]
        if len(self._left) > _HEADS:
            left[-1] = f"LEFT OUT: more, of {len(self._left) - _HEADS + 1} other things"
        return "\n".join([*self._heads, *self._lines, *left])

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self.room -= len(line) + 1


def _short(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
