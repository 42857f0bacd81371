"""Which cells of a notebook are stale, from what the journal remembers of their runs."""

from __future__ import annotations

from cellwright.dataflow.plans import stale_closure
from cellwright.dataflow.records import Cell, Run
from cellwright.dataflow.states import staleness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.journal.executions import Executed


def describe_staleness(
    notebook: Notebook, executions: Sequence[Executed], kernel: str | None = None
) -> list[dict[str, Any]]:
    """For every code cell: fresh, stale or never run, and why."""
    states = staleness(_cells(notebook), _runs(executions), _language(notebook), kernel=kernel)
    return [
        {
            "index": state.index,
            "cell": state.cell,
            "state": state.state,
            "stale_reason": state.stale_reason,
            "reasons": [
                {"kind": reason.kind, "text": reason.sentence, "names": list(reason.names)}
                for reason in state.reasons
            ],
            "warnings": [warning.sentence for warning in state.warnings],
        }
        for state in states
        if state.state != "not_code"
    ]


def stale_cells(
    notebook: Notebook, executions: Sequence[Executed], kernel: str | None = None
) -> list[int]:
    """The indices of the cells to run, so that no result is stale after that."""
    found = stale_closure(_cells(notebook), _runs(executions), _language(notebook), kernel=kernel)
    places = {cell.id: index for index, cell in enumerate(_cells(notebook))}
    return sorted(places[cell.id] for cell in found)


def _cells(notebook: Notebook) -> list[Cell]:
    return [Cell(cell.handle, cell.source, cell.type) for cell in notebook.cells]


def _runs(executions: Sequence[Executed]) -> list[Run]:
    return [
        Run(run.cell, run.order, run.status, run.kernel, run.source, run.hash) for run in executions
    ]


def _language(notebook: Notebook) -> str:
    metadata = notebook.metadata
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(key)
        if isinstance(value, dict) and isinstance(value.get(name), str):
            return str(value[name])
    return "python"
