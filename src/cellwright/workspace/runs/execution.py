"""`Execution`: what became of one cell that was run; `Executions`: of all cells of a run."""

from __future__ import annotations

import re

from cellwright.workspace.api.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal, Self

    from cellwright.protocol.methods import CellResult

    Base = list["Execution"]
else:
    Base = list

NOTHING_AGAIN = "Nothing was run again"
"""The note of a cell whose kernel died, since `eval` does run again what was lost."""

_TRACEBACK_LINES = 60
# A frame of a cell, by its count, as IPython and as the plain runner write it.
_find_cell_frames = re.compile(r'(?:Cell In ?\[|File "<cell )(\d+)(?:\]|>"), line (\d+)').findall

_ABOUT = {"status": "status", "execution_count": "count", "seconds": "seconds"}
_OF_NOTEBOOK = ("expected", "saved", "stale", "state_kept", "lost", "replay")
_OF_EVAL = (
    *("text", "truncated", "total_lines", "total_bytes", "artifact", "json", "images", "events"),
    *("error", "exit", "state_kept", "replaced", "retried", "notes"),
)


class CellError(Value):
    """The exception that ended a cell.

    `traceback` has no colours. `line` is the line of the cell that failed, counted from 1, if it
    is known. Both are None for code that is not in a notebook.
    """

    ename: str
    evalue: str
    traceback: list[str] | None = None
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        shape = super().to_json()
        if self.traceback is None:
            del shape["traceback"], shape["line"]
        return shape


class ExitView(Value):
    """How a kernel's process ended."""

    code: int | None
    signal: int | None
    out_of_memory: bool


class OutputCheck(Value):
    """How what a cell says now compares with what its notebook holds.

    `result` is `same`, `differs` with a `diff`, `failed` (it does not end well, and did then), or
    `unstored`: the notebook has neither outputs nor a count, so there is nothing to compare with.
    """

    result: Literal["same", "differs", "failed", "unstored"]
    diff: str = ""


class Execution(Value):
    """What became of one cell that was run.

    `status` is `pending` for cells that were not reached. `state_kept` is false if the kernel,
    and all it had defined, is gone. `notes` say in sentences what a caller has to know.

    Of a notebook's cell (`cell` is its handle): `saved` says that `outputs` are in the notebook.
    If they could not be saved, `save_error` is the code of the error, and `artifact` has them.
    `stale` says that the cell was edited while it ran, so that they are those of an earlier
    source. If the kernel is gone, `lost` are the cells whose state went with it, and `replay`
    those to run before this one. `expected` marks an error that the cell's tag
    `raises-exception` announces. `check` says how the outputs compare with those in the
    notebook, if that was asked for.

    Of code in `eval` (`cell` is None): `text` is what it printed, bounded, `artifact` the whole
    of it if it was longer; `json`, `images` and `events` are what it displayed. `replaced` says
    that the session's kernel had died before it, `retried` that it was run twice because the
    kernel died under it.
    """

    status: str
    cell: str | None = None
    index: int | None = None
    title: str | None = None
    seconds: float = 0.0
    count: int | None = None
    error: CellError | None = None
    state_kept: bool = True
    notes: Sequence[str] = ()

    outputs: Sequence[dict[str, Any]] = ()
    saved: bool = False
    save_error: str | None = None
    stale: bool = False
    expected: bool = False
    lost: Sequence[str] = ()
    replay: Sequence[str] = ()
    check: OutputCheck | None = None

    text: str = ""
    truncated: bool = False
    total_lines: int = 0
    total_bytes: int = 0
    artifact: str | None = None
    json: Sequence[Any] = ()
    images: Sequence[dict[str, Any]] = ()
    events: Sequence[dict[str, Any]] = ()
    exit: ExitView | None = None
    replaced: bool = False
    retried: bool = False

    @property
    def is_failure(self) -> bool:
        """Whether it failed unexpectedly."""
        return self.status not in ("ok", "pending", "running") and not self.expected

    @property
    def is_exit(self) -> bool:
        """Whether it ended its notebook on purpose, by `sys.exit()` or `sys.exit(0)`."""
        error = self.error
        return error is not None and error.ename == "SystemExit" and error.evalue in ("", "0")

    @property
    def shown_error(self) -> CellError | None:
        """The exception among its outputs of a cell that ended well: a display that failed.

        None if the cell's tag `raises-exception` announces it.
        """
        if self.status != "ok" or self.expected:
            return None
        output = find_error_output(self.outputs)
        if output is None:
            return None
        traceback = [str(line) for line in output.get("traceback") or ()]
        return CellError(
            str(output.get("ename")), str(output.get("evalue")), strip_traceback(traceback)
        )

    @property
    def is_unsaved(self) -> bool:
        """Whether it ran, but its outputs could not be saved."""
        return self.save_error is not None

    def raise_for_status(self) -> None:
        """Raise the error that ended the cell; do nothing if it ended well or was not reached.

        Raises:
            CellFailed, ExecutionTimedOut, ExecutionCancelled, KernelDied: as `status` says.
            SaveError: the outputs could not be saved.
        """
        from cellwright.errors import (
            CellFailed,
            ExecutionCancelled,
            ExecutionTimedOut,
            KernelDied,
            SaveError,
        )

        if self.status == "error":
            reason = self.notes[0] if self.notes else "no traceback was given"
            error = self.error or CellError("error", reason)
            raise CellFailed(error.ename, error.evalue)
        if self.status == "timed_out":
            raise ExecutionTimedOut(self.seconds)
        if self.status == "cancelled":
            raise ExecutionCancelled
        if self.status == "died":
            raise KernelDied(" ".join(self.notes))
        if self.is_unsaved:
            raise SaveError(" ".join(self.notes))

    def to_cell_result(self) -> CellResult:
        """How the cell ended, in the words of the Notebook Manipulator Protocol."""
        from cellwright.protocol.methods import CellResult

        cell = self.cell or ""
        if self.is_failure:
            reason = self.error.ename if self.error else self.status
            return CellResult(cell, self.status, reason, self.count)  # type: ignore[arg-type]
        if self.is_unsaved:
            return CellResult(cell, "error", "its outputs were not saved", self.count)
        return CellResult(cell, "ok", "", self.count)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: the fields of a notebook's cell, or those of `eval`."""
        plain = super().to_json()
        shape = {key: plain[name] for key, name in _ABOUT.items()}
        shape["seconds"] = round(self.seconds, 3)
        if self.cell is None:
            if self.status == "pending":
                return {"title": self.title or "", "status": "pending"}
            return {"title": self.title or "", **shape, **{name: plain[name] for name in _OF_EVAL}}
        return {
            "cell": self.cell,
            "index": self.index,
            **shape,
            "outputs": plain["outputs"],
            "error": plain["error"],
            **{name: plain[name] for name in _OF_NOTEBOOK},
            **({"save_error": plain["save_error"]} if self.is_unsaved else {}),
            **({"artifact": plain["artifact"]} if self.artifact else {}),
            **({} if self.check is None else {"check": plain["check"]}),
            "notes": plain["notes"],
        }

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the execution that `to_json` made into data."""
        return super().from_json({**shape, "count": shape.get("execution_count")})


class Executions(Base):
    """One `Execution` for each cell of a run, in order.

    `run` is the run's id, by which any caller can follow or stop it; `done` is false if it
    continued after this answer. Cells that were not reached are `pending`. `skipped` are the
    handles of cells that have no execution here, because their tag `skip-execution` says so.
    `usage` is what a kernel that was started for this run has used (`cpu_seconds`, `peak_bytes`),
    if that is known.
    """

    def __init__(
        self,
        executions: Iterable[Execution] = (),
        *,
        run: str = "",
        done: bool = False,
        skipped: Iterable[str] = (),
        usage: dict[str, float] | None = None,
    ) -> None:
        super().__init__(executions)
        self.usage = usage
        self.run = run
        self.done = done
        self.skipped = list(skipped)

    @property
    def ok(self) -> bool:
        """Whether the run is over and every cell ended well, or failed as expected, and is saved."""
        return self.done and all(
            (each.status == "ok" or each.expected) and not each.is_unsaved for each in self
        )

    def raise_for_status(self) -> None:
        """Raise the error of the first cell that failed unexpectedly, if any did."""
        for execution in self:
            if execution.is_failure or execution.is_unsaved:
                execution.raise_for_status()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "run": self.run,
            "done": self.done,
            "executions": [execution.to_json() for execution in self],
            **({"skipped": self.skipped} if self.skipped else {}),
            **({"usage": self.usage} if self.usage else {}),
        }

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Executions:
        """Return what `to_json` made into data."""
        executions = map(Execution.from_json, shape["executions"])
        skipped = shape.get("skipped", ())
        found = cls(executions, run=shape["run"], done=shape["done"], skipped=skipped)
        found.usage = shape.get("usage")
        return found


def find_error_output(outputs: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The first exception among outputs, if there is one."""
    return next((each for each in outputs if each.get("output_type") == "error"), None)


def strip_traceback(lines: Sequence[str]) -> list[str]:
    """Return a traceback without colours; of a long one its end, where the error is."""
    from cellwright.outputs.sanitize import fold_repeats, render_printed

    found = fold_repeats(render_printed("\n".join(lines))).split("\n") if lines else []
    if len(found) > _TRACEBACK_LINES:
        cut = len(found) - _TRACEBACK_LINES
        found[:cut] = [f"[{cut} lines before this one are in the outputs]"]
    return found


def find_failing_line(traceback: Sequence[str], count: int | None) -> int | None:
    """Return the line of a Python cell, counted from 1, in which it failed, if that is known.

    If it failed in a function of another cell, this is the line that called it; `count` is the
    cell's own execution count.
    """
    frames = _find_cell_frames("\n".join(traceback))
    lines = [int(line) for cell, line in frames if int(cell) == count]
    return lines[-1] if lines else None
