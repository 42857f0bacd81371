"""What the dispatcher asks of a notebook, wherever it lives, and what each method asks of it.

A request is checked against the notebook as it is, and its edits are applied against that same
state. If another writer changed a cell concerned in between, it is checked once more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from cellwright.document.edits import SetMetadata, Splice
from cellwright.errors import Conflict, InvalidEdit
from cellwright.protocol.messages import ErrorCode, Refusal, metadata_refusal, show_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any, Literal

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.protocol.messages import ManipulatorRequest

    Result = dict[str, Any]
    CellStatus = Literal["ok", "error", "timed_out", "cancelled", "died"]


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell that was run: its handle, how it ended, and what to call that if not well.

    `reason` is the name of the exception, such as `ZeroDivisionError`, or a few words.
    """

    cell: str
    status: CellStatus
    reason: str = ""
    execution_count: int | None = None


class NotebookAccess(Protocol):
    """One notebook and its kernel.

    Cells are named by their handles: the id, or `cell-N` where there is none. What goes wrong is
    raised as a `CellwrightError`, and then nothing was changed; `ModeForbids` if the mode of
    the caller does not allow it.
    """

    async def snapshot(self) -> Notebook:
        """Return the notebook as it is now; the caller's own copy."""
        ...

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Check and apply edits in one step, all or nothing, and read back what came of it.

        References mean the cells of `base`; changes made elsewhere since then stay.

        Raises:
            Conflict: a cell concerned is not as `base` knew it; nothing was applied.
            InvalidEdit, InvalidMetadata: what was asked for would not be a valid notebook.
        """
        ...

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[CellResult]:
        """Run code cells in order, and stop after the first that fails.

        Outputs land in the notebook. Returns those that ran; handles mean the cells of `base`.
        Without `nested` it waits for its turn at the kernel, as any run does. With it, a cell
        that runs now waits for these: each is sent to the kernel at once, past the queue, with
        `{"nbmp_request": nested}` in the metadata of its execute request.
        """
        ...


_TRIES = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells that a request wants run, and where they stood when it was checked."""

    cells: tuple[str, ...]
    places: tuple[int, ...]
    base: Snapshot


async def read_or_edit(host: NotebookAccess, request: ManipulatorRequest) -> Result:
    """Carry out any request but one to run cells.

    Raises:
        Refusal: it was not carried out, and why.
    """
    return await _METHODS[request.method](host, request)


async def plan_run(host: NotebookAccess, request: ManipulatorRequest) -> Plan:
    """Find the code cells that a request wants run; all other cells are skipped."""
    notebook = await host.snapshot()
    span = read_span(request.params, len(notebook.cells))
    found = [cell for cell in notebook.cells[span.start : span.end] if cell.type == "code"]
    handles, places = [cell.handle for cell in found], [cell.index for cell in found]
    return Plan(tuple(handles), tuple(places), notebook.snapshot())


async def run_plan(host: NotebookAccess, request: ManipulatorRequest, plan: Plan) -> Result:
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
            raise refuse_execution(place, cell.reason or cell.status.replace("_", " "))
    if len(ran) < len(plan.cells):
        raise refuse_execution(plan.places[len(ran)], "it was not run")
    return {}


def refuse_execution(index: int, reason: str) -> Refusal:
    """A cell that could not be run, or did not end well."""
    return Refusal(ErrorCode.EXECUTION_FAILED, f"Cell execution failed at index {index}: {reason}")


async def _cell_count(host: NotebookAccess, _: ManipulatorRequest) -> Result:
    return {"count": len((await host.snapshot()).cells)}


async def _metadata(host: NotebookAccess, _: ManipulatorRequest) -> Result:
    return {"metadata": (await host.snapshot()).metadata}


async def _version(host: NotebookAccess, _: ManipulatorRequest) -> Result:
    notebook = await host.snapshot()
    return {"nbformat": notebook.nbformat, "nbformat_minor": notebook.nbformat_minor}


async def _cell_range(host: NotebookAccess, request: ManipulatorRequest) -> Result:
    notebook = await host.snapshot()
    span = read_span(request.params, len(notebook.cells))
    return {"cells": [describe_cell(cell) for cell in notebook.cells[span.start : span.end]]}


async def _splice(host: NotebookAccess, request: ManipulatorRequest) -> Result:
    def edits(notebook: Notebook) -> list[Edit]:
        wanted = read_splice(request.params, len(notebook.cells))
        return [Splice(wanted.start, wanted.delete_count, wanted.cells)]

    try:
        (splice,) = await _apply(host, edits)
    except InvalidEdit as error:  # the places were checked, so that it is about a cell
        raise Refusal(ErrorCode.INVALID_CELL_DATA, f"Invalid cell data: {error.message}") from error
    assert isinstance(splice, Splice)  # noqa: S101  # for the type checker
    end = splice.start + len(splice.cells)
    return {"affected_range": {"start": splice.start, "end": end}}


async def _set_metadata(host: NotebookAccess, request: ManipulatorRequest) -> Result:
    metadata, merge = read_metadata(request.params)
    try:
        await _apply(
            host,
            lambda notebook: [SetMetadata(_name_kernel(notebook, metadata, merge), merge=merge)],
        )
    except InvalidEdit as error:
        raise metadata_refusal(error.message) from error
    return {}


def _name_kernel(notebook: Notebook, metadata: dict[str, Any], merge: bool) -> dict[str, Any]:  # noqa: FBT001
    """The metadata, with the `display_name` that nbformat wants in a kernelspec that has only a name."""
    new, old = metadata.get("kernelspec"), notebook.metadata.get("kernelspec")
    if not merge or not isinstance(new, dict) or not isinstance(new.get("name"), str):
        return metadata
    if "display_name" in new or (isinstance(old, dict) and "display_name" in old):
        return metadata
    return {**metadata, "kernelspec": {**new, "display_name": new["name"]}}


async def _apply(
    host: NotebookAccess, edits: Callable[[Notebook], Sequence[Edit]]
) -> Sequence[Edit]:
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


def describe_cell(cell: Cell) -> Result:
    """A cell as the protocol has it: nbformat's, the source as one string."""
    shape = {**cell.to_dict(), "cell_type": cell.type, "source": cell.source}
    shape.setdefault("metadata", {})
    if cell.type == "code":
        shape.setdefault("execution_count", None)
        shape.setdefault("outputs", [])
    return shape


_METHODS: dict[str, Callable[[NotebookAccess, ManipulatorRequest], Awaitable[Result]]] = {
    "get_cell_count": _cell_count,
    "get_notebook_metadata": _metadata,
    "get_nbformat_version": _version,
    "get_cell_range": _cell_range,
    "splice_cell_range": _splice,
    "set_notebook_metadata": _set_metadata,
}


_number = re.compile(r"\s*-?\d{1,15}\s*", re.ASCII).fullmatch
_MOST = 10**15


@dataclass(frozen=True, slots=True)
class Span:
    """A range of cells; `end` is not part of it."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SpliceParams:
    """Cells to go and cells to come."""

    start: int
    delete_count: int
    cells: tuple[Mapping[str, Any], ...]


def read_span(params: Mapping[str, Any], count: int) -> Span:
    """The range of a notebook of `count` cells that is asked for; `start == end` is empty."""
    start, end = params.get("start"), params.get("end")
    first, last = _integer(start), _integer(end)
    if first is None or last is None or not 0 <= first <= last:
        raise Refusal(
            ErrorCode.INVALID_RANGE,
            f"Invalid cell range: start={_plain(start)}, end={_plain(end)}",
        )
    if last > count:
        raise Refusal(
            ErrorCode.OUT_OF_BOUNDS,
            f"Cell range out of bounds: end={last} exceeds cell count of {count}",
        )
    return Span(first, last)


def read_splice(params: Mapping[str, Any], count: int) -> SpliceParams:
    """The splice that is asked for; `delete_count` and `cells` may be left out."""
    start = _integer(params.get("start"))
    if start is None:
        raise _bad_splice(f"start={_plain(params.get('start'))} is not an integer")
    if not 0 <= start <= count:
        raise _bad_splice(f"start={start} is out of bounds")
    given = params.get("delete_count")
    delete_count = 0 if given is None else _integer(given)
    if delete_count is None:
        raise _bad_splice(f"delete_count={_plain(given)} is not an integer")
    if delete_count < 0:
        raise _bad_splice(f"delete_count={delete_count} is negative")
    if start + delete_count > count:
        raise _bad_splice(
            f"delete_count={delete_count} is out of bounds: start={start} leaves {count - start} "
            f"of {count} cells"
        )
    cells = params.get("cells")
    if cells is None:
        cells = []
    if not isinstance(cells, list):
        raise Refusal(
            ErrorCode.INVALID_CELL_DATA, f"Invalid cell data: {show_value(cells)} is not a list"
        )
    return SpliceParams(start, delete_count, tuple(map(_cell, cells, range(len(cells)))))


def read_metadata(params: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The metadata to set, and whether to merge them; `merge` may be left out.

    To merge, null removes a field. In a replacement there is nothing to remove, so that a null
    stands for a field that is not there.
    """
    metadata, merge = params.get("metadata"), params.get("merge")
    if not isinstance(metadata, dict):
        raise metadata_refusal(f"{show_value(metadata)} is not an object")
    if isinstance(merge, str) and merge.lower() in {"true", "false"}:
        merge = merge.lower() == "true"
    if merge is None:
        merge = True
    if not isinstance(merge, bool):
        raise metadata_refusal(f"merge={_plain(merge)} is neither true nor false")
    if not merge:
        metadata = {key: value for key, value in metadata.items() if value is not None}
    return metadata, merge


def _cell(value: Any, index: int) -> Mapping[str, Any]:
    """A cell as it came, if it is an object; the document drops its nulls and checks the rest."""
    if not isinstance(value, dict):
        raise Refusal(
            ErrorCode.INVALID_CELL_DATA, f"Invalid cell data at index {index}: not an object"
        )
    count = value.get("execution_count")
    if isinstance(count, str) and (number := _integer(count)) is not None:
        return {**value, "execution_count": number}
    return value


def _bad_splice(reason: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_SPLICE_PARAMS, f"Invalid splice parameters: {reason}")


def _integer(value: Any) -> int | None:
    """A number, also one written as a string or, without a fraction, as a float."""
    if isinstance(value, str) and _number(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST:
        return int(value)
    return value if type(value) is int and abs(value) < _MOST else None


def _plain(value: Any) -> str:
    """A value beside its name: numbers as they are, whatever they were written as."""
    number = _integer(value)
    return show_value(value) if number is None else str(number)
