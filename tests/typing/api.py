"""The public API as a caller writes it: type-checked, never run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import cellwright
from cellwright import (
    AsyncBook,
    Book,
    BrokenCell,
    Cell,
    CellChange,
    CellConflict,
    CellwrightError,
    Change,
    ClearOutputs,
    CodeCell,
    Delete,
    Display,
    Edit,
    ErrorOutput,
    Insert,
    MarkdownCell,
    MergeCells,
    Merged,
    Move,
    Notebook,
    Output,
    RawCell,
    Replace,
    ReplaceText,
    Result,
    Saved,
    SetMetadata,
    SetType,
    Snapshot,
    Splice,
    Split,
    Stream,
    parse_edit,
)
from cellwright.errors import CellNotFound, Conflict, InvalidEdit
from cellwright.journal import Entry
from cellwright.workspace.api.answers import EditAnswer, EvalAnswer, NotebookRow, ReadAnswer
from cellwright.workspace.runs.execution import CellError, Execution, Executions

if TYPE_CHECKING:
    from collections.abc import Sequence


def catch_by_the_name_that_the_package_has() -> None:
    try:
        cellwright.read("analysis.ipynb")
    except cellwright.errors.NotebookNotFound as error:
        assert_type(error, cellwright.errors.NotebookNotFound)


def read_and_look() -> None:
    notebook = cellwright.read("analysis.ipynb")
    assert_type(notebook, Notebook)
    assert_type(cellwright.read(Path("analysis.ipynb"), max_bytes=1024), Notebook)
    assert_type(notebook.revision, str)
    assert_type(notebook.metadata, dict[str, Any])
    assert_type(notebook.path, str | None)
    assert_type(notebook.version, str)
    assert_type((notebook.nbformat, notebook.nbformat_minor), tuple[int, int])
    assert_type(notebook.needs_upgrade, bool)
    assert_type(notebook.validate(), str | None)
    assert_type(notebook.snapshot(), Snapshot)
    assert_type(len(notebook.cells), int)
    assert_type(notebook.cells[0], Cell)
    assert_type(notebook.cells[1:3], tuple[Cell, ...])
    assert_type(notebook.cell("ab12"), Cell)
    assert_type(notebook.cell(-1), Cell)
    for cell in notebook.cells:
        assert_type(cell, Cell)


def look_at_a_cell(cell: Cell) -> str:
    assert_type(cell.id, str | None)
    assert_type(cell.handle, str)
    assert_type(cell.index, int)
    assert_type(cell.type, str)
    assert_type(cell.source, str)
    assert_type(cell.hash, str)
    assert_type(cell.problem, str | None)
    assert_type(cell.metadata, dict[str, Any])
    assert_type(cell.attachments, dict[str, Any])
    assert_type(cell.execution_count, int | None)
    assert_type(cell.outputs, tuple[Output, ...])
    assert_type(cell.raw, bytes)
    assert_type(cell.to_dict(), dict[str, Any])
    if isinstance(cell, CodeCell):
        return "".join(describe(output) for output in cell.outputs)
    if isinstance(cell, (MarkdownCell, RawCell)):
        return cell.source
    if isinstance(cell, BrokenCell):
        return cell.problem or ""
    return cell.handle


def describe(output: Output) -> str:
    match output:
        case Stream(name, text):
            assert_type(name, str)
            return text
        case Result(data, metadata, execution_count):
            assert_type(execution_count, int | None)
            return str(data["text/plain"])
        case Display():
            return str(output.data.get("text/plain"))
        case ErrorOutput(ename, evalue, traceback):
            assert_type(traceback, tuple[str, ...])
            return f"{ename}: {evalue}"
        case _:
            return "unknown"


def edit(notebook: Notebook) -> None:
    change = notebook.apply([{"op": "replace", "cell": "ab12", "source": "x = 2"}])
    assert_type(change, Change)
    assert_type(notebook.apply(Replace("ab12", "x = 2")), Change)
    assert_type(notebook.apply({"op": "delete", "cell": 0}), Change)
    notebook.apply((Delete(0), {"op": "insert", "source": ""}))
    notebook.apply([Delete("ab12", expect="0123456789ab")], base=notebook.snapshot())
    notebook.apply([], base=notebook.revision)
    assert_type(notebook.apply(change.inverse()), Change)
    assert_type(notebook.upgrade(), Change)

    edits: list[Edit] = [
        Replace("ab12", "x", type="markdown", outputs="clear", expect="0123456789ab"),
        ReplaceText(0, "old", "new", count=2),
        Insert("x", "code", id="new", metadata={"tags": ["a"]}, after="ab12"),
        Insert(at=0),
        Delete(-1),
        Move("ab12", before=3),
        Split("ab12", 2),
        MergeCells(["ab12", 4]),
        SetType("ab12", "raw"),
        SetMetadata({"k": None}, "ab12"),
        SetMetadata({"k": 1}, merge=False),
        ClearOutputs(),
        ClearOutputs(["ab12"]),
        Splice(0, 1, [{"cell_type": "code", "source": "x"}]),
    ]
    shapes: list[dict[str, Any]] = [one.to_json() for one in edits]
    assert_type(parse_edit(shapes[0]), Edit)
    assert_type(notebook.apply(edits), Change)
    assert_type(notebook.apply(shapes), Change)


def show(change: Change) -> None:
    assert_type(bool(change), bool)
    assert_type(change.diff(), str)
    assert_type(change.diff("analysis.ipynb", context=1), str)
    assert_type(change.cells, list[CellChange])
    assert_type(change.edits, tuple[Edit, ...])
    for cell in change.cells:
        assert_type((cell.kind, cell.handle, cell.type), tuple[str, str, str])
        assert_type((cell.before, cell.after), tuple[int | None, int | None])


def save(notebook: Notebook) -> None:
    assert_type(notebook.to_bytes(), bytes)
    saved = cellwright.write(notebook, "analysis.ipynb")
    assert_type(saved, Saved)
    assert_type((saved.path, saved.size, saved.changed), tuple[str, int, bool])
    cellwright.write(notebook)
    cellwright.write(notebook, Path("b.ipynb"), lock_timeout=1.5, break_hard_links=True)
    after, change = cellwright.edit(Path("a.ipynb"), {"op": "insert"}, create=True)
    assert_type(after, Notebook)
    assert_type(change, Change)
    assert_type(Notebook(), Notebook)
    assert_type(Notebook(b"{}", path="a.ipynb"), Notebook)


def merge(base: Notebook, current: Notebook, other: Notebook) -> Notebook:
    merged = cellwright.merge(base, current, other)
    assert_type(merged, Merged)
    assert_type(merged.conflicts, tuple[CellConflict, ...])
    for conflict in merged.conflicts:
        assert_type((conflict.handle, conflict.reason), tuple[str, str])
        assert_type(conflict.index, int | None)
        assert_type(conflict.base, str | None)
    return merged.raise_for_conflicts().notebook


def remember(revision: str, ids: Sequence[str | None], hashes: Sequence[str]) -> Snapshot:
    return Snapshot(revision, ids, hashes)


def fail(notebook: Notebook) -> str | None:
    try:
        notebook.apply({"op": "delete", "cell": "zz"})
    except CellNotFound as error:
        assert_type(error.near, tuple[str, ...])
        return error.hint
    except Conflict as error:
        assert_type(error.cells, tuple[CellConflict, ...])
    except InvalidEdit as error:
        assert_type(error.position, int | None)
    except CellwrightError as error:
        assert_type((error.code, error.message, error.retryable), tuple[str, str, bool])
    return None


def use_a_workspace() -> None:
    with cellwright.Workspace("notebooks", mode="agent", actor="python:me") as workspace:
        assert_type(workspace.list(), list[NotebookRow])
        assert_type(workspace.create("new.ipynb", kernel="python3"), EditAnswer)
        book = workspace.open(Path("a.ipynb"))
        assert_type(book, Book)
        assert_type(book.load(), Notebook)
        answer = book.read(stale=True)
        assert_type(answer, ReadAnswer)
        assert_type(answer.cells[0].id, str | None)
        edited = book.edit([Delete(0), {"op": "insert"}], base=answer.revision, run="changed")
        assert_type(edited, EditAnswer)
        assert_type(edited.executions, list[Execution] | None)
        assert_type(edited.to_json(), dict[str, Any])
        done = book.run(["a", 2], timeout=5, progress=print)
        assert_type(done, Executions)
        assert_type((done.run, done.ok, done[0]), tuple[str, bool, Execution])
        assert_type(done[0].error, CellError | None)
        assert_type(book.undo(), EditAnswer)
        assert_type(book.log(limit=1), list[Entry])
        assert_type(book.raw(), bytes)
        assert_type(workspace.eval(["1 + 1"], session="mine"), EvalAnswer)
        found = workspace.attach(done.run, wait=1)
        assert_type(found.answer, Executions | EvalAnswer | None)
        assert_type(workspace.watch("a.ipynb", progress=print, wait=1).events, int)


async def await_a_workspace() -> None:
    async with cellwright.AsyncWorkspace("notebooks") as workspace:
        book = workspace.open("a.ipynb")
        assert_type(book, AsyncBook)
        assert_type(await book.read(), ReadAnswer)
        assert_type(await book.edit([Delete(0)]), EditAnswer)
        assert_type(await book.run(), Executions)
        assert_type(await workspace.eval(["1"]), EvalAnswer)


def what_a_type_checker_refuses_of_verbs(book: Book) -> None:
    book.edit()  # type: ignore[call-arg]  # edits are needed
    book.read(True)  # type: ignore[call-arg]  # it is given by name
    book.read(nonsense=1)  # type: ignore[call-arg]  # no such parameter
    book.run(timeout="5")  # type: ignore[arg-type]  # seconds are a number
    book.edit([], run="all")  # type: ignore[arg-type]  # changed or stale


def what_a_type_checker_refuses(notebook: Notebook) -> None:
    Replace("ab12")  # type: ignore[call-arg]  # a source is needed
    Replace("ab12", 5)  # type: ignore[arg-type]  # a source is a string
    notebook.cells[0].source = "x"  # type: ignore[misc]  # cells are read-only
    notebook.apply(5)  # type: ignore[arg-type]  # no edit
    cellwright.no_such_name  # type: ignore[attr-defined]  # not part of the package
