"""What is beside the rule of a card: text, outputs, and sources with signs at changed lines."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.colors import highlight
from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import DIM, FoldedLines, Margin, Notice, clip, shorten
from cellwright.cli.render.outputs import join_streams, show_output
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import make_visible, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from cellwright.cli.render.view import ScreenView
    from cellwright.document.outputs import Output

GUTTER = 2
"""Columns for the numbers of cards; everything else begins two columns further right."""

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

_LONGEST_COMPARED = 5_000
_match_hunk = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@").match


class CardFrame:
    """Puts parts beside the rule; `remedy` says how to see what is hidden."""

    def __init__(self, view: ScreenView, remedy: str) -> None:
        self.view = view
        self.remedy = remedy

    def add_rule(
        self, part: RenderableType, style: Style = DIM, rule: str = RULE
    ) -> RenderableType:
        """A part beside the rule; a `Notice` gets a sign in place of the rule."""
        if isinstance(part, Notice):
            return Margin(Notice(part.hidden, part.things, self.remedy), CUT, INDENT)
        return Margin(part, rule, style=style)

    def words(self, text: str, style: Style = DIM) -> RenderableType:
        """Lines of text beside a rule in a style."""
        return Margin(
            FoldedLines(Text(line) for line in make_visible(text).split("\n")), RULE, style=style
        )

    def warning(self, text: str) -> RenderableType:
        """A warning that something was cut, with a sign in place of the rule."""
        return Margin(Text(one_line(text), WARNING), CUT, INDENT, style=WARNING)

    def part(self, title: Text) -> RenderableType:
        """The title of a part, with a sign in place of the rule."""
        return Margin(title, PART, INDENT)

    def pointer(self, artifact: str) -> RenderableType:
        """The name of an artifact, and the command that prints it."""
        name = one_line(artifact[:80])
        text = Text.assemble(f"artifact://{name}", (f"  cellwright artifact {name}", DIM))
        return Margin(text, POINTER, INDENT)

    def outputs(self, outputs: Iterable[Output]) -> Iterator[RenderableType]:
        """The outputs of a cell, as `show` shows them."""
        try:
            shown = join_streams(outputs)
        except CellwrightError as error:
            yield self.words(error.message, BAD)
            return
        most = self.view.limits.outputs
        for number, output in enumerate(shown[:most]):
            if number:
                yield Text(RULE.rstrip(), DIM)
            yield from self._output(output)
        if len(shown) > most:
            yield self.add_rule(Notice(len(shown) - most, "outputs"))

    def _output(self, output: Output) -> Iterator[RenderableType]:
        shown = show_output(output, self.view)
        if shown.label is not None:
            yield self.add_rule(Text(shown.label, shown.style), shown.style)
        if shown.picture is not None:
            yield Graphic(shown.picture, self.view, RULE, shown.style)
        for part in shown.parts:
            yield self.add_rule(part, shown.style)


def source_parts(
    source: str,
    kind: str,
    language: str,
    frame: CardFrame,
    old: str | None = None,
    most: int | None = None,
) -> Iterator[RenderableType]:
    """A source beside the rule, cut to the lines that a source may have.

    Args:
        source: the source.
        kind: the type of its cell.
        language: the language of the notebook's code.
        frame: puts it beside the rule.
        old: the source before; new and removed lines are marked.
        most: how many lines to show; by default as many as a source may have.
    """
    lines = source.rstrip("\n").split("\n") if source.strip() else []
    if not lines:
        yield frame.add_rule(Text("(empty)", DIM))
        return
    rows = _compare_lines(old, lines)
    clipped = clip([row.text for row in rows], most or frame.view.limits.source_lines)
    yield from _row_parts(rows[: len(clipped.head)], _choose_language(kind, language), frame)
    if clipped.hidden:
        yield frame.add_rule(Notice(clipped.hidden, "lines"))


def hunk_parts(diff: str, kind: str, language: str, frame: CardFrame) -> Iterator[RenderableType]:
    """All lines of the diff of one cell's source, in the look of a source.

    Args:
        diff: hunks, with or without the lines that name the cell.
        kind: the type of the cell.
        language: the language of the notebook's code.
        frame: puts it beside the rule.
    """
    lines = diff.splitlines()
    if lines[:1] and lines[0].startswith("@@ cell "):
        lines = lines[1:]
    elif len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ "):
        lines = lines[2:]
    rows: list[_DiffRow] = []
    for line in lines:
        hunk = _match_hunk(line)
        if hunk is None:
            rows.append(_DiffRow(line[:1] or " ", line[1:]))
            continue
        yield from _row_parts(rows, _choose_language(kind, language), frame)
        rows = []
        if int(hunk[1]) > 1:
            yield frame.part(Text(f"line {hunk[1]}", DIM))
    yield from _row_parts(rows, _choose_language(kind, language), frame)


class _DiffRow(NamedTuple):
    sign: str
    text: str


def _choose_language(kind: str, language: str) -> str:
    return {"markdown": "markdown", "raw": "text"}.get(kind, language)


def _row_parts(
    rows: Sequence[_DiffRow], language: str, frame: CardFrame
) -> Iterator[RenderableType]:
    limits = frame.view.limits
    texts = iter(_color_lines([row.text for row in rows if row.sign != "-"], language, frame.view))
    for sign, group in groupby(rows, lambda row: row.sign):
        if sign == "-":
            removed = [Text(make_visible(shorten(row.text, limits)), BAD) for row in group]
            yield frame.add_rule(FoldedLines(removed), BAD, REMOVED)
        else:
            rule, style = (ADDED, GOOD) if sign == "+" else (RULE, DIM)
            yield frame.add_rule(FoldedLines([next(texts) for _ in group]), style, rule)


def _color_lines(lines: Sequence[str], language: str, view: ScreenView) -> list[Text]:
    # A text must be short and harmless before it is coloured.
    text = make_visible("\n".join(shorten(line, view.limits) for line in lines))
    if not (view.colors and language != "text" and text.strip()):
        return [Text(line) for line in text.split("\n")]
    found = highlight(text, language)
    # Colouring drops empty lines at the end.
    return [*found, *(Text() for _ in range(len(lines) - len(found)))]


def _compare_lines(old: str | None, lines: Sequence[str]) -> list[_DiffRow]:
    """The lines of a source, each marked as kept, new or removed."""
    before = old.rstrip("\n").split("\n") if old else []
    if old is None or max(len(before), len(lines)) > _LONGEST_COMPARED:
        return [_DiffRow(" ", line) for line in lines]
    matcher = SequenceMatcher(None, before, list(lines), autojunk=False)
    rows: list[_DiffRow] = []
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            rows += [_DiffRow("-", line) for line in before[first:last]]
        rows += [_DiffRow(" " if kind == "equal" else "+", line) for line in lines[start:end]]
    return rows
