"""How the cells of a notebook are: what runs, what ran last, when, and how it ended.

There are three sources. What runs now is known to the process that runs it. The journal has the
runs that went through us, and survives restarts. The notebook has the outputs and the count of
the last run, whatever program ran it, and with them, where Jupyter records it, its times in
`metadata.execution`.
"""

from __future__ import annotations

from cellwright.document._bytes.slots import FileSlots
from cellwright.document.costs import GarbagePause
from cellwright.workspace.api.answers import CellView, LastRun, ReadAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.journal.executions import ExecutionRecord

    Row = TypeVar("Row")

# A run that the file tells nothing more of, as most are.
_RUNS = {name: LastRun(name, None, None, None, name == "ok") for name in ("ok", "error")}
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
    about = _About(recorded, now, reasons)
    with GarbagePause():
        if cells is None:
            views = _views.list_rows(notebook, about.describe, about)
        else:
            views = [*map(about.describe, cells)]
    staleness = "not analysed" if stale and reasons is None else None
    return ReadAnswer(path, notebook.revision, notebook.version, views, [], staleness=staleness)


class _About:
    """What is known of cells besides the notebook: each by handle, None if it is not known."""

    __slots__ = ("_known",)

    def __init__(
        self,
        recorded: Mapping[str, ExecutionRecord],
        now: Mapping[str, str] | None,
        reasons: Mapping[str, str | None] | None,
    ) -> None:
        self._known = recorded, now, reasons

    def describe(self, cell: Cell) -> CellView:
        """Describe a cell."""
        recorded, now, reasons = self._known
        status = None if now is None else now.get(cell.handle, "idle")
        return describe_cell(cell, recorded.get(cell.handle), status, reasons)

    def find_other(self, than: _About) -> set[str] | None:
        """The cells of which something else is known; None if that may be all of them."""
        found: set[str] = set()
        nothing = object()
        for old, new in zip(than._known, self._known, strict=True):
            if old is None or new is None:
                if old is not new:
                    return None
            elif old != new:
                handles = old.keys() | new.keys()
                found |= {h for h in handles if old.get(h, nothing) != new.get(h, nothing)}
        return found


class _Kept:
    """The rows of a notebook, and what they were made from."""

    __slots__ = ("about", "handles", "path", "rows", "slots")

    def __init__(
        self,
        path: str | None,
        slots: FileSlots,
        handles: Sequence[str],
        about: _About,
        rows: list[Any],
    ) -> None:
        self.path = path
        self.slots = slots
        self.handles = handles
        self.about = about
        self.rows = rows


_MOST_KEPT = 2
_MOST_BYTES = 32 * 2**20
_NOTHING = _About({}, None, None)


class KeptRows:
    """A row for each cell of the two notebooks that were read last, if they are not too large.

    Rows are made again of cells that are other ones than the last time, and of all cells of another
    file. Their bytes are kept by the host anyway; a row takes about a kilobyte.
    """

    def __init__(self) -> None:
        self._kept: tuple[_Kept, ...] = ()  # replaced as a whole, so that threads need no lock

    def list_rows(
        self, notebook: Notebook, make: Callable[[Cell], Row], about: _About = _NOTHING
    ) -> list[Row]:
        """The rows of all cells; `about` is what they are made from besides the notebook."""
        cells, slots = notebook.cells, notebook.state.layout.slots
        if not isinstance(slots, FileSlots) or len(slots.buffer) > _MOST_BYTES:
            return [*map(make, cells)]
        handles, path = notebook.snapshot().resolver.handles, notebook.path
        known = next((each for each in self._kept if each.path == path), None)
        places, other = None, None
        if known is not None and known.handles == handles:
            places, other = slots.differ_at(known.slots), about.find_other(known.about)
        if known is None or places is None or other is None:
            rows: list[Row] = [*map(make, cells)]
        else:
            rows = known.rows.copy()
            if other:
                places += [i for i, handle in enumerate(handles) if handle in other]
            for index in places:
                rows[index] = make(cells[index])
        others = [each for each in self._kept if each.path != path]
        self._kept = (_Kept(path, slots, handles, about, rows), *others[: _MOST_KEPT - 1])
        return rows.copy()


_views = KeptRows()


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
    status = "error" if "error" in kinds else "ok"
    return _describe_run(status, *found) if found else _RUNS[status]


def _describe_run(status: str, began: float | None, ended: float | None) -> LastRun:
    duration = None if began is None or ended is None else max(0, round((ended - began) * 1000))
    return LastRun(
        status, began and round(began, 3), ended and round(ended, 3), duration, status == "ok"
    )


def _read_jupyter_times(cell: Cell) -> tuple[float | None, float] | None:
    """Return when the last run began and ended, if Jupyter recorded it."""
    if not cell.mentions(b'"execution"'):  # by far the most; decoding metadata takes longer
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


def format_moment(moment: float) -> str:
    """A moment in seconds since 1970 as Jupyter writes it."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def renew_times(cell: Cell, began: float, ended: float) -> dict[str, str] | None:
    """Return the new `metadata.execution` after a run; None if Jupyter does not use it here.

    Only the moments that are there are renewed: old ones beside new outputs would be wrong.
    """
    execution = cell.metadata.get("execution")
    if not isinstance(execution, dict):
        return None
    moments = dict.fromkeys(_BEGAN, began) | dict.fromkeys(_ENDED, ended)
    found = {key: format_moment(moment) for key, moment in moments.items() if key in execution}
    return found or None
