"""Parameters of a run, as papermill has them: values for the cell that is tagged `parameters`.

They are set in the kernel right after that cell; the notebook itself is not touched.
"""

from __future__ import annotations

import json
import keyword
import math
import re
from typing import NamedTuple

from cellwright.dataflow.records import quote_id
from cellwright.errors import InvalidEdit, KernelCannot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell

TAG = "parameters"
_WORDS = {"True": True, "False": False, "None": None, "~": None}
_number = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII).fullmatch
_leading_zero = re.compile(r"[-+]?0\d", re.ASCII).match


def parse_parameters(texts: Iterable[str], file: str = "") -> dict[str, Any]:
    """Take `NAME=VALUE`, as a command line has them; the last one of a name counts.

    A value is JSON where it can be: numbers, `true`, `false`, `null`, quoted text, lists and
    objects. `True`, `False` and `None` are understood, and so are `.5` and `+1`. Everything else
    is the text itself, `007` and an empty value included. `file` is how the caller takes a file of
    parameters, for the hint.

    Raises:
        InvalidEdit: one of them is no `NAME=VALUE`.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            hint = "Write it as NAME=VALUE" + (f", and a file of them as `{file}`" if file else "")
            raise InvalidEdit(f"the parameter `{text}`", hint=hint)
        found[name.strip()] = parse_value(value)
    return found


def parse_value(text: str) -> Any:
    """Return the value that a text of a command line means."""
    word = text.strip()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        pass
    if _number(word) and not _leading_zero(word):
        return float(word) if re.search(r"[.eE]", word) else int(word)
    if len(word) > 1 and word[0] == word[-1] == "'":
        return word[1:-1].replace("''", "'")
    return text


class Parameters:
    """The values for one run, and the cell after which they are set."""

    def __init__(self, values: Mapping[str, Any], cells: Sequence[Cell]) -> None:
        self._values = dict(values)
        for name in self._values:
            check_name(name)
        self.cell = next((cell for cell in cells if has_tag(cell, TAG)), None) if values else None
        self._cells = cells

    def __bool__(self) -> bool:
        return bool(self._values)

    def source(self, language: str) -> str:
        """The code that sets them.

        Raises:
            KernelCannot: how that is written in this language is not known.
            InvalidEdit: this language has no such name or value.
        """
        declares = self.cell is None
        return "\n".join(
            assign(language, name, value, declares=declares) for name, value in self._values.items()
        )

    def notes(self, language: str) -> list[str]:
        """Which of them the tagged cell does not know; likely they are misspelt.

        Without a tagged cell: which of them a cell that runs after them sets to its own value.
        """
        cell = self.cell
        if cell is None:
            return [
                f"Cell {quote_id(last.handle)} assigns the parameter `{name}` again; tag it {TAG}, "
                "and parameters are set after it"
                for name in self._values
                for last in self._cells
                if last.type == "code" and _assigns(last.source, name, language)
            ]
        unknown = [name for name in self._values if not _assigns(cell.source, name, language)]
        return [
            f"The parameter `{name}` is not assigned in cell {quote_id(cell.handle)}, which is "
            f"tagged {TAG}"
            for name in unknown
        ]


def has_tag(cell: Cell, tag: str) -> bool:
    """Whether a cell has a tag."""
    tags = cell.metadata.get("tags")
    return isinstance(tags, list) and tag in tags


def _assigns(source: str, name: str, language: str) -> bool:
    from cellwright.dataflow.analyse import analyse, is_python

    if is_python(language):
        return name in analyse(source).defines
    pattern = rf"(?<![\w.]){re.escape(name)}\s*(?::[^=\n]*)?(?:=(?!=)|<-)"
    return re.search(pattern, source) is not None


# -- how a value is assigned to a name, language by language ------------------------------------

_INT = 2**31
_name = re.compile(r"[^\W\d]\w*").fullmatch


def check_name(name: str) -> None:
    """Raise `InvalidEdit` unless it is a name in every language here."""
    if not _name(name) or keyword.iskeyword(name):
        raise InvalidEdit(
            f"`{name}` cannot be the name of a parameter", hint="Letters, digits and _"
        )


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


def _quote(text: str) -> str:
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
        *(_quote, "({})", None),
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
