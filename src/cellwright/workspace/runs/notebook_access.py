"""The notebook of a running kernel, as the kernel may use it: read, edit, run cells.

What a kernel changes goes the way of every edit: through the host, in one step, on record.
"""

from __future__ import annotations

from cellwright.workspace.runs.notebook_run import NotebookRun
from cellwright.workspace.runs.run import RunOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.change import Change
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.protocol.methods import CellResult
    from cellwright.workspace.notebook import OpenNotebook


class KernelAccess:
    """The `NotebookAccess` of a notebook in a workspace, with the rights of its caller."""

    def __init__(self, book: OpenNotebook) -> None:
        self._book = book

    async def snapshot(self) -> Notebook:
        """Return the notebook as it is now."""
        await self._book.hub.runs.land_waiting(self._book.real)
        return await self._book.hub.in_file_thread(self._book.host.read)

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Check and apply edits in one step, and save; returns what the notebook holds then."""
        book, found = self._book, list["Notebook"]()
        book.caller.require("edit", "edit a notebook")
        await book.hub.runs.land_waiting(book.real)

        def make(notebook: Notebook) -> Change:
            found[:] = [notebook]
            return notebook.apply(list(edits), base=base)

        def change() -> None:
            # A person who has the notebook open saves it when they like.
            book.change(make, label="by its kernel", save=False)

        await book.hub.in_file_thread(change)
        return found[0]

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[CellResult]:
        """Run cells in order, until one fails; their outputs are then in the notebook.

        Handles name cells for as long as they are there: `base` is of no use to find them, and
        a cell that is gone since then is not found.
        """
        del base
        book = self._book
        book.caller.require("run", "run cells")
        await book.hub.runs.land_waiting(book.real)
        notebook = await book.hub.in_file_thread(book.host.read)
        wanted = [notebook.cell(ref) for ref in cells]
        run = NotebookRun(book, notebook, wanted, RunOptions(nested=nested))
        if nested is not None:
            book.hub.sessions.serve_notebook(book.real, self)
            await run.execute()  # in the turn of the cell that waits for it
        else:
            book.hub.runs.start(run)
            await run.wait()
            if run.error is not None:
                raise run.error
        return [each.to_cell_result() for each in run.executions if each.status != "pending"]
