"""`Execution`: what became of one cell of a notebook that was run."""

from __future__ import annotations

import re
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_TRACEBACK_LINES = 60
# A frame of a cell, by its count, as IPython and as the plain runner write it.
_in_cell = re.compile(r'(?:Cell In ?\[|File "<cell )(\d+)(?:\]|>"), line (\d+)').findall


@dataclass(frozen=True, slots=True)
class Execution:
    """What became of one cell of a notebook that was run.

    `status` is `pending` for cells that were not reached. `saved` says that `outputs` are in the
    file. `stale` says that the cell has been edited while it ran, so that they are those of an
    earlier source. `state_kept` is false if the kernel, and all it had defined, is gone; then
    `lost` are the cells whose state went with it, and `replay` those to run before this one.
    `expected` marks an error that the cell's tag `raises-exception` announces. `check` says how
    the outputs compare with those in the file, if that was asked for.
    """

    cell: str
    index: int
    status: str
    outputs: Sequence[dict[str, Any]] = ()
    seconds: float = 0.0
    count: int | None = None
    error: tuple[str, str] | None = None
    saved: bool = False
    stale: bool = False
    state_kept: bool = True
    notes: tuple[str, ...] = ()
    traceback: tuple[str, ...] = ()
    line: int | None = None
    expected: bool = False
    lost: tuple[str, ...] = ()
    replay: tuple[str, ...] = ()
    check: Mapping[str, Any] | None = None

    @property
    def is_failure(self) -> bool:
        """Whether it did not end well, and nobody expected that."""
        return self.status not in ("ok", "pending", "running") and not self.expected

    def raise_for_status(self) -> None:
        """Raise what ended the cell, unless it ended well or was not reached."""
        from cellwright.errors import (
            CellFailed,
            ExecutionCancelled,
            ExecutionTimedOut,
            KernelDied,
        )

        if self.status == "error":
            raise CellFailed(*(self.error or ("error", "no traceback was given")))
        if self.status == "timed_out":
            raise ExecutionTimedOut(self.seconds)
        if self.status == "cancelled":
            raise ExecutionCancelled
        if self.status == "died":
            raise KernelDied(" ".join(self.notes))

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "cell": self.cell,
            "index": self.index,
            "status": self.status,
            "execution_count": self.count,
            "seconds": round(self.seconds, 3),
            "outputs": list(self.outputs),
            "error": self.error
            and {
                "ename": self.error[0],
                "evalue": self.error[1],
                "traceback": list(self.traceback),
                "line": self.line,
            },
            "expected": self.expected,
            "saved": self.saved,
            "stale": self.stale,
            "state_kept": self.state_kept,
            "lost": list(self.lost),
            "replay": list(self.replay),
            **({} if self.check is None else {"check": dict(self.check)}),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Execution:
        """What `to_json` made into data."""
        error = value.get("error")
        return cls(
            value["cell"],
            value["index"],
            value["status"],
            value["outputs"],
            value["seconds"],
            value["execution_count"],
            error and (error["ename"], error["evalue"]),
            saved=value["saved"],
            stale=value["stale"],
            state_kept=value["state_kept"],
            notes=tuple(value["notes"]),
            traceback=tuple(error["traceback"]) if error else (),
            line=error["line"] if error else None,
            expected=value["expected"],
            lost=tuple(value["lost"]),
            replay=tuple(value["replay"]),
            check=value.get("check"),
        )


def plain_traceback(lines: Sequence[str]) -> tuple[str, ...]:
    """A traceback without colours, its end if it is long: the error is told there."""
    from cellwright.outputs.sanitize import render_printed

    found = render_printed("\n".join(lines)).split("\n") if lines else []
    if len(found) > _TRACEBACK_LINES:
        cut = len(found) - _TRACEBACK_LINES
        found[:cut] = [f"[{cut} lines before this one are in the outputs]"]
    return tuple(found)


def failing_line(traceback: Sequence[str], count: int | None) -> int | None:
    """The line of a Python cell, counted from 1, in which it failed, as far as that is told.

    If it failed in a function of another cell, this is where it called that; `count` is the
    cell's own.
    """
    lines = [int(line) for cell, line in _in_cell("\n".join(traceback)) if int(cell) == count]
    return lines[-1] if lines else None
