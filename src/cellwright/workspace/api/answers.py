"""What verbs answer: values with attributes, equality and `to_json()`.

The field names are part of the public interface: the command line prints them, and they cross
the engine's socket.
"""

from __future__ import annotations

from cellwright.workspace.api.values import Value
from cellwright.workspace.hosts.host import Presence  # noqa: TC001  # restored from JSON by name
from cellwright.workspace.runs.execution import Execution, Executions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from cellwright.document.change import Change
    from cellwright.errors import CellConflict


# -- a notebook ---------------------------------------------------------------------------------


class LastRun(Value):
    """The last run of a cell; its times are None where they are not recorded."""

    status: str
    began: float | None
    ended: float | None
    duration_ms: int | None
    success: bool


class CellView(Value):
    """A cell without its outputs.

    `has_output` and `last_run` are None for cells that are not code. `stale` and `stale_reason`
    are None unless staleness was asked for. `problem` says what is wrong with a broken cell.
    """

    OPTIONAL = frozenset({"has_output", "stale", "problem"})
    TEXT = "source"

    index: int
    id: str | None
    handle: str
    type: str
    source: str
    hash: str
    execution_count: int | None = None
    status: str | None = None
    has_output: bool | None = None
    last_run: LastRun | None = None
    stale: bool | None = None
    stale_reason: str | None = None
    problem: str | None = None

    def list_members(self) -> dict[str, Any]:
        """Return the fields that the JSON shape has; the last run of code only."""
        shape = dict(self.__dict__)  # of thousands, so not the usual way
        if self.has_output is None:
            del shape["has_output"], shape["last_run"]
        if self.stale is None:
            del shape["stale"], shape["stale_reason"]
        if self.problem is None:
            del shape["problem"]
        return shape


class OtherActor(Value):
    """Someone else who worked on a notebook lately: what they did, and how long ago."""

    actor: str
    did: str
    seconds: float


class ReadAnswer(Value):
    """A notebook: its cells, its revision, its text view, and who else works on it.

    `staleness` is `not analysed` if it was asked for and would have taken too long. `person` is
    where a person is in it, if it is open in an editor.
    """

    OPTIONAL = frozenset({"text", "staleness", "person"})

    path: str
    revision: str
    nbformat: str
    cells: list[CellView]
    others: list[OtherActor]
    text: str | None = None
    staleness: str | None = None
    person: Presence | None = None


class TextLine(Value):
    """A line of the text view, counted from 1; `context` if it was not asked for itself."""

    TEXT = "text"

    number: int
    text: str
    context: bool = False


class OutlineRow(Value):
    """One row of an outline: a heading with its section, or a cell."""

    TEXT = "title"

    kind: str
    level: int
    title: str
    first: int
    last: int
    cell: int
    handle: str
    id: str | None
    type: str
    has_outputs: bool


class SelectAnswer(Value):
    """The part of a notebook's text that a selector asked for.

    `revision` and `total_cells` are None for `:raw`, which may be asked of any file.
    """

    OPTIONAL = frozenset({"revision"})

    path: str
    revision: str | None
    selector: str
    total_lines: int
    total_cells: int | None
    lines: list[TextLine]
    outline: list[OutlineRow]
    text: str


class CellOutputs(Value):
    """What one cell printed, showed and raised, as text; `outputs` counts its outputs."""

    index: int
    id: str | None
    handle: str
    type: str
    execution_count: int | None
    outputs: int
    text: str
    left_out: list[str]


class OutputsAnswer(Value):
    """The outputs of cells within one budget; `cells_left_out` had no room in it."""

    path: str
    revision: str
    cells: list[CellOutputs]
    cells_left_out: list[str]


class NotebookRow(Value):
    """A notebook below the root; `person` is where a person is in it, if it is open in an editor."""

    OPTIONAL = frozenset({"person"})

    path: str
    size: int
    person: Presence | None = None


# -- changes ------------------------------------------------------------------------------------


class CellChangeView(Value):
    """What happened to one cell: `before` and `after` are its index then and now."""

    OPTIONAL = frozenset({"follows"})

    kind: str
    handle: str
    type: str
    before: int | None
    after: int | None
    follows: str | None = None


class DiffAnswer(Value):
    """What changed between two states of a notebook."""

    path: str
    before: str
    revision: str
    cells: list[CellChangeView]
    diff: str


class ExecutionText(Value):
    """What a cell of a run said, as text, and what was left out of it."""

    cell: str
    text: str
    left_out: list[str]


class StaleCell(Value):
    """A cell whose result is stale, and why."""

    cell: str
    index: int
    reason: str | None


class EditAnswer(DiffAnswer):
    """What an edit did.

    `change` is its id in the history, None if nothing changed. `saved` says that the notebook
    was stored by its `host` and read back. `concerns` are the changes that an undo or redo was
    about. The last five are those of the run that the edit asked for, and None without one.
    """

    OPTIONAL = frozenset({"concerns", "run", "done", "executions", "outputs", "stale"})

    change: str | None = None
    changed: bool = False
    saved: bool = False
    host: str = "file"
    backup: str | None = None
    others: list[OtherActor] = []  # noqa: RUF012  # a default that is never changed
    warnings: list[str] = []  # noqa: RUF012
    concerns: str | None = None
    run: str | None = None
    done: bool | None = None
    executions: list[Execution] | None = None
    outputs: list[ExecutionText] | None = None
    stale: list[StaleCell] | None = None


class BlameAnswer(Value):
    """A cell, and the change that last touched its source or type; None if there is none."""

    index: int
    handle: str
    type: str
    change: str | None = None
    kind: str | None = None
    actor: str | None = None
    label: str | None = None
    when: str | None = None


# -- staleness ----------------------------------------------------------------------------------


class StaleReason(Value):
    """One reason why a result is stale, and the names it is about."""

    kind: str
    text: str
    names: list[str]


class CellStaleness(Value):
    """Whether the result of a code cell is `fresh`, `stale` or `never` run, and why."""

    index: int
    cell: str
    state: str
    stale_reason: str | None
    reasons: list[StaleReason]
    warnings: list[str]


class StaleAnswer(Value):
    """The staleness of every code cell."""

    path: str
    cells: list[CellStaleness]


# -- running ------------------------------------------------------------------------------------


class EvalAnswer(Value):
    """The cells of an `eval`, in order; `done` is false if the run continues."""

    session: str
    cells: list[Execution]
    run: str
    done: bool


class RunFailure(Value):
    """Why a run ended without an answer."""

    code: str
    message: str


class RunView(Value):
    """A run: what it runs, for whom, and how far it is.

    `state` is `waiting`, `running`, `done` (it has an answer) or `failed` (it has none). `status`
    is the word that cells have: `pending`, `running`, `ok`, or that of the cell that failed.
    `cells` has the status of each cell of a notebook by its handle.
    """

    run: str
    kind: str
    subject: str
    actor: str
    state: str
    began: float
    ended: float | None
    seconds: float
    cells: dict[str, str]
    error: RunFailure | None
    status: str = "running"


class AttachAnswer(RunView):
    """A run that was followed or stopped: its answer, as far as there is one.

    `cancelled` says whether there was anything to stop; None if that was not asked for.
    """

    OPTIONAL = frozenset({"cancelled"})

    done: bool = False
    answer: Executions | EvalAnswer | None = None
    cancelled: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        shape = super().to_json()
        if isinstance(self.answer, Executions):
            shape["answer"] = {"executions": shape["answer"]["executions"]}
        elif self.answer is not None:
            shape["answer"] = {name: shape["answer"][name] for name in ("session", "cells")}
        return shape

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the value that `to_json` made into data."""
        found = shape.get("answer")
        answer: Executions | EvalAnswer | None = None
        about = {"run": shape["run"], "done": shape["done"]}
        if found is not None and "executions" in found:
            answer = Executions.from_json({**found, **about})
        elif found is not None:
            answer = EvalAnswer.from_json({**found, **about})
        return super().from_json({**shape, "answer": None}).replace(answer=answer)


class WatchAnswer(Value):
    """How many events were reported."""

    events: int


# -- kernels ------------------------------------------------------------------------------------


class SessionView(Value):
    """A session and its kernel, if one runs."""

    session: str
    cwd: str
    kind: str
    state: str
    owners: list[str]
    executions: int
    waiting: int
    idle_seconds: float
    created: float
    kernel: str | None
    transport: str | None
    language: str | None
    pid: int | None
    server: str | None = None


class RemoteKernelView(Value):
    """A kernel that runs on a Jupyter server."""

    id: str
    name: str
    state: str


class Variable(Value):
    """A variable of a session: its type, its size if it has one, the start of its repr."""

    name: str
    type: str
    size: str | None
    value: str


class KernelAnswer(SessionView):
    """A session after something was done to its kernel."""

    OPTIONAL = frozenset({"interrupted", "variables", "kernels"})

    interrupted: bool | None = None
    variables: list[Variable] | None = None
    kernels: list[RemoteKernelView] | None = None


class KernelSpecView(Value):
    """A kernel that can be started; `default` is the one that a notebook here would get.

    If there is no such kernel, `problem` says why, and `hint` what to do.
    """

    OPTIONAL = frozenset(
        {
            *("name", "display_name", "language", "origin", "python", "folder", "why"),
            *("problem", "hint", "server"),
        }
    )

    name: str | None = None
    display_name: str | None = None
    language: str | None = None
    origin: str | None = None
    python: str | None = None
    folder: str | None = None
    default: bool = False
    why: str | None = None
    problem: str | None = None
    hint: str | None = None
    server: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields of a kernel, or those of the problem, as plain data."""
        shape = {name: getattr(self, name) for name in self.FIELDS}
        if self.problem is not None:
            return {name: shape[name] for name in ("default", "problem", "hint")}
        del shape["problem"], shape["hint"]
        if self.server is None:
            del shape["server"]
        return shape


class ForgetAnswer(Value):
    """How much was removed; `left` are damaged journals that may hold more of it."""

    path: str | None
    notebooks: int
    changes: int
    revisions: int
    executions: int
    artifacts: int
    left: list[str]


class ArtifactAnswer(Value):
    """A part of an artifact: `text`, or `base64` for what is not text.

    `next_offset` is None at its end.
    """

    OPTIONAL = frozenset({"text", "base64"})

    id: str
    mime: str
    size: int
    sha256: str
    created: float
    name: str = ""
    origin: str = ""
    original_bytes: int = 0
    truncated: bool = False
    offset: int = 0
    next_offset: int | None = None
    text: str | None = None
    base64: str | None = None


# -- made from changes --------------------------------------------------------------------------


def describe_change(change: Change, path: str, other: str | None = None) -> DiffAnswer:
    """Describe a change: the revisions, each cell concerned, and the diff.

    `other` is the path of the notebook that it is compared with, if it is another.
    """
    handle = change.after.snapshot.resolver.handle
    return DiffAnswer(
        path,
        change.before.snapshot.revision,
        change.after.snapshot.revision,
        [
            CellChangeView(
                cell.kind,
                cell.handle,
                cell.type,
                cell.before,
                cell.after,
                handle(cell.after - 1) if cell.kind == "inserted" and cell.after else None,
            )
            for cell in change.cells
        ],
        change.diff(path, other),
    )


def describe_conflict(conflict: CellConflict) -> Mapping[str, Any]:
    """Describe a cell on which two sides disagree, with what each side holds."""
    names = ("handle", "index", "reason", "base", "current", "other")
    return {name: getattr(conflict, name) for name in names}
