"""Which cells of a notebook are stale, from what the journal remembers of their runs."""

from __future__ import annotations

import contextlib
import time

from cellwright.dataflow.budget import AnalysisStopped
from cellwright.dataflow.memory import Memory
from cellwright.dataflow.plans import stale_closure
from cellwright.dataflow.records import DataflowCell, DataflowRun, quote_id
from cellwright.dataflow.states import staleness
from cellwright.document.costs import GarbagePause
from cellwright.errors import ExecutionCancelled
from cellwright.workspace.activity import is_abandoned
from cellwright.workspace.api.answers import CellStaleness, StaleReason
from cellwright.workspace.status import KeptRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from typing import TypeAlias

    from cellwright.dataflow.records import CellState
    from cellwright.document.cells import Cell as NotebookCell
    from cellwright.document.notebook import Notebook
    from cellwright.journal.executions import ExecutionRecord

    _Told: TypeAlias = dict[int, tuple[CellState, CellStaleness]]
    _Question: TypeAlias = tuple[list[DataflowCell], list[DataflowRun], str]

PARAMETERS = "(parameters)"
"""What the record calls code that set parameters: no cell can have such an id."""


def describe_staleness(
    notebook: Notebook,
    executions: Sequence[ExecutionRecord],
    *,
    now: Container[str] | None = None,
) -> list[CellStaleness]:
    """Describe for every code cell whether it is fresh, stale or never run, and why.

    `now` has the cells that run or wait, by handle; None if that is not known.
    """
    with _stop_if_abandoned(), GarbagePause():
        return _look_at(notebook, executions, now, is_abandoned).describe()


def find_stale_reasons(
    notebook: Notebook,
    executions: Sequence[ExecutionRecord],
    seconds: float,
    now: Container[str] | None = None,
) -> dict[str, str | None] | None:
    """Return the stale cells by handle, with the reasons; None if that takes longer than so long."""
    if not executions:
        return {}  # what never ran is not stale
    # Of this thread: what else the machine does must not decide it.
    deadline = time.thread_time() + seconds

    def should_stop() -> bool:
        return is_abandoned() or time.thread_time() > deadline

    try:
        states = _look_at(notebook, executions, now, should_stop).states
    except AnalysisStopped:
        if is_abandoned():
            raise ExecutionCancelled from None
        return None
    return {
        state.cell: state.stale_reason and _name_parameters(state.stale_reason)
        for state in states
        if state.state == "stale"
    }


class _Look:
    """A question about a notebook and its answer; and what is known for the next question."""

    __slots__ = ("memories", "path", "question", "states", "told")

    def __init__(
        self,
        path: str | None,
        question: _Question,
        states: Sequence[CellState],
        memory: Memory,
        before: _Look | None,
    ) -> None:
        self.path = path
        self.question = question
        self.states = states
        self.memories = [memory]  # who uses it takes it out, since only one may
        self.told: _Told = {} if before is None else before.told

    def describe(self) -> list[CellStaleness]:
        """Describe the states of code; a state that was described before keeps its row.

        Answers share these rows: like all values, they are never changed.
        """
        known, told = self.told.get, {}
        for state in self.states:
            if state.state != "not_code":
                told[id(state)] = known(id(state)) or (state, _describe_state(state))
        self.told = told
        return [row for _, row in told.values()]


def _describe_state(state: CellState) -> CellStaleness:
    return CellStaleness(
        state.index,
        state.cell,
        state.state,
        state.stale_reason and _name_parameters(state.stale_reason),
        [
            StaleReason(reason.kind, _name_parameters(reason.sentence), list(reason.names))
            for reason in state.reasons
        ],
        [_name_parameters(warning.sentence) for warning in state.warnings],
    )


# Who asks is likely to ask again before the next edit, or after it. That bounds what is kept:
# these answers, and as many memories, each of at most `dataflow.memory.MOST_KEPT`.
_recent: tuple[_Look, ...] = ()
_MOST_RECENT = 4
_MOST_MEMORIES = 2


def _look_at(
    notebook: Notebook,
    executions: Sequence[ExecutionRecord],
    now: Container[str] | None,
    should_stop: Callable[[], bool],
) -> _Look:
    """Judge all cells, unless that was done for the same cells and runs a moment ago."""
    global _recent  # noqa: PLW0603  # replaced as a whole, so that threads need no lock
    cells, runs = list_dataflow_cells(notebook), list_dataflow_runs(executions, now)
    language = find_language(notebook)
    question = (cells, runs, language)
    before = None
    for known in _recent:
        if known.question == question:
            return known
        if before is None and known.path == notebook.path and known.question[2] == language:
            before = known
    memory = Memory()
    with contextlib.suppress(IndexError):  # another thread has it
        memory = before.memories.pop() if before else memory
    states = staleness(*question, should_stop=should_stop, memory=memory)
    found = _Look(notebook.path, question, states, memory, before)
    _recent = (found, *_recent[: _MOST_RECENT - 1])
    for look in [each for each in _recent if each.memories][_MOST_MEMORIES:]:
        look.memories.clear()
    return found


def find_stale_cells(
    notebook: Notebook, executions: Sequence[ExecutionRecord], kernel: str | None = None
) -> list[int]:
    """Return the indices of the cells to run, so that no result is stale after that."""
    cells = list_dataflow_cells(notebook)
    with _stop_if_abandoned():
        found = stale_closure(
            cells,
            list_dataflow_runs(executions),
            find_language(notebook),
            kernel=kernel,
            should_stop=is_abandoned,
        )
    places = {cell.id: index for index, cell in enumerate(cells)}
    return sorted(places[cell.id] for cell in found)


@contextlib.contextmanager
def _stop_if_abandoned() -> Iterator[None]:
    """Cancel the call if its client is gone: an analysis may take seconds."""
    try:
        yield
    except AnalysisStopped:
        raise ExecutionCancelled from None


def list_dataflow_cells(notebook: Notebook) -> list[DataflowCell]:
    """Return the cells as the analysis takes them."""
    return _cells.list_rows(
        notebook, lambda cell: DataflowCell(cell.handle, cell.source, cell.type)
    )


_cells = KeptRows()


def list_dataflow_runs(
    executions: Sequence[ExecutionRecord], now: Container[str] | None = None
) -> list[DataflowRun]:
    """Return the runs on record as the analysis takes them.

    A cell that runs for long is on record as `running` until it ends; then it is there twice. One
    that is there once, and is not among those that run `now`, died with its engine.
    """
    ended = {(run.cell, run.kernel, run.began) for run in executions if run.status != "running"}
    return [
        DataflowRun(
            run.cell,
            run.order,
            "died"
            if run.status == "running" and now is not None and run.cell not in now
            else run.status,
            run.kernel,
            run.source,
            run.hash,
        )
        for run in executions
        if run.status != "running" or (run.cell, run.kernel, run.began) not in ended
    ]


def find_language(notebook: Notebook) -> str:
    """Return the language that the notebook says its code is in; Python if it does not say."""
    metadata = notebook.metadata
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(key)
        if isinstance(value, dict) and isinstance(value.get(name), str):
            return str(value[name])
    return "python"


def _name_parameters(sentence: str) -> str:
    who = "the parameters of a run"
    sentence = sentence.replace(f"a deleted cell (id {PARAMETERS})", who)
    return sentence.replace(f"{who} had left behind", f"{who} had set")


# -- after a kernel is gone -------------------------------------------------------------------

_NOT_BORN = "none yet"


def find_lost_cells(
    notebook: Notebook, executions: Sequence[ExecutionRecord], life: str
) -> list[str]:
    """Return the cells, by handle, that had run well in a kernel that is gone."""
    ran = {run.cell for run in executions if run.kernel == life and run.status == "ok"}
    return [cell.handle for cell in notebook.cells if cell.handle in ran]


def find_previous_life(executions: Sequence[ExecutionRecord], life: str) -> str | None:
    """Return the life of the notebook's kernel before this one, if it is on record."""
    return next((run.kernel for run in reversed(executions) if run.kernel != life), None)


def find_replay_cells(
    notebook: Notebook,
    executions: Sequence[ExecutionRecord],
    target: NotebookCell,
    life: str | None = None,
) -> list[int]:
    """Return the indices of the cells to run before `target`, so that it finds what it needs.

    `life` is the kernel that the notebook has now: what is there already is left out; None means
    a new one. Where names cannot be followed, those are all cells above that ever ran well.
    """
    from cellwright.dataflow.analyse import is_python
    from cellwright.dataflow.plans import replay

    language = find_language(notebook)
    if not is_python(language):
        here = {run.cell for run in executions if run.kernel == life and run.status == "ok"}
        ran = {run.cell for run in executions if run.status == "ok"} - here
        above = notebook.cells[: target.index]
        return [cell.index for cell in above if cell.handle in ran]
    cells = list_dataflow_cells(notebook)
    with _stop_if_abandoned():
        found = replay(
            cells,
            list_dataflow_runs(executions),
            target.handle,
            language,
            kernel=life or _NOT_BORN,
            should_stop=is_abandoned,
        )
    places = {cell.id: index for index, cell in enumerate(cells)}
    return sorted(places[cell.id] for cell in found)


def describe_loss(language: str, lost: Sequence[str], replay: Sequence[str], cell: str) -> str:
    """Say which state is gone and how to get it back, in a sentence."""
    from cellwright.dataflow.analyse import is_python

    cell = quote_id(cell)
    many = ", ".join(map(quote_id, lost))
    text = (
        f"Variables lost: those of {many}" if lost else "The last kernel and its variables are lost"
    )
    if not replay:
        return f"{text}; cell {cell} needs none of them"
    how = (
        f"To get them back, replay cell {cell}: {', '.join(map(quote_id, replay))} and then {cell}"
    )
    if not is_python(language):
        how += f" (names are not followed in {quote_id(language)}: all that had run above it)"
    return f"{text}. {how}"
