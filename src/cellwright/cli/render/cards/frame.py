"""What every part of a card stands beside: a rule in the gutter, or a sign in its place."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import DIM, Lines, Margin, Notice
from cellwright.cli.render.outputs import joined_streams, show_output
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import make_visible, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from cellwright.cli.render.limits import View
    from cellwright.document.outputs import Output

GUTTER = 2
"""Columns of the numbers of cards; all else stands two columns right of it."""

INDENT = " " * (GUTTER + 2)
RULE = " " * GUTTER + "│ "
ADDED = " " * GUTTER + "+ "
REMOVED = " " * GUTTER + "- "
CUT = " " * GUTTER + "… "
PART = " " * GUTTER + "▸ "
POINTER = " " * GUTTER + "→ "

BAD = Style(color="red")
GOOD = Style(color="green")
WARNING = Style(color="yellow")


class Frame:
    """Puts parts beside the rule; `remedy` says how to see what is not shown."""

    def __init__(self, view: View, remedy: str) -> None:
        self.view = view
        self.remedy = remedy

    def ruled(self, part: RenderableType, style: Style = DIM, rule: str = RULE) -> RenderableType:
        """A part beside the rule; what says that something is hidden gets a sign instead."""
        if isinstance(part, Notice):
            return Margin(Notice(part.hidden, part.things, self.remedy), CUT, INDENT)
        return Margin(part, rule, style=style)

    def words(self, text: str, style: Style = DIM) -> RenderableType:
        """Lines of text as they are, beside a rule in a style."""
        return Margin(
            Lines(Text(line) for line in make_visible(text).split("\n")), RULE, style=style
        )

    def warning(self, text: str) -> RenderableType:
        """That something was cut, in place of the rule."""
        return Margin(Text(one_line(text), WARNING), CUT, INDENT, style=WARNING)

    def part(self, title: Text) -> RenderableType:
        """The head of a part; its sign stands where nothing of a notebook can."""
        return Margin(title, PART, INDENT)

    def pointer(self, artifact: str) -> RenderableType:
        """Where the whole of something is."""
        name = one_line(artifact[:80])
        told = Text.assemble(f"artifact://{name}", (f"  cellwright artifact {name}", DIM))
        return Margin(told, POINTER, INDENT)

    def outputs(self, outputs: Iterable[Output]) -> Iterator[RenderableType]:
        """Outputs of a cell, one below the other, as `show` shows them."""
        try:
            shown = joined_streams(outputs)
        except CellwrightError as error:
            yield self.words(error.message, BAD)
            return
        most = self.view.limits.outputs
        for number, output in enumerate(shown[:most]):
            if number:
                yield Text(RULE.rstrip(), DIM)
            yield from self._output(output)
        if len(shown) > most:
            yield self.ruled(Notice(len(shown) - most, "outputs"))

    def _output(self, output: Output) -> Iterator[RenderableType]:
        shown = show_output(output, self.view)
        if shown.label is not None:
            yield self.ruled(Text(shown.label, shown.style), shown.style)
        if shown.picture is not None:
            yield Graphic(shown.picture, self.view, RULE, shown.style)
        for part in shown.parts:
            yield self.ruled(part, shown.style)
