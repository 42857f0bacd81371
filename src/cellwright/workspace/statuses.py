"""How the cells of a notebook stand: what runs, what ran last, when, and how it ended.

Three witnesses are heard. What runs now is known to whoever runs it. The journal has the runs that
went through us, and survives restarts. The file has the outputs and the count of the last run,
whoever ran it, and with them, where Jupyter records it, its times in `metadata.execution`.
"""

from __future__ import annotations

from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.journal import Journal
    from cellwright.journal.executions import ExecutionRecord

# Jupyter's words for the moments of a run, the one that is closest to the cell first.
_BEGAN = ("shell.execute_reply.started", "iopub.execute_input", "iopub.status.busy")
_ENDED = ("shell.execute_reply", "iopub.status.idle")


def on_record(journal: Journal, real: str) -> list[ExecutionRecord]:
    """The runs of a notebook's cells; none where the journal cannot be read.

    For what is to be answered all the same: a reader must not fail for want of a history.
    """
    try:
        return journal.executions(real)
    except CellwrightError:
        return []


def latest(executions: Iterable[ExecutionRecord]) -> dict[str, ExecutionRecord]:
    """The last run of each cell on record; the runs come the oldest first."""
    return {run.cell: run for run in executions}


def describe_status(
    cell: Cell, recorded: ExecutionRecord | None = None, now: str | None = None
) -> dict[str, Any]:
    """The status of a code cell.

    `recorded` is its last run on record. `now` is `running` or `pending` while it is, `idle` if
    it is neither, and None if nobody can tell. `last_run` is None for a cell that never ran; its
    times are None where nobody wrote them down. A run that was on record as `running`, and is
    over without a word, has died.
    """
    kinds, count = cell.output_types, cell.execution_count
    if recorded is not None and recorded.status == "running":
        last: dict[str, Any] | None = _run(
            "died" if now == "idle" else "running", recorded.began, None
        )
    else:
        last = _last_run(cell, kinds, count, recorded)
    if now == "idle":
        now = None
    return {
        "execution_count": count,
        "status": now or (last["status"] if last else "never"),
        "has_output": bool(kinds),
        "last_run": last,
    }


def _last_run(
    cell: Cell, kinds: list[str], count: int | None, recorded: ExecutionRecord | None
) -> dict[str, Any] | None:
    found = _jupyter_times(cell)
    if recorded is not None:
        ended = recorded.began + recorded.seconds
        is_newer = found is not None and found[1] > ended + 0.001
        # Another count is that of somebody else's run; none at all means that outputs were
        # cleared, which does not undo the run.
        if not is_newer and count in (recorded.count, None):
            return _run(recorded.status, recorded.began, ended)
        if not is_newer:
            found = None  # times of a run before ours
    if count is None and not kinds and found is None:
        return None
    return _run("error" if "error" in kinds else "ok", *(found or (None, None)))


def _run(status: str, began: float | None, ended: float | None) -> dict[str, Any]:
    duration = None if began is None or ended is None else max(0, round((ended - began) * 1000))
    return {
        "status": status,
        "began": began and round(began, 3),
        "ended": ended and round(ended, 3),
        "duration_ms": duration,
        "success": status == "ok",
    }


def _jupyter_times(cell: Cell) -> tuple[float | None, float] | None:
    """When Jupyter says that its last run began and ended, if it wrote that down."""
    if b'"execution"' not in cell.raw:  # by far the most; decoding metadata takes longer
        return None
    execution = cell.metadata.get("execution")
    if not isinstance(execution, dict):
        return None
    ended = _first_time(execution, _ENDED)
    return None if ended is None else (_first_time(execution, _BEGAN), ended)


def _first_time(execution: Mapping[str, Any], keys: Iterable[str]) -> float | None:
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


def new_times(cell: Cell, began: float, ended: float) -> dict[str, str] | None:
    """What `metadata.execution` has to say after a run; None if Jupyter does not use it here.

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
