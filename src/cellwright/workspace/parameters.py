"""Parameters of a run, as papermill has them: values for the cell that is tagged `parameters`.

They are set in the kernel right after that cell; the notebook itself is not touched.
"""

from __future__ import annotations

import json
import re

from cellwright.errors import InvalidEdit
from cellwright.workspace.assignments import assign, check_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell

TAG = "parameters"
_WORDS = {"True": True, "False": False, "None": None, "~": None}
_number = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII).fullmatch
_leading_zero = re.compile(r"[-+]?0\d", re.ASCII).match


def parse_parameters(texts: Iterable[str]) -> dict[str, Any]:
    """Take `NAME=VALUE`, as a command line has them; the last one of a name counts.

    A value is JSON where it can be: numbers, `true`, `false`, `null`, quoted text, lists and
    objects. `True`, `False` and `None` are understood, and so are `.5` and `+1`. Everything else
    is the text itself, `007` and an empty value included.

    Raises:
        InvalidEdit: one of them is no `NAME=VALUE`.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise InvalidEdit(f"the parameter `{text}`", hint="Write it as NAME=VALUE")
        found[name.strip()] = parse_value(value)
    return found


def parse_value(text: str) -> Any:
    """What the value of a parameter stands for."""
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
        self.cell = next((cell for cell in cells if _is_tagged(cell)), None) if values else None

    def __bool__(self) -> bool:
        return bool(self._values)

    def source(self, language: str) -> str:
        """The code that sets them.

        Raises:
            KernelCannot: nobody has said how that is written in this language.
            InvalidEdit: this language has no such name or value.
        """
        declares = self.cell is None
        return "\n".join(
            assign(language, name, value, declares=declares) for name, value in self._values.items()
        )

    def notes(self, language: str) -> list[str]:
        """Which of them the tagged cell does not know; likely they are misspelt."""
        cell = self.cell
        if cell is None:
            return []
        unknown = [name for name in self._values if not _assigns(cell.source, name, language)]
        return [
            f"The parameter `{name}` is not assigned in cell {cell.handle}, which is tagged {TAG}"
            for name in unknown
        ]


def _is_tagged(cell: Cell) -> bool:
    tags = cell.metadata.get("tags")
    return isinstance(tags, list) and TAG in tags


def _assigns(source: str, name: str, language: str) -> bool:
    from cellwright.dataflow.analyse import analyse, is_python

    if is_python(language):
        return name in analyse(source).defines
    pattern = rf"(?<![\w.]){re.escape(name)}\s*(?::[^=\n]*)?(?:=(?!=)|<-)"
    return re.search(pattern, source) is not None
