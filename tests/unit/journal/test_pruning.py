"""The journal keeps within its limits, and keeps what it promises to keep."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING

import pytest

from cellwright import Notebook, Snapshot
from cellwright.errors import ChangeNotFound
from cellwright.journal import Journal, JournalLimits, pruning
from tests.unit.journal.conftest import assert_counts_are_right, notebook_bytes

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


def noise(size: int) -> str:
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


def edit(journal: Journal, path: str, times: int, size: int) -> list[bytes]:
    """Edit a notebook that exists nowhere else; its bytes before and after each change."""
    notebook = Notebook(notebook_bytes(f"# {path}", "x"))
    states = [notebook.to_bytes()]
    for _ in range(times):
        change = notebook.apply({"op": "replace", "cell": 1, "source": noise(size)})
        assert journal.begin(path, change, actor="cli:me").finish() is not None
        states.append(notebook.to_bytes())
    return states


def used(journal: Journal) -> int:
    def pages(connection: sqlite3.Connection) -> int:
        count, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((count - free) * size)

    return journal._recorder.database.run(pages, write=False)


def test_old_changes_go_and_the_newest_and_the_first_image_stay(tmp_path: Path) -> None:
    limits = JournalLimits(total=400_000, changes=5, step=200_000)
    with Journal(tmp_path / "j", limits=limits) as journal:
        states = edit(journal, "/a", 60, 30_000)
        assert used(journal) < 600_000
        log = journal.log("/a", limit=1000)
        assert 5 <= len(log) < 20
        assert [e.number for e in log] == list(range(60, 60 - len(log), -1))
        for entry in log:
            assert journal.state("/a", entry.id).layout.to_bytes() == states[entry.number]
            before = journal.state("/a", entry.id, "before").layout.to_bytes()
            assert before == states[entry.number - 1]
        assert journal.first("/a").layout.to_bytes() == states[0]
        assert [row.change for row in journal.blame("/a")] == [None, log[0].id]
        assert_counts_are_right(journal)
        assert journal.warnings == []


def test_what_was_not_touched_for_longest_goes_first(tmp_path: Path) -> None:
    limits = JournalLimits(total=500_000, changes=3, step=200_000)
    with Journal(tmp_path / "j", limits=limits) as journal:
        old = edit(journal, "/old", 8, 20_000)
        edit(journal, "/recent", 8, 20_000)
        edit(journal, "/now", 6, 20_000)
        assert [len(journal.log(path)) for path in ("/old", "/recent", "/now")] == [3, 8, 6]
        edit(journal, "/now", 6, 20_000)
        assert [len(journal.log(path)) for path in ("/old", "/recent")] == [3, 3]
        assert journal.first("/old").layout.to_bytes() == old[0]
        assert_counts_are_right(journal)


def test_when_nothing_else_is_left_other_notebooks_are_forgotten(tmp_path: Path) -> None:
    limits = JournalLimits(total=300_000, changes=3, step=100_000)
    with Journal(tmp_path / "j", limits=limits) as journal:
        for number in range(10):
            edit(journal, f"/{number}", 3, 30_000)
            journal.remember(f"/{number}", Snapshot("given", ["x"], ["0" * 12]))
        assert used(journal) < 500_000
        assert len(journal.log("/9")) == 3
        assert journal.log("/0") == []
        assert journal.recall("/0", "given") is None
        assert journal.recall("/9", "given") is not None
        with pytest.raises(ChangeNotFound):
            journal.first("/0")
        assert_counts_are_right(journal)


def test_the_notebook_in_use_keeps_its_newest_whatever_they_weigh(tmp_path: Path) -> None:
    limits = JournalLimits(total=10_000, changes=4, step=1_000_000)
    with Journal(tmp_path / "j", limits=limits) as journal:
        states = edit(journal, "/a", 12, 50_000)
        log = journal.log("/a")
        assert [e.number for e in log] == [12, 11, 10, 9]
        assert journal.state("/a", log[-1].id, "before").layout.to_bytes() == states[8]
        assert journal.first("/a").layout.to_bytes() == states[0]


def test_the_images_of_a_pruned_notebook_outlive_its_changes(tmp_path: Path) -> None:
    limits = JournalLimits(total=230_000, changes=2, step=60_000)
    with Journal(tmp_path / "j", limits=limits) as journal:
        states = edit(journal, "/a", 4, 30_000)
        edit(journal, "/b", 2, 30_000)
        assert journal.log("/a") == []
        assert journal.first("/a").layout.to_bytes() == states[0]
        # Its history goes on where it was.
        notebook = Notebook(states[-1])
        change = notebook.apply({"op": "delete", "cell": 0})
        entry = journal.begin("/a", change, actor="cli:me").finish()
        assert entry is not None
        assert (entry.number, entry.kind) == (5, "edit")


def test_undoing_goes_on_after_pruning_until_the_oldest_that_is_kept(tmp_path: Path) -> None:
    limits = JournalLimits(total=1, changes=3)
    with Journal(tmp_path / "j", limits=limits) as journal:
        notebook = Notebook(notebook_bytes("0"))
        for number in range(1, 7):
            change = notebook.apply({"op": "replace", "cell": 0, "source": f"{number}"})
            journal.begin("/a", change, actor="cli:me").finish()
        target = journal.undo_target("/a", "cli:me")
        notebook.apply(journal.change(target).inverse())
        assert notebook.cells[0].source == "5"


def test_the_file_shrinks_when_much_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "_FREE_PAGES", 50)
    path = tmp_path / "j"
    with Journal(path) as journal:
        edit(journal, "/a", 50, 100_000)
    assert path.stat().st_size > 5_000_000
    with Journal(path, limits=JournalLimits(total=1_000_000, changes=2)) as journal:
        edit(journal, "/b", 8, 100)
        assert used(journal) < 1_000_000
    assert path.stat().st_size < 1_300_000


def test_only_so_many_snapshots_of_a_notebook_are_remembered(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", limits=JournalLimits(snapshots=10)) as journal:
        for number in range(30):
            journal.remember("/a", Snapshot(f"r{number}", ["x"], [f"{number:012x}"]))
            journal.remember("/b", Snapshot("other", ["y"], ["0" * 12]))
            journal.remember("/a", Snapshot("r0", ["x"], ["0" * 12]))  # one that is in use
        kept = [n for n in range(30) if journal.recall("/a", f"r{n}") is not None]
        assert len(kept) == 10
        assert kept[1:] == list(range(21, 30))
        assert kept[0] == 0
        assert journal.recall("/b", "other") is not None
        edit(journal, "/c", 1, 10)  # collects what is left over
        assert_counts_are_right(journal)


def test_abandoned_changes_leave_no_bytes_behind(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        edit(journal, "/a", 1, 100)
        before = used(journal)
        notebook = Notebook(notebook_bytes("# /a", "x"))
        for _ in range(20):
            change = notebook.apply({"op": "replace", "cell": 1, "source": noise(100_000)})
            journal.begin("/b", change, actor="cli:me").abandon()
            notebook.state = change.before
        assert used(journal) - before > 2_000_000
        edit(journal, "/c", 2, 100)
        assert used(journal) - before < 50_000
        assert_counts_are_right(journal)
