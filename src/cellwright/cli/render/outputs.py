"""The outputs of a cell: which of their types to show, and how."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import groupby

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.colors import style_lines
from cellwright.cli.render.images import (
    FORMATS,
    HalfBlocks,
    describe_missing,
    find_possible_mode,
    picture_size,
    read_picture,
)
from cellwright.cli.render.layout import DIM, FoldedLines, Notice, clip, shorten
from cellwright.cli.render.markdown import MarkdownView
from cellwright.document.outputs import Display, ErrorOutput, Stream
from cellwright.outputs.sanitize import fold_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from rich.console import RenderableType

    from cellwright.cli.render.images import DecodedPicture
    from cellwright.cli.render.screen import ScreenView, ViewLimits
    from cellwright.document.outputs import Output
    from cellwright.outputs.tables import Grid


_STDERR = Style(color="yellow")
_ERROR_STYLE = Style(color="red")
_KEY = Style(color="blue")
_STRING = Style(color="green")
_NUMBER = Style(color="cyan")
_WORD = Style(color="magenta")
_LONGEST_TEXT = 200
_WIDGET = "application/vnd.jupyter.widget-view+json"
_MOST_NAMED = 4
# The `repr` of an object that has a better output.
_placeholder = re.compile(r"<[^<>\n]*>")
_dashes = re.compile(r"\A(?:\x1b\[[0-9;]*m)*-{20,}(?:\x1b\[[0-9;]*m)*\n")
_gap_in_head = re.compile(r" {3,}(?=Traceback \(most recent call last\))")


@dataclass(slots=True)
class ShownOutput:
    """The parts of an output, and the style of the rule beside them."""

    parts: list[RenderableType] = field(default_factory=list)
    style: Style = DIM
    label: str | None = None
    picture: DecodedPicture | None = None  # the terminal draws it


def show_output(output: Output, view: ScreenView) -> ShownOutput:
    """Render what a cell printed, showed or raised."""
    if isinstance(output, Stream):
        return _show_stream(output, view)
    if isinstance(output, Display):
        return _show_display(output.data, view)
    if isinstance(output, ErrorOutput):
        return _show_error(output, view)
    value = output.value
    kind = value.get("output_type") if isinstance(value, dict) else type(value).__name__
    return ShownOutput([Text(f"unknown output: {one_line(str(kind)[:80])}", DIM)])


def join_streams(outputs: Iterable[Output]) -> list[Output]:
    """The outputs, with neighbouring pieces of a stream joined."""
    joined: list[Output] = []
    for name, group in groupby(outputs, lambda output: getattr(output, "name", None)):
        if name is None:
            joined.extend(group)
        else:
            joined.append(Stream(name, "".join(output.text for output in group)))  # type: ignore[union-attr]
    return joined


# -- text that a program printed ----------------------------------------------------------------


def text_parts(text: str, view: ScreenView, tail: int) -> list[RenderableType]:
    """Render printed text in its colours; of a long one the first lines and the last `tail`."""
    limits = view.limits
    clipped = clip(text.rstrip("\n").split("\n"), limits.output_lines, tail)
    head = [shorten(line, limits) for line in fold_lines("\n".join(clipped.head))]
    last = (
        [shorten(line, limits) for line in fold_lines("\n".join(clipped.tail))]
        if clipped.tail
        else []
    )
    lines = style_lines([*head, *last])
    if not clipped.hidden:
        return [FoldedLines(lines)]
    parts: list[RenderableType] = [FoldedLines(lines[: len(head)])] if clipped.head else []
    parts.append(Notice(clipped.hidden, "lines"))
    return [*parts, FoldedLines(lines[len(head) :])] if last else parts


def _show_stream(stream: Stream, view: ScreenView) -> ShownOutput:
    parts = text_parts(stream.text, view, view.limits.output_lines // 3)
    if stream.name == "stdout":
        return ShownOutput(parts)
    return ShownOutput(parts, _STDERR, one_line(stream.name[:80]))


def _show_error(error: ErrorOutput, view: ScreenView) -> ShownOutput:
    text = "\n".join(error.traceback) or f"{error.ename}: {error.evalue}"
    text = _gap_in_head.sub("  ", _dashes.sub("", text, count=1), count=1)
    # The error is at the end, and the place where it was raised shortly before.
    return ShownOutput(text_parts(text, view, view.limits.output_lines - 3), _ERROR_STYLE)


# -- what a cell showed -------------------------------------------------------------------------


def _show_display(data: Mapping[str, Any], view: ScreenView) -> ShownOutput:
    """Render the best of several types.

    For text that is Markdown, then plain, then HTML, as for every other reader of outputs. But an
    HTML table comes before its plain text, which is not made for the width of the terminal.
    """
    for mime in FORMATS:
        # A formula comes as a picture, too, which is illegible as half-blocks.
        if mime in data and "text/latex" not in data:
            return _show_picture(mime, data[mime], view)
    if "application/json" in data:
        return ShownOutput([FoldedLines(render_tree(data["application/json"], view.limits))])
    parts = _text_parts_of(data, view)
    others = [mime for mime in data if not mime.startswith("text/")]
    if not (parts or others):
        others = list(data)
    named = [_name_type(mime, data[mime]) for mime in others[:_MOST_NAMED]]
    return ShownOutput([*parts, *named])


def _text_parts_of(data: Mapping[str, Any], view: ScreenView) -> list[RenderableType]:
    given = {mime: value for mime, value in data.items() if isinstance(value, str)}
    blocks: list[Text | Grid] = []
    if "text/html" in given:
        from cellwright.cli.render.tables import is_mostly_table, read_html

        blocks = read_html(given["text/html"], view.limits.html_characters)
        if is_mostly_table(blocks):
            return html_parts(blocks, view)
    if "text/markdown" in given:
        return markdown_parts(given["text/markdown"], view)
    plain, latex = given.get("text/plain"), given.get("text/latex")
    says_more = bool(blocks or latex) or any(not mime.startswith("text/") for mime in data)
    if plain is not None and not (says_more and _placeholder.fullmatch(plain)):
        return text_parts(plain, view, view.limits.output_lines // 3)
    if latex is not None:
        return text_parts(latex, view, 0)
    if blocks:
        return html_parts(blocks, view)
    known = {"text/html", "text/plain"}
    others = [mime for mime in given if mime.startswith("text/") and mime not in known]
    return text_parts(given[others[0]], view, 0) if others else []


def html_parts(blocks: list[Text | Grid], view: ScreenView) -> list[RenderableType]:
    """Render the paragraphs and tables of HTML, with empty lines between them."""
    from cellwright.cli.render.tables import render_table  # which most first screens need not

    parts: list[RenderableType] = []
    lines = 0
    for number, block in enumerate(blocks):
        if not isinstance(block, Text):
            found: list[RenderableType] = []
            found.extend(render_table(block, view.width, view.limits.table_rows))
        else:
            lines += block.plain.count("\n") + 2
            found = [block]
        if lines > view.limits.output_lines and number < len(blocks) - 1:
            return [*parts, Notice(len(blocks) - number, "paragraphs")]
        parts.extend([Text(), *found] if parts else found)
    return parts


def markdown_parts(source: str, view: ScreenView) -> list[RenderableType]:
    """Render Markdown, at most as many lines as a source may have."""
    clipped = clip(source.split("\n"), view.limits.source_lines)
    head = "\n".join(shorten(line, view.limits) for line in clipped.head)
    parts: list[RenderableType] = [MarkdownView(head, view)]
    return [*parts, Notice(clipped.hidden, "lines")] if clipped.hidden else parts


def _show_picture(mime: str, value: Any, view: ScreenView) -> ShownOutput:
    mode = find_possible_mode(view.images)
    hints = [] if mode == view.images else view.once.take(describe_missing(view.images))
    wants: list[RenderableType] = [Text(hint, DIM) for hint in hints]
    if mode == "none":
        return ShownOutput([_name_type(mime, value, picture_size(mime, value)), *wants])
    picture = read_picture(mime, value)
    if picture is None:
        return ShownOutput([_name_type(mime, value), *wants])
    if mode == "blocks":
        named = _name_type(mime, value, picture.image.size)
        return ShownOutput([HalfBlocks(picture, view.image_rows), named, *wants])
    return ShownOutput(picture=picture)


def _name_type(mime: str, value: Any, size: tuple[int, int] | None = None) -> Text:
    """Name a type that a terminal cannot show, with its size."""
    from cellwright.outputs.mime import STATUS_TYPES, part_size  # which reads charts and HTML

    if mime in STATUS_TYPES:
        return Text(f"status: {one_line(json.dumps(value)[:200])}", DIM)
    if mime == _WIDGET:
        return Text("widget", DIM)
    facts = [
        one_line(mime[:80]),
        *([f"{size[0]}×{size[1]}"] if size else []),
        format_size(part_size(mime, value)),
    ]
    if mime in FORMATS and size is None:
        facts.append("not readable")
    return Text(", ".join(facts), DIM)


def format_size(size: int) -> str:
    """A number of bytes with a unit."""
    if size < 1000:
        return f"{size} B"
    for unit in ("kB", "MB", "GB"):
        size_in_unit = size / 1000
        if size_in_unit < 1000:
            return (
                f"{size_in_unit:.0f} {unit}" if size_in_unit >= 10 else f"{size_in_unit:.1f} {unit}"
            )
        size = size // 1000
    return f"{size:,} GB"


def render_tree(value: Any, limits: ViewLimits) -> list[Text]:
    """Render a value of JSON as the lines of a tree, to a limited depth."""
    return [_render_leaf(value), *_render_children(value, limits, 1, "")]


def _render_children(value: Any, limits: ViewLimits, level: int, guide: str) -> Iterator[Text]:
    if level > limits.json_depth or not isinstance(value, (dict, list)):
        return
    items = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
    shown = items[: limits.json_items]
    if len(items) - len(shown) == 1:  # the notice would take as much room
        shown = items
    hidden = len(items) - len(shown)
    for number, (key, item) in enumerate(shown):
        is_last = number == len(shown) - 1 and not hidden
        line = Text().append(guide + ("└─ " if is_last else "├─ "), DIM)
        if key is not None:
            line.append(one_line(_cut_text(str(key))), _KEY).append(": ", DIM)
        yield line.append_text(_render_leaf(item))
        yield from _render_children(item, limits, level + 1, guide + ("   " if is_last else "│  "))
    if hidden:
        yield Text(f"{guide}└─ … {hidden:,} more", DIM)


def _render_leaf(value: Any) -> Text:
    """A value, or the size of an object or array."""
    if isinstance(value, dict):
        return Text(f"{{}} {len(value):,} {'key' if len(value) == 1 else 'keys'}", DIM)
    if isinstance(value, list):
        return Text(f"[] {len(value):,} {'item' if len(value) == 1 else 'items'}", DIM)
    if isinstance(value, str):
        return Text(one_line(json.dumps(_cut_text(value), ensure_ascii=False)), _STRING)
    style = _WORD if value is None or isinstance(value, bool) else _NUMBER
    return Text(_cut_text(json.dumps(value)), style)


def _cut_text(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
