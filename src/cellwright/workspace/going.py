"""A cell on its way: which one it was when it was asked for, and what it has said so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from cellwright.document.edits import SetMetadata, SetOutputs
from cellwright.errors import AmbiguousCell, CellNotFound
from cellwright.workspace.statuses import new_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.session import CellOutcome, Outcome
    from cellwright.outputs.collector import Collector


@dataclass(eq=False)
class Going:
    """One cell of a run, from its turn on.

    `began` is when its kernel got it, in its `life`; 0 before that. `is_changed` says that a later
    cell has changed one of its displays, `renewed` that the file does not have that yet.
    """

    cell: Cell
    collector: Collector
    withheld: Sequence[str] = ()
    count: int | None = None
    began: float = 0.0
    ended: float = 0.0
    life: str = ""
    renewed: bool = False
    is_changed: bool = False
    is_over: bool = False
    injected: tuple[str, CellOutcome] | None = None
    notes: list[str] = field(default_factory=list)

    def begin(self, life: str) -> None:
        """Its kernel gets it now."""
        self.began, self.life = time.time(), life

    def end(self, outcome: Outcome) -> None:
        """It is over, and says nothing more."""
        self.count, self.ended = outcome.execution_count, self.began + outcome.seconds
        self.is_over = True
        self.collector.finish()

    def said(self) -> Said:
        """What it has said so far, as the file shall have it.

        As in Jupyter, a cell that still runs has no count.
        """
        return Said(self, self.collector.outputs(), self.count if self.is_over else None)

    def find(self, notebook: Notebook) -> Cell | None:
        """The cell where it is now: by its id, or where there is none by what it says."""
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


class Said(NamedTuple):
    """The outputs of a cell at one moment."""

    going: Going
    outputs: list[dict[str, Any]]
    number: int | None

    def edits(self, cell: Cell) -> list[Edit]:
        """What puts them into the file, and the times of the run where Jupyter keeps them."""
        edits: list[Edit] = [SetOutputs(cell.index, self.outputs, self.number)]
        going = self.going
        times = new_times(cell, going.began, going.ended) if going.is_over else None
        if times is not None:
            edits.append(SetMetadata({"execution": times}, cell=cell.index))
        return edits
