"""Which cells of a notebook are stale, from what the journal remembers of their runs."""

from __future__ import annotations

from cellwright.dataflow.plans import stale_closure
from cellwright.dataflow.records import DataflowCell, DataflowRun
from cellwright.dataflow.states import staleness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.journal.executions import Executed

PARAMETERS = "(parameters)"
"""What the record calls code that set parameters: no cell can have such an id."""


def describe_staleness(
    notebook: Notebook, executions: Sequence[Executed], kernel: str | None = None
) -> list[dict[str, Any]]:
    """For every code cell: fresh, stale or never run, and why."""
    states = staleness(
        as_cells(notebook), as_runs(executions), language_of(notebook), kernel=kernel
    )
    return [
        {
            "index": state.index,
            "cell": state.cell,
            "state": state.state,
            "stale_reason": state.stale_reason and _worded(state.stale_reason),
            "reasons": [
                {"kind": reason.kind, "text": _worded(reason.sentence), "names": list(reason.names)}
                for reason in state.reasons
            ],
            "warnings": [_worded(warning.sentence) for warning in state.warnings],
        }
        for state in states
        if state.state != "not_code"
    ]


def stale_cells(
    notebook: Notebook, executions: Sequence[Executed], kernel: str | None = None
) -> list[int]:
    """The indices of the cells to run, so that no result is stale after that."""
    cells = as_cells(notebook)
    found = stale_closure(cells, as_runs(executions), language_of(notebook), kernel=kernel)
    places = {cell.id: index for index, cell in enumerate(cells)}
    return sorted(places[cell.id] for cell in found)


def as_cells(notebook: Notebook) -> list[DataflowCell]:
    """The cells as the analysis takes them."""
    return [DataflowCell(cell.handle, cell.source, cell.type) for cell in notebook.cells]


def as_runs(executions: Sequence[Executed]) -> list[DataflowRun]:
    """The runs on record as the analysis takes them.

    A cell that runs for long is on record as `running` until it ends; then it is there twice.
    """
    ended = {(run.cell, run.kernel, run.began) for run in executions if run.status != "running"}
    return [
        DataflowRun(run.cell, run.order, run.status, run.kernel, run.source, run.hash)
        for run in executions
        if run.status != "running" or (run.cell, run.kernel, run.began) not in ended
    ]


def language_of(notebook: Notebook) -> str:
    """The language that the notebook says its code is in; Python if it does not say."""
    metadata = notebook.metadata
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(key)
        if isinstance(value, dict) and isinstance(value.get(name), str):
            return str(value[name])
    return "python"


def _worded(sentence: str) -> str:
    who = "the parameters of a run"
    sentence = sentence.replace(f"a deleted cell (id {PARAMETERS})", who)
    return sentence.replace(f"{who} had left behind", f"{who} had set")
