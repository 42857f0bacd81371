"""The profile `positron`: five tools about the notebook that a person has open.

Cells are named by id; an index is understood, too. Results are sentences of that assistant, with
one difference: a run in which a cell failed is not called a success.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cellwright.errors import InvalidEdit
from cellwright.tools.native.editing import DEADLINE, goes_on
from cellwright.tools.page import Page
from cellwright.tools.params import CellName, Params
from cellwright.tools.profiles.active import OptionalPath, active_book
from cellwright.tools.profiles.positron_reading import (
    GET_CELL_OUTPUTS,
    GET_NOTEBOOK_CELLS,
    TOKENS,
    failed_to,
    none_active,
)
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import (
    error_name,
    is_failure,
    named,
    run_facts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.tools.tool import Caller

_MOST_CONTENT = 1_000_000

CellIds = Annotated[list[CellName], Field(description="Ids of cells")]
Content = Annotated[str, Field(max_length=_MOST_CONTENT, description="The source of the cell")]


class RunNotebookCellsParams(Params):
    """Which cells to run."""

    cellIds: CellIds  # noqa: N815
    path: OptionalPath = None


class AddNotebookCellParams(Params):
    """The cell to add, and where."""

    type: Literal["code", "markdown"]
    index: Annotated[int, Field(ge=-1, description="Where, from 0; -1 is the end")]
    content: Content
    path: OptionalPath = None


class UpdateNotebookCellParams(Params):
    """Which cell to change, and its new source."""

    cellId: Annotated[CellName, Field(description="Id of a cell")]  # noqa: N815
    content: Content
    path: OptionalPath = None


async def run_notebook_cells(caller: Caller, params: RunNotebookCellsParams) -> Answer:
    """Run cells in the notebook's kernel; cells of text are passed over."""
    book = active_book(caller, params.path)
    if book is None:
        return none_active()
    if not params.cellIds:
        raise InvalidEdit("cellIds is empty", hint="Name the cells to run")
    notebook = await book.load()
    found = [notebook.cell(ref) for ref in params.cellIds]
    chosen = [cell.handle for cell in found if cell.type == "code"]
    options: dict[str, Any] = {"ask": caller.ask} if caller.ask is not None else {}
    done = await book.run(chosen, detach=DEADLINE, progress=caller.progress, **options)
    rows = [execution.to_json() for execution in done]
    page = Page(TOKENS)
    failed = next(filter(is_failure, rows), None)
    if failed is not None:
        why = f" ({error_name(failed['error'])})" if failed["error"] else ""
        ran = sum(row["status"] == "ok" for row in rows)
        page.head(
            f"Failed to run notebook cells: cell {named(failed['cell'])} ended with "
            f"{failed['status']}{why}; {ran} of {len(rows)} cell(s) executed successfully."
        )
    elif not done.done:
        page.head(goes_on(done.run))
    else:
        page.head(f"Successfully executed {len(rows)} cell(s).")
    _show_outputs(page, rows)
    data = {"run": done.run, "done": done.done, "executions": run_facts(rows)}
    return Answer(page.text(), data, tuple(page.pictures), is_error=failed is not None)


def _show_outputs(page: Page, rows: Sequence[dict[str, Any]]) -> None:
    said = [row for row in rows if row["outputs"]]
    if said:
        page.say("\nOutputs:")
    for place, row in enumerate(said):
        page.say(f"\nCell {named(row['cell'])}:")
        share = page.room // (len(said) - place)
        if not page.outputs(f"outputs of {row['cell']}", row["outputs"], share):
            page.leave_out(f"parts of outputs; GetCellOutputs with cellId={named(row['cell'])}")


async def add_notebook_cell(caller: Caller, params: AddNotebookCellParams) -> Answer:
    """Add a cell."""
    book = active_book(caller, params.path)
    if book is None:
        return none_active()
    notebook = await book.load()
    count = len(notebook.cells)
    if params.index > count:
        raise InvalidEdit(f"index {params.index} is out of range (0-{count}, or -1 for the end)")
    index = count if params.index < 0 else params.index
    edit = {"op": "insert", "source": params.content, "type": params.type, "at": index}
    done = await book.edit([edit], label="AddNotebookCell")
    made = done["cells"][0]
    text = (
        f"Successfully added {params.type} cell at index {made['after']}. "
        f"Cell ID: {named(made['handle'])}"
    )
    return Answer(text, {"cellId": made["handle"], "index": made["after"], **_change(done)})


async def update_notebook_cell(caller: Caller, params: UpdateNotebookCellParams) -> Answer:
    """Give a cell a new source; its outputs stay, and count as stale."""
    book = active_book(caller, params.path)
    if book is None:
        return none_active()
    cell = (await book.load()).cell(params.cellId)
    edit = {"op": "replace", "cell": cell.handle, "source": params.content}
    done = await book.edit([edit], label="UpdateNotebookCell")
    facts = {"cellId": cell.handle, **_change(done)}
    return Answer(f"Successfully updated cell {named(cell.handle)}", facts)


def _change(done: dict[str, Any]) -> dict[str, Any]:
    return {name: done[name] for name in ("revision", "change")}


POSITRON = (
    GET_NOTEBOOK_CELLS,
    GET_CELL_OUTPUTS,
    Tool(
        name="RunNotebookCells",
        title="Run notebook cells",
        description="Run code cells of the notebook in its kernel, and read their outputs.",
        model=RunNotebookCellsParams,
        call=run_notebook_cells,
        effects="run",
        reference="runNotebookCells",
        tags=frozenset({"requires-notebook"}),
        refused=failed_to("run notebook cells"),
    ),
    Tool(
        name="AddNotebookCell",
        title="Add a notebook cell",
        description="Add a code or markdown cell to the notebook at an index; -1 is the end.",
        model=AddNotebookCellParams,
        call=add_notebook_cell,
        effects="edit",
        reference="addNotebookCell",
        tags=frozenset({"requires-notebook"}),
        refused=failed_to("add notebook cell"),
    ),
    Tool(
        name="UpdateNotebookCell",
        title="Update a notebook cell",
        description="Replace the source of a cell of the notebook.",
        model=UpdateNotebookCellParams,
        call=update_notebook_cell,
        effects="edit",
        reference="updateNotebookCell",
        tags=frozenset({"requires-notebook", "destructive"}),
        refused=failed_to("update notebook cell"),
    ),
)
"""In the order in which a model meets them."""
