"""The table of verbs: for each its name, its effect, its parameters and its answer.

A verb is one class here and one function in `verbs/`. The methods of `Workspace` and `Book`,
blocking and awaiting, the checks of the engine's wire and the reference page come from this
table.
"""

from __future__ import annotations

from typing import Literal

from cellwright.errors import InvalidCall
from cellwright.workspace.api.values import KW_ONLY, Value, to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any, ClassVar, Generic, TypeVar

    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import CellRef
    from cellwright.journal.executions import ExecutionRecord  # noqa: F401  # types of answers
    from cellwright.journal.history import Backup, Entry  # noqa: F401  # named in strings, as the
    from cellwright.kernel.events import InputRequested
    from cellwright.workspace.api import answers  # noqa: F401
    from cellwright.workspace.hosts.host import Presence  # noqa: F401
    from cellwright.workspace.runs.execution import Executions  # noqa: F401

    Progress = Callable[[dict[str, Any]], object]
    Ask = Callable[[InputRequested], Awaitable[str | None]]
    PathLike = str | os.PathLike[str]

    A_co = TypeVar("A_co", covariant=True)

    class _Base(Value, Generic[A_co]):
        """The type of the answer is a parameter."""

else:

    class _Base(Value):
        """At run time, a request does not know the type of its answer by itself."""

        def __class_getitem__(cls, _: object) -> type:
            """Take the type of the answer, for type checkers."""
            return cls


Mode = Literal["ask", "edit", "agent"]
"""What a caller may do: read; read and propose; or everything."""
MODES: tuple[Mode, ...] = ("ask", "edit", "agent")
Effect = Literal["read", "edit", "run"]
"""What a verb does to a notebook or its kernel."""

VERBS: dict[str, type[Request[Any]]] = {}
"""All verbs by name."""

CALLBACKS = frozenset({"progress", "ask", "until", "read_file"})
"""Parameters that are called while a verb works; they do not cross a socket."""

_MOST = 2**63
_PATHS = frozenset({"path", "cwd", "kernel", "session", "after", "before"})
_NONE = type(None)
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "PathLike": (str,),
    "CellRef": (str, int),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "Sequence": (list,),
    "Mapping": (dict,),
    "Literal": (str,),
    "None": (_NONE,),
}


class Request(_Base["A_co"]):
    """A call of a verb, as data.

    `ANSWER` names the class of its answer in the module it is in, `MANY` says that the answer is
    a list of them; without `ANSWER` the answer is plain data. `ROWS` says that it has a row for
    each cell, and holds no data of others, so that an encoder may take it as it is. `HANDLER` is the function that
    carries the verb out, as `module:name` below `cellwright.workspace.verbs`. `RUNS` says that it
    runs cells, `WAITS` that it has to do with kernels and belongs on their event loop.
    """

    VERB: ClassVar[str] = ""
    EFFECT: ClassVar[Effect] = "read"
    WHAT: ClassVar[str] = ""
    HANDLER: ClassVar[str] = ""
    ANSWER: ClassVar[str | None] = None
    MANY: ClassVar[bool] = False
    ROWS: ClassVar[bool] = False
    RUNS: ClassVar[bool] = False
    WAITS: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__dict__.get("VERB"):
            VERBS[cls.VERB] = cls

    @property
    def effect(self) -> Effect:
        """What this call does: `read`, `edit` or `run`; a mode may forbid it."""
        return self.EFFECT

    @property
    def what(self) -> str:
        """What this call does, in words for a refusal."""
        return self.WHAT

    @property
    def runs_cells(self) -> bool:
        """Whether stopping this call means stopping cells that run."""
        return self.RUNS

    @property
    def waits(self) -> bool:
        """Whether this call may wait for a kernel, on the event loop of the kernels."""
        return self.WAITS or self.runs_cells

    def to_wire(self) -> dict[str, Any]:
        """Return the parameters as plain data, without callbacks and defaults."""
        values = {name: getattr(self, name) for name in self.FIELDS if name not in CALLBACKS}
        return {
            name: to_plain(value)
            for name, value in values.items()
            if name not in self._DEFAULTS or value != self._DEFAULTS[name]
        }

    def encode_answer(self, answer: Any) -> Any:
        """Return the answer as plain data, to cross a wire; or as it is, if the wire takes it."""
        return answer if self.ROWS else to_plain(answer)

    def decode_answer(self, shape: Any) -> A_co:
        """Return the answer that crossed a wire as plain data."""
        if self.ANSWER is None:
            return shape  # type: ignore[no-any-return]
        from importlib import import_module

        module, name = self.ANSWER.split(":")
        kind = getattr(import_module(f"cellwright.{module}"), name)
        if self.MANY:
            return [kind.from_json(each) for each in shape]  # type: ignore[return-value]
        return kind.from_json(shape)  # type: ignore[no-any-return]


def find_mode(name: object) -> Mode | None:
    """Return the mode of that name; None if there is none."""
    return next((mode for mode in MODES if mode == name), None)


_known_kinds: dict[str, dict[str, tuple[type, ...]]] = {}  # by verb, once they were asked for


def parse_request(verb: str, params: dict[str, Any], **callbacks: Any) -> Request[Any]:
    """Make a request of parameters that crossed a socket, with those `callbacks` that it takes.

    Raises:
        InvalidCall: there is no such verb, or these cannot be its parameters.
    """
    kind = VERBS.get(verb)
    if kind is None:
        raise InvalidCall(f"There is no verb `{verb}`")
    known = _known_kinds.get(verb) or _known_kinds.setdefault(verb, list_kinds(kind))
    for name, value in params.items():
        kinds = known.get(name)
        if kinds is None:
            raise InvalidCall(f"`{verb}` has no parameter `{name}`")
        # To Python a bool is a number, but not in JSON.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InvalidCall(f"`{verb}`: `{name}` cannot be {type(value).__name__}")
        if isinstance(value, int) and abs(value) >= _MOST:
            raise InvalidCall(f"`{verb}`: the number `{name}` is too large")
        if name in _PATHS and isinstance(value, str) and "\0" in value:
            raise InvalidCall(f"`{verb}`: `{name}` contains a zero byte")
    try:
        return kind(
            **params, **{name: callbacks[name] for name in callbacks if name in kind.FIELDS}
        )
    except TypeError as error:
        raise InvalidCall(f"`{verb}`: {error}") from None


def list_kinds(request: type[Request[Any]]) -> dict[str, tuple[type, ...]]:
    """Return the JSON types that each parameter of a verb takes, from its annotations."""
    found = {}
    for name, annotation in request._ANNOTATIONS.items():  # noqa: SLF001
        if name not in CALLBACKS:
            parts = [part.partition("[")[0] for part in _split_union(annotation)]
            found[name] = tuple(kind for part in parts for kind in _KINDS[part])
    return found


def _encode_bytes(content: bytes) -> dict[str, Any]:
    from base64 import b64encode

    return {"base64": b64encode(content).decode()}


def _decode_bytes(shape: dict[str, Any]) -> bytes:
    from base64 import b64decode

    return b64decode(shape["base64"])


def _split_union(annotation: str) -> list[str]:
    parts, depth = [""], 0
    for sign in annotation.replace(" ", ""):
        depth += (sign == "[") - (sign == "]")
        if sign == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


# -- the workspace ------------------------------------------------------------------------------


class ListRequest(Request["list[answers.NotebookRow]"]):
    """List the notebooks below the root, or below the working folder, ordered by path.

    Args:
        folder: list all that is in this folder, and not below it; folders end with a slash.
        opened: only those that are open in an editor; the one where the person was last first.
    """

    VERB, WHAT, HANDLER = "list", "list notebooks", "reading:list_notebooks"
    ANSWER, MANY = "workspace.api.answers:NotebookRow", True

    folder: PathLike | None = None
    _: KW_ONLY
    opened: bool = False


class CreateRequest(Request["answers.EditAnswer"]):
    """Make a notebook with no cells; refuse to touch a file that is there."""

    VERB, WHAT, HANDLER = "create", "create a notebook", "editing:create"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: PathLike
    _: KW_ONLY
    kernel: str | None = None


class EvalRequest(Request["answers.EvalAnswer"]):
    """Run code that belongs to no notebook, and stop at the first cell that fails.

    Args:
        cells: code, or `{code, title, language, reset, timeout}`.
        session: cells of one session and folder see what earlier ones defined; the path of a
            notebook means its kernel.
        notebook: run in the kernel of this notebook, without changing the file.
        cwd: the folder they run in; the workspace's by default.
        kernel: a kernelspec, interpreter or environment; by default the plain Python runner.
        runner: use the runner, in the interpreter that `kernel` names.
        server: the address of a Jupyter server whose kernel runs the cells; `local` is none,
            whatever the setting `server` says.
        server_token: its token; by default the one in the address or in the variable
            `CELLWRIGHT_SERVER_TOKEN`.
        kernel_id: a kernel of the server to attach to; it is left running.
        per_call: use a kernel of its own, which ends with this call; None is as the setting
            `eval_mode` says.
        timeout: seconds for each cell that has none of its own; 0 is no limit.
        answers: lines for `input()`, in order.
        keep_going: also run the cells after one that failed.
        detach: answer after so many seconds, even if the run, whose id is in the answer,
            continues; `attach` follows it.
        progress: gets `{"run"}` first, then `{"cell", "status"}` and `{"cell", "text"}`.
        ask: is asked for more lines for `input()`.
    """

    VERB, WHAT, HANDLER = "eval", "run code", "running:evaluate"
    EFFECT = "run"
    RUNS = True
    ANSWER = "workspace.api.answers:EvalAnswer"

    cells: Sequence[Any]
    _: KW_ONLY
    session: str = "default"
    notebook: str | None = None
    cwd: str | None = None
    kernel: str | None = None
    runner: bool = False
    server: str | None = None
    server_token: str | None = None
    kernel_id: str | None = None
    per_call: bool | None = None
    timeout: float | None = None
    answers: Sequence[str] = ()
    keep_going: bool = False
    detach: float | None = None
    progress: Progress | None = None
    ask: Ask | None = None


class RunsRequest(Request["list[answers.RunView]"]):
    """List what runs, and what ran lately, the newest first."""

    VERB, WHAT, HANDLER = "runs", "list runs", "running:list_runs"
    WAITS = True
    ANSWER, MANY = "workspace.api.answers:RunView", True


class AttachRequest(Request["answers.AttachAnswer"]):
    """Follow a run from its beginning to its end, or for `wait` seconds.

    The answer has its state, and its `answer` if it is done.
    """

    VERB, WHAT, HANDLER = "attach", "follow a run", "running:attach"
    WAITS = True
    ANSWER = "workspace.api.answers:AttachAnswer"

    run: str
    _: KW_ONLY
    wait: float | None = None
    progress: Progress | None = None


class CancelRequest(Request["answers.AttachAnswer"]):
    """Stop a run; the cell that runs is interrupted, what it printed is kept."""

    VERB, WHAT, HANDLER = "cancel", "stop a run", "running:cancel"
    EFFECT = "run"
    WAITS = True
    ANSWER = "workspace.api.answers:AttachAnswer"

    run: str


class WatchRequest(Request["answers.WatchAnswer"]):
    """Report what happens to a notebook, or to all, for `wait` seconds or until interrupted.

    `progress` gets `{"event", "notebook", "when", ...}`: `changed` for a change made here
    (`actor`, `kind`, `revision`, `cells`), `cell` when one begins or ends (`status`), `run_ended`,
    and for a notebook that was named `outside`, when another program changed its file. With
    `announce`, the first is `watching`: from then on nothing is missed. `until` is asked now and
    then whether to end.
    """

    VERB, WHAT, HANDLER = "watch", "watch notebooks", "running:watch"
    WAITS = True
    ANSWER = "workspace.api.answers:WatchAnswer"

    path: PathLike | None = None
    _: KW_ONLY
    progress: Progress
    wait: float | None = None
    announce: bool = False
    until: Callable[[], bool] | None = None


class SessionsRequest(Request["list[answers.SessionView]"]):
    """List the sessions and their kernels."""

    VERB, WHAT, HANDLER = "sessions", "list sessions", "running:list_sessions"
    WAITS = True
    ANSWER, MANY = "workspace.api.answers:SessionView", True


class KernelRequest(Request["answers.KernelAnswer"]):
    """Look at a session's kernel (`status`), or `interrupt`, `restart`, `shutdown` it.

    `variables` lists what its code has defined; that runs code in the kernel. A notebook's session
    is named by the notebook's path. `connect` gives the session a kernel of a Jupyter server.

    Args:
        action: what to do.
        session: whose kernel.
        cwd: the folder of the session, if there are several of its name.
        server: for `connect`, the address; one of the setting `servers`.
        server_token: its token.
        kernel: for `connect`, the name of a kernelspec there, or the id of a kernel that runs.
    """

    VERB, HANDLER = "kernel", "running:act_on_kernel"
    WAITS = True
    ANSWER = "workspace.api.answers:KernelAnswer"

    action: str
    session: str
    cwd: str | None = None
    _: KW_ONLY
    server: str | None = None
    server_token: str | None = None
    kernel: str | None = None

    @property
    def effect(self) -> Effect:
        """What this call does."""
        return "read" if self.action == "status" else "run"

    @property
    def what(self) -> str:
        """What this call does, in words for a refusal."""
        return f"{self.action} a kernel"


class KernelSpecsRequest(Request["list[answers.KernelSpecView]"]):
    """List the kernels that can be started, and which one is the default.

    Those of this machine are found in files only. With `probe`, an interpreter of which they do not
    say whether it has an ipykernel is started and asked.

    Args:
        probe: ask interpreters.
        server: list those of this Jupyter server; by default also those of the setting `server`.
        server_token: its token, as for `eval`.
    """

    VERB, HANDLER = "kernel_specs", "running:list_kernel_specs"
    WAITS = True
    ANSWER, MANY = "workspace.api.answers:KernelSpecView", True

    probe: bool = False
    _: KW_ONLY
    server: str | None = None
    server_token: str | None = None

    @property
    def effect(self) -> Effect:
        """What this call does."""
        return "run" if self.probe else "read"

    @property
    def what(self) -> str:
        """What this call does, in words for a refusal."""
        return "start interpreters" if self.probe else "list kernels"


class ArtifactRequest(Request["answers.ArtifactAnswer"]):
    """Return a part of an artifact: text as it is, anything else as base64."""

    VERB, WHAT, HANDLER = "artifact", "read an artifact", "reading:read_artifact"
    ANSWER = "workspace.api.answers:ArtifactAnswer"

    ref: str
    offset: int = 0
    limit: int = 65536


class ForgetRequest(Request["answers.ForgetAnswer"]):
    """Remove the history, the remembered revisions and the artifacts of a notebook, for good.

    The notebook itself is not touched.

    Args:
        path: the notebook, which may be deleted by now; None for everything in the root, or of
            this user if there is no root.
        before: only what is older, in seconds since 1970. The remembered revisions have no date
            and are all removed.
        dry_run: remove nothing; count what would be.
    """

    VERB, WHAT, HANDLER = "forget", "forget history", "history:forget"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:ForgetAnswer"

    path: PathLike | None = None
    _: KW_ONLY
    before: float | None = None
    dry_run: bool = False


# -- one notebook: reading ----------------------------------------------------------------------


class LoadRequest(Request["Notebook"]):
    """Return the notebook as it is now; its revision is remembered, to serve as a base."""

    VERB, WHAT, HANDLER = "load", "read a notebook", "reading:load"

    path: str
    _: KW_ONLY
    read_file: Callable[[str], Notebook] | None = None

    def encode_answer(self, answer: Notebook) -> dict[str, Any]:
        """Name the file that holds the notebook, or send its bytes if it is not in a file."""
        if answer.origin is not None:
            return {"file": answer.origin.path}
        return _encode_bytes(answer.to_bytes())

    def decode_answer(self, shape: dict[str, Any]) -> Notebook:
        """Read the file, or make a notebook of the bytes."""
        from cellwright.document.notebook import Notebook

        if "file" in shape and self.read_file is not None:
            return self.read_file(shape["file"])
        return Notebook(_decode_bytes(shape), path=self.path)


class ReadRequest(Request["answers.ReadAnswer"]):
    """Return the cells with their status, the revision, the text view, and who else works on it.

    With `stale` also which results are stale, and why; without `text` no text view, so that a
    notebook with a broken cell can be read too. With `cells` only these are described.
    """

    VERB, WHAT, HANDLER = "read", "read a notebook", "reading:read"
    ANSWER, ROWS = "workspace.api.answers:ReadAnswer", True

    path: str
    _: KW_ONLY
    stale: bool = False
    text: bool = True
    cells: Sequence[CellRef] | None = None


class SelectRequest(Request["answers.SelectAnswer"]):
    """Return some lines of the text view, a cell, a section, the outline, or the raw file."""

    VERB, WHAT, HANDLER = "select", "read a notebook", "reading:select"
    ANSWER, ROWS = "workspace.api.answers:SelectAnswer", True

    path: str
    selector: str


class OutputsRequest(Request["answers.OutputsAnswer"]):
    """Return what cells printed, showed and raised, as compact text within a token budget."""

    VERB, WHAT, HANDLER = "outputs", "read a notebook", "reading:read_outputs"
    ANSWER = "workspace.api.answers:OutputsAnswer"

    path: str
    cells: Sequence[CellRef] | None = None
    _: KW_ONLY
    max_tokens: int = 8000


class StaleRequest(Request["answers.StaleAnswer"]):
    """Return which cells are fresh, stale or never run, and why, by their runs on record.

    What other programs ran is not on record; such cells count as never run.
    """

    VERB, WHAT, HANDLER = "stale", "read a notebook", "reading:find_stale"
    ANSWER, ROWS = "workspace.api.answers:StaleAnswer", True

    path: str


class ExecutionsRequest(Request["list[ExecutionRecord]"]):
    """Return the runs of this notebook's cells that are on record, the oldest first."""

    VERB, WHAT, HANDLER = "executions", "read a notebook", "history:list_executions"
    ANSWER, MANY = "journal.executions:ExecutionRecord", True

    path: str


class RawRequest(Request["bytes"]):
    """Return the bytes of the file, whether it is a notebook or not."""

    VERB, WHAT, HANDLER = "raw", "read a file", "reading:read_raw"

    path: str

    def encode_answer(self, answer: bytes) -> dict[str, Any]:
        """Return the bytes as base64."""
        return _encode_bytes(answer)

    def decode_answer(self, shape: dict[str, Any]) -> bytes:
        """Return the bytes."""
        return _decode_bytes(shape)


class PresenceRequest(Request["Presence"]):
    """Return where a person is in the notebook, if it is open in an editor that tells."""

    VERB, WHAT, HANDLER = "presence", "read a notebook", "reading:find_person"
    ANSWER = "workspace.hosts.host:Presence"

    path: str


class WarningsRequest(Request["list[str]"]):
    """Return what the journal could not do since this was last asked."""

    VERB, WHAT, HANDLER = "warnings", "read a notebook", "history:take_warnings"

    path: str


# -- one notebook: running and editing ----------------------------------------------------------


class RunRequest(Request["Executions"]):
    """Run cells in the notebook's kernel; their outputs are then in the notebook.

    Cells run in the order of the notebook. The first failure ends the run unless `keep_going`.

    Args:
        cells: references and ranges such as `2-5`; all code cells by default.
        above: the cells before this one.
        below: this cell and those after it.
        stale: the cells whose results are stale.
        replay: this cell, after the cells above that give it what it needs.
        kernel: a kernelspec, interpreter or environment.
        server: the address of a Jupyter server whose kernel the notebook gets, until that is shut
            down; `local` is none, whatever the setting `server` says.
        server_token: its token, as for `eval`.
        timeout: seconds for each cell; 0 is no limit.
        time_limit: seconds for all of them together; the cell that runs then has timed out, and
            the rest is not reached.
        restart: begin with a fresh kernel.
        keep_going: also run the cells after one that failed.
        check: run in a separate kernel, write nothing, and compare the outputs with those in the
            notebook.
        output: run a copy of the notebook that is saved there, in a separate kernel in the
            notebook's folder; the notebook stays as it is.
        resume: continue what was begun since then, in seconds since 1970: follow a run that still
            runs; else begin with the first cell that has not ended well, if all before it did and
            their kernel still lives; else with the first one.
        keep_kernel: leave the kernel of a copy that was stopped, for `resume`.
        parameters: values that are set right after the cell tagged `parameters`, or before the
            first cell if none is tagged.
        answers: lines for `input()`, in order.
        detach: answer after so many seconds, even if the run, whose id is in the answer,
            continues.
        progress: gets `{"run"}` first, then `{"cell", "handle", "status"}` and `{…, "text"}`.
        ask: is asked for more lines for `input()`.
    """

    VERB, WHAT, HANDLER = "run", "run cells", "running:run_cells"
    EFFECT = "run"
    RUNS = True
    ANSWER = "workspace.runs.execution:Executions"

    path: str
    cells: Sequence[CellRef] | None = None
    _: KW_ONLY
    above: CellRef | None = None
    below: CellRef | None = None
    stale: bool = False
    replay: CellRef | None = None
    kernel: str | None = None
    server: str | None = None
    server_token: str | None = None
    timeout: float = 0
    time_limit: float = 0
    restart: bool = False
    keep_going: bool = False
    check: bool = False
    output: str | None = None
    resume: float | None = None
    keep_kernel: bool = False
    parameters: Mapping[str, Any] | None = None
    answers: Sequence[str] = ()
    detach: float | None = None
    progress: Progress | None = None
    ask: Ask | None = None


class EditRequest(Request["answers.EditAnswer"]):
    """Apply a list of edits, all or nothing, and save; then run cells if `run` says so.

    Args:
        edits: typed edits or their JSON shape.
        base: the revision the caller had read; references mean the cells it saw.
        create: make the notebook if there is none.
        dry_run: change nothing; the answer shows the diff that would be.
        backup: also write a copy of the file as it was, beside it.
        label: a few words for the log.
        kind: what the log calls it.
        run: the cells to run after it: `changed` ones, or all that are `stale` then. The answer
            has their `executions`, their `outputs` as text within a budget, and what is `stale`
            after that. The edit is kept whatever happens to the run.
        kernel: as for `run`, like all that follow.
    """

    VERB, HANDLER = "edit", "editing:edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: str
    edits: Sequence[Edit | Mapping[str, Any]]
    _: KW_ONLY
    base: str | None = None
    create: bool = False
    dry_run: bool = False
    backup: bool = False
    label: str = ""
    kind: str = "edit"
    run: Literal["changed", "stale"] | None = None
    kernel: str | None = None
    timeout: float = 0
    time_limit: float = 0
    restart: bool = False
    keep_going: bool = False
    parameters: Mapping[str, Any] | None = None
    answers: Sequence[str] = ()
    detach: float | None = None
    progress: Progress | None = None
    ask: Ask | None = None

    @property
    def effect(self) -> Effect:
        """What this call does."""
        return "edit" if self.run is None else "run"

    @property
    def what(self) -> str:
        """What this call does, in words for a refusal."""
        return "edit a notebook" if self.run is None else "run cells"

    @property
    def runs_cells(self) -> bool:
        """Whether stopping this call means stopping cells that run."""
        return self.run is not None


class WriteRequest(Request["answers.EditAnswer"]):
    """Make the notebook say what an edited text view says; a missing one is created.

    Args:
        text: the text view, or a script in the percent format, or a whole notebook.
        base: the revision that the text was made from.
        dry_run: change nothing.
        backup: also write a copy of the old file.
        label: a few words for the log.
        percent: the name of the script, if the text is one; its suffix tells how a comment begins.
        json: the text is a whole notebook in JSON, which the file then holds, outputs included.
    """

    VERB, WHAT, HANDLER = "write", "edit a notebook", "editing:write"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: str
    text: str
    _: KW_ONLY
    base: str | None = None
    dry_run: bool = False
    backup: bool = False
    label: str = ""
    percent: str = ""
    json: bool = False


class WriteFileRequest(Request["answers.EditAnswer"]):
    """Write a text file that is not a notebook, with history; `undo` and `diff` work on it.

    Args:
        text: what it shall hold.
        base: the SHA-256 of the bytes it must still hold, in hex digits; None if there must be no
            file yet. Missing folders are made.
        label: a few words for the log.
    """

    VERB, WHAT, HANDLER = "write_file", "write a file", "editing:write_file"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: str
    text: str
    _: KW_ONLY
    base: str | None = None
    label: str = ""


class UpgradeRequest(Request["answers.EditAnswer"]):
    """Make it nbformat 4.5, with an id for every cell."""

    VERB, WHAT, HANDLER = "upgrade", "edit a notebook", "editing:upgrade"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: str
    _: KW_ONLY
    dry_run: bool = False
    backup: bool = False


# -- one notebook: history ----------------------------------------------------------------------


class UndoRequest(Request["answers.EditAnswer"]):
    """Undo the caller's newest change, or the one named; outputs come back with it.

    Several that are named are undone as one, or none of them is; those that were undone before
    are passed over.
    """

    VERB, WHAT, HANDLER = "undo", "edit a notebook", "history:undo"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: str
    change: str | Sequence[str] | None = None
    _: KW_ONLY
    dry_run: bool = False


class RedoRequest(Request["answers.EditAnswer"]):
    """Make a change again that was undone."""

    VERB, WHAT, HANDLER = "redo", "edit a notebook", "history:redo"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: str
    change: str | None = None
    _: KW_ONLY
    dry_run: bool = False


class RestoreRequest(Request["answers.EditAnswer"]):
    """Bring back a state to the byte: after a change, or `first` for before our first one."""

    VERB, WHAT, HANDLER = "restore", "edit a notebook", "history:restore"
    EFFECT = "edit"
    ANSWER = "workspace.api.answers:EditAnswer"

    path: str
    change: str
    _: KW_ONLY
    dry_run: bool = False


class LogRequest(Request["list[Entry]"]):
    """Return the changes of this notebook, the newest first, also those made by other programs.

    Args:
        limit: at most so many.
        follow: continue with the changes under the names that the notebook had before: files that
            are gone, and whose last state had the same cells.
    """

    VERB, WHAT, HANDLER = "log", "read a notebook", "history:list_changes"
    ANSWER, MANY = "journal.history:Entry", True

    path: str
    limit: int | None = None
    _: KW_ONLY
    follow: bool = False


class BlameRequest(Request["list[answers.BlameAnswer]"]):
    """Return for every cell the change that last touched its source or type."""

    VERB, WHAT, HANDLER = "blame", "read a notebook", "history:blame"
    ANSWER, MANY = "workspace.api.answers:BlameAnswer", True

    path: str


class BackupsRequest(Request["list[Backup]"]):
    """Return the states that can be restored to the byte, the newest first."""

    VERB, WHAT, HANDLER = "backups", "read a notebook", "history:list_backups"
    ANSWER, MANY = "journal.history:Backup", True

    path: str


class DiffRequest(Request["answers.DiffAnswer"]):
    """Return what changed between two states: change ids, `ID^`, `first`, `now`, or another file."""

    VERB, WHAT, HANDLER = "diff", "compare notebooks", "history:compare"
    ANSWER = "workspace.api.answers:DiffAnswer"

    path: str
    before: str | None = None
    after: str | None = None
