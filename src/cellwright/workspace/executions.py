"""What became of the cells of one run, also while it goes on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.workspace.execution import Execution
    from cellwright.workspace.runs import Run

    Base = list[Execution]
else:
    Base = list


class Executions(Base):
    """One `Execution` for each cell of a run, in order.

    `run` is the run's id, by which any caller can follow or stop it; `done` is false if it went
    on after this answer. Cells that were not reached are `pending`.
    """

    def __init__(
        self, executions: Iterable[Execution] = (), *, run: str = "", done: bool = False
    ) -> None:
        super().__init__(executions)
        self.run = run
        self.done = done

    @classmethod
    def pending(cls, cells: Iterable[Cell]) -> Executions:
        """Nothing has been run yet."""
        from cellwright.workspace.execution import Execution

        return cls(Execution(cell.handle, cell.index, "pending") for cell in cells)

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Executions:
        """From its data."""
        from cellwright.workspace.execution import Execution

        executions = map(Execution.from_json, shape["executions"])
        return cls(executions, run=shape["run"], done=shape["done"])

    def as_of(self, run: Run) -> Executions:
        """As it is now: what comes after a detached answer does not change it."""
        return Executions(self, run=run.id, done=run.is_over)

    def put(self, place: int, execution: Execution) -> None:
        """A cell is done."""
        self[place] = execution

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "run": self.run,
            "done": self.done,
            "executions": [execution.to_json() for execution in self],
        }
