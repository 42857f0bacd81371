"""A notebook in the terminal, cell by cell; and as the JSON of `show --json`."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.style import Style
from rich.text import Text

from cellwright.cli.output import STATUS_SIGNS
from cellwright.cli.render.colors import highlight, language_of
from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import (
    BOLD,
    DIM,
    FoldedLines,
    Gate,
    Margin,
    Notice,
    Stack,
    clip,
    shorten,
)
from cellwright.cli.render.outputs import join_streams, markdown_parts, show_output
from cellwright.cli.render.screen import ScreenView, make_screen
from cellwright.document.outputs import Display, ErrorOutput, Result, Stream
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import make_visible, one_line
from cellwright.workspace.status import describe_cell, find_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from rich.console import RenderableType

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.document.outputs import Output
    from cellwright.workspace.api.answers import CellView

_BROKEN = ("✗", Style(color="red", bold=True))
_TYPE = Style(color="cyan")
_LONGEST_NAME = 40
_MOST_TAGS = 5
_WIDTH = 10_000  # programs want no folded lines


def render_notebook(
    notebook: Notebook,
    name: str,
    view: ScreenView,
    indexes: Sequence[int] | None = None,
    known: Mapping[str, CellView] | None = None,
) -> Iterator[RenderableType]:
    """Render a notebook lazily, cell by cell.

    Args:
        notebook: the notebook.
        name: its name in the heading.
        view: how to show it.
        indexes: the cells to show; all by default.
        known: what is on record of its cells, by handle; without it, the outputs tell.
    """
    metadata = _read_metadata(notebook)
    count = len(notebook.cells)
    gutter = max(2, len(str(count - 1)))
    cells = CellRenderer(view, language_of(metadata), gutter, known)
    yield render_heading(notebook, name, metadata, view.width)
    for index in range(count) if indexes is None else indexes:
        yield from _group_parts(cells.parts(notebook.cells[index]))


def _group_parts(parts: Iterator[RenderableType]) -> Iterator[RenderableType]:
    """Join the parts of a cell: each part is a write of its own."""
    texts: list[RenderableType] = [Text()]
    for part in parts:
        if isinstance(part, Graphic):
            yield Stack(texts, gap=0)
            yield part
            texts = []
        else:
            texts.append(part)
    yield Stack(texts, gap=0)


def render_heading(notebook: Notebook, name: str, metadata: dict[str, Any], width: int) -> Text:
    """The name of a notebook and facts about it, below the name if the line is too short."""
    count = len(notebook.cells)
    kernel = metadata.get("kernelspec")
    kernel = kernel if isinstance(kernel, dict) else {}
    facts = [f"{count:,} {'cell' if count == 1 else 'cells'}"]
    kernel_name = kernel.get("display_name") or kernel.get("name")
    if isinstance(kernel_name, str):
        facts.append(one_line(kernel_name[:80]))
    facts.append(f"nbformat {notebook.version}")
    title, about = Text(one_line(name), BOLD), Text(" · ".join(facts), DIM)
    fits = title.cell_len + 2 + about.cell_len <= width
    return Text.assemble(title, "  " if fits else "\n", about, overflow="fold")


def _read_metadata(notebook: Notebook) -> dict[str, Any]:
    try:
        return notebook.metadata
    except CellwrightError:
        return {}


class CellRenderer:
    """Shows the cells of one notebook.

    `gutter` is the width of the widest index. The rule of outputs is right of it, so that sources
    and outputs begin in the same column.
    """

    def __init__(
        self,
        view: ScreenView,
        language: str,
        gutter: int,
        known: Mapping[str, CellView] | None = None,
    ) -> None:
        self.known = known or {}
        self.width = view.width
        self.language = language
        self.gutter = gutter
        self.indent = " " * (gutter + 2)
        # Everything below a head is right of the gutter.
        self.view = replace(view, width=max(1, view.width - len(self.indent)))

    def parts(self, cell: Cell) -> Iterator[RenderableType]:
        """The parts of a cell, from its head to its last output."""
        yield self.head(cell)
        if cell.problem:
            yield from self._broken_parts(cell)
            return
        source = self._source(cell)
        yield from source
        if not (self.view.outputs and cell.type == "code"):
            return
        try:
            outputs = join_streams(cell.outputs)
        except CellwrightError as error:
            yield from self._add_rule(Text(one_line(error.message)), Style(color="red"))
            return
        most = self.view.limits.outputs
        for number, output in enumerate(outputs[:most]):
            if number:
                yield Text(" " * self.gutter + "│", DIM)
            elif source:
                yield Text()
            yield from self.output_parts(output)
        if len(outputs) > most:
            yield self._notice(Notice(len(outputs) - most, "outputs"))

    def head(self, cell: Cell) -> Text:
        """Index, name, type, count and status of a cell, and a line to the right edge."""
        state = "broken" if cell.problem else _status_of(cell, self.known)
        head = Text(no_wrap=True, overflow="crop")
        head.append(f"{cell.index:>{self.gutter}}  ", BOLD)
        head.append(_name_of(cell, max(8, min(_LONGEST_NAME, self.width - 30))))
        head.append(f"  {one_line(cell.type[:20])}", _TYPE)
        if cell.type == "code" and not cell.problem:
            count = _count_of(cell)
            head.append(f" [{' ' if count is None else count}]", DIM)
        if state is not None:
            sign, style = _look_of(state)
            head.append(f"  {sign} {state}", style)
        view = self.known.get(cell.handle)
        if view is not None and view.last_run is not None and view.last_run.duration_ms is not None:
            head.append(f"  {format_seconds(view.last_run.duration_ms / 1000)}", DIM)
        if view is not None and view.stale and state == "ok":  # else its status says why
            head.append(f"  ◌ stale{_describe_reason(view)}", Style(color="yellow"))
        for tag in _tags_of(cell):
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
        # A text must be short and harmless before it is coloured.
        text = make_visible("\n".join(shorten(line, self.view.limits) for line in clipped.head))
        if self.view.colors and language != "text":
            lines = highlight(text, language)
        else:
            lines = [Text(line) for line in text.split("\n")]
        parts: list[RenderableType] = [FoldedLines(lines)]
        return [*parts, Notice(clipped.hidden, "lines")] if clipped.hidden else parts

    def output_parts(self, output: Output) -> Iterator[RenderableType]:
        """The parts of one output, right of a rule."""
        shown = show_output(output, self.view)
        if shown.label is not None:
            yield from self._add_rule(Text(shown.label, shown.style), shown.style)
        if shown.picture is not None:
            yield Graphic(shown.picture, self.view, " " * self.gutter + "│ ", shown.style)
        for part in shown.parts:
            if isinstance(part, Notice):
                yield self._notice(part)
            else:
                yield from self._add_rule(part, shown.style)

    def _add_rule(self, part: RenderableType, style: Style) -> Iterator[RenderableType]:
        yield Margin(part, " " * self.gutter + "│ ", style=style)

    def _notice(self, part: Notice) -> RenderableType:
        return Margin(part, " " * self.gutter + "… ", self.indent)

    def _broken_parts(self, cell: Cell) -> Iterator[RenderableType]:
        """The problem of a broken cell, and its first lines in the file."""
        yield from self._add_rule(
            Text(f"cell {cell.index} is not valid: {one_line(cell.problem or '')}"),
            Style(color="red"),
        )
        text = cell.raw[: self.view.limits.line_characters].decode("utf-8", "replace")
        clipped = clip(text.split("\n"), 5)
        yield from self._add_rule(
            FoldedLines(Text(make_visible(line[:200]), DIM) for line in clipped.head),
            Style(color="red"),
        )


def _describe_reason(view: CellView) -> str:
    reason = one_line((view.stale_reason or "")[:200])
    return f": {reason}" if reason else ""


def format_seconds(seconds: float) -> str:
    """How long something took, in two or three digits."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _status_of(cell: Cell, known: Mapping[str, CellView]) -> str | None:
    if cell.type != "code":
        return None
    found = known.get(cell.handle)
    if found is not None and found.status is not None:
        return found.status
    try:
        status, _ = find_status(cell)
    except CellwrightError:
        return "broken"
    return status


def _look_of(state: str) -> tuple[str, Style]:
    if state == "broken":
        return _BROKEN
    sign, color = STATUS_SIGNS[state]
    return sign, DIM if color == "bright_black" else Style(color=color, bold=color == "red")


def _count_of(cell: Cell) -> int | None:
    try:
        return cell.execution_count
    except CellwrightError:
        return None


def _name_of(cell: Cell, room: int) -> str:
    """The handle of a cell; and its id, if that is different."""
    name = one_line(cell.handle[:200])
    if cell.id is not None and cell.id != cell.handle:
        name = f"{name} ({one_line(cell.id[:200])})"
    return name if len(name) <= room else f"{name[: room - 1]}…"


def _tags_of(cell: Cell) -> list[str]:
    try:
        tags = cell.metadata.get("tags")
    except CellwrightError:
        return []
    found = tags if isinstance(tags, list) else []
    return [one_line(tag[:40]) for tag in found[:_MOST_TAGS] if isinstance(tag, str)]


def describe_notebook(
    notebook: Notebook,
    path: str,
    indexes: Sequence[int],
    known: Mapping[str, CellView],
    *,
    expanded: bool,
    outputs: bool,
) -> dict[str, Any]:
    """Describe the cells of a notebook: whole sources, short outputs."""
    view = ScreenView(width=_WIDTH, expanded=expanded, outputs=outputs)
    return {
        "path": path,
        "revision": notebook.revision,
        "cells": [_describe_cell(notebook.cells[index], view, known) for index in indexes],
    }


def _describe_cell(cell: Cell, view: ScreenView, known: Mapping[str, CellView]) -> dict[str, Any]:
    described = (known.get(cell.handle) or describe_cell(cell)).to_json()
    del described["hash"]
    shown: list[Output] = []
    if view.outputs and cell.type == "code" and not cell.problem:
        try:
            shown = join_streams(cell.outputs)
        except CellwrightError as error:
            described["problem"] = error.message
    most = view.limits.outputs
    described["outputs"] = [_describe_output(output, view) for output in shown[:most]]
    described["hidden_outputs"] = max(0, len(shown) - most)
    return described


def _describe_output(output: Output, view: ScreenView) -> dict[str, Any]:
    shown = show_output(output, view)
    screen = make_screen(StringIO(), _WIDTH, colored=False)
    hidden: dict[str, int] = {}
    with screen.capture() as text:
        for part in shown.parts:
            if isinstance(part, Notice):
                hidden[part.things] = hidden.get(part.things, 0) + part.hidden
                screen.print(Text("…"))
            else:
                screen.print(Gate(part), crop=False)
    return {
        "kind": _kind_of(output),
        "mime_types": list(output.data) if isinstance(output, Display) else [],
        "text": "\n".join(line.rstrip() for line in text.get().rstrip("\n").split("\n")),
        "hidden": hidden,
    }


def _kind_of(output: Output) -> str:
    """`stdout`, `stderr`, `result`, `display`, `error` or `unknown`."""
    if isinstance(output, Stream):
        return output.name if output.name in {"stdout", "stderr"} else "stream"
    if isinstance(output, Result):
        return "result"
    if isinstance(output, Display):
        return "display"
    return "error" if isinstance(output, ErrorOutput) else "unknown"
