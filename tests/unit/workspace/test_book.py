"""The verbs on one notebook: read, select, edit, write, and its history."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright import Workspace
from cellwright.document import files
from cellwright.errors import CellwrightError, DurabilityUnconfirmed
from cellwright.journal import Recording
from cellwright.workspace.activity import ActorLog
from tests.property.checks import assert_only_cell_changed
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright import Book


@pytest.fixture
def book(workspace: Workspace) -> Book:
    return workspace.open("nb.ipynb")


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "nb.ipynb"


def kinds(book: Book) -> list[str]:
    return [entry.kind for entry in book.log()]


def replace(cell: str, source: str) -> list[dict[str, Any]]:
    return [{"op": "replace", "cell": cell, "source": source}]


def code_of(caught: pytest.ExceptionInfo[CellwrightError]) -> str:
    return caught.value.code


# --- Bases ---------------------------------------------------------------------------------------


def test_every_revision_given_out_by_a_read_can_be_a_base_later(book: Book) -> None:
    """References then mean the cells that the reader saw, and changes elsewhere stay."""
    revision = book.read().revision
    book.edit([{"op": "insert", "source": "new", "at": 0}])
    book.edit(replace("sum", "elsewhere"))
    book.edit([{"op": "replace", "cell": 1, "source": "mine"}], base=revision)
    sources = {cell.id: cell.source for cell in book.read().cells}
    assert sources["load"] == "mine"
    assert sources["sum"] == "elsewhere"


def test_a_selection_gives_out_a_revision_too(book: Book) -> None:
    revision = book.select("1-3").revision
    book.edit(replace("sum", "elsewhere"))
    assert book.edit(replace("load", "mine"), base=revision).changed


def test_a_cell_that_changed_since_the_base_is_a_conflict(book: Book, path: Path) -> None:
    revision = book.read().revision
    book.edit(replace("load", "theirs"))
    before = path.read_bytes()
    with pytest.raises(CellwrightError) as caught:
        book.edit(replace("load", "mine"), base=revision)
    assert code_of(caught) == "CONFLICT"
    assert path.read_bytes() == before
    assert kinds(book) == ["edit"]


def test_a_base_that_nobody_remembers_is_never_taken_for_the_file(book: Book, path: Path) -> None:
    for call in (
        lambda: book.edit(replace("load", "mine"), base="0123456789ab"),
        lambda: book.write("# %% [code] cell:0\nx", base="0123456789ab"),
    ):
        with pytest.raises(CellwrightError) as caught:
            call()
        assert code_of(caught) == "UNKNOWN_REVISION"
    assert path.read_bytes() == samples.SALES


def test_a_revision_of_another_notebook_is_no_base(workspace: Workspace, folder: Path) -> None:
    (folder / "other.ipynb").write_bytes(samples.SALES.replace(b"Sales", b"Other"))
    revision = workspace.open("other.ipynb").read().revision
    workspace.open("nb.ipynb").edit(replace("sum", "x"))
    with pytest.raises(CellwrightError) as caught:
        workspace.open("nb.ipynb").edit(replace("load", "mine"), base=revision)
    assert code_of(caught) == "UNKNOWN_REVISION"


def test_the_revision_of_the_file_as_it_is_needs_no_memory(book: Book) -> None:
    revision = cellwright.read(book.path).revision
    assert book.edit(replace("load", "mine"), base=revision).changed


# --- Editing -------------------------------------------------------------------------------------


def test_an_edit_changes_only_the_bytes_of_its_cell(book: Book, path: Path) -> None:
    book.edit(replace("sum", "total + 1"))
    assert_only_cell_changed(samples.SALES, path.read_bytes(), 2)


def test_a_list_of_edits_is_applied_as_a_whole_or_not_at_all(book: Book, path: Path) -> None:
    edits = [*replace("sum", "x"), {"op": "delete", "cell": "nothing"}]
    with pytest.raises(CellwrightError):
        book.edit(edits)
    assert path.read_bytes() == samples.SALES
    assert kinds(book) == []


def test_an_edit_that_changes_nothing_is_on_no_record(book: Book, path: Path) -> None:
    before = path.stat()
    answer = book.edit(replace("sum", "total"))
    assert (answer.changed, answer.change, answer.diff) == (False, None, "")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert kinds(book) == []


def test_a_dry_run_answers_with_the_diff_and_leaves_no_trace(
    book: Book, path: Path, folder: Path
) -> None:
    for answer in (
        book.edit(replace("sum", "x"), dry_run=True, backup=True),
        book.write("# %% [code]\nx", dry_run=True, backup=True),
    ):
        assert (answer.changed, answer.saved, answer.change) == (True, False, None)
        assert "+x\n" in answer.diff
        assert answer.backup is None
    assert path.read_bytes() == samples.SALES
    assert [item.name for item in folder.iterdir()] == ["nb.ipynb"]
    assert kinds(book) == []
    missing = book.workspace.open("missing.ipynb")
    assert missing.edit([{"op": "insert", "source": "x"}], create=True, dry_run=True).changed
    assert not (folder / "missing.ipynb").exists()


def test_a_missing_notebook_is_made_only_if_asked_for(workspace: Workspace, folder: Path) -> None:
    book = workspace.open("missing.ipynb")
    for call in (
        book.read,
        lambda: book.edit([{"op": "insert", "source": "x"}]),
        book.upgrade,
    ):
        with pytest.raises(CellwrightError) as caught:
            call()
        assert code_of(caught) == "NOTEBOOK_NOT_FOUND"
        assert "missing.ipynb" in str(caught.value)
    assert not (folder / "missing.ipynb").exists()
    book.edit([{"op": "insert", "source": "x"}], create=True)
    assert kinds(book) == ["create"]
    assert json.loads((folder / "missing.ipynb").read_bytes())["nbformat_minor"] == 5


def test_the_answer_says_what_happened_and_where(book: Book) -> None:
    answer = book.edit(replace("sum", "x"))
    assert answer.to_json().keys() == {
        *("path", "before", "revision", "cells", "diff", "change", "changed", "saved", "host"),
        *("backup", "others", "warnings"),
    }
    assert (answer.host, answer.saved, answer.warnings) == ("file", True, [])
    assert answer.revision == book.read().revision != answer.before


def test_an_edit_is_confirmed_only_after_it_is_in_the_file(
    book: Book, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the save fails, nothing is on record and the file is as it was."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(CellwrightError) as caught:
        book.edit(replace("sum", "x"))
    monkeypatch.undo()
    assert code_of(caught) == "NOT_SAVED"
    assert path.read_bytes() == samples.SALES
    assert kinds(book) == []


# --- Backups beside the file ---------------------------------------------------------------------


def test_a_backup_is_a_copy_of_the_file_as_it_was(book: Book, folder: Path) -> None:
    answer = book.edit(replace("sum", "x"), backup=True)
    assert answer.backup == str(folder / "nb.backup.ipynb")
    assert (folder / "nb.backup.ipynb").read_bytes() == samples.SALES


def test_a_backup_never_replaces_an_earlier_one(book: Book, folder: Path, path: Path) -> None:
    states = []
    for number in range(3):
        states.append(path.read_bytes())
        book.edit(replace("sum", str(number)), backup=True)
    names = ["nb.backup.ipynb", "nb.backup-2.ipynb", "nb.backup-3.ipynb"]
    assert [(folder / name).read_bytes() for name in names] == states


def test_no_backup_is_made_of_what_did_not_change_or_was_not_there(
    book: Book, workspace: Workspace, folder: Path
) -> None:
    assert book.edit(replace("sum", "total"), backup=True).backup is None
    new = workspace.open("new.ipynb").write("# %% [code]\nx", backup=True)
    assert new.backup is None
    assert sorted(item.name for item in folder.iterdir()) == ["nb.ipynb", "new.ipynb"]


def test_the_oldest_notebooks_can_be_backed_up_and_brought_back(
    workspace: Workspace, folder: Path
) -> None:
    cell = {"cell_type": "code", "input": ["1"], "outputs": [], "language": "python"}
    oldest = {
        "metadata": {},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": [{**cell, "collapsed": False, "metadata": {}}]}],
    }
    data = json.dumps(oldest).encode()
    (folder / "oldest.ipynb").write_bytes(data)
    book = workspace.open("oldest.ipynb")
    book.upgrade(backup=True)
    assert json.loads((folder / "oldest.ipynb").read_bytes())["nbformat_minor"] == 5
    assert (folder / "oldest.backup.ipynb").read_bytes() == data
    book.restore("first")
    assert (folder / "oldest.ipynb").read_bytes() == data


# --- History -------------------------------------------------------------------------------------


def test_undo_takes_the_callers_own_newest_change_with_its_outputs(
    folder: Path, path: Path
) -> None:
    with (
        Workspace(folder, actor="test:ada") as ada,
        Workspace(folder, actor="test:bob") as bob,
    ):
        clearing = [{**replace("load", "ada")[0], "outputs": "clear"}]
        first = ada.open("nb.ipynb").edit(clearing)
        second = bob.open("nb.ipynb").edit(replace("sum", "bob"))
        answer = ada.open("nb.ipynb").undo()
        assert answer.concerns == first.change
        sources = [cell.source for cell in ada.open("nb.ipynb").read().cells]
        assert sources[1:3] == ["total = 42\nprint(total)", "bob"]
        assert json.loads(path.read_bytes())["cells"][1] == json.loads(samples.SALES)["cells"][1]
        assert bob.open("nb.ipynb").undo().concerns == second.change
        assert path.read_bytes() == samples.SALES
        for workspace in (ada, bob):
            with pytest.raises(CellwrightError) as caught:
                workspace.open("nb.ipynb").undo()
            assert code_of(caught) == "NOTHING_TO_UNDO"
        redone = ada.open("nb.ipynb").redo()
        assert redone.concerns == first.change
        by_id = ada.open("nb.ipynb").redo(second.change)
        assert by_id.concerns == second.change


def test_undo_brings_outputs_back(book: Book, path: Path) -> None:
    book.edit([{"op": "replace", "cell": "load", "source": "x", "outputs": "clear"}])
    book.edit([{"op": "set_type", "cell": "plot", "type": "markdown"}])
    book.edit([{"op": "clear_outputs"}])
    for _ in range(3):
        book.undo()
    assert path.read_bytes() == samples.SALES


def test_undo_compares_sources_and_never_outputs(book: Book, path: Path) -> None:
    """Somebody ran the cell meanwhile: its new outputs go, as the whole before-image comes back."""
    book.edit(replace("sum", "total + 1"))
    data = path.read_bytes().replace(b'"42"', b'"43"')
    assert data != path.read_bytes()
    path.write_bytes(data)
    book.undo()
    assert book.read().cells[2].source == "total"
    assert json.loads(path.read_bytes())["cells"][2]["outputs"] == [samples.RESULT]


def test_undo_is_refused_when_the_cell_changed_since(book: Book, path: Path) -> None:
    change = book.edit(replace("sum", "one")).change
    book.edit(replace("sum", "two"))
    before = path.read_bytes()
    with pytest.raises(CellwrightError) as caught:
        book.undo(change)
    assert code_of(caught) == "CONFLICT"
    assert path.read_bytes() == before
    assert kinds(book) == ["edit", "edit"]


def test_undo_keeps_what_happened_elsewhere(book: Book) -> None:
    change = book.edit(replace("sum", "one")).change
    book.edit(replace("load", "two"))
    book.edit([{"op": "insert", "source": "three", "at": 0}])
    book.undo(change)
    sources = [cell.source for cell in book.read().cells]
    assert (sources[0], sources[2], sources[3]) == ("three", "two", "total")


def test_a_change_made_without_us_is_one_outside_entry(book: Book, path: Path) -> None:
    book.edit(replace("sum", "one"))
    outside = cellwright.Notebook(path.read_bytes())
    outside.apply([{"op": "delete", "cell": "notes"}, *replace("load", "two")])
    path.write_bytes(outside.to_bytes())
    entry = book.log()[0]
    assert entry.kind == "outside"
    assert {cell.handle for cell in entry.cells} == {"notes", "load"}
    assert kinds(book) == ["outside", "edit"]
    book.edit(replace("sum", "three"))
    assert kinds(book) == ["edit", "outside", "edit"]


def test_an_outside_change_is_undone_only_by_its_id(book: Book, path: Path) -> None:
    book.edit(replace("sum", "one"))
    before = path.read_bytes()
    path.write_bytes(before.replace(b"as is", b"as was"))
    change = book.log()[0].id
    assert book.undo(change).changed
    assert path.read_bytes() == before


def test_looking_at_the_log_while_somebody_edits_invents_nothing(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is history by the time it is compared: no outside change must come of it."""
    book.edit(replace("sum", "one"))
    real = files.read

    def read_and_lose(*words: Any, **options: Any) -> Any:
        notebook = real(*words, **options)
        monkeypatch.undo()
        with Workspace(actor="test:bob") as bob:
            bob.open(book.path).edit(replace("load", "bob"))
        return notebook

    for look in (book.log, book.blame, lambda: book.edit(replace("sum", "x"), dry_run=True)):
        monkeypatch.setattr(files, "read", read_and_lose)
        look()
    monkeypatch.undo()
    book.edit(replace("notes", "two"))
    assert "outside" not in kinds(book)


def test_an_edit_knows_the_file_it_read_last(book: Book, path: Path) -> None:
    """The same bytes written by somebody else are no change."""
    book.edit(replace("sum", "one"))
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    book.edit(replace("sum", "two"))
    assert kinds(book) == ["edit", "edit"]


def test_any_state_can_be_restored_to_the_byte(book: Book, path: Path) -> None:
    states = {"first": path.read_bytes()}
    for number in range(4):
        change = book.edit(replace("sum", f"number {number}")).change
        states[change] = path.read_bytes()
    assert [state.id for state in book.backups()] == [*reversed(states)]
    for name, data in states.items():
        book.restore(name)
        assert path.read_bytes() == data
    assert kinds(book)[0] == "restore"
    book.undo()
    assert path.read_bytes() != data


def test_restoring_is_a_change_like_any_other(book: Book, path: Path) -> None:
    book.edit(replace("sum", "one"))
    before = path.read_bytes()
    book.restore("first")
    assert path.read_bytes() == samples.SALES
    book.undo()
    assert path.read_bytes() == before


def test_restoring_what_is_there_changes_nothing(book: Book) -> None:
    change = book.edit(replace("sum", "one")).change
    assert not book.restore(change).changed
    assert kinds(book) == ["edit"]


def test_a_diff_is_between_any_two_states_by_name(book: Book, folder: Path) -> None:
    one = book.edit(replace("sum", "one")).change
    two = book.edit(replace("sum", "two")).change
    (folder / "other.ipynb").write_bytes(samples.SALES)

    def change(*names: str) -> list[str]:
        lines = book.diff(*names).diff.splitlines()[2:]
        return [line for line in lines if line[0] in "-+"]

    assert change() == ["-one", "+two"]
    assert change("first") == ["-total", "+two"]
    assert change("first", one) == ["-total", "+one"]
    assert change(f"{one}^", two) == ["-total", "+two"]
    assert change(f"{two}^", "now") == ["-one", "+two"]
    assert change("now", "first") == ["-two", "+total"]
    assert change("now", "other.ipynb") == ["-two", "+total"]
    assert change("now") == change("now", "now") == []
    for names in (["nothing"], ["0123"], ["first", "gone.ipynb"]):
        with pytest.raises(CellwrightError) as caught:
            change(*names)
        assert code_of(caught) == "CHANGE_NOT_FOUND"


def test_blame_names_the_change_that_last_touched_each_cell(folder: Path) -> None:
    with (
        Workspace(folder, actor="test:ada") as ada,
        Workspace(folder, actor="test:bob") as bob,
    ):
        one = ada.open("nb.ipynb").edit(replace("sum", "one")).change
        edits = [*replace("load", "two"), {"op": "move", "cell": "sum", "at": 0}]
        two = bob.open("nb.ipynb").edit(edits).change
        bob.open("nb.ipynb").edit([{"op": "clear_outputs"}])
        rows = ada.open("nb.ipynb").blame()
    assert [(row.handle, row.change, row.actor) for row in rows[:3]] == [
        ("sum", one, "test:ada"),
        ("intro", None, None),
        ("load", two, "test:bob"),
    ]
    assert len({frozenset(row.to_json()) for row in rows}) == 1


def test_blame_of_a_notebook_without_history_lists_every_cell(book: Book) -> None:
    rows = book.blame()
    assert [row.handle for row in rows] == [cell.id for cell in book.read().cells]
    assert {row.change for row in rows} == {None}


def test_the_history_of_a_file_that_is_gone_is_still_there(book: Book, path: Path) -> None:
    book.edit(replace("sum", "one"))
    path.unlink()
    assert kinds(book) == ["edit"]
    assert len(book.backups()) == 2
    path.write_bytes(b"{")
    assert kinds(book) == ["edit"]


@pytest.mark.parametrize(
    ("name", "code"), [("missing", "NOTEBOOK_NOT_FOUND"), ("dir", "UNREADABLE_FILE")]
)
def test_a_path_that_never_was_a_notebook_has_no_history(
    workspace: Workspace, folder: Path, name: str, code: str
) -> None:
    (folder / "dir").mkdir()
    book = workspace.open(name)
    for call in (
        book.log,
        book.backups,
        book.executions,
        book.diff,
        lambda: book.diff("first"),
        lambda: book.restore("0a1b2c3d"),
    ):
        with pytest.raises(CellwrightError) as caught:
            call()
        assert code_of(caught) == code


def test_the_history_of_a_notebook_that_is_gone_or_broken_can_be_seen(
    book: Book, path: Path
) -> None:
    content = path.read_bytes()
    path.write_bytes(b"{")
    assert book.log() == book.backups() == book.executions() == []
    path.write_bytes(content)
    change = book.edit(replace("sum", "x")).change
    path.unlink()
    assert [entry.id for entry in book.log()] == [change]
    assert book.backups()[-1].id == "first"
    with pytest.raises(CellwrightError) as caught:
        book.restore("0a1b2c3d")
    assert code_of(caught) == "CHANGE_NOT_FOUND"


def test_what_the_journal_could_not_do_is_said_once(book: Book) -> None:
    book.workspace.caller.journal.warnings.append("The disk is full")
    assert book.warnings() == ["The disk is full"]
    assert book.warnings() == []
    book.workspace.caller.journal.warnings.append("The disk is full")
    assert book.edit(replace("sum", "x")).warnings == ["The disk is full"]
    assert book.edit(replace("sum", "y")).warnings == []


# --- What a cell's file says about its last run --------------------------------------------------


def test_the_status_of_a_cell_is_what_its_outputs_tell(book: Book) -> None:
    assert [cell.status for cell in book.read().cells] == [
        *(None, "ok", "ok", None, "error", "never", None)
    ]


def test_a_broken_cell_is_named_with_its_problem(workspace: Workspace, folder: Path) -> None:
    data = samples.write(samples.code("good", "x"), samples.code("bad", "y"))
    value = json.loads(data)
    del value["cells"][1]["source"]
    (folder / "broken.ipynb").write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(CellwrightError) as caught:
        workspace.open("broken.ipynb").read()
    assert code_of(caught) == "INVALID_CELL"
    answer = workspace.open("broken.ipynb").edit(replace("good", "z"))
    assert answer.changed


# --- After the save ------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [(ActorLog, "note"), (Recording, "finish")])
def test_whatever_fails_after_the_save_the_error_names_the_bytes_that_are_there(
    book: Book, path: Path, monkeypatch: pytest.MonkeyPatch, broken: tuple[type, str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(*broken, fail)
        with pytest.raises(DurabilityUnconfirmed) as caught:
            book.edit(replace("load", "new"))
    now = cellwright.read(path)
    assert "new" in now.to_bytes().decode()
    assert caught.value.revision == now.revision
    assert now.revision in str(caught.value)


@pytest.fixture
def fail_folder_sync(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let what comes right after the rename of a save fail, from now on."""

    def use(error: BaseException) -> None:
        def fail(_folder: str) -> None:
            raise error

        monkeypatch.setattr("cellwright.document.disk.save._sync_folder", fail)

    return use


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError()])
def test_a_failure_right_after_the_rename_is_one_error_and_leaves_the_history_right(
    book: Book, path: Path, error: Exception, fail_folder_sync: Callable[[BaseException], None]
) -> None:
    fail_folder_sync(error)
    with pytest.raises(DurabilityUnconfirmed) as caught:
        book.edit(replace("load", "new"))
    assert caught.value.revision == cellwright.read(path).revision
    assert kinds(book) == ["edit"]

    notebook = cellwright.read(path)
    notebook.apply(replace("load", "newer"))
    with pytest.raises(DurabilityUnconfirmed) as caught:
        cellwright.write(notebook)
    assert caught.value.revision == cellwright.read(path).revision


def test_an_interruption_right_after_the_rename_leaves_the_history_right(
    book: Book, fail_folder_sync: Callable[[BaseException], None]
) -> None:
    fail_folder_sync(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        book.edit(replace("load", "new"))
    assert kinds(book) == ["edit"]  # and not a change by another program


def test_an_edit_whose_backup_may_be_lost_is_not_made_and_says_so(
    book: Book, path: Path, fail_folder_sync: Callable[[BaseException], None]
) -> None:
    before = path.read_bytes()
    fail_folder_sync(OSError(5, "Input/output error"))
    with pytest.raises(CellwrightError) as caught:
        book.edit(replace("load", "new"), backup=True)
    assert code_of(caught) == "NOT_SAVED"
    assert path.read_bytes() == before


def test_descriptors_that_cannot_be_closed_after_the_rename_are_no_other_error(
    folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, rename = os.close, os.rename
    renamed: list[str] = []

    def rename_and_note(old: str, new: str) -> None:
        rename(old, new)
        renamed.append(new)

    def close_and_fail(descriptor: int) -> None:
        close(descriptor)
        if renamed:
            raise OSError(5, "Input/output error")

    with Workspace(folder, cwd=str(folder)) as workspace:  # with a root, it holds the folder
        with monkeypatch.context() as patch:
            patch.setattr("os.rename", rename_and_note)
            patch.setattr("os.close", close_and_fail)
            with pytest.raises(DurabilityUnconfirmed) as caught:
                workspace.open("nb.ipynb").edit(replace("load", "new"))
        assert caught.value.revision == cellwright.read(path).revision
