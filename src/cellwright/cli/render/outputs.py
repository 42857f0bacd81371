"""The outputs of a cell: which of its types to show, and how."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import groupby

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.ansi import styled_lines
from cellwright.cli.render.html import is_about_tables, read_html
from cellwright.cli.render.images import FORMATS, Blocks, picture_size, read_picture
from cellwright.cli.render.json_tree import json_tree
from cellwright.cli.render.layout import DIM, Lines, Notice, clip, shorten
from cellwright.cli.render.markdown import MarkdownView
from cellwright.cli.render.modes import possible, want_of
from cellwright.cli.render.tables import data_table
from cellwright.document.outputs import Display, Error, Stream
from cellwright.outputs.sanitize import fold_lines, one_line
from cellwright.outputs.tables import Grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rich.console import RenderableType

    from cellwright.cli.render.images import Picture
    from cellwright.cli.render.limits import View
    from cellwright.document.outputs import Output

_STDERR = Style(color="yellow")
_ERROR = Style(color="red")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_STATUS = ("application/x-cellwright-status", "application/x-omp-status")
_MOST_NAMED = 4
# What `repr` says of an object that shows itself otherwise.
_placeholder = re.compile(r"<[^<>\n]*>")
_dashes = re.compile(r"\A(?:\x1b\[[0-9;]*m)*-{20,}(?:\x1b\[[0-9;]*m)*\n")
_gap_in_head = re.compile(r" {3,}(?=Traceback \(most recent call last\))")


@dataclass(slots=True)
class Shown:
    """An output as parts, one below the other, beside a rule in some style."""

    parts: list[RenderableType] = field(default_factory=list)
    style: Style = DIM
    label: str | None = None
    picture: Picture | None = None  # to be drawn by the terminal itself


def show_output(output: Output, view: View) -> Shown:
    """What a cell printed, showed or raised."""
    if isinstance(output, Stream):
        return _stream(output, view)
    if isinstance(output, Display):
        return _display(output.data, view)
    if isinstance(output, Error):
        return _error(output, view)
    value = output.value
    kind = value.get("output_type") if isinstance(value, dict) else type(value).__name__
    return Shown([Text(f"unknown output: {one_line(str(kind)[:80])}", DIM)])


def joined_streams(outputs: Iterable[Output]) -> list[Output]:
    """The outputs with what was printed in pieces put together."""
    joined: list[Output] = []
    for name, group in groupby(outputs, lambda output: getattr(output, "name", None)):
        if name is None:
            joined.extend(group)
        else:
            joined.append(Stream(name, "".join(output.text for output in group)))  # type: ignore[union-attr]
    return joined


# -- text that a program printed ----------------------------------------------------------------


def text_parts(text: str, view: View, tail: int) -> list[RenderableType]:
    """Printed text, in its colours; of a long one the first lines and the last `tail`."""
    limits = view.limits
    clipped = clip(text.rstrip("\n").split("\n"), limits.output_lines, tail)
    head = [shorten(line, limits) for line in fold_lines("\n".join(clipped.head))]
    last = (
        [shorten(line, limits) for line in fold_lines("\n".join(clipped.tail))]
        if clipped.tail
        else []
    )
    lines = styled_lines([*head, *last])
    if not clipped.hidden:
        return [Lines(lines)]
    parts: list[RenderableType] = [Lines(lines[: len(head)])] if clipped.head else []
    parts.append(Notice(clipped.hidden, "lines"))
    return [*parts, Lines(lines[len(head) :])] if last else parts


def _stream(stream: Stream, view: View) -> Shown:
    parts = text_parts(stream.text, view, view.limits.output_lines // 3)
    if stream.name == "stdout":
        return Shown(parts)
    return Shown(parts, _STDERR, one_line(stream.name[:80]))


def _error(error: Error, view: View) -> Shown:
    text = "\n".join(error.traceback) or f"{error.ename}: {error.evalue}"
    text = _gap_in_head.sub("  ", _dashes.sub("", text, count=1), count=1)
    # What was raised stands at the end, where it was raised shortly before.
    return Shown(text_parts(text, view, view.limits.output_lines - 3), _ERROR)


# -- what a cell showed -------------------------------------------------------------------------


def _display(data: Mapping[str, Any], view: View) -> Shown:
    """The best of several types.

    For text that is Markdown, then plain, then HTML, as for every other reader of outputs; but
    people see a table of HTML before its plain text, which has no idea of the terminal's width.
    """
    for mime in FORMATS:
        # A formula comes as a picture too, which half-blocks only make illegible.
        if mime in data and "text/latex" not in data:
            return _picture(mime, data[mime], view)
    if "application/json" in data:
        return Shown([Lines(json_tree(data["application/json"], view.limits))])
    parts = _text(data, view)
    others = [mime for mime in data if not mime.startswith("text/")]
    if not (parts or others):
        others = list(data)
    named = [_named(mime, data[mime]) for mime in others[:_MOST_NAMED]]
    return Shown([*parts, *named])


def _text(data: Mapping[str, Any], view: View) -> list[RenderableType]:
    given = {mime: value for mime, value in data.items() if isinstance(value, str)}
    blocks = []
    if "text/html" in given:
        blocks = read_html(given["text/html"], view.limits.html_characters)
        if is_about_tables(blocks):
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


def html_parts(blocks: list[Text | Grid], view: View) -> list[RenderableType]:
    """The paragraphs and tables of HTML, with empty lines between them."""
    parts: list[RenderableType] = []
    lines = 0
    for number, block in enumerate(blocks):
        if isinstance(block, Grid):
            found: list[RenderableType] = []
            found.extend(data_table(block, view.width, view.limits.table_rows))
        else:
            lines += block.plain.count("\n") + 2
            found = [block]
        if lines > view.limits.output_lines and number < len(blocks) - 1:
            return [*parts, Notice(len(blocks) - number, "paragraphs")]
        parts.extend([Text(), *found] if parts else found)
    return parts


def markdown_parts(source: str, view: View) -> list[RenderableType]:
    """A text in Markdown, or as many lines of it as a source may have."""
    clipped = clip(source.split("\n"), view.limits.source_lines)
    head = "\n".join(shorten(line, view.limits) for line in clipped.head)
    parts: list[RenderableType] = [MarkdownView(head, view)]
    return [*parts, Notice(clipped.hidden, "lines")] if clipped.hidden else parts


def _picture(mime: str, value: Any, view: View) -> Shown:
    mode = possible(view.images)
    hints = [] if mode == view.images else view.once.say(want_of(view.images))
    wants: list[RenderableType] = [Text(hint, DIM) for hint in hints]
    if mode == "none":
        return Shown([_named(mime, value, picture_size(mime, value)), *wants])
    picture = read_picture(mime, value)
    if picture is None:
        return Shown([_named(mime, value), *wants])
    if mode == "blocks":
        named = _named(mime, value, picture.image.size)
        return Shown([Blocks(picture, view.image_rows), named, *wants])
    return Shown(picture=picture)


def _named(mime: str, value: Any, size: tuple[int, int] | None = None) -> Text:
    """What there is, for types that a terminal does not show."""
    if mime in _STATUS:
        return Text(f"status: {one_line(json.dumps(value)[:200])}", DIM)
    if mime == _WIDGET:
        return Text("widget", DIM)
    facts = [
        one_line(mime[:80]),
        *([f"{size[0]}×{size[1]}"] if size else []),
        human_size(_bytes(mime, value)),
    ]
    if mime in FORMATS and size is None:
        facts.append("not readable")
    return Text(", ".join(facts), DIM)


def _bytes(mime: str, value: Any) -> int:
    if isinstance(value, str):
        is_encoded = mime.startswith(("image/", "audio/", "video/")) and "xml" not in mime
        is_encoded = is_encoded or mime == "application/pdf"
        return (
            len(value.rstrip("\n=")) * 3 // 4
            if is_encoded
            else len(value.encode("utf-8", "replace"))
        )
    return len(json.dumps(value))


def human_size(size: int) -> str:
    """A number of bytes as people say it."""
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
