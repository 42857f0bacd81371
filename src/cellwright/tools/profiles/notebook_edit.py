"""The profile `notebookedit`: one tool, `NotebookEdit`, that edits cells named by id or index.

It answers `{success, cell_id, cell_index, error}`, never starts a kernel, clears the outputs of
code that it replaces, and inserts at the start if no cell is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cellwright.errors import (
    CellNotFound,
    CellwrightError,
    InvalidEdit,
    InvalidNotebook,
    NotebookNotFound,
)
from cellwright.outputs.sanitize import make_visible
from cellwright.tools.errors import format_hint
from cellwright.tools.params import MAY_BE_EMPTY, Name, Params
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import quote_name, quote_path, shorten

if TYPE_CHECKING:
    from cellwright.document.notebook import Notebook
    from cellwright.tools.tool import ToolCaller

TYPES = ("code", "markdown", "raw")
MODES = ("replace", "insert", "delete")
OUTPUTS = ("clear", "keep")


class CellEditParams(Params):
    """Which cell, and what to do with it."""

    cell_id: Annotated[
        str | None,
        Field(description="Id or 0-based index; insert goes after it, without one to the start"),
    ] = None
    cell_type: Annotated[
        str | None,
        Field(description="Required for insert", json_schema_extra={"enum": list(TYPES)}),
    ] = None
    new_source: Annotated[
        str | None, MAY_BE_EMPTY, Field(description="The cell's new source; not for delete")
    ] = None
    edit_mode: Annotated[str, Field(json_schema_extra={"enum": list(MODES)})] = "replace"
    outputs: Annotated[
        str, Field(description="Of replaced code", json_schema_extra={"enum": list(OUTPUTS)})
    ] = "clear"


class NotebookNamed(Params):
    """Which notebook; the first parameter."""

    notebook_path: Annotated[Name, Field(description="Path of the .ipynb file")]


class NotebookEditParams(CellEditParams, NotebookNamed):
    """Which cell of which notebook, and what to do with it; or a list of such edits."""

    edits: Annotated[
        list[CellEditParams] | None,
        Field(min_length=1, max_length=500, description="Instead of one: all or none of these"),
    ] = None
    backup: Annotated[bool, Field(description="Also write a copy of the old file")] = False
    create: Annotated[bool, Field(description="Make the notebook if it is missing")] = False


async def edit_cell(caller: ToolCaller, params: NotebookEditParams) -> ToolResult:
    """Replace, insert or delete a cell, or several at once."""
    book = caller.workspace.open(params.notebook_path)
    try:
        notebook = await book.load()
    except NotebookNotFound:
        if not params.create:
            raise
        from cellwright.document.notebook import Notebook

        notebook = Notebook()
    items: list[CellEditParams] = [params]
    if params.edits is not None:
        if (params.cell_id, params.cell_type, params.new_source) != (None, None, None):
            raise InvalidEdit("Give edits, or one cell, not both")
        items = [*params.edits]
    plans = [plan_edit(notebook, each) for each in items]
    # By handle and hash rather than by place: cells may have moved since it was read.
    done = await book.edit(
        [edit for edit, _, _ in plans],
        label=f"NotebookEdit {params.edit_mode if params.edits is None else 'batch'}",
        backup=params.backup,
        create=params.create,
    )
    backup = f"\n  Backup: {quote_path(done.backup)}" if done.backup else ""
    facts: dict[str, Any] = {"backup": done.backup} if done.backup else {}
    if params.edits is not None:
        rows = [
            {
                "cell_id": cell.handle,
                "cell_index": cell.before if cell.after is None else cell.after,
            }
            for cell in done.cells
        ]
        changed = "".join(
            f"\n  {cell.kind.capitalize()}: {quote_name(cell.handle)} (index {row['cell_index']})"
            for cell, row in zip(done.cells, rows, strict=True)
        )
        many = "1 edit" if len(items) == 1 else f"{len(items)} edits"
        text = f"✓ {many}\n  Notebook: {quote_path(params.notebook_path)}{changed}"
        return ToolResult(text + backup, {"success": True, "cells": rows, **facts})
    _, index, id_ = plans[0]
    if params.edit_mode == "insert":
        made = done.cells[0]
        index, id_ = made.after or 0, made.handle
    kind = params.cell_type or notebook.cells[index].type
    text = _describe_edit(params, id_, index, kind) + backup
    return ToolResult(text, {"success": True, "cell_id": id_, "cell_index": index, **facts})


def plan_edit(notebook: Notebook, params: CellEditParams) -> tuple[dict[str, Any], int, str | None]:
    """The edit that is meant, the index of its cell, and the cell's name."""
    mode, ref, source = params.edit_mode, params.cell_id, params.new_source
    if mode not in MODES:
        raise InvalidEdit("Invalid edit mode", hint=f"One of {', '.join(MODES)}")
    if params.outputs not in OUTPUTS:
        raise InvalidEdit("Invalid outputs", hint=f"One of {', '.join(OUTPUTS)}")
    if params.cell_type is not None and params.cell_type not in TYPES:
        raise InvalidEdit(
            f"Invalid cell type: {shorten(params.cell_type, 60)}",
            hint=f"One of {', '.join(TYPES)}",
        )
    if mode == "insert" and not params.cell_type:
        raise InvalidEdit("cell_type required for insert")
    if mode == "delete" and not ref:
        raise InvalidEdit("cell_id required for delete")
    if source is None and mode != "delete":
        raise InvalidEdit(f"new_source required for {mode}")
    if mode == "insert":
        edit: dict[str, Any] = {"op": "insert", "source": source, "type": params.cell_type}
        if not ref:
            return {**edit, "at": 0}, 0, None
        index = _find_index(notebook, ref, "Reference cell not found")
        return {**edit, "after": notebook.cells[index].handle}, index + 1, None
    index = _find_index(notebook, ref or "", "Cell not found")
    cell = notebook.cells[index]
    if mode == "delete":
        return {"op": "delete", "cell": cell.handle, "expect": cell.hash}, index, cell.id or ref
    edit = {"op": "replace", "cell": cell.handle, "source": source, "expect": cell.hash}
    edit |= {"type": params.cell_type} if params.cell_type else {}
    return {**edit, "outputs": params.outputs}, index, cell.id or ref


def _find_index(notebook: Notebook, ref: str, complaint: str) -> int:
    try:
        index: int = notebook.cell(ref).index
    except CellNotFound as error:
        raise InvalidEdit(f"{complaint}: {ref}", hint=error.hint) from None
    if ref.startswith("-") and notebook.cells[index].id != ref:
        raise InvalidEdit(f"{complaint}: {ref}")  # the profile knows no counting from the end
    return index


def _describe_edit(params: NotebookEditParams, id_: str | None, index: int, kind: str) -> str:
    """What a person would like to read about it."""
    path, cell = quote_path(params.notebook_path), quote_name(id_ or "")
    if params.edit_mode == "delete":
        return f"✓ Cell deleted\n  Notebook: {path}\n  Removed: {cell} (was at index {index})"
    if params.edit_mode == "replace":
        return f"✓ Cell updated\n  Notebook: {path}\n  Cell: {cell} (index {index})\n  Type: {kind}"
    after = f"\n  Inserted after: {quote_name(params.cell_id)}" if params.cell_id else ""
    return (
        f"✓ Cell inserted\n  Notebook: {path}\n  New cell: {cell} (index {index})\n"
        f"  Type: {kind}{after}"
    )


def describe_refusal(error: CellwrightError) -> ToolResult:
    """An error in the words of the profile."""
    message = make_visible(error.message)[:400]
    if isinstance(error, NotebookNotFound):
        message = "Notebook not found"
    elif isinstance(error, InvalidNotebook):
        message = "Invalid notebook format"
    hint = format_hint(error)
    text = f"{message}\nhint: {hint}" if hint else message
    return ToolResult(text, {"success": False, "error": message}, is_error=True)


NOTEBOOK_EDIT = Tool(
    name="NotebookEdit",
    title="Edit a notebook cell",
    description=(
        "Edit a cell of a Jupyter notebook. replace: new source for the cell `cell_id`; insert: a "
        "new cell after `cell_id`, or at the start without one, `cell_type` is required; delete: "
        "remove it. Ids are kept; outputs of replaced code are cleared unless `outputs` is keep. "
        "`edits` is a list of such edits, all or none."
    ),
    model=NotebookEditParams,
    call=edit_cell,
    effects="edit",
    reference="notebookEditCell",
    tags=frozenset({"destructive"}),
    refused=describe_refusal,
)
