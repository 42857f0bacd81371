"""A notebook in a file, as the host that its kernel talks to.

What a kernel changes goes the way of every edit: checked and applied in one step under the lock,
on record, to be undone, saved at once and read back.
"""

from __future__ import annotations

import asyncio

from cellwright.protocol.host import Presence, Ran
from cellwright.workspace.executions import Executions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.cells import Cell
    from cellwright.document.change import Change
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.workspace.book import Book
    from cellwright.workspace.execution import Execution


class FileHost:
    """The `NotebookHost` of a notebook in a file; what is applied is on disk."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def snapshot(self) -> Notebook:
        """The notebook as the file has it now."""
        return await asyncio.to_thread(self._book.file.read)

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Check and apply edits in one step, and save; returns what the file holds then."""
        found: list[Notebook] = []

        def make(notebook: Notebook) -> Change:
            found[:] = [notebook]
            return notebook.apply(list(edits), base=base)

        await asyncio.to_thread(self._book.file.change, make, label="by its kernel")
        return found[0]

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[Ran]:
        """Run cells in order, until one does not end well; their outputs are then in the file.

        Handles name cells for as long as they are there: `base` is of no use to find them, and
        a cell that has gone since then is not found.
        """
        del base
        book = self._book
        book.workspace.require("run", "run cells")
        notebook = await asyncio.to_thread(book.file.read)
        wanted = [notebook.cell(ref) for ref in cells]
        so_far = Executions.pending(wanted)
        if nested is not None:
            await self._nested(notebook, wanted, so_far, nested)
        else:
            work = book.workspace.kernels.work(book, notebook, wanted, so_far)
            handles = [cell.handle for cell in wanted]
            actor = book.workspace.actor
            run = book.workspace.hub.runs.start("run", book.real, actor, work, handles)
            await run.wait()
            if run.error is not None:
                raise run.error
        return [_ran(each) for each in so_far if each.status != "pending"]

    async def _nested(
        self, notebook: Notebook, cells: Sequence[Cell], so_far: Executions, request: str
    ) -> None:
        """Inside the cell that waits for them: past the queue, in the turn that it has."""
        from cellwright.workspace.running import NotebookRun

        run = NotebookRun(
            self._book, self._book.workspace.hub.evaluator, done=so_far.put, nested=request
        )
        await run.run(notebook, cells)

    async def save(self) -> None:
        """Nothing: what is applied is on disk already."""

    async def presence(self) -> Presence:
        """Nobody looks at a file."""
        return Presence()


def _ran(execution: Execution) -> Ran:
    status = execution.status
    reason = execution.error[0] if execution.error else status
    return Ran(execution.cell, status, "" if status == "ok" else reason, execution.count)  # type: ignore[arg-type]
