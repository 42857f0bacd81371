"""What verbs answer, as plain data; the field names are part of the public interface."""

from __future__ import annotations

from cellwright.workspace.statuses import describe_status, latest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.change import CellChange, Change
    from cellwright.document.notebook import Notebook
    from cellwright.errors import CellConflict
    from cellwright.journal.executions import ExecutionRecord


def describe_cell(
    cell: Cell,
    recorded: ExecutionRecord | None = None,
    now: str | None = None,
    stale: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """A cell without its outputs.

    Args:
        cell: the cell.
        recorded: its last run on record, if there is one.
        now: `running` or `pending` while it is, `idle` if not, None if nobody can tell.
        stale: the stale cells by handle, with the reason of each; None if nobody asked.
    """
    told: dict[str, Any] = {"execution_count": None, "status": None}
    if cell.type == "code":
        told = describe_status(cell, recorded, now)
        if stale is not None:
            told |= {"stale": cell.handle in stale, "stale_reason": stale.get(cell.handle)}
    return {
        "index": cell.index,
        "id": cell.id,
        "handle": cell.handle,
        "type": cell.type,
        "source": cell.source,
        "hash": cell.hash,
        **told,
        **({"problem": cell.problem} if cell.problem else {}),
    }


def status(cell: Cell) -> str | None:
    """How the last run of a code cell ended, as far as the file tells; None for text."""
    return describe_status(cell)["status"] if cell.type == "code" else None


def describe_notebook(
    notebook: Notebook,
    path: str,
    executions: Sequence[ExecutionRecord] = (),
    now: Mapping[str, str] | None = None,
    *,
    stale: bool = False,
) -> dict[str, Any]:
    """A notebook's cells, how each stands, and what names its state.

    Args:
        notebook: as it is now.
        path: what the caller calls it.
        executions: the runs of its cells on record, the oldest first.
        now: the cells that run or wait right now, by handle: `running` or `pending`; None if
            nobody here can tell, because another process may run it.
        stale: also say which results do not stand, and why; that takes a look at all sources.
    """
    recorded = latest(executions)
    reasons = _stale_reasons(notebook, executions) if stale else None
    return {
        "path": path,
        "revision": notebook.revision,
        "nbformat": notebook.version,
        "cells": [
            describe_cell(
                cell,
                recorded.get(cell.handle),
                None if now is None else now.get(cell.handle, "idle"),
                reasons,
            )
            for cell in notebook.cells
        ],
    }


def _stale_reasons(
    notebook: Notebook, executions: Sequence[ExecutionRecord]
) -> dict[str, str | None]:
    from cellwright.workspace.staleness import describe_staleness

    return {
        row["cell"]: row["stale_reason"]
        for row in describe_staleness(notebook, executions)
        if row["state"] == "stale"
    }


def describe_cell_change(cell: CellChange) -> dict[str, Any]:
    """What happened to one cell."""
    return {
        "kind": cell.kind,
        "handle": cell.handle,
        "type": cell.type,
        "before": cell.before,
        "after": cell.after,
    }


def describe_change(change: Change, path: str, other: str | None = None) -> dict[str, Any]:
    """What an edit did: revisions before and after, each cell concerned, and the diff.

    `other` is the path of the notebook that it is compared with, if it is another.
    """
    handle = change.after.snapshot.resolver.handle
    cells = []
    for cell in change.cells:
        shape = describe_cell_change(cell)
        if cell.kind == "inserted" and cell.after:
            shape["follows"] = handle(cell.after - 1)
        cells.append(shape)
    return {
        "path": path,
        "before": change.before.snapshot.revision,
        "revision": change.after.snapshot.revision,
        "cells": cells,
        "diff": change.diff(path, other),
    }


def describe_conflict(conflict: CellConflict) -> dict[str, Any]:
    """A cell on which two sides disagree, with what each side holds."""
    return {
        "handle": conflict.handle,
        "index": conflict.index,
        "reason": conflict.reason,
        "base": conflict.base,
        "current": conflict.current,
        "other": conflict.other,
    }
