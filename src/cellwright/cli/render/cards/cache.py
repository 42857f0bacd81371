"""What was laid out once need not be laid out again: by width, expansion, and what it shows."""

from __future__ import annotations

from collections import OrderedDict

from rich.segment import Segment

from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import Gate, Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_MOST = 8


class Drawn:
    """Lines that have been laid out and have passed the gate."""

    def __init__(self, lines: Sequence[list[Segment]]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give them out as they are."""
        for line in self.lines:
            yield from line
            yield Segment.line()


class RenderCache:
    """The last few layouts of one thing; `made` counts how often one had to be made."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, list[Drawn | Graphic]] = OrderedDict()
        self.made = 0

    def get(
        self, key: Hashable, make: Callable[[], list[Drawn | Graphic]]
    ) -> list[Drawn | Graphic]:
        """The layout for a key, made if it is not there."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        self.made += 1
        self._kept[key] = made = make()
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return made


def lay_out(console: Console, parts: Iterable[RenderableType], width: int) -> list[Drawn | Graphic]:
    """Parts as lines of a width; pictures that the terminal draws itself stay as they are."""
    found: list[Drawn | Graphic] = []
    texts: list[RenderableType] = []

    def draw() -> None:
        if texts:
            options = console.options.update(width=width, height=None)
            lines = console.render_lines(Gate(Stack(list(texts), gap=0)), options, pad=False)
            found.append(Drawn(lines))
            texts.clear()

    for part in parts:
        if isinstance(part, Graphic):
            draw()
            found.append(part)
        else:
            texts.append(part)
    draw()
    return found
