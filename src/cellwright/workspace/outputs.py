"""What the cells of a notebook printed, showed and raised, within one budget."""

from __future__ import annotations

from cellwright.outputs.describe import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import CellRef
    from cellwright.workspace.execution import Execution

_LEAST_TOKENS = 50


def describe_outputs(
    notebook: Notebook, cells: Sequence[CellRef] | None = None, max_tokens: int = 8000
) -> dict[str, Any]:
    """The outputs of some cells, or of all that have any, in order.

    Every cell gets an equal share of what is left, so that short ones leave more to the rest.
    """
    if cells is None:
        chosen = [cell for cell in notebook.cells if cell.type == "code" and cell.outputs]
    else:
        chosen = [notebook.cell(ref) for ref in cells]
    rows: list[dict[str, Any]] = []
    left = max_tokens
    for done, cell in enumerate(chosen):
        share = max(_LEAST_TOKENS, left // (len(chosen) - done))
        if left <= 0:
            break
        found = describe(cell.outputs, share, images=0)
        left -= len(found.text) // 4
        rows.append(
            {
                "index": cell.index,
                "id": cell.id,
                "handle": cell.handle,
                "type": cell.type,
                "execution_count": getattr(cell, "execution_count", None),
                "outputs": len(cell.outputs),
                "text": found.text,
                "left_out": [str(item) for item in found.left_out],
            }
        )
    return {
        "revision": notebook.revision,
        "cells": rows,
        "cells_left_out": [cell.handle for cell in chosen[len(rows) :]],
    }


def describe_executions(done: Sequence[Execution], max_tokens: int = 8000) -> list[dict[str, Any]]:
    """What the cells of a run said, as text within one budget, and what is left out of it."""
    said = [execution for execution in done if execution.outputs]
    rows: list[dict[str, Any]] = []
    left = max_tokens
    for place, execution in enumerate(said):
        share = max(_LEAST_TOKENS, left // (len(said) - place))
        found = describe(execution.outputs, share, images=0)
        left -= len(found.text) // 4
        out = [str(item) for item in found.left_out]
        rows.append({"cell": execution.cell, "text": found.text, "left_out": out})
    return rows
