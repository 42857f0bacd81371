"""The headings of a notebook: the names of its sections, and where they begin and end."""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cellwright.text.view import TextView

_hashes = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)").match
_fence = re.compile(r" {0,3}(`{3,}|~{3,})").match
_underline = re.compile(r" {0,3}(?:={3,}|-{3,})[ \t]*").fullmatch
# A paragraph does not begin with these: lists, quotes, HTML, tables, indented code.
_no_paragraph = re.compile(r"[ ]{0,3}(?:[-*+>|<]|\d{1,9}[.)])|    |\t").match
_tag = re.compile(r"<[^<>]*>").sub
_link = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)").sub


class Heading(NamedTuple):
    """A heading and its section: the lines up to the next heading of the same or a higher level.

    `line` is the line of the heading. `first` and `last` are those of the section, which includes
    the marker of a cell that begins with the heading.
    """

    level: int
    title: str
    line: int
    first: int
    last: int
    cell: int


def find_headings(view: TextView) -> list[Heading]:
    """All headings of the markdown cells, in order."""
    found: list[Heading] = []
    for index, lines in enumerate(view.cells):
        if lines.cell.type != "markdown":
            continue
        source = lines.cell.source.split("\n")
        top = next((k for k, line in enumerate(source) if line.strip()), 0)
        for k, level, title in _parse_headings(source):
            line = lines.first + k
            first = lines.marker if k == top else line
            found.append(Heading(level, title, line, first, 0, index))
    ends: list[tuple[int, int]] = [(0, view.cells[-1].last)] if view.cells else []
    for k in range(len(found) - 1, -1, -1):
        # A later heading of a deeper level does not end this section or an earlier one.
        while ends[-1][0] > found[k].level:
            ends.pop()
        found[k] = found[k]._replace(last=ends[-1][1])
        ends.append((found[k].level, found[k].first - 1))
    return found


def _parse_headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """The headings of one markdown text: index of the line, level and title."""
    fence = ""
    paragraph: list[str] = []
    for k, full in enumerate(lines):
        line = full.removesuffix("\r")
        mark = _fence(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in line[mark.end() :]):
            fence = mark[1]
            paragraph = []
        elif found := _hashes(line):
            yield k, len(found[1]), _title(line[found.end() :])
            paragraph = []
        elif paragraph and _underline(line):
            level = 1 if "=" in line else 2
            yield k - len(paragraph), level, " ".join(paragraph)
            paragraph = []
        elif not line.strip() or _no_paragraph(line):
            paragraph = []
        else:
            paragraph.append(line.strip())


def _title(text: str) -> str:
    """The text of a heading, without the hashes that may close it."""
    text = text.strip()
    opened = text.rstrip("#")
    return opened.rstrip() if not opened or opened[-1] in " \t" else text


def plain_title(title: str) -> str:
    """A title as a person would type it from memory: without markup, case and extra space."""
    title = _link(r"\1", _tag("", title))
    return fold_title(title.replace("*", "").replace("`", "").replace("\\", ""))


def fold_title(title: str) -> str:
    """A title without case and extra space."""
    return " ".join(title.casefold().split())
