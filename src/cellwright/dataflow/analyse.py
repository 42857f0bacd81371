"""`analyse`: what one cell defines, uses and changes, from its text alone."""

from __future__ import annotations

import ast
import functools
import keyword
import re
import warnings
from dataclasses import replace

from cellwright.dataflow import _tables as tables
from cellwright.dataflow._cell import CellScope
from cellwright.dataflow._magics import translate
from cellwright.dataflow._statements import TooDeep
from cellwright.dataflow.budget import CELL_LIMIT, TooMuchWork, WorkBudget
from cellwright.dataflow.facts import Uses, Value

_LONGEST = 500_000  # characters; what is longer is data, not a program
_MOST_LINES = 10_000
_REMEMBERED = 20_000  # characters: what is judged again and again is remembered, if it is short
_name = re.compile(r"[^\W\d]\w*").findall
_star = re.compile(r"\bimport\s*\*").search
_magic_sign = re.compile(
    r"^[ \t\f]*(?:%|!|\?|[\w., \t]+=[ \t]*[%!])|\?[ \t\f\r]*$", re.MULTILINE
).search


def analyse(source: str, language: str = "python") -> Uses:
    """Say what a cell does to names, without running it.

    Never raises, whatever the text. Where the text cannot tell, the answer says more uses and more
    changes rather than fewer, or that the cell is opaque. What a call changes is a policy, stated
    in `_policy`. Languages other than Python are opaque unless the cell is blank.
    """
    if not source or source.isspace():
        return _EMPTY
    if not is_python(language):
        return Uses(opaque=(f"its language, {language or 'unknown'}",))
    return _remembered(source) if len(source) <= _REMEMBERED else _analyse(source)


def is_python(language: str) -> bool:
    """Whether cells of this language are analysed by name."""
    return language.lower().startswith(("python", "ipython"))


_EMPTY = Uses()


def _analyse(source: str) -> Uses:
    if len(source) > _LONGEST or source.count("\n") > _MOST_LINES:
        return Uses(opaque=("code too large to analyse",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _walk(source)
        except SyntaxError as error:
            return _mentioned(source, error.msg or "invalid syntax")
        except ValueError as error:  # null characters, lone surrogates
            return _mentioned(source, str(error))
        except TooMuchWork:
            return Uses(opaque=("code too large to analyse",), work=CELL_LIMIT)
        except (RecursionError, MemoryError, OverflowError, TooDeep):
            return Uses(opaque=("code nested too deeply to analyse",), work=len(source))


_remembered = functools.lru_cache(maxsize=2048)(_analyse)


def _walk(source: str) -> Uses:
    if not source.lstrip().startswith("%%"):
        try:
            tree = ast.parse(source)
        except SyntaxError:
            if not _magic_sign(source):
                raise
        else:
            return _scope(tree, source, plain=True).facts()
    translated = translate(source)
    text = translated.text
    scope = _scope(ast.parse(text), text, plain=False)
    scope.opaque += translated.opaque
    scope.environment |= translated.environment
    if translated.forgets:
        facts = scope.facts()
        facts = replace(facts, defines=frozenset(), perhaps=frozenset(), deletes=frozenset())
        facts = replace(facts, values={}, stable={}, origins={}, early=frozenset())
    else:
        for name in translated.defines:
            scope.bind(name, Value())
        facts = scope.facts()
    return facts


def _scope(tree: ast.Module, text: str, *, plain: bool) -> CellScope:
    # As `ast` counts lines: not at form feeds and the like.
    scope = CellScope(re.split(r"\r\n|\r|\n", text), WorkBudget(CELL_LIMIT), plain=plain)
    scope.cell(tree.body)
    return scope


def _mentioned(source: str, problem: str) -> Uses:
    """No Python, or a newer one than ours: it may do anything to the names that it mentions."""
    names = frozenset(_name(source)) - frozenset(keyword.kwlist)
    ours = names - tables.BUILTINS - tables.PROVIDED
    opaque = [f"`{name}`" for name in sorted(names & tables.OPAQUE_CALLS)]
    if _star(source):
        opaque.append("`import *`")
    return Uses(
        defines=ours,
        uses=ours,
        mutates=ours,
        perhaps=ours,
        opaque=tuple(opaque),
        syntax_error=problem,
        loads=dict.fromkeys(ours, 0),
        values=dict.fromkeys(
            ours, Value(frozenset((n, True) for n in ours), frozenset((n, True) for n in ours))
        )
        if len(ours) < 500
        else {},
        changes=frozenset((name, True) for name in ours),
        work=len(source),
    )
