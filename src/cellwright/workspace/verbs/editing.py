"""Verbs that edit a notebook, and run what the edit changed."""

from __future__ import annotations

from cellwright.errors import AlreadyExists, Conflict, InvalidEdit
from cellwright.workspace.api.answers import EditAnswer, ExecutionText, StaleCell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cellwright.document.change import Change
    from cellwright.document.notebook import Notebook
    from cellwright.workspace.api import requests
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.notebook import OpenNotebook
    from cellwright.workspace.runs.execution import Execution
    from cellwright.workspace.runs.notebook_run import NotebookRun

_MAX_TOKENS = 8000
_LEAST_TOKENS = 50


def create(caller: Caller, request: requests.CreateRequest) -> EditAnswer:
    """Make a notebook with no cells."""
    book = caller.open(request.path)
    if book.host.exists():
        raise AlreadyExists(book.name)
    metadata: dict[str, Any] = {}
    if request.kernel is not None:
        metadata = {"kernelspec": {"name": request.kernel, "display_name": request.kernel}}
    edit = {"op": "set_metadata", "metadata": metadata}
    return book.change(
        lambda notebook: notebook.apply([edit]), create=True, label="create", kind="create"
    )


def edit(caller: Caller, request: requests.EditRequest) -> EditAnswer:
    """Apply a list of edits, all or nothing, and save."""
    return _apply(caller.open(request.path), request)


def _apply(book: OpenNotebook, request: requests.EditRequest) -> EditAnswer:
    def make(notebook: Notebook) -> Change:
        return notebook.apply(request.edits, base=book.find_base(notebook, request.base))

    return book.change(
        make,
        create=request.create,
        dry_run=request.dry_run,
        backup=request.backup,
        label=request.label,
        kind=request.kind,
    )


def write_file(caller: Caller, request: requests.WriteFileRequest) -> EditAnswer:
    """Make a plain file hold a text, on record."""
    from hashlib import sha256

    book = caller.open(request.path)
    if book.is_notebook:
        raise InvalidEdit(f"{book.name} is a notebook", hint="Use `write` or `edit`")
    host = book.open_as_text()

    def make(notebook: Notebook) -> Change:
        cells = notebook.cells
        held = sha256(cells[0].source.encode()).hexdigest() if cells else None
        if held != request.base:
            raise Conflict(f"{book.name} was changed by another program")
        edit = {"op": "replace", "cell": 0, "source": request.text}
        if not cells:
            edit = {"op": "insert", "type": "raw", "id": host.cell, "source": request.text}
        return notebook.apply([edit])

    return book.change(make, create=True, label=request.label)


async def edit_and_run(caller: Caller, request: requests.EditRequest) -> EditAnswer:
    """Apply a list of edits and save, then run the cells that were changed, or all stale ones.

    The edit is kept whatever happens to the run.
    """
    from cellwright.workspace.runs.run import RunOptions
    from cellwright.workspace.verbs.running import follow_run, prepare_run

    if request.run not in ("changed", "stale"):
        raise InvalidEdit(f"`run` is {request.run!r}", hint="One of changed, stale")
    options, hub = RunOptions.of(request), caller.hub

    def apply_and_choose() -> tuple[EditAnswer, NotebookRun | None]:
        book = caller.open(request.path)
        answer = _apply(book, request)
        if request.dry_run:
            return answer, None
        if request.run == "stale":
            return answer, prepare_run(book, options, book.current, stale=True)
        changed = [
            cell.after
            for cell in answer.cells
            if cell.type == "code" and cell.kind in ("edited", "inserted")
        ]
        return answer, prepare_run(book, options, book.current, cells=changed)

    answer, run = await hub.in_file_thread(apply_and_choose)
    if run is None:
        return answer
    await follow_run(run)
    return await hub.in_file_thread(_describe_run, answer, run)


def _describe_run(answer: EditAnswer, run: NotebookRun) -> EditAnswer:
    """Add to the answer of an edit what its run did, and what is stale after that."""
    from cellwright.workspace.staleness import find_stale_reasons
    from cellwright.workspace.status import STALE_SECONDS

    book, done = run.book, run.answer()
    notebook = run.notebook_now()
    now, runs = book.hub.list_active_cells(book.real), book.journal.executions(book.real)
    reasons = find_stale_reasons(notebook, runs, STALE_SECONDS, now)
    warnings = [*answer.warnings, *book.take_warnings()]
    if reasons is None:
        warnings.append("Which results are stale is not analysed: it would take too long")
    return answer.replace(
        run=done.run,
        done=done.done,
        executions=list(done),
        outputs=_describe_outputs(done),
        stale=[
            StaleCell(cell.handle, cell.index, reasons[cell.handle])
            for cell in notebook.cells
            if cell.handle in reasons
        ]
        if reasons is not None
        else None,
        warnings=warnings,
    )


def _describe_outputs(done: Sequence[Execution]) -> list[ExecutionText]:
    """Describe what the cells of a run said, as text within one budget, and what is left out."""
    from cellwright.outputs.describe import describe

    said = [execution for execution in done if execution.outputs]
    rows: list[ExecutionText] = []
    left = _MAX_TOKENS
    for place, execution in enumerate(said):
        share = max(_LEAST_TOKENS, left // (len(said) - place))
        found = describe(execution.outputs, share, images=0)
        left -= len(found.text) // 4
        left_out = [str(item) for item in found.left_out]
        rows.append(ExecutionText(execution.cell or "", found.text, left_out))
    return rows


def write(caller: Caller, request: requests.WriteRequest) -> EditAnswer:
    """Make the notebook say what an edited text view says, or hold a whole notebook."""
    book = caller.open(request.path)
    make = _plan_whole(request) if request.json else _plan_text(book, request)
    return book.change(
        make, create=True, dry_run=request.dry_run, backup=request.backup, label=request.label
    )


def _plan_whole(request: requests.WriteRequest) -> Callable[[Notebook], Change]:
    from cellwright.document.notebook import Notebook

    wanted = Notebook(request.text.encode())
    return lambda notebook: notebook.become(wanted.state)


def _plan_text(book: OpenNotebook, request: requests.WriteRequest) -> Callable[[Notebook], Change]:
    from cellwright.text.combine import edits_for
    from cellwright.text.view import parse_text

    if request.percent:
        from cellwright.text.percent import find_comment, number_cells, parse_percent

        cells = parse_percent(request.text, find_comment(path=request.percent)).cells
    else:
        cells = parse_text(request.text)

    def make(notebook: Notebook) -> Change:
        base = book.find_base(notebook, request.base)
        found = cells
        if request.percent:
            found = number_cells(cells, notebook.snapshot() if base is None else base)
        return notebook.apply(edits_for(found, notebook, base))

    return make


def upgrade(caller: Caller, request: requests.UpgradeRequest) -> EditAnswer:
    """Make it nbformat 4.5, with an id for every cell."""
    return caller.open(request.path).change(
        lambda notebook: notebook.upgrade(),
        dry_run=request.dry_run,
        backup=request.backup,
        label="upgrade",
    )
