"""The source of a cell on a card: in its language, with signs at lines that are new or gone."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from rich.text import Text

from cellwright.cli.render.cards.frame import ADDED, BAD, GOOD, REMOVED, RULE
from cellwright.cli.render.layout import DIM, Lines, Notice, clip, shorten
from cellwright.cli.render.source import highlight
from cellwright.outputs.sanitize import make_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from cellwright.cli.render.cards.frame import Frame
    from cellwright.cli.render.limits import View

_LONGEST_COMPARED = 5_000
_hunk = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@").match


def source_parts(
    source: str,
    kind: str,
    language: str,
    frame: Frame,
    old: str | None = None,
    most: int | None = None,
) -> Iterator[RenderableType]:
    """A source beside the rule, cut to what a source may have.

    Args:
        source: it.
        kind: the type of its cell; markdown is coloured as such, code as the notebook's language.
        language: that language.
        frame: what it stands beside.
        old: what it was before; lines that are new or gone since are marked.
        most: lines to show; by default what a source may have.
    """
    lines = source.rstrip("\n").split("\n") if source.strip() else []
    if not lines:
        yield frame.ruled(Text("(empty)", DIM))
        return
    rows = _compared(old, lines)
    clipped = clip([row.text for row in rows], most or frame.view.limits.source_lines)
    yield from _row_parts(rows[: len(clipped.head)], _hint(kind, language), frame)
    if clipped.hidden:
        yield frame.ruled(Notice(clipped.hidden, "lines"))


def hunk_parts(diff: str, kind: str, language: str, frame: Frame) -> Iterator[RenderableType]:
    """The diff of one cell's source, in the look of a source; every line of it.

    Args:
        diff: hunks, with or without the lines that name the cell.
        kind: the type of the cell.
        language: that of the notebook.
        frame: what it stands beside.
    """
    lines = diff.splitlines()
    if lines[:1] and lines[0].startswith("@@ cell "):
        lines = lines[1:]
    elif len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ "):
        lines = lines[2:]
    rows: list[_Row] = []
    for line in lines:
        hunk = _hunk(line)
        if hunk is None:
            rows.append(_Row(line[:1] or " ", line[1:]))
            continue
        yield from _row_parts(rows, _hint(kind, language), frame)
        rows = []
        if int(hunk[1]) > 1:
            yield frame.part(Text(f"line {hunk[1]}", DIM))
    yield from _row_parts(rows, _hint(kind, language), frame)


def _hint(kind: str, language: str) -> str:
    return {"markdown": "markdown", "raw": "text"}.get(kind, language)


def _row_parts(rows: Sequence[_Row], language: str, frame: Frame) -> Iterator[RenderableType]:
    limits = frame.view.limits
    texts = iter(_colored([row.text for row in rows if row.sign != "-"], language, frame.view))
    for sign, group in groupby(rows, lambda row: row.sign):
        if sign == "-":
            removed = [Text(make_visible(shorten(row.text, limits)), BAD) for row in group]
            yield frame.ruled(Lines(removed), BAD, REMOVED)
        else:
            rule, style = (ADDED, GOOD) if sign == "+" else (RULE, DIM)
            yield frame.ruled(Lines([next(texts) for _ in group]), style, rule)


def _colored(lines: Sequence[str], language: str, view: View) -> list[Text]:
    # Before it is coloured, a text must be short and harmless.
    text = make_visible("\n".join(shorten(line, view.limits) for line in lines))
    if not (view.colors and language != "text" and text.strip()):
        return [Text(line) for line in text.split("\n")]
    found = highlight(text, language)
    # Colouring drops empty lines at the end; they count all the same.
    return [*found, *(Text() for _ in range(len(lines) - len(found)))]


class _Row(NamedTuple):
    sign: str
    text: str


def _compared(old: str | None, lines: Sequence[str]) -> list[_Row]:
    """The lines of a source, each with what it is: kept, new, or gone."""
    before = old.rstrip("\n").split("\n") if old else []
    if old is None or max(len(before), len(lines)) > _LONGEST_COMPARED:
        return [_Row(" ", line) for line in lines]
    matcher = SequenceMatcher(None, before, list(lines), autojunk=False)
    rows: list[_Row] = []
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            rows += [_Row("-", line) for line in before[first:last]]
        rows += [_Row(" " if kind == "equal" else "+", line) for line in lines[start:end]]
    return rows
