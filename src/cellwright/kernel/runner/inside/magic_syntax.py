r"""Cells with magics, as Python: `%name`, `!command`, `x = !command`, `%%name`.

Only a cell that is not Python comes here. A magic can only be where a statement begins: not in
strings, brackets or continued lines. Every line keeps its number, so that tracebacks are right.
"""

from __future__ import annotations

import re

CALL = "__cellwright__"

MAGIC = re.compile(
    r"""
    (?P<indent>[ \t]*)
    (?: (?P<target>[A-Za-z_][\w.\[\]'", ]*?) [ \t]* =(?!=) [ \t]* )?
    (?: (?P<shell>!!?) (?P<command>.*) | %(?P<name>[A-Za-z_]\w*) (?P<line>.*) )
    """,
    re.VERBOSE | re.DOTALL,
)
CELL_MAGIC = re.compile(r"\s*%%(?P<name>[A-Za-z_]\w*)(?P<line>[^\n]*)\n?")
LINE = re.compile(r"[^\n]*\n|[^\n]+")


def translate(source: str) -> str | None:
    """Give the cell as Python; None when it has no magics."""
    found = CELL_MAGIC.match(source)
    if found:
        parts = [found["name"], found["line"].strip(), source[found.end() :]]
        return f"{CALL}.cell({', '.join(map(repr, parts))})\n"
    lines = LINE.findall(source)
    result: list[str] = []
    count = number = 0
    while number < len(lines):
        after = _after_continued(lines, number)
        text = "".join(lines[number:after])
        magic = MAGIC.fullmatch(text.rstrip("\r\n"))
        if magic:
            result.append(_call(magic) + "\n" * text.count("\n"))
            count += 1
        else:
            after = _after_statement(lines, number)
            result += lines[number:after]
        number = after
    return "".join(result) if count else None


def _call(magic: re.Match[str]) -> str:
    target = f"{magic['target']} = " if magic["target"] else ""
    if magic["shell"]:
        command = _join_lines(magic["command"]).strip()
        gives = target or magic["shell"] == "!!"
        method = "capture" if gives else "shell"
        return f"{magic['indent']}{target}{CALL}.{method}({command!r})"
    line = _join_lines(magic["line"]).strip()
    return f"{magic['indent']}{target}{CALL}.line({magic['name']!r}, {line!r})"


def _join_lines(text: str) -> str:
    return re.sub(r"\\\r?\n", " ", text)


def _is_continued(line: str) -> bool:
    return line.rstrip("\r\n").endswith("\\")


def _after_statement(lines: list[str], first: int) -> int:
    """Give the number of the line after the statement of Python that begins here."""
    closing = ""  # the quotes that end the string we are in
    depth = 0
    for number in range(first, len(lines)):
        closing, depth = _scan(lines[number], closing, depth)
        if not closing and depth <= 0 and not _is_continued(lines[number]):
            return number + 1
    # Brackets or strings that never close: go on line by line, the compiler will complain.
    return first + 1


def _after_continued(lines: list[str], first: int) -> int:
    number = first
    while number < len(lines) and _is_continued(lines[number]):
        number += 1
    return min(number + 1, len(lines))


def _scan(line: str, closing: str, depth: int) -> tuple[str, int]:
    """Follow strings and brackets through a line."""
    place = 0
    while place < len(line):
        char = line[place]
        if closing:
            if char == "\\":
                place += 1
            elif line.startswith(closing, place):
                place += len(closing) - 1
                closing = ""
        elif char == "#":
            break
        elif char in "\"'":
            closing = line[place : place + 3] if line[place : place + 3] == char * 3 else char
            place += len(closing) - 1
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        place += 1
    # A string in single quotes ends with its line, unless that is continued.
    if len(closing) == 1 and not _is_continued(line):
        closing = ""
    return closing, depth
