"""A notebook in memory, as a host: for tests, ours and our users', and for the conformance kit."""

from __future__ import annotations

from copy import copy

from cellwright.document.notebook import Notebook
from cellwright.protocol.host import Presence, Ran

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import Snapshot

    Execute = Callable[["Cell", "str | None"], Awaitable[Ran]]


async def _run_nothing(cell: Cell, nested: str | None) -> Ran:  # noqa: ARG001
    return Ran(cell.handle, "ok")


class MemoryHost:
    """A `NotebookHost` without a file; `execute` runs one cell, and is told if it is nested."""

    def __init__(self, notebook: Notebook | None = None, execute: Execute = _run_nothing) -> None:
        self.notebook = Notebook() if notebook is None else notebook
        self.execute = execute
        self.saves = 0

    async def snapshot(self) -> Notebook:
        """A copy of the notebook as it is now."""
        return copy(self.notebook)

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Apply edits, all or nothing."""
        self.notebook.apply(list(edits), base=base)
        return copy(self.notebook)

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[Ran]:
        """Run cells one by one, until one does not end well."""
        del base  # nobody else changes it
        wanted = [self.notebook.cell(ref) for ref in cells]
        ran: list[Ran] = []
        for cell in wanted:
            ran.append(await self.execute(cell, nested))
            if ran[-1].status != "ok":
                break
        return ran

    async def save(self) -> None:
        """Count how often somebody wanted it saved."""
        self.saves += 1

    async def presence(self) -> Presence:
        """Nobody is looking."""
        return Presence()
