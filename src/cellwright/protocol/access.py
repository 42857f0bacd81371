"""What the dispatcher asks of a notebook, wherever it lives, and one in memory."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Protocol

from cellwright.document.notebook import Notebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Literal

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import Snapshot

    CellStatus = Literal["ok", "error", "timed_out", "cancelled", "died"]
    Execute = Callable[["Cell", "str | None"], Awaitable["CellResult"]]


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell that was run: its handle, how it ended, and what to call that if not well.

    `reason` is the name of the exception, such as `ZeroDivisionError`, or a few words.
    """

    cell: str
    status: CellStatus
    reason: str = ""
    execution_count: int | None = None


class NotebookAccess(Protocol):
    """One notebook and its kernel.

    Cells are named by their handles: the id, or `cell-N` where there is none. What goes wrong is
    raised as a `CellwrightError`, and then nothing was changed; `ModeForbids` if the mode of
    the caller does not allow it.
    """

    async def snapshot(self) -> Notebook:
        """Return the notebook as it is now; the caller's own copy."""
        ...

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Check and apply edits in one step, all or nothing, and read back what came of it.

        References mean the cells of `base`; changes made elsewhere since then stay.

        Raises:
            Conflict: a cell concerned is not as `base` knew it; nothing was applied.
            InvalidEdit, InvalidMetadata: what was asked for would not be a valid notebook.
        """
        ...

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[CellResult]:
        """Run code cells in order, and stop after the first that fails.

        Outputs land in the notebook. Returns those that ran; handles mean the cells of `base`.
        Without `nested` it waits for its turn at the kernel, as any run does. With it, a cell
        that runs now waits for these: each is sent to the kernel at once, past the queue, with
        `{"nbmp_request": nested}` in the metadata of its execute request.
        """
        ...


async def _run_nothing(cell: Cell, nested: str | None) -> CellResult:  # noqa: ARG001
    return CellResult(cell.handle, "ok")


class MemoryAccess:
    """A `NotebookAccess` without a file; `execute` runs one cell and gets the request it is nested in."""

    def __init__(self, notebook: Notebook | None = None, execute: Execute = _run_nothing) -> None:
        self.notebook = Notebook() if notebook is None else notebook
        self.execute = execute

    async def snapshot(self) -> Notebook:
        """Return a copy of the notebook as it is now."""
        return copy(self.notebook)

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Apply edits, all or nothing."""
        self.notebook.apply(list(edits), base=base)
        return copy(self.notebook)

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[CellResult]:
        """Run cells one by one, until one fails."""
        del base  # there are no other writers
        wanted = [self.notebook.cell(ref) for ref in cells]
        ran: list[CellResult] = []
        for cell in wanted:
            ran.append(await self.execute(cell, nested))
            if ran[-1].status != "ok":
                break
        return ran
