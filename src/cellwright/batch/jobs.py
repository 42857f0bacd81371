"""Which notebooks a batch runs with which parameters, and how one of them is run."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cellwright.errors import CellwrightError, InvalidEdit, SessionNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cellwright.document.notebook import Notebook
    from cellwright.document.outputs import Output
    from cellwright.workspace.runs.execution import CellError, Execution, Executions
    from cellwright.workspace.workspace import Workspace

    Progress = Callable[[dict[str, Any]], object]

_unsafe = re.compile(r"[^\w.=,+@-]+")
_LONGEST_NAME = 120
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LARGEST_PICTURE, _MOST_PICTURES, _MOST_CHANGES = 2**19, 3, 10
_base64 = re.compile(r"[A-Za-z0-9+/\s]+=*\s*").fullmatch


@dataclass(frozen=True, slots=True)
class Job:
    """One notebook with one set of parameters; `output` is its copy, None to run it in place."""

    notebook: str
    parameters: dict[str, Any] = field(default_factory=dict)
    output: str | None = None

    @property
    def key(self) -> str:
        """What is the same for the same job in a later batch."""
        shape = [self.notebook, self.parameters, self.output]
        text = json.dumps(shape, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @property
    def name(self) -> str:
        """How the job is called in a report."""
        words = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.notebook} {words}".strip()


@dataclass(frozen=True, slots=True)
class ChangedOutputs:
    """The outputs of a cell that are not those it had: a diff of their text, and their pictures."""

    cell: str
    index: int
    diff: str
    old: list[tuple[str, str]]
    new: list[tuple[str, str]]


@dataclass(slots=True)
class JobResult:
    """How a job ended.

    `status` is that of the cell which ended it: `ok`, `error`, `timed_out`, `died` or `cancelled`;
    `skipped` if an earlier batch had done it or nothing was stale; `failed` if its cells could not
    be run at all, and then `message` says why. `usage` is what its kernel used, as far as known:
    `cpu_seconds` and `peak_bytes`.
    """

    job: Job
    status: str
    seconds: float = 0.0
    attempts: int = 1
    cells: int = 0
    ran: int = 0
    cell: str | None = None
    index: int | None = None
    message: str = ""
    traceback: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    slowest: list[tuple[int, float]] = field(default_factory=list)
    changed: list[ChangedOutputs] = field(default_factory=list)
    usage: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is nothing to mend."""
        return self.status in ("ok", "skipped")

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        shape = asdict(self)
        job = shape.pop("job")
        shape.pop("changed")
        return {**job, "ok": self.ok, **shape, "seconds": round(self.seconds, 3)}


# -- planning -----------------------------------------------------------------------------------


def plan_jobs(
    notebooks: Sequence[str],
    *,
    parameters: Sequence[Mapping[str, Any]] = (),
    matrix: Mapping[str, Sequence[Any]] | None = None,
    out: str | None = None,
) -> list[Job]:
    """List the jobs: every notebook with every set of parameters and every point of the matrix.

    `out` is a folder, or a file: a template such as `out/{stem}-{year}.ipynb` with the fields
    `folder`, `stem`, `index` and the names of the parameters.

    Raises:
        InvalidEdit: two jobs would write to one file, or the template has an unknown field.
    """
    points = (
        [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())]
        if matrix
        else [{}]
    )
    sets = [{**row, **point} for row in (parameters or [{}]) for point in points]
    jobs: list[Job] = []
    for notebook, values in itertools.product(notebooks, sets):
        output = None if out is None else _name_output(out, notebook, values, len(jobs), len(sets))
        jobs.append(Job(notebook, values, output))
    places: dict[str, Job] = {}
    for job in jobs:
        place = os.path.normpath(job.output or job.notebook)
        other = places.setdefault(place, job)
        if other is not job:
            hint = "Name the copies by a template with the parameters, such as {stem}-{year}.ipynb"
            raise InvalidEdit(f"two jobs would write to {place}", hint=hint)
    return jobs


def _name_output(out: str, notebook: str, values: Mapping[str, Any], index: int, sets: int) -> str:
    folder, name = os.path.split(notebook)
    stem = name.removesuffix(".ipynb")
    if "{" in out or out.endswith(".ipynb"):
        fields = {"folder": folder or ".", "stem": stem, "index": index}
        try:
            found = out.format(**{**{k: _to_name(v) for k, v in values.items()}, **fields})
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise InvalidEdit(
                f"the template {out}: {error}",
                hint="Its fields are folder, stem, index and the names of the parameters",
            ) from None
        return found if found.endswith(".ipynb") else f"{found}.ipynb"
    if sets > 1:
        words = ",".join(f"{name}={_to_name(value)}" for name, value in values.items())
        stem = f"{stem}-{words[:_LONGEST_NAME]}"
    inside = "" if folder.startswith(("/", "..")) else folder
    return str(Path(out, inside, f"{stem}.ipynb"))


def _to_name(value: Any) -> str:
    """A value as a part of a file's name."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return _unsafe.sub("_", text).strip(".") or "_"


def read_parameters(path: str, text: str) -> list[dict[str, Any]]:
    """Read sets of parameters: CSV with names in its first row, or JSON, TOML or YAML.

    Raises:
        InvalidEdit: it is none of these.
    """
    kind = Path(path).suffix.lower()
    text = text.removeprefix("\ufeff")  # as spreadsheets save it
    try:
        if kind in (".csv", ".tsv"):
            return _read_rows(text, "\t" if kind == ".tsv" else ",")
        if kind in (".yaml", ".yml"):
            found = _read_yaml(text)
        elif kind == ".toml":
            import tomllib

            found = tomllib.loads(text)
        else:
            found = json.loads(text)
    except InvalidEdit:
        raise
    except ValueError as error:
        raise InvalidEdit(f"{path}: {error}", hint="CSV, JSON, TOML or YAML") from None
    sets = found if isinstance(found, list) else [found]
    if not all(isinstance(each, dict) for each in sets):
        raise InvalidEdit(
            f"{path} must be an object, or a list of objects", hint="Names and values"
        )
    return sets


def _read_rows(text: str, delimiter: str) -> list[dict[str, Any]]:
    import csv

    from cellwright.workspace.runs.parameters import parse_value

    # Not by `splitlines`: a quoted value may have line breaks.
    found: list[dict[str, Any]] = []
    for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter):
        values: dict[Any, Any] = row
        if None in values:
            raise ValueError(f"row {len(found) + 1} has more values than there are names")
        found.append({name: parse_value(value or "") for name, value in row.items() if name})
    return found


def _read_yaml(text: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidEdit(
            "reading YAML needs PyYAML",
            hint="pip install 'cellwright[batch]' brings it; CSV, JSON and TOML need nothing",
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


# -- running ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How every job is run."""

    timeout: float = 0
    time_limit: float = 0
    kernel: str | None = None
    retries: int = 0
    keep_going: bool = False
    server: str | None = None


def run_job(
    workspace: Workspace,
    job: Job,
    options: JobOptions,
    progress: Progress,
    is_over: Callable[[], bool],
    *,
    begun: float | None = None,
) -> JobResult:
    """Run one job, again after a failure if there are retries left.

    `begun` is when an earlier batch began it: what is left of that is continued.
    """
    began = time.time()
    attempts = 0
    earlier: list[str] = []
    while True:
        attempts += 1
        try:
            found = _run_once(workspace, job, options, progress, begun)
            begun = None
        except CellwrightError as error:
            found = refuse_job(job, error)
        found.attempts = attempts
        found.seconds = time.time() - began
        found.notes = [*earlier, *found.notes]
        if found.ok or found.status == "cancelled" or attempts > options.retries or is_over():
            return found
        where = "" if found.cell is None else f"cell {found.cell} (index {found.index}): "
        earlier.append(f"Attempt {attempts}: {where}{found.message or found.status}")


def refuse_job(job: Job, error: CellwrightError) -> JobResult:
    """Return the result of a job whose cells could not be run at all."""
    words = f"{error.message}. {error.hint}" if error.hint else error.message
    return JobResult(job, "failed", message=f"{error.code}: {words}")


def _run_once(
    workspace: Workspace, job: Job, options: JobOptions, progress: Progress, begun: float | None
) -> JobResult:
    book = workspace.open(job.notebook)
    before = book.load()
    began = time.time()
    common: dict[str, Any] = {
        "timeout": options.timeout,
        "time_limit": options.time_limit,
        "kernel": options.kernel,
        "server": options.server,
        "resume": begun,
        "keep_going": options.keep_going,
        "parameters": job.parameters or None,
        "progress": progress,
    }
    if job.output is not None:
        make_folder(workspace, job.output)
        done = book.run(output=job.output, keep_kernel=True, **common)
    else:
        done = book.run(restart=True, **common)
    # What was stopped is not on record as over, and keeps its kernel, to be continued.
    if not any(each.status == "cancelled" for each in done):
        if job.output is not None:
            record_run(workspace, job, done, began, before.revision)
        else:
            with contextlib.suppress(SessionNotFound):  # a run that was over had none any more
                workspace.kernel("shutdown", session=job.notebook)
    result = describe_run(job, done)
    result.changed = find_changes(before, done)
    return result


def make_folder(workspace: Workspace, output: str) -> None:
    """Make the folder of a copy."""
    folder = Path(workspace.open(output).path).parent  # raises if it is outside the root
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidEdit(
            f"the folder {folder}: {error.strerror}", hint="Choose another folder for the copies"
        ) from None


def record_run(
    workspace: Workspace, job: Job, done: Executions, began: float, revision: str
) -> None:
    """Put on record in a copy how its run went; a copy without this was not finished."""
    from cellwright.workspace.runs.copies import make_record_edits

    paths = job.notebook, job.output or ""
    edits = make_record_edits(
        done, job.parameters, began=began, ended=time.time(), paths=paths, revision=revision
    )
    workspace.open(job.output or "").edit(edits, label="how the run went")


def is_recorded(workspace: Workspace, job: Job) -> bool:
    """Whether the copy says that this job was done with the notebook as it is, and ended well."""
    if job.output is None:
        return False
    try:
        found = workspace.open(job.output).load().metadata.get("papermill")
        revision = workspace.open(job.notebook).load().revision
    except CellwrightError:
        return False
    if not isinstance(found, dict) or found.get("exception") is not False:
        return False
    wanted = json.loads(json.dumps(job.parameters, default=str))
    said = (found.get("parameters"), found.get("input_path"), found.get("input_revision"))
    return said == (wanted, job.notebook, revision)


def is_fresh(workspace: Workspace, job: Job) -> bool:
    """Whether no result of the notebook is stale."""
    try:
        return all(cell.state == "fresh" for cell in workspace.open(job.notebook).stale().cells)
    except CellwrightError:
        return False


def describe_run(job: Job, done: Executions) -> JobResult:
    """Return the result of a run that is over."""
    from cellwright.workspace.runs.execution import NOTHING_AGAIN

    result = JobResult(job, "ok", cells=len(done))
    result.ran = sum(each.status not in ("pending", "running") for each in done)
    for each in done:
        # Whether a batch runs it again is said by its attempts.
        result.notes += [note for note in each.notes if note != NOTHING_AGAIN]
    bad: Execution | None = next(
        (each for each in done if each.is_failure or each.is_unsaved or each.shown_error), None
    )
    if bad is not None and bad.is_exit:
        # As with papermill, `sys.exit()` ends a notebook, which has not failed.
        result.notes.append(f"Cell {bad.cell} (index {bad.index}) left the notebook: sys.exit()")
    elif bad is not None:
        shown = bad.shown_error
        result.status = bad.status if bad.is_failure else "unsaved" if shown is None else "error"
        result.cell, result.index = bad.cell, bad.index
        error = bad.error or shown
        result.message = find_first_words(bad, error)
        result.traceback = list(error.traceback or ()) if error else []
    elif not done.ok:
        result.status = "cancelled"
        result.message = "The run was stopped before its last cell"
    result.usage = done.usage or {}
    slow = sorted(done, key=lambda each: -each.seconds)[:3]
    result.slowest = [(each.index or 0, round(each.seconds, 3)) for each in slow]
    return result


def find_first_words(execution: Execution, error: CellError | None) -> str:
    """Say in one line why a cell failed."""
    # What was interrupted has an error that only says so.
    if execution.status == "cancelled":
        return "stopped"
    if execution.status == "timed_out":
        return f"timed out after {execution.seconds:.1f} s"
    if error is not None:
        first = error.evalue.partition("\n")[0]
        return f"{error.ename}: {first}" if first else error.ename
    said = [each for each in execution.outputs if each.get("name") == "stderr"]
    if execution.status == "error" and said:  # as for a magic that IPython does not know
        text = said[-1].get("text", "")
        lines = (text if isinstance(text, str) else "".join(text)).strip().splitlines()
        return lines[-1] if lines else execution.status
    return execution.notes[0] if execution.notes else execution.status


def find_changes(before: Notebook, done: Iterable[Execution]) -> list[ChangedOutputs]:
    """List the cells whose outputs are not those that the notebook had, with both."""
    from cellwright.document.outputs import parse_output
    from cellwright.workspace.runs.comparison import compare_outputs

    cells = {cell.handle: cell for cell in before.cells}
    found: list[ChangedOutputs] = []
    for execution in done:
        cell = cells.get(execution.cell or "")
        if cell is None or execution.status not in ("ok", "error") or len(found) == _MOST_CHANGES:
            continue
        compared = compare_outputs(cell, execution.status, execution.outputs)
        if compared.result == "differs":
            new = tuple(map(parse_output, execution.outputs))
            old, new_pictures = _list_pictures(cell.outputs), _list_pictures(new)
            index = cell.index if execution.index is None else execution.index  # of the copy
            found.append(ChangedOutputs(cell.handle, index, compared.diff, old, new_pictures))
    return found


def _list_pictures(outputs: Iterable[Output]) -> list[tuple[str, str]]:
    """The MIME types and the base64 of pictures that a page can show."""
    found = []
    for output in outputs:
        data = getattr(output, "data", None) or {}
        for mime in PICTURES:
            text = data.get(mime)
            if isinstance(text, str) and len(text) <= _LARGEST_PICTURE and _base64(text):
                found.append((mime, "".join(text.split())))
                break
    return found[:_MOST_PICTURES]
