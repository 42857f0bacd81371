"""Copies of a notebook that are run with parameters, in papermill's shape.

The parameters are a cell tagged `injected-parameters`, after the cell tagged `parameters` or before
all others; one that is there already is replaced. What ran when, and how it ended, is in the
metadata `papermill` of the notebook and of its cells, so that papermill's readers find it.
"""

from __future__ import annotations

import datetime as dt

from cellwright.document.edits import ClearOutputs, Delete, Insert, SetMetadata
from cellwright.workspace.runs.parameters import Parameters, has_tag
from cellwright.workspace.staleness import find_language

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.workspace.runs.execution import Execution

INJECTED = "injected-parameters"
_STATUSES = {"ok": "completed", "pending": "pending"}


def make_copy_edits(
    notebook: Notebook, parameters: Mapping[str, Any] | None, *, clears: bool
) -> list[Edit]:
    """Return the edits that make a copy of a notebook ready to be run with parameters.

    Raises:
        KernelCannot: how parameters are written in the notebook's language is not known.
        InvalidEdit: that language has no such name or value.
    """
    edits: list[Edit] = [ClearOutputs()] if clears else []
    if not parameters:
        return edits
    values = Parameters(parameters, notebook.cells)
    language = find_language(notebook) or "python"
    source = f"{_comment(language)} Parameters\n{values.source(language)}"
    old = [cell for cell in notebook.cells if has_tag(cell, INJECTED)]
    edits += [Delete(cell.index) for cell in reversed(old)]
    metadata = {"tags": [INJECTED]}
    if values.cell is not None:
        return [*edits, Insert(source, metadata=metadata, after=values.cell.index)]
    return [*edits, Insert(source, metadata=metadata, at=old[0].index if old else 0)]


def _comment(language: str) -> str:
    from cellwright.text.percent import find_comment

    return find_comment(language) or "#"


def make_record_edits(
    executions: Iterable[Execution],
    parameters: Mapping[str, Any],
    *,
    began: float,
    ended: float,
    paths: tuple[str, str],
    revision: str,
) -> list[Edit]:
    """Return the edits that put on record in a copy how its run went."""
    edits: list[Edit] = []
    failed = False
    at = began
    for execution in executions:
        status = _STATUSES.get(execution.status, "failed")
        reached = status != "pending"
        is_bad = execution.is_failure and not execution.is_exit
        is_bad = is_bad or execution.shown_error is not None
        failed = failed or is_bad
        cell: dict[str, Any] = {"status": status, "exception": is_bad}
        if reached:
            cell["start_time"] = _format_time(at)
            at += execution.seconds
            cell |= {"end_time": _format_time(at), "duration": round(execution.seconds, 6)}
        if execution.cell is not None:
            edits.append(SetMetadata({"papermill": cell}, cell=execution.cell))
    record = {
        "default_parameters": {},
        "duration": round(ended - began, 6),
        "end_time": _format_time(ended),
        "environment_variables": {},
        "exception": failed,
        "input_path": paths[0],
        "input_revision": revision,
        "output_path": paths[1],
        "parameters": dict(parameters),
        "start_time": _format_time(began),
        "version": "cellwright",
    }
    return [*edits, SetMetadata({"papermill": None}), SetMetadata({"papermill": record})]


def _format_time(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).isoformat()
