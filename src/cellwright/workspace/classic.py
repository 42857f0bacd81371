"""Two older ways to edit a notebook, over the same edits: by index (S1) and by id (S2).

They keep their own rules: S1 counts from 0, refuses negative indices and has other bounds for an
insert; S2 clears outputs when it replaces code, and inserts at the start if no cell is named.
"""

from __future__ import annotations

from cellwright.errors import (
    CellNotFound,
    CellwrightError,
    InvalidEdit,
    InvalidJson,
    InvalidNotebook,
    NotebookNotFound,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.workspace.workspace import Workspace


def notebook_action(
    workspace: Workspace,
    action: str,
    notebook_path: str,
    cell_index: int,
    *,
    content: str | None = None,
    cell_type: str | None = None,
) -> dict[str, Any]:
    """Edit, insert or delete the cell at an index.

    Returns `action`, `cellIndex`, `cellType`, `totalCells`, `cellSource` and a `summary`. Raises
    an error whose message names the notebook.
    """
    book = workspace.open(notebook_path)
    try:
        notebook = book.load()
    except NotebookNotFound:
        raise NotebookNotFound(notebook_path) from None
    except InvalidJson as error:
        raise InvalidNotebook(f"Invalid JSON in notebook: {notebook_path} ({error})") from None
    except InvalidNotebook:
        reason = f"Invalid notebook structure (missing cells array): {notebook_path}"
        raise InvalidNotebook(reason) from None
    count = len(notebook.cells)
    if action not in ("edit", "insert", "delete"):
        raise InvalidEdit(f"Unknown action {action!r}", hint="One of edit, insert, delete")
    last = count if action == "insert" else count - 1
    if type(cell_index) is not int or not 0 <= cell_index <= last:
        suffix = " for insert" if action == "insert" else ""
        raise CellIndexOutOfRange(cell_index, suffix, last, notebook_path)
    if content is None and action != "delete":
        raise InvalidEdit(f"Content is required for {action} action")
    edit: dict[str, Any]
    if action == "insert":
        kind = cell_type or "code"
        edit = {"op": "insert", "source": content, "type": kind, "at": cell_index}
        source, done, total = content or "", "Inserted", count + 1
    else:
        cell = notebook.cells[cell_index]
        kind = cell.type
        if action == "edit":
            edit = {"op": "replace", "cell": cell_index, "source": content, "expect": cell.hash}
            source, done, total = content or "", "Replaced", count
        else:
            edit = {"op": "delete", "cell": cell_index, "expect": cell.hash}
            source, done, total = cell.source, "Deleted", count - 1
    book.edit([edit], base=notebook.revision, label=f"notebook {action}")
    return {
        "action": action,
        "cellIndex": cell_index,
        "cellType": kind,
        "totalCells": total,
        "cellSource": source,
        "summary": f"{done} cell {cell_index} ({kind}). Notebook now has {total} cells.",
    }


class CellIndexOutOfRange(CellNotFound):
    """An index outside the range that S1's action allows."""

    def __init__(self, index: object, suffix: str, last: int, path: str) -> None:
        super().__init__(index, count=last + 1)
        self.message = f"Cell index {index} out of range{suffix} (0-{max(last, 0)}) in {path}"


def notebook_edit(
    workspace: Workspace,
    notebook_path: str,
    *,
    new_source: str = "",
    cell_id: str | None = None,
    cell_type: str | None = None,
    edit_mode: str = "replace",
) -> dict[str, Any]:
    """Replace, insert or delete a cell named by id or index; never raises for what it was asked.

    Returns `success`, and either `cell_id` and `cell_index` or `error`.
    """
    try:
        book = workspace.open(notebook_path)
        notebook = book.load()
        edit, index, id_ = _s2_edit(notebook, new_source, cell_id, cell_type, edit_mode)
        answer = book.edit([edit], base=notebook.revision, label=f"NotebookEdit {edit_mode}")
    except NotebookNotFound:
        return {"success": False, "error": "Notebook not found"}
    except InvalidNotebook:
        return {"success": False, "error": "Invalid notebook format"}
    except CellwrightError as error:
        return {"success": False, "error": error.message}
    if edit_mode == "insert":
        id_ = answer["cells"][0]["handle"]
    return {"success": True, "cell_id": id_, "cell_index": index}


def _s2_edit(
    notebook: Any, source: str, ref: str | None, cell_type: str | None, mode: str
) -> tuple[dict[str, Any], int, str | None]:
    if mode not in ("replace", "insert", "delete"):
        raise InvalidEdit("Invalid edit mode")
    if mode == "insert":
        if not cell_type:
            raise InvalidEdit("cell_type required for insert")
        edit: dict[str, Any] = {"op": "insert", "source": source, "type": cell_type, "at": 0}
        if ref:
            edit["at"] = _s2_index(notebook, ref, "Reference cell not found") + 1
        return edit, edit["at"], None
    if mode == "delete" and not ref:
        raise InvalidEdit("cell_id required for delete")
    index = _s2_index(notebook, ref or "", "Cell not found")
    cell = notebook.cells[index]
    if mode == "delete":
        return {"op": "delete", "cell": index}, index, cell.id or ref
    edit = {"op": "replace", "cell": index, "source": source, "outputs": "clear"}
    if cell_type:
        edit["type"] = cell_type
    return edit, index, cell.id or ref


def _s2_index(notebook: Any, ref: str, complaint: str) -> int:
    try:
        index: int = notebook.cell(ref).index
    except CellwrightError:
        raise InvalidEdit(f"{complaint}: {ref}") from None
    if ref.startswith("-") and notebook.cells[index].id != ref:
        raise InvalidEdit(f"{complaint}: {ref}")  # S2 knows no counting from the end
    return index
