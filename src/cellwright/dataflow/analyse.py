"""`analyse`: what one cell defines, uses and changes, from its text alone."""

from __future__ import annotations

import ast
import functools
import itertools
import keyword
import re
import warnings
from dataclasses import dataclass, field, replace

from cellwright.dataflow import _known_names as known_names
from cellwright.dataflow._scopes import CellScope, NestedTooDeep
from cellwright.dataflow.budget import CELL_LIMIT, TooMuchWork, WorkBudget
from cellwright.dataflow.facts import CellFacts, ValueExpression

_LONGEST = 500_000  # characters; what is longer is data, not a program
_MOST_LINES = 10_000
# Characters: what is judged again and again is remembered, if it is short; the shortest for longer.
_SHORT = 1_000
_REMEMBERED = 20_000
_find_words = re.compile(r"[^\W\d]\w*").findall
_star = re.compile(r"\bimport\s*\*").search
_magic_sign = re.compile(
    r"^[ \t\f]*(?:%|!|\?|[\w., \t]+=[ \t]*[%!])|\?[ \t\f\r]*$", re.MULTILINE
).search
_cell_magic = re.compile(r"\s*%%([\w!]+)([^\n]*)\n?").match
_line_magic = re.compile(r"(\s*)%{1,2}(\w+)[ \t]*(.*)").fullmatch
_shell = re.compile(r"(\s*)!!?(.*)").fullmatch
_assignment = re.compile(r"(\s*)([\w.,\s\[\]'\"]+?)\s*=\s*(!|%(\w+))(.*)").fullmatch
_help = re.compile(r"(\s*)(?:\?{1,2}\s*([\w.*]+)|([\w.*%\[\]]+)\?{1,2})\s*;?\s*").fullmatch
_find_expanded = re.compile(r"\{([^{}]+)\}|\$(\w+)").findall
_option = re.compile(r"--?\w[\w-]*(?:\s*=\s*\S+|\s+\d+(?=\s))?\s*").match


def analyse(source: str, language: str = "python") -> CellFacts:
    """Say what a cell does to names, without running it.

    Never raises, for any text. Where the text cannot tell, the answer says more uses and more
    changes rather than fewer, or that the cell is opaque. What a call changes is a policy, stated
    in `_policy`. Languages other than Python are opaque unless the cell is blank.
    """
    if not source or source.isspace():
        return _EMPTY
    if not is_python(language):
        return CellFacts(opaque=(f"its language, {language or 'unknown'}",))
    if len(source) > _REMEMBERED:
        return _analyse(source)
    return _analyse_short(source) if len(source) <= _SHORT else _analyse_long(source)


def is_python(language: str) -> bool:
    """Whether cells of this language are analysed by name."""
    return language.lower().startswith(("python", "ipython"))


_EMPTY = CellFacts()


def _analyse(source: str) -> CellFacts:
    if len(source) > _LONGEST or source.count("\n") > _MOST_LINES:
        return CellFacts(opaque=("code too large to analyse",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _walk_source(source)
        except SyntaxError as error:
            return _describe_invalid(source, error.msg or "invalid syntax")
        except ValueError as error:  # null characters, lone surrogates
            return _describe_invalid(source, str(error))
        except TooMuchWork:
            return CellFacts(opaque=("code too large to analyse",), work=CELL_LIMIT)
        except (RecursionError, MemoryError, OverflowError, NestedTooDeep):
            return CellFacts(opaque=("code nested too deeply to analyse",), work=len(source))


# All cells of a notebook have to fit: they are judged in order, so the last would drop the first.
_analyse_short = functools.lru_cache(maxsize=2**14)(_analyse)
_analyse_long = functools.lru_cache(maxsize=2**11)(_analyse)


def _walk_source(source: str) -> CellFacts:
    if not source.lstrip().startswith("%%"):
        try:
            tree = ast.parse(source)
        except SyntaxError:
            if not _magic_sign(source):
                raise
        else:
            return _walk_tree(tree, source, plain=True).collect_facts()
    translated = translate(source)
    text = translated.text
    scope = _walk_tree(ast.parse(text), text, plain=False)
    scope.opaque += translated.opaque
    scope.environment |= translated.environment
    if translated.forgets:
        facts = scope.collect_facts()
        facts = replace(facts, defines=frozenset(), perhaps=frozenset(), deletes=frozenset())
        facts = replace(facts, values={}, stable={}, origins={}, early=frozenset())
    else:
        for name in translated.defines:
            scope.bind(name, ValueExpression())
        facts = scope.collect_facts()
    return facts


def _walk_tree(tree: ast.Module, text: str, *, plain: bool) -> CellScope:
    # As `ast` counts lines: not at form feeds and the like.
    scope = CellScope(re.split(r"\r\n|\r|\n", text), WorkBudget(CELL_LIMIT), plain=plain)
    scope.walk_cell(tree.body)
    return scope


def _describe_invalid(source: str, problem: str) -> CellFacts:
    """Not Python, or a newer one than ours: it may do anything to the names that it mentions."""
    names = frozenset(_find_words(source)) - frozenset(keyword.kwlist)
    ours = names - known_names.BUILTINS - known_names.PROVIDED
    opaque = [f"`{name}`" for name in sorted(names & known_names.OPAQUE_CALLS)]
    if _star(source):
        opaque.append("`import *`")
    return CellFacts(
        defines=ours,
        uses=ours,
        perhaps=ours,
        opaque=tuple(opaque),
        syntax_error=problem,
        loads=dict.fromkeys(ours, 0),
        values=dict.fromkeys(
            ours,
            ValueExpression(frozenset((n, True) for n in ours), frozenset((n, True) for n in ours)),
        )
        if len(ours) < 500
        else {},
        changes=frozenset((name, True) for name in ours),
        work=len(source),
    )


# --- IPython's own syntax ----------------------------------------------------------------------


@dataclass(slots=True)
class TranslatedCell:
    """A cell as plain Python, and what Python cannot express."""

    text: str
    opaque: list[str] = field(default_factory=list)
    defines: list[str] = field(default_factory=list)
    environment: bool = False
    forgets: bool = False


def translate(source: str) -> TranslatedCell:
    """The cell as Python; a cell in another language becomes an empty one."""
    found = _cell_magic(source)
    if not found:
        result = TranslatedCell("")
        result.text = _translate_lines(source, result)
        return result
    magic, line, body = found[1], found[2].strip(), source[found.end() :]
    result = TranslatedCell("")
    if magic in known_names.OTHER_LANGUAGES:
        result.text = _read_expanded(line)
        words = line.split()
        result.defines = [
            name
            for option, name in itertools.pairwise(words)
            if option in {"--out", "--err", "--proc"} and name.isidentifier()
        ]
    elif magic in known_names.RUNS_PYTHON:
        inner = translate(body)
        result = inner
        result.forgets = magic in known_names.FORGETS
        if magic == "capture":
            result.defines += [word for word in line.split() if word.isidentifier()]
        else:
            result.text = f"{_strip_options(line)}\n{inner.text}"
    else:
        result.opaque.append(f"`%%{magic}`")
    return result


def _translate_lines(source: str, result: TranslatedCell) -> str:
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
        out.append(_translate_line(line, result))
    return "\n".join(out)


def _translate_line(line: str, result: TranslatedCell) -> str:
    if found := _line_magic(line):
        return found[1] + _translate_magic(found[1], found[2], found[3], result)
    if found := _shell(line):
        return found[1] + _read_expanded(found[2])
    if (found := _assignment(line)) and not (found[4] or "").isdigit():
        magic = found[4]
        if magic and magic not in known_names.QUIET_LINES and magic not in known_names.RUNS_PYTHON:
            result.opaque.append(f"`%{magic}`")
        return f"{found[1]}{found[2]} = [{', '.join(_list_expanded(found[5]))}]"
    if found := _help(line):
        names = [name for name in _find_words(found[2] or found[3]) if name.isidentifier()][:1]
        return found[1] + _read_names(names)
    return line


def _translate_magic(indent: str, magic: str, rest: str, result: TranslatedCell) -> str:
    if magic in known_names.RUNS_PYTHON:
        statement = _strip_options(rest)
        if magic in known_names.FORGETS and not _is_expression(statement):
            return f"def _forgotten():\n{indent}    {statement}\n{indent}_forgotten()"
        return statement
    if magic in known_names.QUIET_LINES:
        result.environment |= magic in known_names.ENVIRONMENT_LINES
        return _read_expanded(rest)
    result.opaque.append(f"`%{magic}`")
    return _read_expanded(rest)


def _strip_options(text: str) -> str:
    """The Python after a magic's options."""
    text = text.strip()
    while text.startswith("-") and (found := _option(text)):
        text = text[found.end() :]
    if not text:
        return "pass"
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _read_names(_find_words(text))
    return text


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _read_expanded(text: str) -> str:
    """Names that a command line takes in as `{name}` or `$name`."""
    return _read_names(_list_expanded(text))


def _list_expanded(text: str) -> list[str]:
    return [
        name
        for braces, dollar in _find_expanded(text)
        for name in _find_words(braces or dollar)
        if not (dollar and name.isupper())  # `$HOME` is the shell's
    ]


def _read_names(names: list[str]) -> str:
    names = [name for name in names if not keyword.iskeyword(name)]
    return f"({', '.join(names)},)" if names else "pass"
