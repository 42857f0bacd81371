"""What undo and redo take, and that bytes and outputs come back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright import Notebook, Replace
from cellwright.errors import ChangeNotFound, Conflict, NothingToUndo
from cellwright.journal import Journal
from tests.unit.journal.conftest import Desk, notebook_bytes

if TYPE_CHECKING:
    from pathlib import Path


def test_undo_takes_back_the_newest_change_across_a_restart(desk: Desk) -> None:
    original = desk.bytes()
    entry = desk.replace("c0", "a = 10")
    desk.journal.close()
    with Journal() as fresh:
        undo = Desk(desk.path, fresh).undo()
    assert desk.bytes() == original
    assert (undo.kind, undo.concerns) == ("undo", entry.id)
    assert desk.journal.get(desk.path, entry.id).undone_by == undo.id


def test_undo_goes_back_step_by_step_and_redo_forward(desk: Desk) -> None:
    states = [desk.bytes()]
    for i in range(4):
        desk.replace(i % 3, f"step {i}")
        states.append(desk.bytes())
    for i in (3, 2, 1, 0):
        desk.undo()
        assert desk.bytes() == states[i]
    with pytest.raises(NothingToUndo):
        desk.undo()
    for i in (1, 2):
        desk.redo()
        assert desk.bytes() == states[i]
    desk.undo()
    assert desk.bytes() == states[1]
    for i in (2, 3, 4):
        desk.redo()
        assert desk.bytes() == states[i]
    with pytest.raises(NothingToUndo):
        desk.redo()


def test_undo_takes_the_callers_own_change(desk: Desk) -> None:
    mine = desk.replace("c0", "mine", actor="cli:me")
    theirs = desk.replace("c1", "theirs", actor="mcp:other")
    target = desk.journal.undo_target
    assert target(desk.path, "cli:me").id == mine.id
    assert target(desk.path, "mcp:other").id == theirs.id
    assert target(desk.path).id == theirs.id
    assert target(desk.path, "cli:me", theirs.id[:6]).id == theirs.id
    with pytest.raises(NothingToUndo):
        target(desk.path, "cli:nobody")


def test_undo_keeps_what_others_did_elsewhere(desk: Desk) -> None:
    desk.replace("c0", "mine")
    desk.edit({"op": "insert", "at": 0, "source": "theirs", "id": "t"}, actor="mcp:other")
    desk.undo()
    assert [c.source for c in cellwright.read(desk.path).cells] == [
        *("theirs", "a = 1", "b = 2", "c = 3")
    ]


def test_undo_is_refused_when_the_cell_changed_since(desk: Desk) -> None:
    desk.replace("c0", "mine")
    desk.replace("c0", "theirs", actor="mcp:other")
    with pytest.raises(Conflict) as caught:
        desk.undo()
    assert [c.handle for c in caught.value.cells] == ["c0"]
    assert cellwright.read(desk.path).cell("c0").source == "theirs"


def test_undo_restores_outputs_and_does_not_mind_new_ones(desk: Desk) -> None:
    output = b'"outputs": [{"name": "stdout", "output_type": "stream", "text": ["42"]}]'
    desk.path.write_bytes(desk.bytes().replace(b'"outputs": []', output, 1))
    original = desk.bytes()
    desk.edit({"op": "replace", "cell": "c0", "source": "x", "outputs": "clear"})
    assert output not in desk.bytes()
    # The cell was run meanwhile.
    desk.outside(desk.bytes().replace(b'"outputs": []', output.replace(b"42", b"43"), 1))
    desk.undo()
    assert desk.bytes() == original


def test_a_change_made_outside_is_undone_only_by_its_id(desk: Desk) -> None:
    desk.replace("c0", "mine")
    before = desk.bytes()
    outside = desk.outside(before.replace(b"b = 2", b"b = 9"))
    assert outside is not None
    assert desk.journal.undo_target(desk.path).kind == "edit"
    desk.undo(outside.id)
    assert desk.bytes() == before


def test_a_run_is_no_step(desk: Desk) -> None:
    edit = desk.replace("c0", "x")
    run = desk.edit(
        {"op": "clear_outputs"}, {"op": "replace", "cell": 1, "source": "y"}, kind="run"
    )
    assert desk.journal.undo_target(desk.path, "cli:me").id == edit.id
    with pytest.raises(NothingToUndo):
        desk.journal.undo_target(desk.path, "cli:me", run.id)


def test_creating_and_restoring_are_steps(desk: Desk) -> None:
    desk.replace("c0", "x")
    restore = desk.edit({"op": "replace", "cell": "c0", "source": "a = 1"}, kind="restore")
    assert desk.journal.undo_target(desk.path, "cli:me").id == restore.id


def test_a_new_edit_ends_the_redo_chain_of_its_author_only(desk: Desk) -> None:
    undone = desk.replace("c0", "mine")
    desk.undo()
    desk.replace("c1", "theirs", actor="mcp:other")
    assert desk.journal.redo_target(desk.path, "cli:me").id == undone.id
    desk.replace("c2", "mine again")
    with pytest.raises(NothingToUndo):
        desk.journal.redo_target(desk.path, "cli:me")
    assert desk.journal.redo_target(desk.path, "cli:me", undone.id).id == undone.id


def test_redo_is_for_who_undid(desk: Desk) -> None:
    theirs = desk.replace("c0", "agent", actor="mcp:agent")
    desk.undo(theirs.id, actor="cli:me")
    with pytest.raises(NothingToUndo):
        desk.journal.redo_target(desk.path, "mcp:agent")
    assert desk.journal.redo_target(desk.path, "cli:me").id == theirs.id


def test_what_is_undone_is_not_undone_twice_nor_redone_unless_it_is(desk: Desk) -> None:
    entry = desk.replace("c0", "x")
    with pytest.raises(NothingToUndo):
        desk.journal.redo_target(desk.path, None, entry.id)
    desk.undo()
    with pytest.raises(NothingToUndo):
        desk.journal.undo_target(desk.path, None, entry.id)
    with pytest.raises(ChangeNotFound):
        desk.journal.undo_target(desk.path, None, "zzzz")
    with pytest.raises(NothingToUndo):
        desk.journal.undo_target("/never.ipynb")
    with pytest.raises(NothingToUndo):
        desk.journal.redo_target("/never.ipynb")


def test_undoing_an_undo_is_a_redo(desk: Desk) -> None:
    original = desk.bytes()
    entry = desk.replace("c0", "x")
    changed = desk.bytes()
    undo = desk.undo()
    again = desk.undo(undo.id)
    assert desk.bytes() == changed
    assert desk.journal.get(desk.path, entry.id).undone_by is None
    assert desk.journal.get(desk.path, undo.id).undone_by == again.id
    assert desk.journal.undo_target(desk.path, "cli:me").id == entry.id
    desk.redo(undo.id)
    assert desk.bytes() == original
    assert desk.journal.get(desk.path, entry.id).undone_by == undo.id


def test_undoing_a_redo_undoes_the_change(desk: Desk) -> None:
    entry = desk.replace("c0", "x")
    desk.undo()
    redo = desk.redo()
    last = desk.undo(redo.id)
    assert desk.journal.get(desk.path, entry.id).undone_by == last.id
    with pytest.raises(NothingToUndo):
        desk.journal.undo_target(desk.path, "cli:me")


# --- blame ---------------------------------------------------------------------------------------


def blamed(desk: Desk) -> list[tuple[str, str | None]]:
    return [(row.handle, row.change) for row in desk.journal.blame(desk.path)]


def test_blame_names_the_change_that_last_touched_each_source(desk: Desk) -> None:
    one = desk.replace("c0", "x", actor="mcp:a", label="why")
    two = desk.edit({"op": "insert", "at": 0, "source": "n", "id": "new"})
    three = desk.edit({"op": "set_type", "cell": "c2", "type": "markdown"})
    assert blamed(desk) == [("new", two.id), ("c0", one.id), ("c1", None), ("c2", three.id)]
    row = desk.journal.blame(desk.path)[1]
    assert row.to_json() == {
        "index": 1,
        "handle": "c0",
        "change": one.id,
        "kind": "edit",
        "actor": "mcp:a",
        "label": "why",
        "when": one.when,
    }


def test_blame_does_not_count_moves_metadata_and_outputs(desk: Desk) -> None:
    one = desk.replace("c0", "x")
    desk.edit({"op": "move", "cell": "c0", "at": 3}, {"op": "move", "cell": "c2", "at": 0})
    desk.edit({"op": "set_metadata", "cell": "c0", "metadata": {"a": 1}})
    desk.outside(desk.bytes().replace(b'"execution_count": null', b'"execution_count": 3'))
    desk.edit({"op": "delete", "cell": "c1"})
    assert blamed(desk) == [("c2", None), ("c0", one.id)]


def test_blame_knows_changes_made_outside_and_undos(desk: Desk) -> None:
    desk.replace("c0", "x")
    outside = desk.outside(notebook_bytes("x", "theirs", "c = 3"))
    undo = desk.undo()
    assert outside is not None
    assert blamed(desk) == [("c0", undo.id), ("c1", outside.id), ("c2", None)]


def test_blame_of_a_notebook_without_history_is_empty(desk: Desk) -> None:
    assert desk.journal.blame(desk.path) == []


def test_cells_without_ids_are_undone_alike_whether_all_of_them_are_read_or_not(
    tmp_path: Path,
) -> None:
    """Which of two equal cells a change was about is for a merge of the whole states to say."""
    cell = {"cell_type": "code", "metadata": {}, "source": []}
    cell |= {"outputs": [], "execution_count": None}
    shape = {"cells": [cell, cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 0}
    notebook = Notebook(json.dumps(shape).encode())
    path = tmp_path / "n.ipynb"
    with Journal(tmp_path / "j") as journal:
        changes = []
        for sources in (("", "\n"), ("\n", "")):
            edits = [Replace(place, source) for place, source in enumerate(sources)]
            entry = journal.begin(path, notebook.apply(edits), actor="test:me").finish()
            assert entry is not None
            changes.append(entry)
        found = []
        for here in (None, notebook.state):
            undone = Notebook.of_state(notebook.state)
            undone.apply(journal.change(changes[0], here).inverse())
            found.append(undone.to_bytes())
    assert found[0] == found[1]
