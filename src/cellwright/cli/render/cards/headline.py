"""The headline of a card: which action on which cell of which notebook."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from cellwright.assistant.models.model import ToolCall
    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook

_LONGEST_NAME = 40
_LONGEST_ARGUMENTS = 200
_NAMED = 5
_VERBS = {"edit": "Update", "replace": "Update", "insert": "Add", "delete": "Delete"}
_FILES = {"read": "Read", "edit": "Edit", "write": "Write"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What a call does.

    `action` is in words, with cells counted from 1; `name` and `kind` are the name and the type of
    the cell.
    """

    action: str
    name: str = ""
    kind: str = ""
    path: str = ""


def make_headline(
    call: ToolCall, notebook: Notebook | None, path: str, title: str = ""
) -> Headline:
    """Describe a call.

    Args:
        call: the tool and its arguments, which come from a model.
        notebook: the notebook of the call, before it.
        path: the path of the notebook.
        title: the title of the tool, for tools that are not known here.
    """
    arguments = call.arguments
    where = one_line(path[:300])
    maker = _KNOWN.get(call.name)
    if maker is not None:
        return maker(arguments, notebook, where)
    if call.name in _FILES and isinstance(arguments.get("path"), str):
        return Headline(action=f"{_FILES[call.name]} file", path=one_line(arguments["path"][:300]))
    if isinstance(arguments.get("cells"), list) and call.name in ("python", "eval"):
        count = len(arguments["cells"])
        return Headline(action="Run code" if count == 1 else f"Run {count} pieces of code")
    words = json.dumps(dict(arguments), ensure_ascii=False, default=str)
    words = words if len(words) <= _LONGEST_ARGUMENTS else f"{words[: _LONGEST_ARGUMENTS - 1]}…"
    name = one_line(title or call.name[:_LONGEST_NAME])
    return Headline(action=name, name="" if words == "{}" else one_line(words), path=where)


def find_cells(refs: object, notebook: Notebook | None) -> list[Cell]:
    """The cells that references name; references to missing cells are skipped."""
    if notebook is None:
        return []
    found: list[Cell] = []
    for ref in refs if isinstance(refs, (list, tuple)) else [refs]:
        if isinstance(ref, (str, int)):
            with suppress(LookupError, ValueError, CellwrightError):
                cell = notebook.cell(ref)
                found += [cell] if all(cell.index != each.index for each in found) else []
    return found


def shorten_name(handle: str) -> str:
    """A name for a line of a card, cut if it is long."""
    name = one_line(handle[:200])
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _describe_cells(verb: str, cells: Sequence[Cell], path: str, refs: object) -> Headline:
    if len(cells) == 1:
        (cell,) = cells
        name, kind = shorten_name(cell.handle), one_line(cell.type[:20])
        return Headline(action=f"{verb} cell {cell.index + 1}", name=name, kind=kind, path=path)
    if cells:
        numbers = ", ".join(str(cell.index + 1) for cell in cells[:_NAMED])
        more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
        return Headline(action=f"{verb} {len(cells)} cells", name=numbers + more, path=path)
    names = ", ".join(map(str, refs)) if isinstance(refs, (list, tuple)) else str(refs)
    return Headline(action=f"{verb} cell", name=shorten_name(names), path=path)


def _describe_read(arguments: Mapping[str, Any], notebook: Notebook | None, path: str) -> Headline:
    refs = arguments.get("cellIds")
    if refs is None:
        return Headline(action="Read all cells", path=path)
    return _describe_cells("Read", find_cells(refs, notebook), path, refs)


def _describe_outputs(
    arguments: Mapping[str, Any], notebook: Notebook | None, path: str
) -> Headline:
    ref = arguments.get("cellId")
    return _describe_cells("Read outputs of", find_cells(ref, notebook), path, ref)


def _describe_run(arguments: Mapping[str, Any], notebook: Notebook | None, path: str) -> Headline:
    refs = arguments.get("cellIds")
    cells = find_cells(refs, notebook)
    # Only code cells are run.
    return _describe_cells(
        "Run", [cell for cell in cells if cell.type == "code"] or cells, path, refs
    )


def _describe_update(
    arguments: Mapping[str, Any], notebook: Notebook | None, path: str
) -> Headline:
    ref = arguments.get("cellId")
    return _describe_cells("Update", find_cells(ref, notebook), path, ref)


def _describe_add(arguments: Mapping[str, Any], notebook: Notebook | None, path: str) -> Headline:
    index = arguments.get("index")
    place = "at the end"
    if isinstance(index, int) and index >= 0 and (notebook is None or index < len(notebook.cells)):
        place = f"as cell {index + 1}"
    return Headline(action=f"Add cell {place}", kind=_kind_of(arguments.get("type")), path=path)


def _describe_notebook(
    arguments: Mapping[str, Any], notebook: Notebook | None, path: str
) -> Headline:
    verb = _VERBS.get(str(arguments.get("action")), "Change")
    path = path or one_line(str(arguments.get("notebook_path", ""))[:300])
    index = arguments.get("cell_index")
    if verb == "Add":
        return _describe_add({"index": index, "type": arguments.get("cell_type")}, notebook, path)
    return _describe_cells(verb, find_cells(index, notebook), path, index)


def _describe_notebook_edit(
    arguments: Mapping[str, Any], notebook: Notebook | None, path: str
) -> Headline:
    mode = str(arguments.get("edit_mode") or "replace")
    path = path or one_line(str(arguments.get("notebook_path", ""))[:300])
    ref = arguments.get("cell_id")
    if mode == "insert":
        place = "first" if ref is None else f"after {shorten_name(str(ref))}"
        kind = _kind_of(arguments.get("cell_type"))
        return Headline(action=f"Add cell {place}", kind=kind, path=path)
    return _describe_cells(_VERBS.get(mode, "Change"), find_cells(ref, notebook), path, ref)


def _kind_of(name: object) -> str:
    return one_line(str(name or "code")[:20])


_KNOWN = {
    "GetNotebookCells": _describe_read,
    "GetCellOutputs": _describe_outputs,
    "RunNotebookCells": _describe_run,
    "UpdateNotebookCell": _describe_update,
    "AddNotebookCell": _describe_add,
    "notebook": _describe_notebook,
    "NotebookEdit": _describe_notebook_edit,
}
