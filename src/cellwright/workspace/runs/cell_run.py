"""`CellRun`: one cell of a notebook in flight, and what it has said so far."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from cellwright.document.edits import SetMetadata, SetOutputs
from cellwright.errors import AmbiguousCell, CellNotFound
from cellwright.workspace.status import renew_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.session import CellOutcome, Outcome
    from cellwright.outputs.collector import Collector

# So that saving takes at most a tenth of the time that cells run.
REST = 9.0
"""The pause after a save, as a multiple of the time that the save took."""


class CellRun:
    """One cell of a run, from its turn on.

    `cell` is what it was when the run was asked for. `began` is when its kernel got it, in its
    `life`; 0 before that. `is_changed` says that a later cell has changed one of its displays,
    `is_unsaved` that this has not landed yet. `is_taken` says that a person has run the cell
    since: the outputs in the notebook are theirs. `injected` are the parameters that were set
    after it. `kernel` is what a notebook's metadata says about its kernel.
    """

    def __init__(self, cell: Cell, collector: Collector) -> None:
        self.cell = cell
        self.collector = collector
        self.count: int | None = None
        self.began = 0.0
        self.ended = 0.0
        self.life = ""
        self.is_unsaved = False
        self.is_changed = False
        self.is_over = False
        self.is_taken = False
        self.injected: tuple[str, CellOutcome] | None = None
        self.notes: list[str] = []
        self.kernel: dict[str, Any] = {}

    @property
    def is_empty(self) -> bool:
        """Whether it has no code: it is not run, and what it holds stays."""
        return not self.cell.source.strip()

    def begin(self, life: str) -> None:
        """Note that the kernel gets the cell now."""
        self.began, self.life = time.time(), life

    def end(self, outcome: Outcome) -> None:
        """Note that the cell is over."""
        self.count, self.ended = outcome.execution_count, self.began + outcome.seconds
        self.is_over = True
        self.collector.finish()

    def take_outputs(self) -> OutputsSoFar:
        """Return what it has said so far; as in Jupyter, a cell that still runs has no count."""
        self.is_unsaved = False  # what changes from now on is for the next landing
        return OutputsSoFar(self, self.collector.outputs(), self.count if self.is_over else None)

    def find_in(self, notebook: Notebook) -> Cell | None:
        """Find the cell where it is now: by its id, or by its source where it has none."""
        if self.cell.id is not None:
            try:
                return notebook.cell(self.cell.id)
            except AmbiguousCell:
                pass  # its place tells
            except CellNotFound:
                return None
        cells, wanted = notebook.cells, self.cell.hash
        if self.cell.index < len(cells) and cells[self.cell.index].hash == wanted:
            return cells[self.cell.index]
        same = [cell for cell in cells if cell.hash == wanted]
        return same[0] if len(same) == 1 else None


class OutputsSoFar(NamedTuple):
    """The outputs of a cell at one moment."""

    run: CellRun
    outputs: list[dict[str, Any]]
    execution_count: int | None

    def make_edits(self, cell: Cell) -> list[Edit]:
        """Return the edits that put them into the notebook, and the times where Jupyter keeps them."""
        if self.run.is_empty:
            return []
        edits: list[Edit] = [SetOutputs(cell.index, self.outputs, self.execution_count)]
        run = self.run
        times = renew_times(cell, run.began, run.ended) if run.is_over else None
        if times is not None:
            edits.append(SetMetadata({"execution": times}, cell=cell.index))
        return edits


class InterimSaves:
    """Calls `save` while a cell says something, at most every `interval` seconds; 0 is never.

    The first save comes half an interval after the cell's first output, so that short cells have
    none. `save` returns whether it worked; if it did not, the next try comes later each time.
    """

    def __init__(self, save: Callable[[], Awaitable[bool]], interval: float) -> None:
        self._save = save
        self._interval = interval
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_saving = False

    def touch(self) -> None:
        """Note that the cell has said something."""
        self._news.set()
        if self._task is None and self._interval:
            self._task = asyncio.ensure_future(self._work())

    async def end(self) -> None:
        """Save no more; a save that has begun is waited for."""
        self._interval = 0.0
        if self._task is not None:
            if self._is_saving:
                await asyncio.wait([self._task])
            else:
                self._task.cancel()

    async def _work(self) -> None:
        pause = self._interval
        await asyncio.sleep(pause / 2)
        while self._interval:
            await self._news.wait()
            self._news.clear()
            began = time.monotonic()
            self._is_saving = True
            try:
                worked = await self._save()
            finally:
                self._is_saving = False
            if self._interval:
                pause = self._interval if worked else pause * 2
                await asyncio.sleep(max(pause, REST * (time.monotonic() - began)))
