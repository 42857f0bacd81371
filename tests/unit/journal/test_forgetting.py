"""What a user wants forgotten is gone: from the answers, and from the bytes of the file."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright.errors import ChangeNotFound
from cellwright.journal._database import JournalDatabase
from cellwright.journal.executions import ExecutionRecord
from tests.unit.journal.conftest import Desk, assert_counts_are_right, notebook_bytes

if TYPE_CHECKING:
    import sqlite3

    from cellwright.journal import Entry, Journal

MARK = "sesame-7f3a-open"


@pytest.fixture(autouse=True)
def _plain_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have SQLite leave what it deletes in the file, as most builds do; that of Debian does not."""
    set_up = JournalDatabase._set_up

    def set_up_plainly(self: JournalDatabase, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete = OFF")
        set_up(self, connection)

    monkeypatch.setattr(JournalDatabase, "_set_up", set_up_plainly)


def find_bytes(journal: Journal, text: str) -> list[str]:
    """The files of the journal in which a text is, compressed or not."""
    import zlib

    def unpack(connection: object) -> list[bytes]:
        rows = connection.execute("SELECT codec, data FROM pack").fetchall()  # type: ignore[attr-defined]
        return [zlib.decompress(data) if codec else bytes(data) for codec, data in rows]

    folder = Path(journal.path).parent
    names = [each.name for each in folder.iterdir() if text.encode() in each.read_bytes()]
    packs = journal._recorder.database.run(unpack, write=False)
    return names + ["pack" for data in packs if text.encode() in data]


def run_of(cell: str, source: str, began: float) -> ExecutionRecord:
    return ExecutionRecord(
        cell=cell,
        index=0,
        hash="h",
        source=source,
        kernel="k",
        status="ok",
        count=1,
        began=began,
        seconds=0.1,
        actor="cli:me",
    )


def test_a_forgotten_notebook_leaves_nothing_and_others_stay(desk: Desk, tmp_path: Path) -> None:
    journal = desk.journal
    # Too short to be compressed, so that it can be found in the file.
    desk.replace(0, f"k='{MARK}'")
    desk.replace(0, "k = 1")
    journal.remember(desk.path, cellwright.read(desk.path).snapshot())
    journal.record_execution(desk.path, run_of("c0", MARK, time.time()))
    other = Desk(tmp_path / "b.ipynb", journal)
    other.path.write_bytes(notebook_bytes("b = 1"))
    kept = other.replace(0, "b = 2")
    assert find_bytes(journal, MARK)

    found = journal.forget(desk.path)

    assert found == (1, 2, found.revisions, 1)
    assert journal.log(desk.path) == journal.backups(desk.path) == []
    assert journal.executions(desk.path) == []
    assert [entry.id for entry in journal.log(other.path)] == [kept.id]
    assert find_bytes(journal, MARK) == []
    assert_counts_are_right(journal)
    assert desk.replace(1, "b = 3").number == 1  # its history begins anew


def test_no_byte_stays_in_a_pack_that_a_copy_still_uses(desk: Desk, tmp_path: Path) -> None:
    journal = desk.journal
    desk.path.write_bytes(notebook_bytes(f"k='{MARK}'", "x = 1", "y = 2"))
    desk.replace(1, "x = 2")
    copy = Desk(tmp_path / "copy.ipynb", journal)
    copy.path.write_bytes(notebook_bytes("k=0", "x = 1", "y = 2"))
    copy.replace(1, "x = 2")
    before = copy.bytes()
    assert "pack" in find_bytes(journal, MARK)

    journal.forget(desk.path)

    assert find_bytes(journal, MARK) == []
    assert_counts_are_right(journal)
    newest = journal.log(copy.path)[0]
    assert journal.state(copy.path, newest.id).layout.to_bytes() == before
    assert b"x = 1" in journal.first(copy.path).layout.to_bytes()


def at(monkeypatch: pytest.MonkeyPatch, seconds: float, desk: Desk, source: str) -> Entry:
    with monkeypatch.context() as patch:
        patch.setattr("cellwright.journal._changes.time.time", lambda: seconds)
        return desk.replace(0, source)


def test_what_is_older_goes_and_what_is_newer_can_still_be_undone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = desk.journal
    journal.record_execution(desk.path, run_of("c0", "old", 1_000.0))
    journal.record_execution(desk.path, run_of("c0", "new", 3_000.0))
    at(monkeypatch, 1_000.0, desk, f"k='{MARK}'")
    at(monkeypatch, 1_500.0, desk, "k = 1")
    middle = desk.bytes()
    late = at(monkeypatch, 3_000.0, desk, "k = 2")

    found = journal.forget(before=2_000.0)

    assert found == (0, 2, 0, 1)
    assert [entry.id for entry in journal.log(desk.path)] == [late.id]
    assert [run.source for run in journal.executions(desk.path)] == ["new"]
    assert journal.first(desk.path).layout.to_bytes() == middle
    assert find_bytes(journal, MARK) == []
    assert_counts_are_right(journal)
    desk.undo()
    assert desk.bytes() == middle

    assert journal.forget(before=time.time() + 1000) == (1, 2, 0, 1)
    assert_counts_are_right(journal)
    with pytest.raises(ChangeNotFound):
        journal.first(desk.path)


def test_a_change_that_is_being_made_is_recorded_all_the_same(desk: Desk) -> None:
    journal = desk.journal
    desk.replace(0, "k = 1")
    notebook = cellwright.read(desk.path)
    recording = journal.begin(
        desk.path, notebook.apply({"op": "replace", "cell": 0, "source": "k = 2"}), actor="cli:me"
    )
    journal.forget(desk.path)

    entry = recording.finish()

    assert entry is not None
    assert [each.id for each in journal.log(desk.path)] == [entry.id]
    assert_counts_are_right(journal)


def test_all_of_a_root_and_a_dry_run(tmp_path: Path, journal: Journal) -> None:
    for name in ("in/a.ipynb", "in/b.ipynb", "inside.ipynb"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(notebook_bytes("a = 1"))
        Desk(path, journal).replace(0, "a = 2")
    root = str(tmp_path / "in")

    assert journal.forget(root=root, dry_run=True) == (2, 2, 0, 0)
    assert len(journal.log(tmp_path / "in" / "a.ipynb")) == 1
    assert journal.forget(root=root) == (2, 2, 0, 0)
    assert len(journal.log(tmp_path / "inside.ipynb")) == 1
    assert journal.log(tmp_path / "in" / "a.ipynb") == []


@pytest.mark.parametrize("name", ["broken-20260101-000000-1", "salvaged-20260101-000000-1"])
def test_all_includes_damaged_journals_that_were_moved_aside(desk: Desk, name: str) -> None:
    desk.replace(0, "k = 1")
    broken = Path(f"{desk.journal.path}.{name}")
    broken.write_text(json.dumps(MARK))

    desk.journal.forget(desk.path)
    assert broken.exists()  # it may have the history of other notebooks too
    desk.journal.forget()
    assert not broken.exists()


def test_all_includes_what_a_repair_that_died_left_and_spares_one_under_way(desk: Desk) -> None:
    desk.replace(0, "k = 1")
    left = Path(f"{desk.journal.path}.repair-{2**22 + 1}")  # no process has such a number
    going = Path(f"{desk.journal.path}.repair-{os.getpid()}")
    for file in (left, going):
        file.write_text(json.dumps(MARK))

    desk.journal.forget()
    assert not left.exists()
    assert going.exists()
