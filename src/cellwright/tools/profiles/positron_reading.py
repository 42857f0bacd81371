"""The reading tools of the profile `positron`, and what all five have in common."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cellwright.errors import CellNotFound, CellwrightError
from cellwright.tools.native.reading import read_now
from cellwright.tools.page import Page
from cellwright.tools.params import CellName, Params
from cellwright.tools.profiles.active import OptionalPath, active_book
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import counted, few, named, one_line, safe_hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.tools.tool import Caller

NONE_ACTIVE = "No active notebook found"
TOKENS = 8000


def none_active() -> Answer:
    """What every tool answers if nobody has a notebook open."""
    return Answer(NONE_ACTIVE, {"code": "NO_ACTIVE_NOTEBOOK"}, is_error=True)


def failed_to(what: str) -> Callable[[CellwrightError], Answer]:
    """How a tool words that it could not do something."""

    def refused(error: CellwrightError) -> Answer:
        hint = f". {safe_hint(error)}" if error.hint else ""
        text = f"Failed to {what}: {one_line(error.message, 400)}{hint}"
        return Answer(text, {"code": error.code}, is_error=True)

    return refused


class GetNotebookCellsParams(Params):
    """Which cells to read."""

    cellIds: Annotated[  # noqa: N815  # as the profile spells it
        list[CellName] | None, Field(description="Ids of cells; default all")
    ] = None
    path: OptionalPath = None


class GetCellOutputsParams(Params):
    """Whose outputs to read."""

    cellId: Annotated[CellName, Field(description="Id of a cell")]  # noqa: N815
    path: OptionalPath = None


async def get_notebook_cells(caller: Caller, params: GetNotebookCellsParams) -> Answer:
    """Cells with their source and their status."""
    book = active_book(caller, params.path)
    if book is None:
        return none_active()
    found, notebook = await read_now(book)
    cells = found["cells"]
    if not cells:
        return Answer("The notebook has no cells", {"cells": []})
    missing: list[str] = []
    if params.cellIds is not None:
        wanted = set()
        for ref in params.cellIds:
            try:
                wanted.add(notebook.cell(ref).index)
            except CellNotFound as error:
                missing.append(f"{error.message}. {safe_hint(error)}")
        cells = [cell for cell in cells if cell["index"] in wanted]
        if not cells:
            hints = "".join(f"\n{one_line(each)}" for each in missing[:3])
            return Answer(f"No cells found with the specified IDs{hints}", is_error=True)
    page = Page(TOKENS)
    shown: list[dict[str, Any]] = []
    for cell in cells:
        facts = _facts(cell, caller)
        lines = [
            f"### Cell {cell['index']} ({cell['type']})",
            f"ID: {named(cell['handle'])}",
            f"Status: {_status(facts)}",
        ]
        if shown and not page.fits("\n".join([*lines, cell["source"]])):
            rest = [each["handle"] for each in cells[len(shown) : len(shown) + 10]]
            left = counted(len(cells) - len(shown), "cell")
            page.leave_out(f"{left}; ask for them by cellIds={json.dumps(rest)}")
            break
        for line in lines:
            page.say(line)
        cut = page.show("source", cell["source"])
        if cut:
            page.leave_out(f"{cut:,} characters of cell {cell['index']}")
        shown.append(facts)
    for each in missing[:3]:
        page.leave_out(one_line(each))
    return Answer(page.text(), {"cells": few(shown)})


async def get_cell_outputs(caller: Caller, params: GetCellOutputsParams) -> Answer:
    """What a cell printed, showed and raised."""
    book = active_book(caller, params.path)
    if book is None:
        return none_active()
    cell = (await book.load()).cell(params.cellId)
    outputs = cell.outputs if cell.type == "code" else ()
    if not outputs:
        return Answer(f"Cell {named(cell.handle)} has no outputs", {"outputs": 0})
    page = Page(TOKENS)
    if not page.outputs(f"outputs of {cell.handle}", outputs):
        page.leave_out("parts of the outputs; they are all in the notebook")
    return Answer(page.text(), {"outputs": len(outputs)}, tuple(page.pictures))


def _facts(cell: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """A cell in the words of the profile, without its source."""
    facts: dict[str, Any] = {
        "id": one_line(cell["handle"], 100),
        "index": cell["index"],
        "type": cell["type"],
        "hasOutput": bool(cell.get("has_output")),
        "selectionStatus": caller.selected.get(cell["handle"], "unselected"),
    }
    if cell["type"] == "code":
        last = cell["last_run"] or {}
        status = cell["status"]
        facts |= {
            "executionStatus": status if status in ("running", "pending") else "idle",
            "executionOrder": cell["execution_count"],
            "lastRunSuccess": last.get("success"),
            "lastExecutionDuration": last.get("duration_ms"),
            "lastRunEndTime": _time(last.get("ended")),
        }
    return facts


def _status(facts: dict[str, Any]) -> str:
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


def _time(moment: float | None) -> str | None:
    if moment is None:
        return None
    return f"{dt.datetime.fromtimestamp(moment, dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


GET_NOTEBOOK_CELLS = Tool(
    name="GetNotebookCells",
    title="Get notebook cells",
    description="Read cells of the notebook with their status.",
    model=GetNotebookCellsParams,
    call=get_notebook_cells,
    effects="read",
    reference="getNotebookCells",
    tags=frozenset({"requires-notebook", "read-only"}),
    refused=failed_to("get notebook cells"),
)

GET_CELL_OUTPUTS = Tool(
    name="GetCellOutputs",
    title="Get cell outputs",
    description="Read what a cell of the notebook put out when it ran.",
    model=GetCellOutputsParams,
    call=get_cell_outputs,
    effects="read",
    reference="getCellOutputs",
    tags=frozenset({"requires-notebook", "read-only"}),
    refused=failed_to("get cell outputs"),
)
