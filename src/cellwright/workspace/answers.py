"""What verbs answer, as plain data; the field names are part of the public interface."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.change import CellChange, Change
    from cellwright.document.notebook import Notebook
    from cellwright.errors import CellConflict


def describe_cell(cell: Cell) -> dict[str, Any]:
    """A cell without its outputs."""
    return {
        "index": cell.index,
        "id": cell.id,
        "handle": cell.handle,
        "type": cell.type,
        "source": cell.source,
        "hash": cell.hash,
        "execution_count": cell.execution_count if cell.type == "code" else None,
        "status": status(cell),
        **({"problem": cell.problem} if cell.problem else {}),
    }


def status(cell: Cell) -> str | None:
    """How the last run of a code cell ended, as far as the file tells; None for text."""
    if cell.type != "code":
        return None
    kinds = cell.output_types
    if "error" in kinds:
        return "error"
    return "ok" if cell.execution_count is not None or kinds else "never"


def describe_notebook(notebook: Notebook, path: str) -> dict[str, Any]:
    """A notebook's cells and what names its state."""
    return {
        "path": path,
        "revision": notebook.revision,
        "nbformat": notebook.version,
        "cells": [describe_cell(cell) for cell in notebook.cells],
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
