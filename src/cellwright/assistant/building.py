"""From a notebook, and what is known of its runs, to its context."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.assistant.budget import fit, window
from cellwright.assistant.context import CellContext, LastRun, NotebookContext
from cellwright.errors import CellwrightError
from cellwright.outputs.describe import CHARACTERS_PER_TOKEN, describe
from cellwright.workspace.status import find_last_runs, find_status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cellwright.assistant.context import SelectionStatus
    from cellwright.assistant.requests import NotebookEditor
    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.journal.executions import ExecutionRecord

FOLLOWED_BELOW = 200
"""In a notebook with fewer cells it is followed what each cell takes from others, to tell which
are stale; in a larger one a cell is stale if its own source is not the one that ran."""

_OUTPUTS_OF_A_CELL = 1_200
_OUTPUTS_OF_ALL = 12_000
_LEAST_OUTPUTS = 100
_LARGEST = 2_000_000  # bytes of a cell whose outputs are summed up


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of a notebook beside its file.

    `runs` are those of its cells, the oldest first. `now` has the cells that run or wait, by
    handle; None if nobody here can tell. `kernel` is the one that runs, and its language.
    """

    runs: Sequence[ExecutionRecord] = ()
    now: Mapping[str, str] | None = None
    kernel: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class _Sources:
    notebook: Notebook
    standing: Standing
    selection: Mapping[int, SelectionStatus]
    stale: Mapping[str, str] | None
    recorded: Mapping[str, ExecutionRecord]


def build_context(
    notebook: Notebook, path: str, real: str, editor: NotebookEditor, standing: Standing
) -> NotebookContext:
    """What a model is told of a notebook.

    Args:
        notebook: as it is now.
        path: the name that tools take.
        real: where its file is.
        editor: what is selected in it; cells that are not there any more are passed over.
        standing: what is known of its runs.
    """
    from cellwright.workspace.staleness import find_language

    selection = _selection(notebook, editor)
    recorded = find_last_runs(standing.runs)
    stale = _stale(notebook, standing)
    sources = _Sources(notebook, standing, selection, stale, recorded)
    count = len(notebook.cells)
    share = min(_OUTPUTS_OF_A_CELL, _OUTPUTS_OF_ALL // max(1, len(selection)))
    share = share if share >= _LEAST_OUTPUTS else 0
    selected = {index: _tell(notebook.cells[index], sources, share) for index in sorted(selection)}
    around = window(count, _anchor(notebook, selection, standing))
    others = [selected.get(index) or _tell(notebook.cells[index], sources) for index in around]
    context = NotebookContext(
        uri=Path(real).as_uri(),
        path=path,
        revision=notebook.revision,
        kernel_id=standing.kernel,
        kernel_language=standing.language or find_language(notebook),
        cell_count=count,
        selected_cells=tuple(selected.values()),
    )
    return fit(context, others)


def _selection(notebook: Notebook, editor: NotebookEditor) -> dict[int, SelectionStatus]:
    found: dict[int, SelectionStatus] = {}
    marked: list[tuple[Any, SelectionStatus]] = [(ref, "selected") for ref in editor.selected]
    if editor.editing is not None:
        marked.append((editor.editing, "active"))
    for ref, status in marked:
        try:
            found[notebook.cell(ref).index] = status
        except CellwrightError:
            continue  # deleted since it was selected
    return found


def _anchor(
    notebook: Notebook, selection: Mapping[int, SelectionStatus], standing: Standing
) -> int:
    """The cell to look around: the last one selected, else the one that ran last, else the first."""
    if selection:
        return max(selection)
    for run in reversed(standing.runs):
        try:
            return notebook.cell(run.cell).index
        except CellwrightError:
            continue
    return 0


def _stale(notebook: Notebook, standing: Standing) -> dict[str, str] | None:
    """The stale cells with the reason of each; None where that is not followed."""
    if len(notebook.cells) >= FOLLOWED_BELOW:
        return None
    if not standing.runs:
        return {}
    from cellwright.workspace.staleness import describe_staleness

    return {
        row["cell"]: row["stale_reason"] or "its result does not stand"
        for row in describe_staleness(notebook, standing.runs)
        if row["state"] == "stale"
    }


def _why_stale(cell: Cell, sources: _Sources) -> str | None:
    if sources.stale is not None:
        return sources.stale.get(cell.handle)
    recorded = sources.recorded.get(cell.handle)
    is_edited = recorded is not None and recorded.hash != cell.hash
    return "it was edited since it ran" if is_edited else None


def _tell(cell: Cell, sources: _Sources, outputs: int = 0) -> CellContext:
    run, has_output, shown = None, False, None
    if cell.type == "code":
        run, has_output = _run(cell, sources)
        shown = _outputs(cell, outputs) if has_output and outputs else None
    return CellContext(
        id=cell.handle,
        index=cell.index,
        type=cell.type,
        content=cell.source,
        has_output=has_output,
        selection=sources.selection.get(cell.index, "unselected"),
        run=run,
        stale=_why_stale(cell, sources) if cell.type == "code" else None,
        outputs=shown,
    )


def _run(cell: Cell, sources: _Sources) -> tuple[LastRun, bool]:
    now = sources.standing.now
    status = find_status(
        cell,
        sources.recorded.get(cell.handle),
        None if now is None else now.get(cell.handle, "idle"),
    )
    last = status["last_run"] or {}
    is_running = status["status"] in ("running", "pending")
    run = LastRun(
        execution=status["status"] if is_running else "idle",
        order=status["execution_count"],
        success=None if last.get("status") == "running" else last.get("success"),
        duration=last.get("duration_ms"),
        ended=_time(last.get("ended")),
    )
    return run, status["has_output"]


def _outputs(cell: Cell, characters: int) -> str:
    if len(cell.raw) > _LARGEST:
        return f"{len(cell.raw):,} bytes, too many to sum up here; GetCellOutputs reads them"
    return describe(cell.outputs, characters // CHARACTERS_PER_TOKEN, images=0).text


def _time(moment: float | None) -> str | None:
    if moment is None:
        return None
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
