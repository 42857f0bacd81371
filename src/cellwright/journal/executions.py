"""Records of executed cells: when, with which source, in which kernel, and how they ended."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any, Self

_KEPT = 2000
_FORGET_EVERY = 50
_LONGEST_SOURCE = 100_000
_COLUMNS = "cell, cell_index, hash, source, kernel, status, count, began, seconds, actor"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRecord:
    """One execution of one cell.

    `cell` is its id, or its handle if it has none. `hash` is that of the executed `source`, which
    is not kept if it is very long. `kernel` names one kernel process: the variables of others are
    lost. `order` counts all executions of all notebooks; `began` is the clock time, in seconds.
    """

    cell: str
    index: int
    hash: str
    source: str | None
    kernel: str
    status: str
    count: int | None
    began: float
    seconds: float
    actor: str
    order: int = 0

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        # `dataclasses.asdict` copies deeply, which takes ten times as long.
        return {
            "cell": self.cell,
            "index": self.index,
            "hash": self.hash,
            "source": self.source,
            "kernel": self.kernel,
            "status": self.status,
            "count": self.count,
            "began": self.began,
            "seconds": self.seconds,
            "actor": self.actor,
            "order": self.order,
        }

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the run that `to_json` made into data."""
        return cls(**shape)


def add_execution(connection: sqlite3.Connection, notebook: int, run: ExecutionRecord) -> None:
    """Insert an execution, and delete the oldest of a notebook that has too many."""
    added = connection.execute(
        f"INSERT INTO execution (notebook, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (
            notebook,
            *(
                run.cell,
                run.index,
                run.hash,
                _storable_source(run.source),
                run.kernel,
                run.status,
                run.count,
            ),
            *(int(run.began * 1000), run.seconds, run.actor),
        ),
    )
    if (added.lastrowid or 0) % _FORGET_EVERY:  # counting the rows takes a while
        return
    connection.execute(
        "DELETE FROM execution WHERE notebook = ?1 AND id <= (SELECT id FROM execution"
        " WHERE notebook = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        (notebook, _KEPT),
    )


def select_executions(connection: sqlite3.Connection, notebook: int) -> list[ExecutionRecord]:
    """All remembered executions of a notebook, the oldest first.

    One that takes long was put on record when it began, once for each place where it landed, and
    again at its end: it is here once.
    """
    rows = connection.execute(
        f"SELECT {_COLUMNS}, id FROM execution WHERE notebook = ? ORDER BY id",  # noqa: S608
        (notebook,),
    )
    found = [
        ExecutionRecord(
            cell=row[0],
            index=row[1],
            hash=row[2],
            source=row[3],
            kernel=row[4],
            status=row[5],
            count=row[6],
            began=row[7] / 1000,
            seconds=row[8],
            actor=row[9],
            order=row[10],
        )
        for row in rows
    ]
    last = {(run.cell, run.began, run.actor): run.order for run in found}
    return [
        run
        for run in found
        if run.status != "running" or last[run.cell, run.began, run.actor] == run.order
    ]


def _storable_source(source: str | None) -> str | None:
    if source is None or len(source) > _LONGEST_SOURCE:
        return None
    # SQLite cannot store a lone surrogate.
    return None if any("\ud800" <= sign <= "\udfff" for sign in source) else source
