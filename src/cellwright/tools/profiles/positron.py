"""The profile `positron`: five tools about the notebook that a person has open.

Cells are named by id; an index is understood, too. Results are sentences of that assistant, with
one difference: a run in which a cell failed is not called a success.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cellwright.errors import CellNotFound, CellwrightError, InvalidEdit
from cellwright.tools.errors import format_hint
from cellwright.tools.fence import make_readable
from cellwright.tools.native.reading import read_consistently, show_part
from cellwright.tools.page import Page
from cellwright.tools.params import DEADLINE, CellName, OptionalPath, Params
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import (
    format_count,
    name_cell_type,
    quote_name,
    run_facts,
    shorten,
    to_facts,
)
from cellwright.workspace.status import format_moment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cellwright.tools.tool import Tag, ToolCaller
    from cellwright.workspace.api.answers import CellView, EditAnswer
    from cellwright.workspace.api.requests import Effect
    from cellwright.workspace.hosts.host import Presence
    from cellwright.workspace.runs.execution import Execution
    from cellwright.workspace.workspace import AsyncBook

_MOST_CONTENT = 1_000_000
CellIds = Annotated[list[CellName], Field(description="Ids of cells")]
Content = Annotated[str, Field(max_length=_MOST_CONTENT, description="The source of the cell")]
TOKENS = 8000


class GetNotebookCellsParams(Params):
    """Which cells to read."""

    cellIds: Annotated[  # noqa: N815  # as the profile spells it
        list[CellName] | None, Field(description="Ids of cells; default all")
    ] = None
    path: OptionalPath = None
    offset: Annotated[
        int | None, Field(ge=0, le=2**53, description="Of one long cell: start here")
    ] = None


async def get_notebook_cells(
    caller: ToolCaller, book: AsyncBook, params: GetNotebookCellsParams
) -> ToolResult:
    """Cells with their source and their status."""
    found, notebook = await read_consistently(book)
    cells = found.cells
    if not cells:
        return ToolResult("The notebook has no cells", {"cells": []})
    missing: list[str] = []
    if params.cellIds is not None:
        wanted = set()
        for ref in params.cellIds:
            try:
                wanted.add(notebook.cell(ref).index)
            except CellNotFound as error:
                missing.append(f"{error.message}. {format_hint(error)}")
        cells = [cell for cell in cells if cell.index in wanted]
        if not cells:
            hints = "".join(f"\n{shorten(each)}" for each in missing[:3])
            return ToolResult(f"No cells found with the specified IDs{hints}", is_error=True)
    if params.offset is not None and len(cells) > 1:
        raise InvalidEdit("offset is for one cell", hint="Name it: cellIds with one id")
    selected = caller.selected or read_selection(found.person)
    page = Page(TOKENS)
    shown: list[dict[str, Any]] = []
    for cell in cells:
        facts = _cell_facts(cell, selected)
        lines = [
            f"### Cell {cell.index} ({name_cell_type(cell.type)})",
            f"ID: {quote_name(cell.handle)}",
            f"Status: {_status_line(facts)}",
        ]
        if shown and not page.fits("\n".join([*lines, cell.source])):
            rest = [each.handle for each in cells[len(shown) : len(shown) + 10]]
            left = format_count(len(cells) - len(shown), "cell")
            page.leave_out(f"{left}; ask for them by cellIds={json.dumps(rest)}")
            break
        for line in lines:
            page.say(line)
        source = make_readable(cell.source)
        cut = page.show("source", source[params.offset or 0 :], cell=cell.handle, label="")
        if cut:
            more = f"cellIds={json.dumps([cell.handle])}, offset={len(source) - cut}"
            page.leave_out(f"{cut:,} characters of cell {cell.index}; {more} continues")
        shown.append(facts)
    for each in missing[:3]:
        page.leave_out(shorten(each))
    return page.to_result({"cells": to_facts(shown)})


def read_selection(person: Presence | None) -> dict[str, str]:
    """Return the cells that a person has selected in an editor; `active` is the one being edited."""
    if person is None:
        return {}
    found = dict.fromkeys(person.selected, "selected")
    if person.active is not None:
        found[person.active] = "active" if person.mode == "edit" else "selected"
    return found


def _cell_facts(cell: CellView, selected: Mapping[str, str]) -> dict[str, Any]:
    """A cell in the words of the profile, without its source."""
    facts: dict[str, Any] = {
        "id": shorten(cell.handle, 100),
        "index": cell.index,
        "type": name_cell_type(cell.type),
        "hasOutput": bool(cell.has_output),
        "selectionStatus": selected.get(cell.handle, "unselected"),
    }
    if cell.type == "code":
        last, status = cell.last_run, cell.status
        facts |= {
            "executionStatus": status if status in ("running", "pending") else "idle",
            "executionOrder": cell.execution_count,
            "lastRunSuccess": last.success if last else None,
            "lastExecutionDuration": last.duration_ms if last else None,
            "lastRunEndTime": format_moment(last.ended)
            if last and last.ended is not None
            else None,
        }
    return facts


def _status_line(facts: dict[str, Any]) -> str:
    parts = [f"selection {facts['selectionStatus']}"]
    if "executionStatus" in facts:
        parts.append(f"execution {facts['executionStatus']}")
        if facts["executionOrder"] is not None:
            parts.append(f"order {facts['executionOrder']}")
        if facts["lastRunSuccess"] is not None:
            parts.append(f"last run {'succeeded' if facts['lastRunSuccess'] else 'failed'}")
        else:
            parts.append("never run")
        if facts["lastExecutionDuration"] is not None:
            parts.append(f"{facts['lastExecutionDuration']} ms")
    parts.append("has output" if facts["hasOutput"] else "no output")
    return ", ".join(parts)


class GetCellOutputsParams(Params):
    """Whose outputs to read."""

    cellId: Annotated[CellName, Field(description="Id of a cell")]  # noqa: N815
    path: OptionalPath = None
    offset: Annotated[
        int | None, Field(ge=0, le=2**53, description="Of a long output: start here")
    ] = None


async def get_cell_outputs(
    _caller: ToolCaller, book: AsyncBook, params: GetCellOutputsParams
) -> ToolResult:
    """What a cell printed, showed and raised."""
    cell = (await book.load()).cell(params.cellId)
    outputs = cell.outputs if cell.type == "code" else ()
    if not outputs:
        return ToolResult(f"Cell {quote_name(cell.handle)} has no outputs", {"outputs": 0})
    page = Page(TOKENS)
    if params.offset is not None:
        end = show_part(page, cell, params.offset)
        if end is not None:
            page.leave_out(f"the rest; GetCellOutputs with offset={end} continues")
    elif not await asyncio.to_thread(page.show_outputs, cell.handle, outputs):
        page.leave_out("parts of the outputs; GetCellOutputs with offset=0 begins with all of it")
    return page.to_result({"outputs": len(outputs)})


class RunNotebookCellsParams(Params):
    """Which cells to run."""

    cellIds: CellIds  # noqa: N815
    path: OptionalPath = None


async def run_notebook_cells(
    caller: ToolCaller, book: AsyncBook, params: RunNotebookCellsParams
) -> ToolResult:
    """Run cells in the notebook's kernel; cells of text are passed over."""
    if not params.cellIds:
        raise InvalidEdit("cellIds is empty", hint="Name the cells to run")
    notebook = await book.load()
    found = [notebook.cell(ref) for ref in params.cellIds]
    chosen = [cell.handle for cell in found if cell.type == "code"]
    done = await book.run(chosen, detach=DEADLINE, **caller.run_options())
    page = Page(TOKENS)
    failed = next((each for each in done if each.is_failure), None)
    unsaved = [each for each in done if each.is_unsaved]
    if failed is not None:
        why = f" ({quote_name(failed.error.ename)})" if failed.error else ""
        ran = sum(each.status == "ok" for each in done)
        page.head(
            f"Failed to run notebook cells: cell {quote_name(failed.cell or '')} ended with "
            f"{failed.status}{why}; {ran} of {len(done)} cell(s) executed successfully."
        )
    elif unsaved:
        page.head(
            f"Failed to save outputs of {len(unsaved)} of {len(done)} cell(s), which were executed."
        )
    elif not done.done:
        page.head(
            "Still running: GetNotebookCells says when a cell has ended, GetCellOutputs what it said."
        )
    else:
        page.head(f"Successfully executed {len(done)} cell(s).")
    for each in unsaved:
        page.head(f"Cell {quote_name(each.cell or '')}: {shorten(' '.join(each.notes), 400)}")
    await asyncio.to_thread(_show_outputs, page, done)  # it may decode pictures
    data = {"run": done.run, "done": done.done, "executions": run_facts(done)}
    return page.to_result(data, is_error=failed is not None or bool(unsaved))


def _show_outputs(page: Page, executions: Sequence[Execution]) -> None:
    said = [each for each in executions if each.outputs]
    if said:
        page.say("\nOutputs:")
    for place, execution in enumerate(said):
        cell = execution.cell or ""
        page.say(f"\nCell {quote_name(cell)}:")
        share = page.room // (len(said) - place)
        artifact = execution.artifact  # has them if they could not be saved
        if not page.show_outputs(cell, execution.outputs, share, artifact=artifact):
            where = f"GetCellOutputs with cellId={quote_name(cell)}"
            if artifact and execution.is_unsaved:  # then they are not in the notebook
                where = f"the resource artifact://{artifact} has all"
            page.leave_out(f"parts of outputs; {where}")


class AddNotebookCellParams(Params):
    """The cell to add, and where."""

    type: Literal["code", "markdown"]
    index: Annotated[int, Field(ge=-1, description="Where, from 0; -1 is the end")]
    content: Content
    path: OptionalPath = None


async def add_notebook_cell(
    _caller: ToolCaller, book: AsyncBook, params: AddNotebookCellParams
) -> ToolResult:
    """Add a cell."""
    notebook = await book.load()
    count = len(notebook.cells)
    if params.index > count:
        raise InvalidEdit(f"index {params.index} is out of range (0-{count}, or -1 for the end)")
    index = count if params.index < 0 else params.index
    edit = {"op": "insert", "source": params.content, "type": params.type, "at": index}
    done = await book.edit([edit], label="AddNotebookCell")
    made = done.cells[0]
    text = (
        f"Successfully added {params.type} cell at index {made.after}. "
        f"Cell ID: {quote_name(made.handle)}"
    )
    return ToolResult(text, {"cellId": made.handle, "index": made.after, **_change_facts(done)})


class UpdateNotebookCellParams(Params):
    """Which cell to change, and its new source."""

    cellId: Annotated[CellName, Field(description="Id of a cell")]  # noqa: N815
    content: Content
    path: OptionalPath = None


async def update_notebook_cell(
    _caller: ToolCaller, book: AsyncBook, params: UpdateNotebookCellParams
) -> ToolResult:
    """Give a cell a new source; its outputs stay, and count as stale."""
    cell = (await book.load()).cell(params.cellId)
    edit = {"op": "replace", "cell": cell.handle, "source": params.content}
    done = await book.edit([edit], label="UpdateNotebookCell")
    facts = {"cellId": cell.handle, **_change_facts(done)}
    return ToolResult(f"Successfully updated cell {quote_name(cell.handle)}", facts)


def _change_facts(done: EditAnswer) -> dict[str, Any]:
    return {"revision": done.revision, "change": done.change}


def no_active_notebook() -> ToolResult:
    """The result if no notebook is named and none is open."""
    return ToolResult("No active notebook found", {"code": "NO_ACTIVE_NOTEBOOK"}, is_error=True)


def describe_failure(what: str) -> Callable[[CellwrightError], ToolResult]:
    """How a tool words that it could not do something."""

    def describe(error: CellwrightError) -> ToolResult:
        parts = [f"Failed to {what}: {shorten(error.message, 400)}", format_hint(error)]
        text = ". ".join(filter(None, parts))
        return ToolResult(text, {"code": error.code}, is_error=True)

    return describe


def _make_tool(
    call: Callable[[ToolCaller, AsyncBook, Any], Awaitable[ToolResult]],
    model: type[Params],
    effect: Effect,
    title: str,
    description: str,
    *tags: Tag,
) -> Tool:
    """A tool of the profile; its name and its reference are those of `call` in another spelling."""
    words = call.__name__.split("_")

    async def call_with_book(caller: ToolCaller, params: Any) -> ToolResult:
        book = await caller.find_book(params.path)
        return no_active_notebook() if book is None else await call(caller, book, params)

    return Tool(
        name="".join(map(str.capitalize, words)),
        title=title,
        description=description,
        model=model,
        call=call_with_book,
        effects=effect,
        reference=words[0] + "".join(map(str.capitalize, words[1:])),
        tags=frozenset({"requires-notebook", *tags}),
        refused=describe_failure(" ".join(words)),
    )


POSITRON = (
    _make_tool(
        get_notebook_cells,
        GetNotebookCellsParams,
        "read",
        "Get notebook cells",
        "Read cells of the notebook with their status.",
        "read-only",
    ),
    _make_tool(
        get_cell_outputs,
        GetCellOutputsParams,
        "read",
        "Get cell outputs",
        "Read what a cell of the notebook put out when it ran.",
        "read-only",
    ),
    _make_tool(
        run_notebook_cells,
        RunNotebookCellsParams,
        "run",
        "Run notebook cells",
        "Run code cells of the notebook in its kernel, and read their outputs.",
    ),
    _make_tool(
        add_notebook_cell,
        AddNotebookCellParams,
        "edit",
        "Add a notebook cell",
        "Add a code or markdown cell to the notebook at an index; -1 is the end.",
    ),
    _make_tool(
        update_notebook_cell,
        UpdateNotebookCellParams,
        "edit",
        "Update a notebook cell",
        "Replace the source of a cell of the notebook.",
        "destructive",
    ),
)
"""In the order in which a model meets them."""
