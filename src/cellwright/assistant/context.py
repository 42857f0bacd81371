"""`NotebookContext`: what a model is told of the notebook that a chat is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    SelectionStatus = Literal["unselected", "selected", "active"]
    ExecutionStatus = Literal["running", "pending", "idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """How a code cell stands; what nobody knows is None.

    `duration` is in milliseconds, `ended` in ISO 8601, UTC.
    """

    execution: ExecutionStatus = "idle"
    order: int | None = None
    success: bool | None = None
    duration: int | None = None
    ended: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellContext:
    """One cell.

    `id` finds it, also in files without ids. `run` is None unless it is a code cell. `length` is
    that of the whole source where `content` is only its beginning. `stale` says why its result
    does not stand any more. `outputs` sums up what it put out, for cells that are selected.
    """

    id: str
    index: int
    type: str
    content: str
    has_output: bool = False
    selection: SelectionStatus = "unselected"
    run: LastRun | None = None
    length: int | None = None
    stale: str | None = None
    outputs: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As data; of what a cell may have in addition, only what it has."""
        found: dict[str, Any] = {
            "id": self.id,
            "index": self.index,
            "type": self.type,
            "content": self.content,
            "hasOutput": self.has_output,
            "selectionStatus": self.selection,
        }
        if self.run is not None:
            found |= {
                "executionStatus": self.run.execution,
                "executionOrder": self.run.order,
                "lastRunSuccess": self.run.success,
                "lastExecutionDuration": self.run.duration,
                "lastRunEndTime": self.run.ended,
            }
        more = {"contentLength": self.length, "staleReason": self.stale, "outputs": self.outputs}
        return found | {name: value for name, value in more.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookContext:
    """A notebook as a model is told of it.

    `path` is the name that tools take. `all_cells` has all cells, if they are few; otherwise it
    is None, and `nearby_cells` has those around the selection. `left_out` counts the cells near
    by for which there was no room. `kernel_id` is None unless a kernel runs.
    """

    uri: str
    path: str
    revision: str
    kernel_id: str | None
    kernel_language: str
    cell_count: int
    selected_cells: tuple[CellContext, ...] = ()
    all_cells: tuple[CellContext, ...] | None = None
    nearby_cells: tuple[CellContext, ...] | None = None
    left_out: int = 0

    @property
    def selection(self) -> Mapping[str, str]:
        """The selected cells by handle: `selected`, or `active` for the one being edited."""
        return {cell.id: cell.selection for cell in self.selected_cells}

    @property
    def known(self) -> list[CellContext]:
        """The cells that are told of, in the order of the notebook."""
        cells = (*self.selected_cells, *(self.all_cells or ()), *(self.nearby_cells or ()))
        return [cell for _, cell in sorted({cell.index: cell for cell in cells}.items())]

    def to_json(self) -> dict[str, Any]:
        """As data; `allCells` and `nearbyCells` are there if they are known."""
        found: dict[str, Any] = {
            "uri": self.uri,
            "path": self.path,
            "revision": self.revision,
            "kernelId": self.kernel_id,
            "kernelLanguage": self.kernel_language,
            "cellCount": self.cell_count,
            "selectedCells": [cell.to_json() for cell in self.selected_cells],
        }
        for name, cells in (("allCells", self.all_cells), ("nearbyCells", self.nearby_cells)):
            if cells is not None:
                found[name] = [cell.to_json() for cell in cells]
        return found
