"""What each method asks of a notebook's host.

A request is checked against the notebook as it is, and its edits are applied against that same
state. If somebody else changed a cell concerned in between, it is checked once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from cellwright.document.edits import SetMetadata, Splice
from cellwright.errors import Conflict, InvalidEdit
from cellwright.protocol.codes import Code, Refusal, metadata_refusal
from cellwright.protocol.params import read_metadata, read_span, read_splice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.protocol.host import NotebookHost
    from cellwright.protocol.wire import Request

    Result = dict[str, Any]

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells that a request wants run, and where they stood when it was checked."""

    cells: tuple[str, ...]
    places: tuple[int, ...]
    base: Snapshot


async def read_or_edit(host: NotebookHost, request: Request) -> Result:
    """Carry out any request but one to run cells.

    Raises:
        Refusal: it was not carried out, and why.
    """
    return await _METHODS[request.method](host, request)


async def plan_run(host: NotebookHost, request: Request) -> Plan:
    """Find the code cells that a request wants run; all other cells are skipped."""
    notebook = await host.snapshot()
    span = read_span(request.params, len(notebook.cells))
    found = [cell for cell in notebook.cells[span.start : span.end] if cell.type == "code"]
    handles, places = [cell.handle for cell in found], [cell.index for cell in found]
    return Plan(tuple(handles), tuple(places), notebook.snapshot())


async def carry_out(host: NotebookHost, request: Request, plan: Plan) -> Result:
    """Run the cells of a plan, nested in the cell that asks if the kernel can do that.

    Raises:
        Refusal: a cell did not end well; those after it were not run.
    """
    if not plan.cells:
        return {}
    nested = request.id if request.nests and isinstance(request.id, str) else None
    ran = await host.run(plan.cells, base=plan.base, nested=nested)
    for place, cell in zip(plan.places, ran, strict=False):
        if cell.status != "ok":
            raise failed(place, cell.reason or cell.status.replace("_", " "))
    if len(ran) < len(plan.cells):
        raise failed(plan.places[len(ran)], "it was not run")
    return {}


def failed(index: int, reason: str) -> Refusal:
    """A cell that could not be run, or did not end well."""
    return Refusal(Code.EXECUTION_FAILED, f"Cell execution failed at index {index}: {reason}")


async def _cell_count(host: NotebookHost, _: Request) -> Result:
    return {"count": len((await host.snapshot()).cells)}


async def _metadata(host: NotebookHost, _: Request) -> Result:
    return {"metadata": (await host.snapshot()).metadata}


async def _version(host: NotebookHost, _: Request) -> Result:
    notebook = await host.snapshot()
    return {"nbformat": notebook.nbformat, "nbformat_minor": notebook.nbformat_minor}


async def _cell_range(host: NotebookHost, request: Request) -> Result:
    notebook = await host.snapshot()
    span = read_span(request.params, len(notebook.cells))
    return {"cells": [describe(cell) for cell in notebook.cells[span.start : span.end]]}


async def _splice(host: NotebookHost, request: Request) -> Result:
    def edits(notebook: Notebook) -> list[Edit]:
        wanted = read_splice(request.params, len(notebook.cells))
        return [Splice(wanted.start, wanted.delete_count, wanted.cells)]

    try:
        (splice,) = await _apply(host, edits)
    except InvalidEdit as error:  # the places were checked, so that it is about a cell
        raise Refusal(Code.INVALID_CELL_DATA, f"Invalid cell data: {error.message}") from error
    assert isinstance(splice, Splice)  # noqa: S101  # for the type checker
    end = splice.start + len(splice.cells)
    return {"affected_range": {"start": splice.start, "end": end}}


async def _set_metadata(host: NotebookHost, request: Request) -> Result:
    metadata, merge = read_metadata(request.params)
    try:
        await _apply(host, lambda _: [SetMetadata(metadata, merge=merge)])
    except InvalidEdit as error:
        raise metadata_refusal(error.message) from error
    return {}


async def _apply(host: NotebookHost, edits: Callable[[Notebook], Sequence[Edit]]) -> Sequence[Edit]:
    """Make edits for the notebook as it is, and apply them; again if it changed in between."""
    for tries_left in reversed(range(_TRIES)):
        notebook = await host.snapshot()
        made = edits(notebook)
        try:
            await host.apply(made, base=notebook.snapshot())
        except Conflict:
            if not tries_left:
                raise
        else:
            break
    return made


def describe(cell: Cell) -> Result:
    """A cell as the protocol has it: nbformat's, the source as one string."""
    shape = {**cell.to_dict(), "cell_type": cell.type, "source": cell.source}
    shape.setdefault("metadata", {})
    if cell.type == "code":
        shape.setdefault("execution_count", None)
        shape.setdefault("outputs", [])
    return shape


_METHODS: dict[str, Callable[[NotebookHost, Request], Awaitable[Result]]] = {
    "get_cell_count": _cell_count,
    "get_notebook_metadata": _metadata,
    "get_nbformat_version": _version,
    "get_cell_range": _cell_range,
    "splice_cell_range": _splice,
    "set_notebook_metadata": _set_metadata,
}
