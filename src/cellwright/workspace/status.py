"""How the cells of a notebook are: what runs, what ran last, when, and how it ended.

There are three sources. What runs now is known to the process that runs it. The journal has the
runs that went through us, and survives restarts. The notebook has the outputs and the count of
the last run, whatever program ran it, and with them, where Jupyter records it, its times in
`metadata.execution`.
"""

from __future__ import annotations

from cellwright.document.costs import GarbagePause
from cellwright.workspace.api.answers import CellView, LastRun, ReadAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.journal.executions import ExecutionRecord

# Jupyter's words for the moments of a run, the one that is closest to the cell first.
_BEGAN = ("shell.execute_reply.started", "iopub.execute_input", "iopub.status.busy")
_ENDED = ("shell.execute_reply", "iopub.status.idle")


def find_last_runs(executions: Iterable[ExecutionRecord]) -> dict[str, ExecutionRecord]:
    """Return the last run of each cell on record; the runs come the oldest first."""
    return {run.cell: run for run in executions}


STALE_SECONDS = 0.4
"""How long a reader waits for staleness; `stale` itself takes the time that it needs."""


def describe_notebook(
    notebook: Notebook,
    path: str,
    executions: Sequence[ExecutionRecord] = (),
    now: Mapping[str, str] | None = None,
    *,
    stale: bool = False,
    cells: Iterable[Cell] | None = None,
) -> ReadAnswer:
    """Describe a notebook's cells and their status.

    Args:
        notebook: as it is now.
        path: what the caller calls it.
        executions: the runs of its cells on record, the oldest first.
        now: the cells that run or wait right now, by handle: `running` or `pending`; None if
            another process may run it.
        stale: also find out which results are stale, and why; that looks at all sources, and is
            left out if it takes longer than `STALE_SECONDS`.
        cells: the cells to describe; all by default.
    """
    recorded = find_last_runs(executions)
    reasons: Mapping[str, str | None] | None = {} if stale else None
    if stale and executions:  # else nothing is stale, and the analysis is slow to load
        from cellwright.workspace.staleness import find_stale_reasons

        reasons = find_stale_reasons(notebook, executions, STALE_SECONDS, now)
    with GarbagePause():
        views = [
            describe_cell(
                cell,
                recorded.get(cell.handle),
                None if now is None else now.get(cell.handle, "idle"),
                reasons,
            )
            for cell in (notebook.cells if cells is None else cells)
        ]
    staleness = "not analysed" if stale and reasons is None else None
    return ReadAnswer(path, notebook.revision, notebook.version, views, [], staleness=staleness)


def describe_cell(
    cell: Cell,
    recorded: ExecutionRecord | None = None,
    now: str | None = None,
    stale: Mapping[str, str | None] | None = None,
) -> CellView:
    """Describe a cell without its outputs.

    Args:
        cell: the cell.
        recorded: its last run on record, if there is one.
        now: `running` or `pending` while it is, `idle` if not, None if that is not known.
        stale: the stale cells by handle, with the reason of each; None if it was not asked for.
    """
    about = (cell.index, cell.id, cell.handle, cell.type, cell.source, cell.hash)
    problem = cell.problem or None
    if cell.type != "code":
        return CellView(*about, problem=problem)
    status, last = find_status(cell, recorded, now)
    is_stale = None if stale is None else cell.handle in stale
    reason = stale.get(cell.handle) if stale else None
    has_output = bool(cell.output_types)
    return CellView(
        *about, cell.execution_count, status, has_output, last, is_stale, reason, problem
    )


def find_status(
    cell: Cell, recorded: ExecutionRecord | None = None, now: str | None = None
) -> tuple[str, LastRun | None]:
    """Return the status of a code cell, and its last run; None if it never ran.

    `recorded` is its last run on record. `now` is `running` or `pending` while it is, `idle` if
    it is neither, and None if that is not known. A run that is on record as `running`, but does
    not run, has died.
    """
    if recorded is not None and recorded.status == "running":
        status = "died" if now == "idle" else "running"
        last: LastRun | None = _describe_run(status, recorded.began, None)
    else:
        last = _find_last_run(cell, recorded)
    if now is None or now == "idle":
        return (last.status if last else "never"), last
    return now, last


def _find_last_run(cell: Cell, recorded: ExecutionRecord | None) -> LastRun | None:
    kinds, count = cell.output_types, cell.execution_count
    found = _read_jupyter_times(cell)
    if recorded is not None:
        ended = recorded.began + recorded.seconds
        is_newer = found is not None and found[1] > ended + 0.001
        # Another count is that of another program's run; none at all means that outputs were
        # cleared, which does not undo the run.
        if not is_newer and count in (recorded.count, None):
            return _describe_run(recorded.status, recorded.began, ended)
        if not is_newer:
            found = None  # times of a run before ours
    if count is None and not kinds and found is None:
        return None
    return _describe_run("error" if "error" in kinds else "ok", *(found or (None, None)))


def _describe_run(status: str, began: float | None, ended: float | None) -> LastRun:
    duration = None if began is None or ended is None else max(0, round((ended - began) * 1000))
    return LastRun(
        status, began and round(began, 3), ended and round(ended, 3), duration, status == "ok"
    )


def _read_jupyter_times(cell: Cell) -> tuple[float | None, float] | None:
    """Return when the last run began and ended, if Jupyter recorded it."""
    if b'"execution"' not in cell.raw:  # by far the most; decoding metadata takes longer
        return None
    execution = cell.metadata.get("execution")
    if not isinstance(execution, dict):
        return None
    ended = _find_time(execution, _ENDED)
    return None if ended is None else (_find_time(execution, _BEGAN), ended)


def _find_time(execution: Mapping[str, object], keys: Iterable[str]) -> float | None:
    from datetime import datetime

    for key in keys:
        value = execution.get(key)
        if isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                continue
            if moment.tzinfo is not None:  # Jupyter writes UTC; a time without a zone says little
                return moment.timestamp()
    return None


def renew_times(cell: Cell, began: float, ended: float) -> dict[str, str] | None:
    """Return the new `metadata.execution` after a run; None if Jupyter does not use it here.

    Only the moments that are there are renewed: old ones beside new outputs would be wrong.
    """
    execution = cell.metadata.get("execution")
    if not isinstance(execution, dict):
        return None
    from datetime import UTC, datetime

    moments = dict.fromkeys(_BEGAN, began) | dict.fromkeys(_ENDED, ended)
    found = {
        key: f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        for key, moment in moments.items()
        if key in execution
    }
    return found or None
