"""What the person is asked before it is done, in which words, and what they allowed for good."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.tools.tool import Tool
    from cellwright.workspace.api.requests import Effect


Kind: TypeAlias = Literal["run", "delete", "overwrite"]
Decision: TypeAlias = Literal["no", "once", "chat", "notebook"]
"""No; this once; for the rest of this chat; for this notebook from now on."""

DECISIONS: dict[Decision, str] = {
    "once": "Allow",
    "chat": "Allow for this chat",
    "notebook": "Always allow for this notebook",
    "no": "Reject",
}
"""What a person may decide, in words for a button."""

_log = logging.getLogger("cellwright.assistant")
_PREVIEW = 2_000
_NAMED = 5
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something that a model wants to do, in words; `preview` shows what it is about."""

    kind: Kind
    notebook: str
    tool: str
    words: str
    preview: str = ""


Confirm: TypeAlias = Callable[[Operation], Awaitable[Decision]]
"""Asks the person about an operation."""


class Permissions:
    """What is allowed without asking, by notebook.

    Args:
        path: a file that remembers it; without one it is forgotten with this object.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._granted = self._read()

    def allows(self, kind: Kind, real: str) -> bool:
        """Whether an operation on the notebook at that path was allowed for good."""
        return kind in self._granted.get(real, ())

    def grant(self, kind: Kind, real: str) -> None:
        """Allow it from now on."""
        self._granted = self._read() | self._granted  # others may have written meanwhile
        self._granted[real] = sorted({*self._granted.get(real, ()), kind})
        self._write()

    def _read(self) -> dict[str, list[str]]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(real): [str(kind) for kind in kinds] for real, kinds in found.items()}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            _log.warning("%s cannot be read, so that nothing is allowed: %s", self._path, error)
            return {}

    def _write(self) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=self._path.parent, delete=False
        ) as file:
            json.dump(self._granted, file, indent=1)
        os.replace(file.name, self._path)  # noqa: PTH105


def find_kind(tool: Tool, arguments: Mapping[str, Any]) -> Kind | None:
    """What the person must confirm in a call; None if nothing."""
    if find_effect(tool, arguments) == "run":
        return "run"
    return "delete" if _deleted_cells(arguments) is not None else None


def find_effect(tool: Tool, arguments: Mapping[str, Any]) -> Effect:
    """The effect of a call, defaults included; one with invalid arguments only reads."""
    from pydantic import ValidationError

    try:
        return tool.effect(tool.model.model_validate(dict(arguments)).model_dump())
    except ValidationError:
        return "read"


def describe_operation(
    tool: Tool, arguments: Mapping[str, Any], kind: Kind, path: str, notebook: Notebook | None
) -> Operation:
    """A call in words, with cells counted from 1."""
    if kind == "overwrite":
        preview = _shorten_preview(str(arguments.get("content")))
        words = f"Overwrite {shorten(path, 100)}?"
        return Operation(kind=kind, notebook=path, tool=tool.name, words=words, preview=preview)
    refs = arguments.get("cellIds") or arguments.get("cells") if kind == "run" else None
    if kind == "delete":
        refs = _deleted_cells(arguments)
    cells = _find_cells(refs, notebook, is_run=kind == "run")
    numbers = [cell.index + 1 for cell in cells]
    preview = _preview_cells(cells)
    verb = "Run" if kind == "run" else "Delete"
    of = f" of {shorten(path, 100)}" if path else ""
    if len(numbers) == 1:
        words = f"{verb} cell {numbers[0]}{of}?"
    elif numbers:
        named = ", ".join(map(str, numbers[:_NAMED]))
        more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
        words = f"{verb} {len(numbers)} cells ({named}{more}){of}?"
    else:
        words = f"{tool.title or tool.name}{of}?"
        preview = _shorten_preview(json.dumps(dict(arguments), ensure_ascii=False, default=str))
    return Operation(kind=kind, notebook=path, tool=tool.name, words=words, preview=preview)


def _shorten_preview(text: str) -> str:
    """The beginning of a text, with a sign that there is more."""
    return text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1]}…"


def _deleted_cells(arguments: Mapping[str, Any]) -> list[Any] | None:
    """The cells that a call deletes, by whichever name; None if it deletes none."""
    edits = arguments.get("edits")
    if isinstance(edits, list):
        found = [
            edit.get("cell")
            for edit in edits
            if isinstance(edit, dict) and edit.get("op") == "delete"
        ]
        if found:
            return found
    if arguments.get("action") == "delete" or arguments.get("edit_mode") == "delete":
        return [arguments.get("cell_index", arguments.get("cell_id"))]
    count, start = arguments.get("delete_count"), arguments.get("start")
    if isinstance(count, int) and count > 0 and isinstance(start, int):
        return list(range(start, start + count))
    return None


def _preview_cells(cells: Sequence[Cell]) -> str:
    """The sources of cells; those of several are indented under their numbers."""
    if len(cells) == 1:
        return _shorten_preview(cells[0].source)
    parts = []
    for cell in cells[:_SHOWN]:
        source = textwrap.indent(_shorten_preview(cell.source), "  ")
        parts.append(f"cell {cell.index + 1}\n{source}")
    if len(cells) > _SHOWN:
        parts.append(f"and {len(cells) - _SHOWN} more cells")
    return "\n".join(parts)


def _find_cells(
    refs: Sequence[Any] | None, notebook: Notebook | None, *, is_run: bool
) -> list[Cell]:
    """The cells that a call is about; none if one is not known. A run passes over text."""
    if not isinstance(refs, (list, tuple)) or notebook is None:
        return []
    found: list[Cell] = []
    for ref in refs:
        try:
            cell = notebook.cell(ref)
        except (LookupError, TypeError):
            return []
        if all(cell.index != each.index for each in found):
            found.append(cell)
    if is_run:
        found = [cell for cell in found if cell.type == "code"] or found
    return found
