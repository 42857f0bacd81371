"""The profile `notebook`: `notebook`, which edits cells by index, and `python`, which runs code.

`notebook` never starts a kernel. Its errors begin with `Error:`, its data are the details that
the profile's renderer reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StrictInt

from cellwright.errors import (
    CellNotFound,
    CellwrightError,
    InvalidEdit,
    InvalidJson,
    InvalidNotebook,
    NotebookNotFound,
)
from cellwright.tools.errors import format_hint
from cellwright.tools.fence import make_readable
from cellwright.tools.native.running import describe_eval
from cellwright.tools.params import DEADLINE, MAY_BE_EMPTY, Name, Params
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from cellwright.document.notebook import Notebook
    from cellwright.tools.tool import ToolCaller

STATUS_WORDS = {
    "ok": "complete",
    "timed_out": "error, timed out",
    "cancelled": "error, cancelled",
    "died": "error, the kernel died",
}
"""The profile's own words for some statuses."""

_MOST_SOURCE = 20_000
_DONE = {"edit": "Replaced", "insert": "Inserted", "delete": "Deleted"}


class NotebookParams(Params):
    """Which cell, and what to do with it."""

    action: Literal["edit", "insert", "delete"]
    notebook_path: Annotated[Name, Field(description="Path of the .ipynb file")]
    cell_index: Annotated[
        StrictInt, Field(description="From 0; insert also takes the number of cells")
    ]
    content: Annotated[
        str | None, MAY_BE_EMPTY, Field(description="Source, for edit and insert")
    ] = None
    cell_type: Annotated[
        Literal["code", "markdown"] | None, Field(description="For insert; default code")
    ] = None


class CellIndexOutOfRange(CellNotFound):
    """An index outside the range that the action allows."""

    def __init__(self, index: int, suffix: str, last: int, path: str, count: int) -> None:
        super().__init__(index, count=count)
        places = f"(0-{last})" if last >= 0 else "(no cells)"
        self.message = f"Cell index {index} out of range{suffix} {places} in {path}"


async def change_cell(caller: ToolCaller, params: NotebookParams) -> ToolResult:
    """Edit, insert or delete the cell at an index; every error names the notebook."""
    path = params.notebook_path
    try:
        return await _change_cell(caller, params, path)
    except CellwrightError as error:
        if path not in error.message:
            error.message = f"{error.message} ({path})"
        raise


async def _change_cell(caller: ToolCaller, params: NotebookParams, path: str) -> ToolResult:
    book = caller.workspace.open(path)
    try:
        notebook = await book.load()
    except InvalidJson as error:
        raise InvalidNotebook(f"Invalid JSON in notebook: {path} ({error})") from None
    except InvalidNotebook:
        reason = f"Invalid notebook structure (missing cells array): {path}"
        raise InvalidNotebook(reason) from None
    edit, details = plan_change(notebook, params)
    done = await book.edit([edit], label=f"notebook {params.action}")
    if params.action == "insert":
        details["cellIndex"] = done.cells[0].after
    summary = (
        f"{_DONE[params.action]} cell {details['cellIndex']} ({details['cellType']}). "
        f"Notebook now has {details['totalCells']} cells."
    )
    return ToolResult(summary, details)


def plan_change(
    notebook: Notebook, params: NotebookParams
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The edit that is meant, and the details of the answer."""
    action, index, content = params.action, params.cell_index, params.content
    count = len(notebook.cells)
    last = count if action == "insert" else count - 1
    if not 0 <= index <= last:
        suffix = " for insert" if action == "insert" else ""
        raise CellIndexOutOfRange(index, suffix, last, params.notebook_path, count)
    if content is None and action != "delete":
        raise InvalidEdit(f"Content is required for {action} action")
    kind: str = params.cell_type or "code"
    if action == "insert":
        source, total = content or "", count + 1
        edit: dict[str, Any] = {"op": "insert", "source": source, "type": kind, "at": index}
    else:
        cell = notebook.cells[index]
        kind = cell.type
        edit = {"op": "delete", "cell": cell.handle, "expect": cell.hash}
        source, total = cell.source, count - 1
        if action == "edit":
            edit |= {"op": "replace", "source": content}
            source, total = content or "", count
    details = {
        "action": action,
        "cellIndex": index,
        "cellType": kind,
        "totalCells": total,
        "cellSource": _preview(source),
    }
    return edit, details


def _preview(source: str) -> str:
    """The source for a renderer; it shows a few lines of it."""
    shown = make_readable(source)
    return shown if len(shown) <= _MOST_SOURCE else f"{shown[:_MOST_SOURCE]}…"


def describe_refusal(error: CellwrightError) -> ToolResult:
    """An error in the words of the profile."""
    message = shorten(error.message, 400)
    if isinstance(error, NotebookNotFound):
        message = f"Notebook not found: {shorten(error.path, 300)}"
    hint = format_hint(error)
    text = f"Error: {message}\nhint: {hint}" if hint else f"Error: {message}"
    return ToolResult(text, {"code": error.code}, is_error=True)


class PythonCell(Params):
    """One cell of Python."""

    code: str
    title: str = ""


class PythonParams(Params):
    """Code to run in the session's kernel."""

    cells: Annotated[list[PythonCell], Field(min_length=1, max_length=200)]
    timeout: Annotated[float | None, Field(ge=0, le=3600, description="Seconds per cell")] = None
    cwd: Annotated[Name | None, Field(description="Folder to run in")] = None
    reset: Annotated[bool, Field(description="Fresh kernel before the first cell")] = False
    per_call: Annotated[bool, Field(description="In a kernel of its own")] = False


async def run_python(caller: ToolCaller, params: PythonParams) -> ToolResult:
    """Run cells in order; a reset comes before the first and no other."""
    cells = [
        {"code": cell.code, "title": cell.title, "reset": params.reset and place == 0}
        for place, cell in enumerate(params.cells)
    ]
    options = caller.run_options()
    if params.cwd is not None:
        options["cwd"] = caller.workspace.open(params.cwd).real
    if params.per_call:
        options["per_call"] = True
    done = await caller.workspace.eval(cells, timeout=params.timeout, detach=DEADLINE, **options)
    return await describe_eval(
        caller,
        done,
        8000,
        STATUS_WORDS,
        find_rest=_read_with_python,
        get_more="print less in one call",
        describe_unfinished=lambda _: "Still running; the next call of python waits until it ends.",
    )


def _read_with_python(artifact: str) -> str:
    """The profile has no other tool that reads; the kernel knows where artifacts are."""
    file = f"os.environ['CELLWRIGHT_ARTIFACTS_DIR'] + '/{artifact}.txt'"
    code = f"import os; print(open({file}).read(9999))"
    return f'python with cells=[{{"code": "{code}"}}]'


NOTEBOOK = Tool(
    name="notebook",
    title="Edit a notebook",
    description="Edit, insert or delete the cell at `cell_index` of a notebook; runs nothing.",
    model=NotebookParams,
    call=change_cell,
    effects={"edit": "edit", "insert": "edit", "delete": "edit"},
    reference="notebook",
    tags=frozenset({"destructive"}),
    refused=describe_refusal,
)

PYTHON = Tool(
    name="python",
    title="Run Python",
    description=(
        "Run cells of Python in order, in a kernel that keeps its state between calls. The first "
        "that fails is the last."
    ),
    model=PythonParams,
    call=run_python,
    effects="run",
    reference="python",
    refused=describe_refusal,
)
