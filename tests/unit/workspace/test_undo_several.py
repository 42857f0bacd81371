"""Several changes taken back as one: one save, one entry, or nothing at all."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Notebook, Workspace
from cellwright.errors import ChangeNotFound, Conflict, NothingToUndo
from tests.unit.cli import samples

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.workspace.workspace import Book

CELLS = [
    samples.code("a", "a = 1", samples.STREAM, count=1),
    samples.code("b", "b = 2", samples.RESULT, count=2),
    samples.markdown("c", "# Text"),
]


@pytest.fixture
def path(folder: Path) -> Path:
    path = folder / "nb.ipynb"
    path.write_bytes(samples.write(*CELLS))
    return path


@pytest.fixture
def book(workspace: Workspace, path: Path) -> Book:
    return workspace.open(path.name)


def replace(cell: str, source: str, **more: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "cell": cell, "source": source, **more}]


def change(book: Book, edits: list[dict[str, Any]]) -> str:
    return str(book.edit(edits).change)


def three(book: Book) -> list[str]:
    """Two changes of one cell around one that adds, moves and deletes others."""
    moving: list[dict[str, Any]] = [
        {"op": "insert", "source": "new", "at": 0, "id": "n"},
        {"op": "move", "cell": "b", "at": 0},
        {"op": "delete", "cell": "c"},
    ]
    return [
        change(book, replace("a", "a = 10", outputs="clear")),
        change(book, moving),
        change(book, replace("a", "a = 100")),
    ]


def test_they_are_gone_in_one_save_and_one_entry_with_outputs(
    book: Book, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    ids = three(book)
    saves: list[None] = []
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda *names, **how: saves.append(rename(*names, **how)))
    replaced = os.replace
    monkeypatch.setattr(os, "replace", lambda *names, **how: saves.append(replaced(*names, **how)))
    answer = book.undo(ids)
    monkeypatch.undo()

    assert path.read_bytes() == before
    assert len(saves) == 1
    entry, *older = book.log()
    assert (entry.id, entry.kind) == (answer.change, "undo")
    assert entry.concerns == answer.concerns == " ".join(reversed(ids))
    assert [each.undone_by for each in older] == [answer.change] * 3
    with pytest.raises(NothingToUndo):
        book.undo(ids)
    with pytest.raises(NothingToUndo):
        book.undo()


def test_the_entry_tells_what_became_of_each_cell(book: Book) -> None:
    answer = book.undo(three(book))
    told = {(cell.kind, cell.handle) for cell in answer.cells}
    assert {("deleted", "n"), ("inserted", "c"), ("edited", "a")} <= told
    assert "-a = 100" in answer.diff
    assert "+a = 1" in answer.diff
    assert [row.change for row in book.blame()].count(answer.change) == 2  # a and c


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 1, 0, 2, 2)])
def test_whatever_the_order_in_which_they_are_named(
    order: tuple[int, ...], book: Book, path: Path
) -> None:
    before = path.read_bytes()
    ids = three(book)
    book.undo([ids[place] for place in order])
    assert path.read_bytes() == before


def test_only_those_that_are_named(book: Book) -> None:
    one, _, three_ = (
        change(book, replace("a", "a = 10")),
        change(book, replace("b", "b = 20")),
        change(book, replace("c", "# More")),
    )
    book.undo((one, three_))
    assert [cell.source for cell in book.read().cells] == ["a = 1", "b = 20", "# Text"]


def test_one_conflict_and_none_is_taken_back(book: Book, path: Path) -> None:
    ids = [change(book, replace("a", "a = 10")), change(book, replace("b", "b = 20"))]
    with Workspace(path.parent, actor="test:bob") as other:
        theirs = other.open("nb.ipynb").edit(replace("a", "bob")).change
        now, known = path.read_bytes(), len(book.log())
        with pytest.raises(Conflict) as caught:
            book.undo(ids)
        assert [cell.handle for cell in caught.value.cells] == ["a"]
        assert path.read_bytes() == now
        assert len(book.log()) == known
        assert all(entry.undone_by is None for entry in book.log())
        other.open("nb.ipynb").undo(theirs)
    book.undo(ids)
    assert json.loads(path.read_bytes())["cells"] == json.loads(samples.write(*CELLS))["cells"]


def test_what_was_taken_back_before_is_passed_over(book: Book, path: Path) -> None:
    before = path.read_bytes()
    ids = three(book)
    newest = book.undo().change
    answer = book.undo(ids)
    assert answer.concerns == f"{ids[1]} {ids[0]}"
    assert path.read_bytes() == before
    undone = {entry.id: entry.undone_by for entry in book.log()}
    assert [undone[each] for each in ids] == [answer.change, answer.change, newest]


def test_a_wrong_name_takes_nothing_back(book: Book, path: Path) -> None:
    ids = three(book)
    now = path.read_bytes()
    wrong: Any
    for wrong in ("ffffffff", "", 7, None, ["x"]):
        with pytest.raises(ChangeNotFound):
            book.undo([*ids, wrong])
    with pytest.raises(NothingToUndo):
        book.undo([])
    assert path.read_bytes() == now


def test_a_dry_run_only_shows_it(book: Book, path: Path) -> None:
    ids = three(book)
    now = path.read_bytes()
    answer = book.undo(ids, dry_run=True)
    assert answer.changed
    assert answer.change is None
    assert path.read_bytes() == now
    assert all(entry.undone_by is None for entry in book.log())


def test_they_are_made_again_one_by_one_the_oldest_first(book: Book, path: Path) -> None:
    states = [path.read_bytes()]
    ids = []
    for source in ("a = 10", "a = 100", "a = 1000"):
        ids.append(change(book, replace("a", source)))
        states.append(path.read_bytes())
    book.undo(ids)
    for name, state in zip(ids, states[1:], strict=True):
        assert book.redo().concerns == name
        assert path.read_bytes() == state
    with pytest.raises(NothingToUndo):
        book.redo()


def test_taking_back_the_taking_back_makes_all_of_them_hold_again(book: Book, path: Path) -> None:
    before = path.read_bytes()
    ids = three(book)
    after = path.read_bytes()
    first = book.undo(ids).change
    second = book.undo(first).change
    assert path.read_bytes() == after
    undone = {entry.id: entry.undone_by for entry in book.log()}
    assert [undone[each] for each in ids] == [None] * 3
    third = book.undo(second).change
    assert path.read_bytes() == before
    undone = {entry.id: entry.undone_by for entry in book.log()}
    assert [undone[each] for each in (*ids, first, second, third)] == [first] * 3 + [
        None,
        third,
        None,
    ]


def test_two_changes_as_one_say_where_every_cell_came_from() -> None:
    notebook = Notebook(samples.write(*CELLS))
    whole = notebook.state
    first = notebook.apply(
        [{"op": "move", "cell": "c", "at": 0}, {"op": "insert", "source": "x", "at": 1}]
    )
    second = notebook.apply([{"op": "delete", "cell": "a"}, {"op": "move", "cell": "b", "at": 0}])
    both = first.then(second)
    assert (both.before, both.after) == (whole, notebook.state)
    assert list(both.origins) == [1, 2, None]
    assert len(both.edits) == 4
    again = Notebook.of_state(both.after)
    again.apply(both.inverse())
    assert again.to_bytes() == whole.to_bytes()


def test_undo_says_whose_newest_change_stays(folder: Path) -> None:
    with (
        Workspace(folder, actor="cli:ada") as ada,
        Workspace(folder, actor="chat:ada", hub=ada.caller.hub) as chat,
    ):
        mine = ada.open("nb.ipynb").edit([{"op": "replace", "cell": "load", "source": "a = 1"}])
        theirs = chat.open("nb.ipynb").edit([{"op": "insert", "source": "b = 1"}])
        undone = ada.open("nb.ipynb").undo(dry_run=True)
        warning = (
            f"The newest change, {theirs.change}, is by chat:ada and stays;"
            f" your own newest one was {mine.change}"
        )
        assert undone.warnings == [warning]
        assert chat.open("nb.ipynb").undo().warnings == []  # now it is as it seems
        assert ada.open("nb.ipynb").undo().warnings == []
        ada.open("nb.ipynb").edit([{"op": "insert", "source": "c = 1"}])
        bob = Workspace(folder, actor="mcp:bob", hub=ada.caller.hub)
        with pytest.raises(NothingToUndo, match=r"the newest change, \w+, was made by cli:ada"):
            bob.open("nb.ipynb").undo()
