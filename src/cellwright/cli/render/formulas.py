"""Keep formulas in Markdown as they were written: underscores mean something else there."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_fence = re.compile(r" {0,3}(`{3,}|~{3,})")
_display = re.compile(r" {0,3}(?:(\$\$)|\\begin\{([a-z]+\*?)\})")
_code_span = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
# A price is no formula: what opens one has no space after it, what closes one none before it.
_inline = re.compile(r"(?<![\\$])\$(?![\s$])((?:\\.|[^$\\])+?)(?<!\s)\$(?![\d$])")
_punctuation = re.compile(r"([!-/:-@\[-`{-~])")
# A formula that nobody closes must not swallow the rest of the cell.
_MOST_LINES = 200
_LONGEST_LINE = 10_000


def protect_math(source: str) -> str:
    """Formulas of their own lines become blocks of LaTeX code, those within a line are escaped."""
    if "$" not in source and "\\begin{" not in source:
        return source
    return "\n".join(_lines(source.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    fence = ""
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        found = _fence.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
            yield line
        elif found:
            fence = found[1]
            yield line
        elif line.startswith(("    ", "\t")):
            yield line
        else:
            end = _end_of_display(lines, number - 1)
            if end is None:
                yield _escaped(line)
            else:
                block = "\n".join(lines[number - 1 : end]).strip()
                formula = block.removeprefix("$$").removesuffix("$$").strip()
                yield from ("", "````latex", formula, "````", "")
                number = end


def _end_of_display(lines: list[str], start: int) -> int | None:
    """Where a formula that starts with this line ends, if one does."""
    found = _display.match(lines[start])
    if not found:
        return None
    closing = "$$" if found[1] else f"\\end{{{found[2]}}}"
    if lines[start].rstrip().endswith(closing) and lines[start].strip() != closing:
        return start + 1
    if closing in lines[start][found.end() :]:
        return None  # text goes on after it
    for number in range(start + 1, min(len(lines), start + _MOST_LINES)):
        if lines[number].rstrip().endswith(closing):
            return number + 1
    return None


def _escaped(line: str) -> str:
    """A line in which formulas, but nothing in code, have their punctuation escaped."""
    if "$" not in line or len(line) > _LONGEST_LINE:
        return line
    result = []
    position = 0
    for span in _code_span.finditer(line):
        result += [_inline.sub(_escape, line[position : span.start()]), span[0]]
        position = span.end()
    return "".join([*result, _inline.sub(_escape, line[position:])])


def _escape(found: re.Match[str]) -> str:
    return _punctuation.sub(r"\\\1", found[0])
