"""The text of one tool result: what happened, then what there is to see, then what was left out.

The page is never longer than its budget and `SLACK`, in tokens as `estimate_tokens` counts them.
Text of a notebook goes in by `show` and `show_outputs`, and is put in one fence; our own lines go
in by `head` and `say`.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from cellwright.outputs.charts.drawing import DrawingTime
from cellwright.outputs.describe import CHARACTERS_PER_TOKEN, NOTICE_CHARACTERS, describe
from cellwright.outputs.images import PixelBudget
from cellwright.outputs.sizes import count_fitting, estimate_tokens
from cellwright.tools.fence import (
    OVERHEAD,
    build_fence,
    choose_number,
    make_readable,
    short_name,
)
from cellwright.tools.tool import ResultPart, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cellwright.document.outputs import Output
    from cellwright.outputs.images import ModelImage

SLACK = 2000
"""By how much a result may be longer than its budget: its head, and what is left out.

In quarters of a token, as `Page.room`, so that it is about the number of characters of a text in
English.
"""

IMAGES = 4
"""How many pictures one result carries."""

_HEADS, _LINE, _LEAST = 3, 240, 80
_NEXT_ROW = 4  # the end of a row
_LINE_COST = 12  # the end of a line, and the number of the fence


class Page:
    """A tool result that is being written."""

    def __init__(self, max_tokens: int, *, draws: bool = True) -> None:
        self.room = max_tokens * CHARACTERS_PER_TOKEN  # in quarters of a token
        self.pictures: list[ModelImage] = []
        self.artifacts: list[str] = []
        self._pixels = PixelBudget()
        self._drawing = DrawingTime() if draws else DrawingTime(0)  # what was drawn is shown
        self._heads: list[str] = []
        self._parts: list[ResultPart] = []
        self._left_out: list[str] = []

    def head(self, line: str) -> None:
        """Say what happened; the first lines are said whatever the budget."""
        if len(self._heads) < _HEADS:
            self._heads.append(_cut(line, _LINE))

    def say(self, line: str) -> bool:
        """Say a line of ours, if there is room for it."""
        line = _cut(line, 2 * _LINE)
        if cost_of(line) + 1 > self.room:
            return False
        self._add(ResultPart(line))
        return True

    def say_all(self, lines: Sequence[str], what: str) -> None:
        """Say as many lines as there is room for."""
        for said, line in enumerate(lines):
            if not self.say(line):
                self.leave_out(f"{len(lines) - said:,} {what}")
                break

    def show(
        self,
        what: str,
        text: str,
        most: int | None = None,
        *,
        tail: float = 0,
        cell: str = "",
        label: str | None = None,
    ) -> int:
        """Show a text of the notebook; returns how many characters of it are not shown.

        Args:
            what: a name for it.
            text: the text.
            most: characters that it may take.
            tail: the share of its end, if it has to be cut; else its beginning is kept.
            cell: the handle of the cell it belongs to, if any.
            label: what is said before it where there are several; the name if not given, and
                nothing if it is empty, as after a line that says it.
        """
        text = make_readable(text)
        whole = len(text)
        text = text.removesuffix("\n")
        room = min(self.room - OVERHEAD, self.room if most is None else most)
        cut, cost = 0, _find_cost_within(text, room)
        if cost is None:
            if room < _LEAST:
                return len(text)
            room -= 40  # for the sign of the cut
            last = _count_fitting(text[::-1], room * tail) if tail else 0
            first = min(_count_fitting(text, room * (1 - tail)), len(text) - last)
            cut = whole - first - last
            end = f"⟦… {cut:,} characters …⟧{text[len(text) - last :]}" if last else "⟦…⟧"
            text = f"{text[:first]}{end}"
            cost = cost_of(text)
        label = short_name(what if label is None else label)
        self._add(ResultPart(text, short_name(what), cell, label), cost)
        return cut

    def show_rows(self, what: str, rows: Sequence[str]) -> int:
        """Show rows of a table, as many as there is room for; returns how many."""
        room = self.room - 200
        shown = 0
        for row in rows:
            room -= cost_of(row) + _NEXT_ROW
            if room < 0:
                break
            shown += 1
        if shown:
            self.show(what, "\n".join(rows[:shown]))
        return shown

    def fits(self, text: str) -> bool:
        """Whether all of a text can be shown."""
        # What is hidden in it may make it longer.
        return _find_cost_within(text, self.room - OVERHEAD) is not None

    def count_fitting(self, text: str) -> int:
        """How many characters from the beginning of a text can be shown."""
        return _count_fitting(text, self.room - OVERHEAD)

    def show_outputs(
        self,
        cell: str,
        outputs: Sequence[Output | Mapping[str, Any]],
        most: int | None = None,
        *,
        label: str = "",
        artifact: str | None = None,
    ) -> bool:
        """Show outputs of a cell within so many characters; returns whether all of them are.

        `artifact` has the outputs, if the notebook does not.
        """
        room = self.room - OVERHEAD - NOTICE_CHARACTERS
        room = min(room, room if most is None else most)
        if room < _LEAST:
            return False
        images = IMAGES - len(self.pictures)
        # On an event loop, other calls would wait for the drawing.
        time = None if _is_on_loop() else self._drawing
        limits: Any = {"images": images, "pixels": self._pixels}
        limits |= {"drawing": time, "artifact": artifact}
        found = describe(outputs, room // CHARACTERS_PER_TOKEN, **limits)
        cost = cost_of(found.text)
        if cost > room:  # its tokens are short, as those of numbers are
            tokens = room * len(found.text) // cost // CHARACTERS_PER_TOKEN
            found = describe(outputs, max(1, tokens), **limits)
        self.pictures += found.images
        cut = self.show(f"outputs of {cell}", found.text, cell=cell, label=label)
        return not cut and not found.left_out

    def leave_out(self, what: str) -> None:
        """Say at the end that something is missing, and how to get it."""
        if what not in self._left_out:
            self._left_out.append(what)

    def text(self) -> str:
        """All of it."""
        left_out = [f"LEFT OUT: {what}" for what in self._shown_left_out()]
        return "\n".join([*self._heads, *self._fenced_lines(), *left_out])

    def _fenced_lines(self) -> list[str]:
        """The parts as lines, with all that is from the notebook in one fence."""
        shown = [at for at, part in enumerate(self._parts) if part.name is not None]
        if not shown:
            return [part.text for part in self._parts]
        first, last = shown[0], shown[-1] + 1
        number = choose_number(self._parts[at].text for at in shown)
        if len(shown) == 1:
            only = self._parts[first]
            inside = build_fence(number, only.name or "", [only.text] if only.text else [])
        else:
            if first:  # it says whose the first text is, as those between do for theirs
                first -= 1
            lines: list[str] = []
            for part in self._parts[first:last]:
                if part.name is None:
                    lines += [f"{number} {line}" for line in part.text.strip("\n").split("\n")]
                else:
                    lines += [f"{number} {part.label}"] if part.label else []
                    lines.append(part.text)
            inside = build_fence(number, "", lines)
        before, after = self._parts[:first], self._parts[last:]
        return [*(part.text for part in before), inside, *(part.text for part in after)]

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

    def _add(self, part: ResultPart, cost: int | None = None) -> None:
        self._parts.append(part)
        self.room -= (cost_of(part.text) if cost is None else cost) + _LINE_COST
        self.room -= cost_of(part.label) + _LINE_COST if part.label else 0


def _cut(line: str, most: int) -> str:
    """A line of ours that is one line, whatever it quotes; empty lines may come before it."""
    start = len(line) - len(line.lstrip("\n"))
    if "\n" in line[start:]:
        line = line[:start] + " ".join(line[start:].split())
    if len(line) <= most and cost_of(line) <= most * 4 / 3:
        return line
    fitting = min(most, _count_fitting(line[:most], most * 4 / 3))
    return line if len(line) <= fitting else f"{line[: fitting - 1]}…"


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def cost_of(text: str) -> int:
    """What a text takes of the room of a page."""
    return math.ceil(estimate_tokens(text) * CHARACTERS_PER_TOKEN)


def _find_cost_within(text: str, room: int) -> int | None:
    """What a text takes of the room; None if that is more than there is."""
    # A token has hardly more than 8 characters; so a flood need not be read to its end.
    cost = cost_of(text) if len(text) <= 8 * max(room, 0) else room + 1
    return cost if cost <= room else None


def _count_fitting(text: str, room: float) -> int:
    return count_fitting(text, room / CHARACTERS_PER_TOKEN)
