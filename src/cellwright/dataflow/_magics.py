"""IPython's own syntax turned into Python that does the same to names."""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass, field

from cellwright.dataflow import _tables as tables

_cell_magic = re.compile(r"\s*%%([\w!]+)([^\n]*)\n?").match
_line_magic = re.compile(r"(\s*)%{1,2}(\w+)[ \t]*(.*)").fullmatch
_shell = re.compile(r"(\s*)!!?(.*)").fullmatch
_assigned = re.compile(r"(\s*)([\w.,\s\[\]'\"]+?)\s*=\s*(!|%(\w+))(.*)").fullmatch
_help = re.compile(r"(\s*)(?:\?{1,2}\s*([\w.*]+)|([\w.*%\[\]]+)\?{1,2})\s*;?\s*").fullmatch
_expanded = re.compile(r"\{([^{}]+)\}|\$(\w+)").findall
_option = re.compile(r"--?\w[\w-]*(?:\s*=\s*\S+|\s+\d+(?=\s))?\s*").match
_name = re.compile(r"[^\W\d]\w*").findall


@dataclass(slots=True)
class Translated:
    """A cell as plain Python; what could not be said in Python stands beside it."""

    text: str
    opaque: list[str] = field(default_factory=list)
    defines: list[str] = field(default_factory=list)
    environment: bool = False
    forgets: bool = False


def translate(source: str) -> Translated:
    """The cell as Python; a cell in another language becomes an empty one."""
    found = _cell_magic(source)
    if not found:
        result = Translated("")
        result.text = _lines(source, result)
        return result
    magic, line, body = found[1], found[2].strip(), source[found.end() :]
    result = Translated("")
    if magic in tables.OTHER_LANGUAGES:
        result.text = _mentions(line)
        words = line.split()
        result.defines = [
            name
            for option, name in itertools.pairwise(words)
            if option in {"--out", "--err", "--proc"} and name.isidentifier()
        ]
    elif magic in tables.RUNS_PYTHON:
        inner = translate(body)
        result = inner
        result.forgets = magic in tables.FORGETS
        if magic == "capture":
            result.defines += [word for word in line.split() if word.isidentifier()]
        else:
            result.text = f"{_statement(line)}\n{inner.text}"
    else:
        result.opaque.append(f"`%%{magic}`")
    return result


def _lines(source: str, result: Translated) -> str:
    lines = source.replace("\r\n", "\n").split("\n")
    out: list[str] = []
    k = 0
    while k < len(lines):
        line = lines[k]
        k += 1
        if not any(sign in line for sign in "%!?"):
            out.append(line)
            continue
        while line.endswith("\\") and k < len(lines) and line.lstrip()[:1] in {"!", "%"}:
            line = line[:-1] + lines[k]
            k += 1
        out.append(_line(line, result))
    return "\n".join(out)


def _line(line: str, result: Translated) -> str:
    if found := _line_magic(line):
        return found[1] + _magic(found[1], found[2], found[3], result)
    if found := _shell(line):
        return found[1] + _mentions(found[2])
    if (found := _assigned(line)) and not (found[4] or "").isdigit():
        magic = found[4]
        if magic and magic not in tables.QUIET_LINES and magic not in tables.RUNS_PYTHON:
            result.opaque.append(f"`%{magic}`")
        return f"{found[1]}{found[2]} = [{', '.join(_names(found[5]))}]"
    if found := _help(line):
        names = [name for name in _name(found[2] or found[3]) if name.isidentifier()][:1]
        return found[1] + _load(names)
    return line


def _magic(indent: str, magic: str, rest: str, result: Translated) -> str:
    if magic in tables.RUNS_PYTHON:
        statement = _statement(rest)
        if magic in tables.FORGETS and not _is_expression(statement):
            return f"def _forgotten():\n{indent}    {statement}\n{indent}_forgotten()"
        return statement
    if magic in tables.QUIET_LINES:
        result.environment |= magic in tables.ENVIRONMENT_LINES
        return _mentions(rest)
    result.opaque.append(f"`%{magic}`")
    return _mentions(rest)


def _statement(text: str) -> str:
    """The Python after a magic's options."""
    text = text.strip()
    while text.startswith("-") and (found := _option(text)):
        text = text[found.end() :]
    if not text:
        return "pass"
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _load(_name(text))
    return text


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _mentions(text: str) -> str:
    """Names that a command line takes in as `{name}` or `$name`."""
    return _load(_names(text))


def _names(text: str) -> list[str]:
    return [
        name
        for braces, dollar in _expanded(text)
        for name in _name(braces or dollar)
        if not (dollar and name.isupper())  # `$HOME` is the shell's
    ]


def _load(names: list[str]) -> str:
    import keyword

    names = [name for name in names if not keyword.iskeyword(name)]
    return f"({', '.join(names)},)" if names else "pass"
