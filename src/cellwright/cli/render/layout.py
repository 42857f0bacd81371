"""The shapes that all views are made of: margins, folded lines, stacks, notices.

Texts are always `rich.text.Text`, never `str`: rich reads markup in a string.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from cellwright.outputs.sanitize import make_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from cellwright.cli.render.screen import ViewLimits

DIM = Style(dim=True)
BOLD = Style(bold=True)
TAB = 4
_CONTINUED = "↪ "


class Margin:
    """A part with a margin on its left: one text for the first line, one for the others."""

    def __init__(
        self, inside: RenderableType, first: str, rest: str | None = None, style: Style = DIM
    ) -> None:
        self.inside = inside
        self.first = first
        self.rest = first if rest is None else rest
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the part narrower, and put the margin before each line."""
        width = max(1, options.max_width - Text(self.rest).cell_len)
        lines = console.render_lines(
            self.inside, options.update(width=width, height=None), pad=False
        )
        for number, line in enumerate(lines):
            margin = self.rest if number else self.first
            filled = strip_line(line)
            if not filled:
                margin = margin.rstrip()
            if margin:
                yield Segment(margin, None if margin.isspace() else self.style)
            yield from filled
            yield Segment.line()


class Stack:
    """Parts below each other, with empty lines between them."""

    def __init__(self, parts: Sequence[RenderableType], gap: int = 1) -> None:
        self.parts = parts
        self.gap = gap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the parts in order."""
        for number, part in enumerate(self.parts):
            if number:
                yield from [Segment.line()] * self.gap
            yield from console.render(part, options.update(height=None))


class FoldedLines:
    """Lines that keep their breaks; a long line is folded, and its rest is marked."""

    def __init__(self, lines: Iterable[Text]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render each line, folded if it is too long."""
        width = options.max_width
        for line in self.lines:
            if "\t" in line.plain:
                line.expand_tabs(TAB)
            if line.cell_len <= width:
                line.stylize_before(line.style)  # rendering alone would drop it
                yield from line.render(console, "\n")
                continue
            # The rest is indented like the line, so that code keeps its shape.
            indent = min(len(line.plain) - len(line.plain.lstrip(" ")), width // 2)
            mark = " " * indent + _CONTINUED
            first, *rest = line.divide(_find_breaks(line.plain, width, max(1, width - len(mark))))
            first.rstrip()
            yield first
            for part in rest:
                part.rstrip()
                yield Text.assemble((mark, DIM), part)


def _find_breaks(text: str, first: int, rest: int) -> list[int]:
    """Where to break a line into parts of these widths: after a word, if one ends nearby."""
    found: list[int] = []
    start, room = 0, first
    while True:
        # Some characters have no width; a line of only such characters is broken, too.
        piece = text[start : start + 4 * room]
        fitting = len(chop_cells(piece, room)[0]) if cell_len(piece) > room else len(piece)
        end = start + max(1, fitting)
        if end >= len(text):
            return found
        space = text.rfind(" ", start + (end - start) // 2, end)
        start, room = end if space < 0 else space + 1, rest
        found.append(start)


class Gate:
    """The last step before the terminal: only text and our own styles pass.

    Texts are made harmless where they come from, because their width counts. The gate is a second
    line of defence, should one of those places be forgotten.
    """

    def __init__(self, inside: RenderableType) -> None:
        self.inside = inside

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the part without controls and links."""
        for text, style, control in console.render(self.inside, options):
            if control:
                continue
            if style is not None and style.link:
                style = style.update_link(None)  # noqa: PLW2901
            yield Segment(text if text == "\n" else make_visible(text), style)


@dataclass(frozen=True, slots=True)
class ClippedLines:
    """Some lines of a text, and how many are hidden after `head`."""

    head: list[str]
    hidden: int
    tail: list[str]


def clip(lines: Sequence[str], limit: int, tail: int = 0) -> ClippedLines:
    """Keep at most `limit` lines, the last `tail` of them from the end."""
    hidden = len(lines) - limit
    if hidden <= 1:  # the notice would take as much room as the line
        return ClippedLines(list(lines), 0, [])
    return ClippedLines(list(lines[: limit - tail]), hidden, list(lines[len(lines) - tail :]))


def shorten(line: str, limits: ViewLimits) -> str:
    """Cut a very long line, with a note."""
    hidden = len(line) - limits.line_characters
    return line if hidden <= 0 else f"{line[: limits.line_characters]} … {hidden:,} more characters"


class Notice(Text):
    """Says how much is hidden. Its `…` is in the margin, where no text of a notebook can be."""

    def __init__(self, hidden: int, things: str, remedy: str = "--expanded shows them") -> None:
        name = things if hidden != 1 else things.removesuffix("s")
        super().__init__(f"{hidden:,} more {name} ({remedy})", Style(dim=True, italic=True))
        self.hidden = hidden
        self.things = things


def strip_line(line: Sequence[Segment]) -> list[Segment]:
    """A line without the padding at its end, unless the padding has a colour."""
    kept = list(line)
    while kept:
        text, style, control = kept[-1]
        if control or (style is not None and (style.bgcolor or style.reverse or style.underline)):
            break
        if text.rstrip(" "):
            kept[-1] = Segment(text.rstrip(" "), style, control)
            break
        kept.pop()
    return kept
