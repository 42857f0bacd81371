"""Verbs that read: notebooks, their text, outputs and staleness, and artifacts."""

from __future__ import annotations

import os

from cellwright.document.costs import GarbagePause
from cellwright.errors import ArtifactNotFound, UnreadableFile
from cellwright.workspace.api.answers import (
    ArtifactAnswer,
    CellOutputs,
    NotebookRow,
    OutlineRow,
    OutputsAnswer,
    SelectAnswer,
    StaleAnswer,
    TextLine,
)
from cellwright.workspace.paths import HIDDEN, confine, leads_inside
from cellwright.workspace.status import describe_notebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.notebook import Notebook
    from cellwright.text.selection import Selection
    from cellwright.workspace.api import requests
    from cellwright.workspace.api.answers import ReadAnswer
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.hosts.host import Presence

_MOST_ENTRIES = 10_000
_LEAST_TOKENS = 50
_TEXT = ("application/json", "image/svg+xml")


def list_notebooks(caller: Caller, request: requests.ListRequest) -> list[NotebookRow]:
    """List the notebooks below the root, or what is in one folder."""
    if request.folder is not None:
        return _list_folder(caller, os.fspath(request.folder))
    top = caller.root or caller.cwd
    people = caller.hub.list_open()
    found = []
    if request.opened:
        newest = sorted(people.items(), key=lambda each: -(each[1].seen or 0.0))
        for real, person in newest:
            if os.path.isfile(real) and leads_inside(real, top):  # noqa: PTH113
                path = os.path.relpath(real, os.path.realpath(caller.cwd))
                found.append(NotebookRow(path, os.path.getsize(real), person))  # noqa: PTH202
        return found
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        for name in sorted(files):
            if name.endswith(".ipynb") and not name.startswith("."):
                path = os.path.join(folder, name)  # noqa: PTH118  # as os.walk has it
                # Not a broken link, nor one that leads out.
                if os.path.isfile(path) and leads_inside(path, caller.root):  # noqa: PTH113
                    size = os.path.getsize(path)  # noqa: PTH202
                    there = people.get(os.path.realpath(path)) if people else None
                    found.append(NotebookRow(os.path.relpath(path, caller.cwd), size, there))
    return found


def _list_folder(caller: Caller, folder: str) -> list[NotebookRow]:
    """List what is in a folder, without what is hidden and links that lead out.

    Raises:
        OutsideRoot: the folder is not in the root.
        UnreadableFile: it cannot be listed.
    """
    top = confine(os.path.join(caller.cwd, folder), caller.root)  # noqa: PTH118
    try:
        with os.scandir(top) as entries:
            found = sorted(entries, key=lambda entry: entry.name)[:_MOST_ENTRIES]
    except OSError as error:
        raise UnreadableFile(folder, error.strerror or "it cannot be listed") from None
    rows = []
    for entry in found:
        if entry.name.startswith(".") or not leads_inside(entry.path, caller.root):
            continue
        path = os.path.normpath(os.path.join(folder, entry.name))  # noqa: PTH118
        if entry.is_dir():
            rows.append(NotebookRow(f"{path}/", 0))
        elif entry.is_file():
            rows.append(NotebookRow(path, entry.stat().st_size))
    return rows


def load(caller: Caller, request: requests.LoadRequest) -> Notebook:
    """Return the notebook itself."""
    return caller.open(request.path).load()


def read(caller: Caller, request: requests.ReadRequest) -> ReadAnswer:
    """Describe the cells, their status, and the text view."""
    book = caller.open(request.path)
    notebook = book.load()
    cells = None if request.cells is None else [notebook.cell(ref) for ref in request.cells]
    now = book.hub.list_active_cells(book.real)
    # Who wants the text alone asks for no cells.
    executions = () if cells == [] and not request.stale else book.list_executions()
    found = describe_notebook(
        notebook, book.name, executions, now, stale=request.stale, cells=cells
    )
    text = None
    if request.text:
        from cellwright.text.view import to_text

        text = to_text(notebook)
    others = book.hub.actors.list_others(book.real, caller.actor)
    person = book.host.presence() if book.hub.is_open(book.real) else None
    return found.replace(others=others, text=text, person=person)


def select(caller: Caller, request: requests.SelectRequest) -> SelectAnswer:
    """Return the part of the text that a selector asks for."""
    from cellwright.text.selection import select as select_text
    from cellwright.text.selection import select_raw
    from cellwright.text.selectors import parse_selector
    from cellwright.text.view import render_text

    wanted = parse_selector(request.selector)
    book = caller.open(request.path)
    if wanted.raw:
        text = book.host.read_bytes().decode("utf-8", "surrogateescape")
        return _describe_selection(book.name, request.selector, select_raw(text, wanted))
    notebook = book.load()
    with GarbagePause():
        found = _describe_selection(
            book.name, request.selector, select_text(render_text(notebook), wanted)
        )
    return found.replace(revision=notebook.revision)


def _describe_selection(path: str, selector: str, found: Selection) -> SelectAnswer:
    return SelectAnswer(
        path,
        None,
        selector,
        found.total_lines,
        found.total_cells,
        [TextLine(*line) for line in found.lines],
        [OutlineRow(*row) for row in found.outline],
        found.text,
    )


def read_outputs(caller: Caller, request: requests.OutputsRequest) -> OutputsAnswer:
    """Describe the outputs of some cells, or of all that have any, within one budget.

    Every cell gets an equal share of what is left, so that short ones leave more to the rest.
    """
    from cellwright.outputs.describe import describe

    book = caller.open(request.path)
    notebook = book.host.read()
    if request.cells is None:
        code = (cell for cell in notebook.cells if cell.type == "code")
        chosen = [cell for cell in code if cell.output_types or cell.outputs]
    else:
        chosen = [notebook.cell(ref) for ref in request.cells]
    rows: list[CellOutputs] = []
    left = request.max_tokens
    for done, cell in enumerate(chosen):
        share = max(_LEAST_TOKENS, left // (len(chosen) - done))
        if left <= 0:
            break
        found = describe(cell.outputs, share, images=0)
        left -= len(found.text) // 4
        rows.append(
            CellOutputs(
                cell.index,
                cell.id,
                cell.handle,
                cell.type,
                getattr(cell, "execution_count", None),
                len(cell.outputs),
                found.text,
                [str(item) for item in found.left_out],
            )
        )
    left_out = [cell.handle for cell in chosen[len(rows) :]]
    return OutputsAnswer(book.name, notebook.revision, rows, left_out)


def find_stale(caller: Caller, request: requests.StaleRequest) -> StaleAnswer:
    """Describe the staleness of every code cell."""
    from cellwright.workspace.staleness import describe_staleness

    book = caller.open(request.path)
    now, runs = book.hub.list_active_cells(book.real), book.journal.executions(book.real)
    return StaleAnswer(book.name, describe_staleness(book.host.read(), runs, now=now))


def read_raw(caller: Caller, request: requests.RawRequest) -> bytes:
    """Return the bytes of a file."""
    return caller.open(request.path).host.read_bytes()


def find_person(caller: Caller, request: requests.PresenceRequest) -> Presence:
    """Return where a person is in the notebook."""
    return caller.open(request.path).host.presence()


def read_artifact(caller: Caller, request: requests.ArtifactRequest) -> ArtifactAnswer:
    """Return a part of an artifact."""
    from dataclasses import asdict

    store = caller.hub.artifacts
    try:
        facts = store.get(request.ref)
    except ArtifactNotFound as error:
        if caller.root is not None:
            error.hint = None  # the near one may be that of another root
        raise
    if not caller.knows(facts.origin):
        raise ArtifactNotFound(request.ref[:80])
    answer = ArtifactAnswer(**asdict(facts))
    if facts.mime.startswith("text/") or facts.mime in _TEXT:
        text = store.read_text(request.ref, request.offset, request.limit)
        return answer.replace(offset=text.offset, next_offset=text.next_offset, text=text.text)
    from base64 import b64encode

    part = store.read(request.ref, request.offset, request.limit)
    content = b64encode(part.data).decode()
    return answer.replace(offset=part.offset, next_offset=part.next_offset, base64=content)
