"""What is recorded, and what is told of it."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright import Notebook
from cellwright.config.directories import state_directory
from cellwright.errors import ChangeNotFound
from cellwright.journal import Journal, signature
from tests.unit.journal.conftest import Desk, notebook_bytes

if TYPE_CHECKING:
    from pathlib import Path


def test_an_edit_is_kept_with_who_when_why_and_what(desk: Desk) -> None:
    before = cellwright.read(desk.path).revision
    entry = desk.replace("c1", "b = 20", actor="mcp:claude", label="bigger")
    assert desk.journal.log(desk.path) == [entry]
    assert entry.to_json() == {
        "id": entry.id,
        "number": 1,
        "kind": "edit",
        "actor": "mcp:claude",
        "label": "bigger",
        "when": entry.when,
        "before": before,
        "after": cellwright.read(desk.path).revision,
        "cells": [{"kind": "edited", "handle": "c1", "type": "code", "before": 1, "after": 1}],
        "undone_by": None,
        "concerns": None,
    }
    assert entry.edits == ({"op": "replace", "cell": "c1", "source": "b = 20"},)
    assert len(entry.id) == 8
    assert int(entry.id, 16) >= 0
    assert entry.when.endswith("Z")
    assert abs(time.time() - _seconds(entry.when)) < 60


def _seconds(when: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(when).timestamp()


def test_the_log_has_the_newest_first_and_goes_on_below_a_number(desk: Desk) -> None:
    entries = [desk.replace(0, f"a = {i}") for i in range(10, 17)]
    numbers = [entry.number for entry in desk.journal.log(desk.path)]
    assert numbers == [7, 6, 5, 4, 3, 2, 1]
    page = desk.journal.log(desk.path, limit=3)
    assert page == entries[:3:-1]
    assert [e.number for e in desk.journal.log(desk.path, limit=3, before=5)] == [4, 3, 2]
    assert desk.journal.log(desk.path.with_name("never seen.ipynb")) == []


def test_the_order_is_that_of_recording_whatever_the_clock_says(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(2_000_000_000, 0, -1_000_000))
    monkeypatch.setattr(time, "time", lambda: next(clock))
    desk.replace(0, "1")
    desk.replace(0, "2")
    desk.replace(0, "3")
    log = desk.journal.log(desk.path)
    assert [entry.number for entry in log] == [3, 2, 1]
    assert log[0].when < log[1].when
    assert desk.journal.undo_target(desk.path, "cli:me").number == 3


def test_a_change_is_found_by_the_beginning_of_its_id(desk: Desk) -> None:
    entry = desk.replace(0, "x")
    assert desk.journal.get(desk.path, entry.id) == entry
    assert desk.journal.get(desk.path, entry.id[:5].upper()) == entry
    for unknown in ("", "zz", entry.id + "0"):
        with pytest.raises(ChangeNotFound):
            desk.journal.get(desk.path, unknown)
    with pytest.raises(ChangeNotFound):
        desk.journal.get("/another.ipynb", entry.id)


def test_a_beginning_that_several_ids_share_names_them(desk: Desk) -> None:
    ids = {desk.replace(0, f"{i}").id for i in range(40)}
    digit = next(d for d in "0123456789abcdef" if sum(i.startswith(d) for i in ids) > 1)
    with pytest.raises(ChangeNotFound) as caught:
        desk.journal.get(desk.path, digit)
    assert any(i in str(caught.value.hint) for i in ids)


def test_what_changed_nothing_is_no_entry(desk: Desk) -> None:
    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "replace", "cell": "c0", "source": "a = 1"})
    assert desk.journal.begin(desk.path, change, actor="cli:me").finish() is None
    assert desk.journal.log(desk.path) == []


def test_a_new_notebook_is_an_entry_even_if_it_is_empty(desk: Desk, tmp_path: Path) -> None:
    notebook = Notebook()
    path = tmp_path / "new.ipynb"
    entry = desk.journal.begin(path, notebook.apply([]), actor="cli:me", kind="create").finish()
    assert entry is not None
    assert (entry.kind, entry.number, entry.cells) == ("create", 1, ())


def test_every_kind_of_change_tells_what_happened_to_each_cell(desk: Desk) -> None:
    entry = desk.edit(
        {"op": "delete", "cell": "c0"},
        {"op": "move", "cell": "c2", "before": "c1"},
        {"op": "insert", "source": "# new", "type": "markdown", "id": "new"},
        {"op": "set_metadata", "cell": "c1", "metadata": {"tags": ["x"]}},
    )
    facts = {(c.kind, c.handle, c.type, c.before, c.after) for c in entry.cells}
    assert ("deleted", "c0", "code", 0, None) in facts
    assert ("inserted", "new", "markdown", None, 2) in facts
    assert {f[1] for f in facts} == {"c0", "c1", "c2", "new"}


# --- what was done without us --------------------------------------------------------------------


def test_a_change_made_outside_becomes_one_entry(desk: Desk) -> None:
    first = desk.replace("c0", "a = 10")
    notebook = Notebook(desk.bytes())
    notebook.apply({"op": "replace", "cell": "c2", "source": "theirs"})
    notebook.apply({"op": "insert", "source": "more", "id": "more"})
    entry = desk.outside(notebook.to_bytes())
    assert entry is not None
    assert (entry.kind, entry.actor, entry.number) == ("outside", "outside", 2)
    assert (entry.before, entry.after) == (first.after, notebook.revision)
    assert [(c.kind, c.handle) for c in entry.cells] == [("edited", "c2"), ("inserted", "more")]
    assert desk.look() is None
    assert [e.kind for e in desk.journal.log(desk.path)] == ["outside", "edit"]
    assert desk.journal.state(desk.path, entry.id).layout.to_bytes() == desk.bytes()


def test_outputs_that_changed_outside_are_an_entry_too(desk: Desk) -> None:
    desk.replace("c0", "a = 10")
    data = desk.bytes().replace(b'"execution_count": null', b'"execution_count": 7', 1)
    entry = desk.outside(data)
    assert entry is not None
    assert entry.before == entry.after
    assert [(c.kind, c.handle) for c in entry.cells] == [("updated", "c0")]


def test_a_file_that_only_looks_new_is_no_outside_change(desk: Desk) -> None:
    desk.replace("c0", "a = 10")
    assert desk.outside(desk.bytes()) is None  # same bytes, another time
    assert desk.look() is None


def test_an_unchanged_signature_costs_no_comparison(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cellwright.journal import _states

    desk.replace("c0", "a = 10")
    desk.journal.close()

    def keep(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(_states, "keep_state", keep)
    assert desk.look() is None
    desk.replace("c1", "b = 10")
    assert desk.journal.warnings == []


def test_what_was_never_edited_has_nothing_to_catch_up_with(desk: Desk) -> None:
    assert desk.look() is None
    desk.path.write_bytes(notebook_bytes("all", "new"))
    assert desk.look() is None
    assert desk.journal.log(desk.path) == []


def test_a_record_after_an_outside_change_puts_that_one_first(desk: Desk) -> None:
    desk.replace("c0", "a = 10")
    desk.path.write_bytes(notebook_bytes("x", "y"))
    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "delete", "cell": 0})
    desk.journal.begin(desk.path, change, actor="cli:me").finish()
    assert [e.kind for e in desk.journal.log(desk.path)] == ["edit", "outside", "edit"]


def test_a_reader_who_is_late_does_not_turn_history_round(desk: Desk) -> None:
    desk.replace("c0", "a = 10")
    late = cellwright.read(desk.path).state
    seen = signature(desk.path)
    desk.replace("c0", "a = 11")
    assert desk.journal.catch_up(desk.path, late, seen) is None
    assert [e.kind for e in desk.journal.log(desk.path)] == ["edit", "edit"]


# --- between the announcement and the save -------------------------------------------------------


def test_an_announced_change_is_not_in_the_log_until_it_is_saved(desk: Desk) -> None:
    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "replace", "cell": 0, "source": "x"})
    recording = desk.journal.begin(desk.path, change, actor="cli:me")
    assert desk.journal.log(desk.path) == []
    cellwright.write(notebook)
    entry = recording.finish(signature(desk.path))
    assert desk.journal.log(desk.path) == [entry]


def test_an_abandoned_change_leaves_nothing(desk: Desk) -> None:
    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "replace", "cell": 0, "source": "x" * 1000})
    desk.journal.begin(desk.path, change, actor="cli:me").abandon()
    assert desk.look() is None
    assert desk.journal.log(desk.path) == []
    assert desk.replace(0, "y").number == 1


def test_if_the_author_died_after_the_save_the_change_is_still_his(desk: Desk) -> None:
    desk.replace(1, "before")
    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "replace", "cell": 0, "source": "x"})
    desk.journal.begin(desk.path, change, actor="mcp:gone", label="last words")
    cellwright.write(notebook)
    with Journal() as other:
        assert other.catch_up(desk.path, cellwright.read(desk.path).state) is None
        newest = other.log(desk.path)[0]
        assert (newest.number, newest.actor, newest.label) == (2, "mcp:gone", "last words")
        assert other.undo_target(desk.path, "mcp:gone") == newest


def test_if_the_author_died_before_the_save_nothing_happened(desk: Desk) -> None:
    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "replace", "cell": 0, "source": "x"})
    desk.journal.begin(desk.path, change, actor="mcp:gone")
    assert desk.look() is None
    entry = desk.replace(1, "y")
    assert entry.number == 1
    assert desk.journal.log(desk.path) == [entry]
    with sqlite3.connect(desk.journal.path) as connection:
        assert connection.execute("SELECT count(*) FROM change").fetchone() == (1,)
    connection.close()


def test_a_recording_that_somebody_else_dropped_is_written_again(desk: Desk) -> None:
    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "replace", "cell": 0, "source": "x"})
    recording = desk.journal.begin(desk.path, change, actor="cli:me")
    with sqlite3.connect(desk.journal.path) as connection:
        connection.execute("DELETE FROM change")
    connection.close()
    cellwright.write(notebook)
    entry = recording.finish()
    assert entry is not None
    assert desk.journal.log(desk.path) == [entry]


# --- revisions that were given out ---------------------------------------------------------------


def test_a_revision_given_out_is_remembered_with_ids_and_hashes(desk: Desk) -> None:
    snapshot = cellwright.read(desk.path).snapshot()
    desk.journal.remember(desk.path, snapshot)
    with Journal() as other:
        found = other.recall(desk.path, snapshot.revision)
    assert found is not None
    assert found.revision == snapshot.revision
    assert list(found.ids) == ["c0", "c1", "c2"]
    assert list(found.hashes) == list(snapshot.hashes)


def test_a_remembered_revision_serves_as_a_base(desk: Desk) -> None:
    snapshot = cellwright.read(desk.path).snapshot()
    desk.journal.remember(desk.path, snapshot)
    desk.edit({"op": "insert", "at": 0, "source": "in between"})
    base = desk.journal.recall(desk.path, snapshot.revision)
    notebook = cellwright.read(desk.path)
    notebook.apply({"op": "replace", "cell": 1, "source": "mine"}, base=base)
    assert notebook.cell("c1").source == "mine"


def test_a_revision_of_another_notebook_is_not_recalled(desk: Desk) -> None:
    snapshot = cellwright.read(desk.path).snapshot()
    desk.journal.remember(desk.path, snapshot)
    assert desk.journal.recall("/another.ipynb", snapshot.revision) is None
    assert desk.journal.recall(desk.path, "0" * 12) is None
    assert desk.journal.recall(desk.path, "\ud800") is None


def test_revisions_before_and_after_a_change_are_recalled_from_its_states(desk: Desk) -> None:
    entry = desk.edit({"op": "insert", "at": 0, "source": "x", "id": "new"})
    for revision, ids in ((entry.before, ["c0", "c1", "c2"]), (entry.after, None)):
        found = desk.journal.recall(desk.path, revision)
        assert found is not None
        assert found.revision == revision
        assert list(found.ids) == (ids or ["new", "c0", "c1", "c2"])


def test_cells_without_an_id_and_strange_ids_are_remembered_as_they_are(desk: Desk) -> None:
    from cellwright import Snapshot

    ids = [None, "", "\ud800", 'a"\n', *["x"] * 600, None]
    hashes = [f"{n:012x}" for n in range(len(ids))]
    desk.journal.remember(desk.path, Snapshot("abc", ids, hashes))
    found = desk.journal.recall(desk.path, "abc")
    assert found is not None
    assert (list(found.ids), list(found.hashes)) == (ids, hashes)


def test_reading_the_same_revision_again_writes_nothing(desk: Desk) -> None:
    snapshot = cellwright.read(desk.path).snapshot()
    desk.journal.remember(desk.path, snapshot)
    with sqlite3.connect(desk.journal.path) as connection:
        before = connection.execute("PRAGMA data_version").fetchone()
        desk.journal.remember(desk.path, snapshot)
        assert connection.execute("PRAGMA data_version").fetchone() == before
    connection.close()


# --- states and backups --------------------------------------------------------------------------


def test_every_state_comes_back_to_the_byte(desk: Desk) -> None:
    states = [desk.bytes()]
    entries = []
    for edits in (
        [{"op": "replace", "cell": 0, "source": "x\ny"}],
        [{"op": "insert", "at": 1, "source": "# é\u2028", "type": "markdown"}],
        [{"op": "move", "cell": 0, "at": 3}, {"op": "delete", "cell": 3}],
        [{"op": "set_metadata", "metadata": {"kernelspec": {"name": "x", "display_name": "X"}}}],
        [{"op": "delete", "cell": 0}, {"op": "delete", "cell": 1}, {"op": "delete", "cell": 2}],
    ):
        entries.append(desk.edit(*edits))
        states.append(desk.bytes())
    with Journal() as other:
        assert other.first(desk.path).layout.to_bytes() == states[0]
        for entry, before, after in zip(entries, states, states[1:], strict=False):
            assert other.state(desk.path, entry.id, "before").layout.to_bytes() == before
            assert other.state(desk.path, entry.id).layout.to_bytes() == after
            rebuilt = other.change(entry)
            assert rebuilt.before.layout.to_bytes() == before
            assert rebuilt.after.layout.to_bytes() == after
            assert [repr(c) for c in rebuilt.cells] == [repr(c) for c in entry.cells]


def test_backups_are_all_states_and_the_one_before_us(desk: Desk) -> None:
    original = desk.bytes()
    first = desk.replace(0, "1")
    second = desk.replace(0, "2", label="two")
    backups = desk.journal.backups(desk.path)
    assert [backup.id for backup in backups] == [second.id, first.id, "first"]
    assert [backup.revision for backup in backups] == [second.after, first.after, first.before]
    assert backups[0].to_json()["label"] == "two"
    assert desk.journal.state(desk.path, "first").layout.to_bytes() == original
    assert desk.journal.backups("/never.ipynb") == []
    with pytest.raises(ChangeNotFound):
        desk.journal.first("/never.ipynb")


def test_a_notebook_too_old_to_be_edited_comes_back_after_an_upgrade(desk: Desk) -> None:
    old = (
        b'{"metadata": {"name": "x"}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells":'
        b' [{"cell_type": "code", "collapsed": false, "input": "x = 1", "language": "python",'
        b' "metadata": {}, "outputs": []}], "metadata": {}}]}'
    )
    desk.path.write_bytes(old)
    notebook = cellwright.read(desk.path)
    entry = desk.save(notebook, notebook.upgrade(), actor="cli:me")
    assert desk.journal.first(desk.path).old == old
    assert desk.journal.state(desk.path, entry.id).layout.to_bytes() == desk.bytes()
    change = desk.journal.change(entry)
    assert change.before.old == old
    assert change.after.layout.to_bytes() == desk.bytes()
    assert desk.look() is None


# --- places and names ----------------------------------------------------------------------------


def test_the_journal_is_private_and_in_the_state_directory(desk: Desk) -> None:
    desk.replace(0, "x")
    path = state_directory() / "journal.sqlite3"
    assert desk.journal.path == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for beside in path.parent.iterdir():
        assert stat.S_IMODE(beside.stat().st_mode) == 0o600


def test_a_journal_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite3"
    path.touch(0o644)
    path.chmod(0o644)
    with Journal(path) as journal:
        assert journal.log("/x.ipynb") == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_and_a_relative_path_are_the_same_notebook(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = desk.replace(0, "x")
    (tmp_path / "link.ipynb").symlink_to(desk.path)
    monkeypatch.chdir(tmp_path)
    assert desk.journal.log(tmp_path / "link.ipynb") == [entry]
    assert desk.journal.log("a.ipynb") == [entry]


@pytest.mark.parametrize("name", [b"new\nline.ipynb", b"\xff\xfe.ipynb", "é\u2028.ipynb".encode()])
def test_any_name_of_a_file_will_do(journal: Journal, tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(notebook_bytes("a"))
    desk = Desk(path, journal)
    entry = desk.replace(0, "b")
    assert journal.log(path) == [entry]
    assert desk.undo().number == 2
    journal.remember(path, cellwright.read(path).snapshot())
    assert journal.recall(path, cellwright.read(path).revision) is not None


@pytest.mark.parametrize("path", ["nul\0.ipynb", "\ud800.ipynb"])
def test_a_name_that_no_file_can_have_is_no_error(journal: Journal, path: str) -> None:
    assert journal.log(path) == []
    assert journal.recall(path, "x") is None
    journal.catch_up(path, Notebook().state, "s")


def test_texts_that_are_no_unicode_are_recorded(desk: Desk) -> None:
    entry = desk.edit(
        {"op": "insert", "source": "\ud800", "id": None}, actor="cli:\udcff", label="\ud83d"
    )
    assert entry.label == "\\ud83d"
    assert desk.journal.undo_target(desk.path, "cli:\udcff") == entry
    assert desk.journal.change(entry).after.layout.to_bytes() == desk.bytes()


def test_a_very_large_list_of_edits_is_not_kept_twice(desk: Desk) -> None:
    entry = desk.replace(0, "x" * 100_000)
    assert entry.edits == ()
    assert desk.journal.state(desk.path, entry.id).layout.to_bytes() == desk.bytes()


def test_a_closed_journal_opens_again(desk: Desk) -> None:
    desk.replace(0, "x")
    desk.journal.close()
    desk.journal.close()
    assert desk.replace(0, "y").number == 2


def test_it_tells_where_it_is_and_what_is_in_it(desk: Desk) -> None:
    desk.replace(0, "x")
    said = desk.journal.describe()
    assert said.startswith(desk.journal.path)
    assert "1 notebooks, 1 changes" in said


def test_what_the_file_held_is_safe_from_a_power_cut_before_it_is_replaced(desk: Desk) -> None:
    def level() -> int:
        return desk.journal._recorder.database.run(
            lambda connection: connection.execute("PRAGMA synchronous").fetchone()[0], write=False
        )

    notebook = cellwright.read(desk.path)
    change = notebook.apply({"op": "replace", "cell": 0, "source": "x"})
    recording = desk.journal.begin(desk.path, change, actor="cli:me")
    full, normal = 2, 1
    assert level() == full
    recording.finish()
    assert level() == normal  # what it says can be found out from the file
