"""The text of one tool result: what happened, then what there is to see, then what was left out.

The page is never longer than its budget and `SLACK`. Text of a notebook goes in by `show` and
`show_outputs`, which fence it; our own lines go in by `head` and `say`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cellwright.outputs.describe import CHARACTERS_PER_TOKEN, NOTICE_CHARACTERS, describe
from cellwright.outputs.images import PixelBudget
from cellwright.tools.fence import OVERHEAD, Fence, make_readable, short_name
from cellwright.tools.tool import ResultPart, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cellwright.document.outputs import Output
    from cellwright.outputs.images import ModelImage

SLACK = 1500
"""Characters by which a result may be longer than its budget: its head, and what is left out."""

IMAGES = 4
"""How many pictures one result carries."""

_HEADS, _LINE, _LEAST = 3, 240, 80


class Page:
    """A tool result that is being written."""

    def __init__(self, max_tokens: int, *, images: int = IMAGES) -> None:
        self.room = max_tokens * CHARACTERS_PER_TOKEN
        self.pictures: list[ModelImage] = []
        self.artifacts: list[str] = []
        self._images = images
        self._pixels = PixelBudget()
        self._fence = Fence()
        self._heads: list[str] = []
        self._lines: list[str] = []
        self._parts: list[ResultPart] = []
        self._left_out: list[str] = []

    def head(self, line: str) -> None:
        """Say what happened; the first lines are said whatever the budget."""
        if len(self._heads) < _HEADS:
            self._heads.append(_cut(line, _LINE))

    def say(self, line: str) -> bool:
        """Say a line of ours, if there is room for it."""
        line = _cut(line, 2 * _LINE)
        if len(line) + 1 > self.room:
            return False
        self._add(line, ResultPart(line))
        return True

    def say_all(self, lines: Sequence[str], what: str) -> None:
        """Say as many lines as there is room for."""
        for said, line in enumerate(lines):
            if not self.say(line):
                self.leave_out(f"{len(lines) - said:,} {what}")
                break

    def show(
        self, what: str, text: str, most: int | None = None, *, tail: float = 0, cell: str = ""
    ) -> int:
        """Show a text of the notebook; returns how many characters of it are not shown.

        Args:
            what: a name for it.
            text: the text.
            most: characters that it may take.
            tail: the share of its end, if it has to be cut; else its beginning is kept.
            cell: the handle of the cell it belongs to, if any.
        """
        text = make_readable(text)
        room = min(self.room - OVERHEAD, self.room if most is None else most)
        cut = 0
        if len(text) > room:
            if room < _LEAST:
                return len(text)
            room -= 40  # for the sign of the cut
            last = int(room * tail)
            cut = len(text) - room
            end = f"⟦… {cut:,} characters …⟧{text[len(text) - last :]}" if last else "⟦…⟧"
            text = f"{text[: room - last]}{end}"
        part = ResultPart(text.removesuffix("\n"), short_name(what), cell)
        self._add(self._fence.around(what, text), part)
        return cut

    def show_rows(self, what: str, rows: Sequence[str]) -> int:
        """Show rows of a table, as many as there is room for; returns how many."""
        room = self.room - 200
        shown = 0
        for row in rows:
            room -= len(row) + 1
            if room < 0:
                break
            shown += 1
        if shown:
            self.show(what, "\n".join(rows[:shown]))
        return shown

    def fits(self, text: str) -> bool:
        """Whether all of a text can be shown."""
        return len(text) + OVERHEAD <= self.room  # what is hidden in it may still make it longer

    def show_outputs(
        self,
        cell: str,
        outputs: Sequence[Output | Mapping[str, Any]],
        most: int | None = None,
    ) -> bool:
        """Show outputs of a cell within so many characters; returns whether all of them are."""
        room = self.room - OVERHEAD - NOTICE_CHARACTERS
        tokens = min(room, room if most is None else most) // CHARACTERS_PER_TOKEN
        if tokens < _LEAST // CHARACTERS_PER_TOKEN:
            return False
        found = describe(
            outputs, tokens, images=self._images - len(self.pictures), pixels=self._pixels
        )
        self.pictures += found.images
        cut = self.show(f"outputs of {cell}", found.text, cell=cell)
        return not cut and not found.left_out

    def leave_out(self, what: str) -> None:
        """Say at the end that something is missing, and how to get it."""
        if what not in self._left_out:
            self._left_out.append(what)

    def text(self) -> str:
        """All of it."""
        left_out = [f"LEFT OUT: {what}" for what in self._shown_left_out()]
        return "\n".join([*self._heads, *self._lines, *left_out])

    def to_result(self, data: dict[str, Any], *, is_error: bool = False) -> ToolResult:
        """The page as the result of a tool.

        Args:
            data: small facts for programs.
            is_error: whether the call failed.
        """
        return ToolResult(
            self.text(),
            data,
            tuple(self.pictures),
            is_error=is_error,
            parts=(*(ResultPart(line) for line in self._heads), *self._parts),
            left_out=tuple(self._shown_left_out()),
            artifacts=tuple(self.artifacts),
        )

    def _shown_left_out(self) -> list[str]:
        most = _LINE - len("LEFT OUT: ")
        shown = [_cut(what, most) for what in self._left_out[:_HEADS]]
        if len(self._left_out) > _HEADS:
            shown[-1] = f"more, of {len(self._left_out) - _HEADS + 1} other things"
        return shown

    def _add(self, line: str, part: ResultPart) -> None:
        self._lines.append(line)
        self._parts.append(part)
        self.room -= len(line) + 1


def _cut(line: str, most: int) -> str:
    """A line of ours that is one line, whatever it quotes; empty lines may come before it."""
    start = len(line) - len(line.lstrip("\n"))
    if "\n" in line[start:]:
        line = line[:start] + " ".join(line[start:].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
