"""A cell: its head, its source, and its outputs beside a rule."""

from __future__ import annotations

from dataclasses import replace

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import BOLD, DIM, Lines, Margin, Notice, clip, shorten
from cellwright.cli.render.outputs import joined_streams, markdown_parts, show_output
from cellwright.cli.render.source import highlight
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import make_visible, one_line
from cellwright.workspace.status import find_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from cellwright.cli.render.limits import View
    from cellwright.cli.render.outputs import Shown
    from cellwright.document.cells import Cell

# A sign and a word for each state; the colour only repeats them.
_STATES = {
    "ok": ("✓", Style(color="green")),
    "error": ("✗", Style(color="red", bold=True)),
    "never": ("○", DIM),
    "broken": ("✗", Style(color="red", bold=True)),
}
_TYPE = Style(color="cyan")
_LONGEST_NAME = 40
_MOST_TAGS = 5


class CellView:
    """Shows the cells of one notebook.

    `gutter` is the width of the widest index. The rule of outputs stands right of it, so that
    sources and outputs begin in the same column.
    """

    def __init__(self, view: View, language: str, gutter: int) -> None:
        self.width = view.width
        self.language = language
        self.gutter = gutter
        self.indent = " " * (gutter + 2)
        # Everything below a head stands right of the gutter.
        self.view = replace(view, width=max(1, view.width - len(self.indent)))

    def parts(self, cell: Cell) -> Iterator[RenderableType]:
        """The cell from head to last output, as it is to be printed."""
        yield self.head(cell)
        if cell.problem:
            yield from self._broken(cell)
            return
        source = self._source(cell)
        yield from source
        if not (self.view.outputs and cell.type == "code"):
            return
        try:
            outputs = joined_streams(cell.outputs)
        except CellwrightError as error:
            yield from self._ruled(Text(one_line(error.message)), Style(color="red"))
            return
        most = self.view.limits.outputs
        for number, output in enumerate(outputs[:most]):
            if number:
                yield Text(" " * self.gutter + "│", DIM)
            elif source:
                yield Text()
            yield from self._output(show_output(output, self.view))
        if len(outputs) > most:
            yield self._notice(Notice(len(outputs) - most, "outputs"))

    def head(self, cell: Cell) -> Text:
        """Index, name, type, count and status of a cell, and a line to the right edge."""
        state = "broken" if cell.problem else _status(cell)
        head = Text(no_wrap=True, overflow="crop")
        head.append(f"{cell.index:>{self.gutter}}  ", BOLD)
        head.append(_name(cell, max(8, min(_LONGEST_NAME, self.width - 30))))
        head.append(f"  {one_line(cell.type[:20])}", _TYPE)
        if cell.type == "code" and not cell.problem:
            count = _count(cell)
            head.append(f" [{' ' if count is None else count}]", DIM)
        if state is not None:
            sign, style = _STATES[state]
            head.append(f"  {sign} {state}", style)
        for tag in _tags(cell):
            head.append(f"  #{tag}", DIM)
        head.append(" ")
        head.truncate(self.width, overflow="ellipsis")
        return head.append("─" * (self.width - head.cell_len), DIM)

    def _source(self, cell: Cell) -> list[RenderableType]:
        if not cell.source.strip():
            return []
        if cell.type == "markdown":
            parts = markdown_parts(cell.source, self.view)
        else:
            parts = self._code(cell.source, "text" if cell.type == "raw" else self.language)
        return [
            self._notice(part) if isinstance(part, Notice) else Margin(part, self.indent)
            for part in parts
        ]

    def _code(self, source: str, language: str) -> list[RenderableType]:
        clipped = clip(source.rstrip("\n").split("\n"), self.view.limits.source_lines)
        # Before it is coloured, a text must be short and harmless.
        text = make_visible("\n".join(shorten(line, self.view.limits) for line in clipped.head))
        if self.view.colors and language != "text":
            lines = highlight(text, language)
        else:
            lines = [Text(line) for line in text.split("\n")]
        parts: list[RenderableType] = [Lines(lines)]
        return [*parts, Notice(clipped.hidden, "lines")] if clipped.hidden else parts

    def _output(self, shown: Shown) -> Iterator[RenderableType]:
        if shown.label is not None:
            yield from self._ruled(Text(shown.label, shown.style), shown.style)
        if shown.picture is not None:
            yield Graphic(shown.picture, self.view, " " * self.gutter + "│ ", shown.style)
        for part in shown.parts:
            if isinstance(part, Notice):
                yield self._notice(part)
            else:
                yield from self._ruled(part, shown.style)

    def _ruled(self, part: RenderableType, style: Style) -> Iterator[RenderableType]:
        yield Margin(part, " " * self.gutter + "│ ", style=style)

    def _notice(self, part: Notice) -> RenderableType:
        return Margin(part, " " * self.gutter + "… ", self.indent)

    def _broken(self, cell: Cell) -> Iterator[RenderableType]:
        """What is wrong with it, and how it begins in the file."""
        yield from self._ruled(
            Text(f"cell {cell.index} is not valid: {one_line(cell.problem or '')}"),
            Style(color="red"),
        )
        text = cell.raw[: self.view.limits.line_characters].decode("utf-8", "replace")
        clipped = clip(text.split("\n"), 5)
        yield from self._ruled(
            Lines(Text(make_visible(line[:200]), DIM) for line in clipped.head), Style(color="red")
        )


def _status(cell: Cell) -> str | None:
    try:
        return find_status(cell)
    except CellwrightError:
        return "broken"


def _count(cell: Cell) -> int | None:
    try:
        return cell.execution_count
    except CellwrightError:
        return None


def _name(cell: Cell, room: int) -> str:
    """What finds the cell; where that is not its id, the id too."""
    name = one_line(cell.handle[:200])
    if cell.id is not None and cell.id != cell.handle:
        name = f"{name} ({one_line(cell.id[:200])})"
    return name if len(name) <= room else f"{name[: room - 1]}…"


def _tags(cell: Cell) -> list[str]:
    try:
        tags = cell.metadata.get("tags")
    except CellwrightError:
        return []
    found = tags if isinstance(tags, list) else []
    return [one_line(tag[:40]) for tag in found[:_MOST_TAGS] if isinstance(tag, str)]
