"""After a kernel is gone: which cells' state went with it, and what gives one cell its own back."""

from __future__ import annotations

from cellwright.workspace.staleness import as_cells, as_runs, language_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.journal.executions import ExecutionRecord

_NOT_BORN = "none yet"


def lost_cells(notebook: Notebook, executions: Sequence[ExecutionRecord], life: str) -> list[str]:
    """The cells, by handle, that had run well in a life of a kernel that is over."""
    ran = {run.cell for run in executions if run.kernel == life and run.status == "ok"}
    return [cell.handle for cell in notebook.cells if cell.handle in ran]


def life_before(executions: Sequence[ExecutionRecord], life: str) -> str | None:
    """The life of the notebook's kernel before this one, as far as is on record."""
    return next((run.kernel for run in reversed(executions) if run.kernel != life), None)


def replay_cells(
    notebook: Notebook, executions: Sequence[ExecutionRecord], target: Cell, life: str | None = None
) -> list[int]:
    """The indices of the cells to run before `target`, so that it finds what it needs.

    `life` is the kernel that the notebook has now: what is there already is left out; None means
    a new one. Where names cannot be followed, those are all cells above that ever ran well.
    """
    from cellwright.dataflow.analyse import is_python
    from cellwright.dataflow.plans import replay

    language = language_of(notebook)
    if not is_python(language):
        here = {run.cell for run in executions if run.kernel == life and run.status == "ok"}
        ran = {run.cell for run in executions if run.status == "ok"} - here
        above = notebook.cells[: target.index]
        return [cell.index for cell in above if cell.handle in ran]
    cells = as_cells(notebook)
    found = replay(cells, as_runs(executions), target.handle, language, kernel=life or _NOT_BORN)
    places = {cell.id: index for index, cell in enumerate(cells)}
    return sorted(places[cell.id] for cell in found)


def describe_loss(language: str, lost: Sequence[str], replay: Sequence[str], cell: str) -> str:
    """What is gone and how to get on, in a sentence."""
    from cellwright.dataflow.analyse import is_python

    many = ", ".join(lost) or "no cell on record"
    text = f"Lost is the state of {many}"
    if not replay:
        return f"{text}; cell {cell} needs none of it"
    how = f"`run --replay {cell}` runs {', '.join(replay)} and then {cell}"
    if not is_python(language):
        how += f" (names are not followed in {language}: all that had run above it)"
    return f"{text}. {how}"
