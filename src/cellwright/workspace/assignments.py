"""How a value is assigned to a name, language by language."""

from __future__ import annotations

import json
import keyword
import math
import re
from typing import NamedTuple

from cellwright.errors import InvalidEdit, KernelCannot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_INT = 2**31
_name = re.compile(r"[^\W\d]\w*").fullmatch


def check_name(name: str) -> None:
    """Raise `InvalidEdit` unless it is a name in every language here."""
    if not _name(name) or keyword.iskeyword(name):
        raise InvalidEdit(f"`{name}` is no name for a parameter", hint="Letters, digits and _")


def assign(language: str, name: str, value: Any, *, declares: bool = False) -> str:
    """A line of code that gives a name a value; `declares` if no code may have done so before.

    Raises:
        KernelCannot: the language is not known here.
        InvalidEdit: it has no such value.
    """
    words = _LANGUAGES.get(_plain(language))
    if words is None:
        known = ", ".join(sorted(_LANGUAGES))
        raise KernelCannot(
            language or "unknown",
            "be given parameters: how they are written in this language is not known",
            hint=f"Known are {known}; set them in a cell",
        )
    form = words.declare if declares else words.assign
    return form.format(name=name, value=_write(words, value))


def _plain(language: str) -> str:
    word = language.lower()
    if word.startswith(("python", "ipython")):
        return "python"
    return {"typescript": "javascript", "ecmascript": "javascript", "sh": "bash"}.get(word, word)


class _Words(NamedTuple):
    """How one language writes things; a list or an object is made of its written parts."""

    assign: str
    true: str
    false: str
    null: str
    nan: str
    infinity: str
    text: Callable[[str], str]
    several: str | None
    pairs: str | None
    pair: str = ""
    separator: str = ", "
    declare: str = ""
    long: str = "{}"
    nests: bool = True


def _write(words: _Words, value: Any) -> str:
    if value is None:
        return words.null
    if isinstance(value, bool):
        return words.true if value else words.false
    if isinstance(value, str):
        return words.text(value)
    if isinstance(value, int):
        return words.long.format(value) if abs(value) >= _INT else str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return words.nan
        if math.isinf(value):
            return words.infinity if value > 0 else f"-{words.infinity}"
        return repr(value)
    if isinstance(value, (list, tuple)) and words.several is not None:
        if not words.nests and any(isinstance(item, (list, tuple, dict)) for item in value):
            raise InvalidEdit("a list in a list has no place in this language")
        return words.several.format(words.separator.join(_write(words, item) for item in value))
    if isinstance(value, dict) and words.pairs is not None:
        parts = [
            words.pair.format(_write(words, str(key)), _write(words, item))
            for key, item in value.items()
        ]
        return words.pairs.format(words.separator.join(parts))
    raise InvalidEdit(f"a parameter of type {type(value).__name__} cannot be written here")


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _with_dollar(text: str) -> str:
    # Neither Julia nor Kotlin leaves a dollar alone, and Kotlin has no word for a form feed.
    escaped = re.sub(r"\\(.)", lambda m: r"\u000c" if m[1] == "f" else m[0], _json(text))
    return escaped.replace("$", r"\$")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", r"'\''") + "'"


_LANGUAGES = {
    "python": _Words(
        *("{name} = {value}", "True", "False", "None", 'float("nan")', 'float("inf")'),
        *(repr, "[{}]", "{{{}}}", "{}: {}"),
        declare="{name} = {value}",
    ),
    "r": _Words(
        *("{name} <- {value}", "TRUE", "FALSE", "NULL", "NaN", "Inf"),
        *(_json, "list({})", "list({})", "{} = {}"),
        declare="{name} <- {value}",
    ),
    "julia": _Words(
        *("{name} = {value}", "true", "false", "nothing", "NaN", "Inf"),
        *(_with_dollar, "[{}]", "Dict({})", "{} => {}"),
        declare="{name} = {value}",
    ),
    "bash": _Words(
        *("{name}={value}", "true", "false", "''", "nan", "inf"),
        *(_quoted, "({})", None),
        separator=" ",
        declare="{name}={value}",
        nests=False,
    ),
    "javascript": _Words(
        *("{name} = {value};", "true", "false", "null", "NaN", "Infinity"),
        *(_json, "[{}]", "{{{}}}", "{}: {}"),
        declare="var {name} = {value};",
    ),
    "kotlin": _Words(
        *(
            "val {name} = {value}",
            "true",
            "false",
            "null",
            "Double.NaN",
            "Double.POSITIVE_INFINITY",
        ),
        *(_with_dollar, "listOf({})", "mapOf({})", "{} to {}"),
        declare="val {name} = {value}",
        long="{}L",
    ),
}
