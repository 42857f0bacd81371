"""Whatever is wrong with the journal, edits go on; questions get a named error."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright import Notebook
from cellwright.errors import JournalUnavailable
from cellwright.journal import Journal, _database, _recorder, _states
from tests.unit.journal.conftest import notebook_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook_bytes("a = 1", "b = 2"))
    return path


def use(journal: Journal, book: Path) -> None:
    """Do all that records, as an edit does; nothing may raise."""
    notebook = cellwright.read(book)
    journal.remember(book, notebook.snapshot())
    journal.catch_up(book, notebook.state)
    change = notebook.apply({"op": "insert", "source": "x"})
    recording = journal.begin(book, change, actor="cli:me")
    cellwright.write(notebook)
    recording.finish()
    change = notebook.apply({"op": "insert", "source": "y"})
    journal.begin(book, change, actor="cli:me").abandon()
    cellwright.write(notebook)
    journal.begin(book, change, actor="cli:me").finish()


def questions(journal: Journal, book: Path) -> list[Callable[[], object]]:
    return [
        lambda: journal.log(book),
        lambda: journal.get(book, "abcd"),
        lambda: journal.change("abcdabcd"),
        lambda: journal.recall(book, "abcdabcd"),
        lambda: journal.undo_target(book),
        lambda: journal.redo_target(book),
        lambda: journal.first(book),
        lambda: journal.state(book, "abcd"),
        lambda: journal.backups(book),
        lambda: journal.blame(book),
        journal.describe,
    ]


def assert_useless_but_harmless(journal: Journal, book: Path, word: str) -> None:
    cells = len(cellwright.read(book).cells)
    use(journal, book)
    assert len(cellwright.read(book).cells) == cells + 2
    assert len(journal.warnings) == 1
    assert word in journal.warnings[0]
    for ask in questions(journal, book):
        with pytest.raises(JournalUnavailable) as caught:
            ask()
        assert caught.value.code == "JOURNAL_UNAVAILABLE"
        assert word in str(caught.value)
    journal.warnings.clear()
    use(journal, book)
    assert len(journal.warnings) == 1  # it is said again to whoever has cleared the list


def test_a_folder_that_cannot_be_made(tmp_path: Path, book: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with Journal(tmp_path / "state" / "journal.sqlite3") as journal:
        assert_useless_but_harmless(journal, book, "Not a directory")


def test_a_folder_in_place_of_the_file(tmp_path: Path, book: Path) -> None:
    (tmp_path / "j").mkdir()
    with Journal(tmp_path / "j") as journal:
        assert_useless_but_harmless(journal, book, "open")


def test_no_home_to_put_it_in(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    import platformdirs

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(platformdirs, "user_state_path", lambda *_, **__: Path("~/state"))
    with Journal() as journal:
        assert_useless_but_harmless(journal, book, "home folder")


def test_a_journal_from_a_newer_version_is_left_alone(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(_database.MIGRATIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    with Journal(path) as journal:
        assert_useless_but_harmless(journal, book, "newer version")
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 7")
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    with Journal(path) as journal:
        assert_useless_but_harmless(journal, book, "another program")


def test_an_older_journal_is_brought_up_to_date(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
    newer = (*_database.MIGRATIONS, ("ALTER TABLE change ADD COLUMN mood TEXT",))
    monkeypatch.setattr(_database, "MIGRATIONS", newer)
    with Journal(path) as journal:
        assert [entry.number for entry in journal.log(book)] == [2, 1]
        use(journal, book)
        assert journal.warnings == []
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(newer),)
        assert connection.execute("SELECT mood FROM change LIMIT 1").fetchone() == (None,)
    connection.close()


def test_a_migration_that_fails_leaves_the_old_tables(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
    worse = (*_database.MIGRATIONS, ("CREATE TABLE fine (x)", "CREATE TABLE change (x)"))
    with monkeypatch.context() as patch:
        patch.setattr(_database, "MIGRATIONS", worse)
        with Journal(path) as journal:
            assert_useless_but_harmless(journal, book, "already exists")
    with Journal(path) as journal:
        assert len(journal.log(book)) == 2


# --- damage --------------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, whatever it says " * 100)


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):  # the first page has the header and the schema
        data[page * 4096 : page * 4096 + 200] = os.urandom(200)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [garbage, cut_short, overwritten])
def test_a_damaged_journal_is_moved_aside_once_and_begun_anew(
    tmp_path: Path, book: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
    damage(path)
    broken = path.read_bytes()
    with Journal(path) as journal:
        use(journal, book)
        assert len(journal.warnings) == 1
        (aside,) = tmp_path.glob("j.broken-*[0-9]")
        assert str(aside) in journal.warnings[0]
        assert aside.read_bytes() == broken
        assert journal.log(book)[0].kind == "edit"
        journal.warnings.clear()
        use(journal, book)
        assert journal.warnings == []
    assert len(list(tmp_path.glob("j.broken-*[0-9]"))) == 1


def test_a_question_to_a_damaged_journal_says_where_it_is_now(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    garbage(path)
    with Journal(path) as journal:
        with pytest.raises(JournalUnavailable) as caught:
            journal.log(book)
        (aside,) = tmp_path.glob("j.broken-*")
        assert str(aside) in str(caught.value)
        assert journal.log(book) == []


def test_rows_that_contradict_each_other_cost_only_themselves(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    other = book.with_name("b.ipynb")
    other.write_bytes(book.read_bytes())
    with Journal(path) as journal:
        use(journal, book)
        use(journal, other)
    change_rows(path, "DELETE FROM state WHERE notebook = 1")
    with Journal(path) as journal:
        assert any("without their states" in problem for problem in journal.find_problems())
        use(journal, book)
        assert len(journal.warnings) == 1
        assert "damaged" in journal.warnings[0]
        assert [entry.number for entry in journal.log(book)] == [4, 3, 2, 1]
        assert journal.undo_target(book).number == 4
        assert len(journal.log(other)) == 2
        assert journal.first(other).layout.to_bytes() == notebook_bytes("a = 1", "b = 2")
    assert not list(tmp_path.glob("j.broken-*"))


def change_rows(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()


@pytest.mark.parametrize("details", ["x'00'", "'text'", "zeroblob(0)", "17"])
def test_the_log_goes_on_over_a_row_that_cannot_be_decoded(
    tmp_path: Path, book: Path, details: str
) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
    change_rows(path, f"UPDATE change SET details = {details} WHERE number = 1")  # noqa: S608
    with Journal(path) as journal:
        assert [len(entry.cells) for entry in journal.log(book)] == [1, 0]
        with pytest.raises(JournalUnavailable):
            journal.blame(book)


@pytest.mark.parametrize("version", [0, -1, -2147483648])
def test_a_damaged_version_makes_no_new_tables(tmp_path: Path, book: Path, version: int) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
    change_rows(path, f"PRAGMA user_version = {version}")
    with Journal(path) as journal:
        use(journal, book)
        assert journal.warnings == []
        assert len(journal.log(book)) == 4


def fail_once(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Exception]:
    """Let the next question fail, as a read of the disk may; returns what is left to raise."""
    left = [error]

    def find(connection: sqlite3.Connection, path: bytes) -> object:
        if left:
            raise left.pop()
        return real(connection, path)

    real = _recorder.find_notebook
    monkeypatch.setattr(_recorder, "find_notebook", find)
    return left


def sqlite_error(code: int) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize("code", [10, 11, 14, 26, 266, 779])
def test_one_failed_read_is_read_again(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with Journal(tmp_path / "j") as journal:
        use(journal, book)
        left = fail_once(monkeypatch, sqlite_error(code))
        assert len(journal.log(book)) == 2
        assert not left
        fail_once(monkeypatch, sqlite_error(code))
        use(journal, book)
        assert journal.warnings == []
    assert not list(tmp_path.glob("j.broken-*"))


def test_a_journal_that_is_sound_is_never_moved(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often SQLite says that it cannot read, if its own check finds nothing."""

    def fail(*_: object) -> None:
        raise sqlite_error(11)

    with Journal(tmp_path / "j") as journal:
        use(journal, book)
        with monkeypatch.context() as patch:
            patch.setattr(_recorder, "find_notebook", fail)
            with pytest.raises(JournalUnavailable):
                journal.log(book)
        assert len(journal.log(book)) == 2
    assert not list(tmp_path.glob("j.broken-*"))


def test_a_full_disk_is_called_that(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sqlite_error(10)

    facts = list(os.statvfs(tmp_path))
    facts[4] = 0
    with Journal(tmp_path / "j") as journal:
        use(journal, book)
        monkeypatch.setattr(_recorder, "find_notebook", fail)
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(facts))
        with pytest.raises(JournalUnavailable, match="disk is full"):
            journal.log(book)


def test_a_change_that_waited_for_a_replaced_journal_lands_in_the_new_one(
    tmp_path: Path, book: Path
) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
        database = journal._recorder.database
        looks = iter([True, False])
        database._has_current_file = lambda: next(looks, True)  # type: ignore[method-assign]
        generation = database.generation
        notebook = cellwright.read(book)
        change = notebook.apply({"op": "insert", "source": "z"})
        assert journal.begin(book, change, actor="cli:me").finish() is not None
        assert database.generation == generation + 1


# --- repair --------------------------------------------------------------------------------------


def test_repair_brings_the_history_back_before_the_new_one(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    other = book.with_name("b.ipynb")
    other.write_bytes(notebook_bytes("o = 1"))
    with Journal(path) as journal:
        use(journal, book)
        use(journal, other)
        before = journal.log(book)
        states = [journal.state(book, entry.id).layout.to_bytes() for entry in before]
    path.rename(tmp_path / "j.broken-20200101-000000-1")
    with Journal(path) as journal, Journal(path) as neighbour:
        use(journal, book)
        assert len(neighbour.log(book)) == 2
        after = journal.log(book)
        assert any("put aside" in problem for problem in journal.find_problems())
        found = journal.repair()
        assert (found.changes, found.lost) == (4, 0)
        assert [entry.id for entry in journal.log(book)] == [e.id for e in (*after, *before)]
        assert [entry.number for entry in neighbour.log(book)] == [4, 3, 2, 1]
        assert [journal.state(book, e.id).layout.to_bytes() for e in before] == states
        assert journal.first(book).layout.to_bytes() == notebook_bytes("a = 1", "b = 2")
        assert len(journal.log(other)) == 2
        assert journal.find_problems() == []
        use(neighbour, book)
        assert [entry.number for entry in journal.log(book)] == [6, 5, 4, 3, 2, 1]
        assert journal.undo_target(book).number == 6
        assert journal.blame(book)
        assert journal.repair().sources == ()
        assert len(journal.log(book)) == 6
    assert {file.name for file in tmp_path.glob("j*")} == {"j"}


def test_repair_drops_only_what_cannot_be_read(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
        use(journal, book)
        handles = [entry.id for entry in journal.log(book)]
    change_rows(path, "DELETE FROM state WHERE id = (SELECT max(id) FROM state)")
    with Journal(path) as journal:
        found = journal.repair()
        assert found.lost
        assert [entry.id for entry in journal.log(book)] == handles[1:]
        assert journal.find_problems() == []
        use(journal, book)
        assert journal.warnings == []
    assert len(list(tmp_path.glob("j.salvaged-*[0-9]"))) == 1


@pytest.mark.parametrize(
    ("what", "statement"),
    [
        ("blocks of bytes", "UPDATE pack SET data = zeroblob(length(data))"),
        ("changes", "UPDATE change SET details = x'00ff' WHERE id = (SELECT max(id) FROM change)"),
        ("changes", "UPDATE change SET origins = '{' WHERE id = (SELECT max(id) FROM change)"),
        ("snapshots", "UPDATE snapshot SET stretches = x'ffffffff'"),
    ],
)
def test_rows_that_sqlite_finds_in_order_and_no_one_can_read_are_named_and_repaired(
    tmp_path: Path, book: Path, what: str, statement: str
) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
        assert journal.find_problems() == []
    change_rows(path, statement)
    with Journal(path) as journal:
        assert any(what in problem for problem in journal.find_problems())
        assert journal.repair().lost
        assert journal.find_problems() == []
        if what != "blocks of bytes":
            assert len(journal.log(book)) == 2
        use(journal, book)
        assert journal.warnings == []


def test_who_only_looks_does_not_wait_for_who_writes_much(tmp_path: Path, book: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        use(journal, book)
        snapshot = cellwright.read(book).snapshot()
        journal.remember(book, snapshot)
        looked: list[str] = []
        with journal._recorder.database._lock:  # as one that writes has it
            looking = threading.Thread(
                target=lambda: (journal.remember(book, snapshot), looked.append("done"))
            )
            looking.start()
            looking.join(30)
            assert looked == ["done"]


def test_repair_deletes_no_history_that_it_could_not_bring_back(tmp_path: Path, book: Path) -> None:
    """Any page of the journal in use may be empty: then its last transaction cannot even end."""
    path = tmp_path / "j"
    with Journal(path) as journal:
        for _ in range(5):
            use(journal, book)
        handles = [entry.id for entry in journal.log(book)]
    change_rows(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    sound = path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'notebook'"
        notebooks = connection.execute(sql).fetchone()[0]
    for page in range(1, len(sound) // size):
        for left in tmp_path.glob("j*"):
            left.unlink()
        start = page * size
        path.write_bytes(sound[:start] + bytes(size) + sound[start + size :])
        with Journal(path) as journal:
            problems = journal.find_problems()
            found = journal.repair()
            kept = [entry.id for entry in journal.log(book)]
            assert journal.find_problems() == []
        if problems or found.lost:
            assert found.sources, (page, problems)
        if kept != handles:
            assert found.lost, (page, kept)
            (aside,) = tmp_path.glob("j.salvaged-*[0-9]")
            assert aside.stat().st_size >= len(sound) - size
        if page + 1 == notebooks:
            assert kept == handles, "the index of their paths still names the notebooks"


@pytest.mark.parametrize("damage", [garbage, cut_short, overwritten])
def test_repair_survives_any_damage(
    tmp_path: Path, book: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        for _ in range(5):
            use(journal, book)
    damage(path)
    path.rename(tmp_path / "j.broken-20200101-000000-1")
    with Journal(path) as journal:
        use(journal, book)
        journal.repair()
        assert len(journal.log(book)) >= 2
        assert journal.find_problems() == []
        use(journal, book)
        assert journal.warnings == []


def test_a_piece_that_is_not_what_it_was_is_never_given_back(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE pack SET codec = 0, data = zeroblob(length(data))")
        connection.close()
        with pytest.raises(JournalUnavailable):
            journal.first(book)
        assert len(journal.log(book)) == 2  # the rest still answers


def test_a_journal_deleted_while_in_use_is_begun_anew(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        use(journal, book)
        for file in tmp_path.glob("j*"):
            file.unlink()
        use(journal, book)
        assert journal.warnings == []
        assert [entry.number for entry in journal.log(book)] == [2, 1]


def test_what_was_known_of_a_journal_is_forgotten_with_it(tmp_path: Path, book: Path) -> None:
    """The same numbers mean other states in another journal."""
    path, other = tmp_path / "j", tmp_path / "other"
    with Journal(path) as journal:
        notebook = cellwright.read(book)
        journal.begin(
            book, notebook.apply({"op": "insert", "source": "1"}), actor="cli:me"
        ).finish()
        stranger = Notebook(notebook_bytes("something", "else"))
        with Journal(other) as second:
            change = stranger.apply({"op": "insert", "source": "2"})
            second.begin(book, change, actor="cli:other").finish()
        for file in tmp_path.glob("j-*"):
            file.unlink()
        other.replace(path)
        entry = journal.begin(
            book, notebook.apply({"op": "delete", "cell": 0}), actor="cli:me"
        ).finish()
        assert entry is not None
        assert journal.change(entry).after.layout.to_bytes() == notebook.to_bytes()
        assert [e.kind for e in journal.log(book)] == ["edit", "outside", "edit"]


def test_what_another_process_recorded_is_noticed(tmp_path: Path, book: Path) -> None:
    with Journal(tmp_path / "j") as one, Journal(tmp_path / "j") as two:
        notebook = cellwright.read(book)
        one.begin(book, notebook.apply({"op": "insert", "source": "1"}), actor="cli:one").finish()
        other = Notebook(notebook.to_bytes())
        two.begin(book, other.apply({"op": "delete", "cell": 0}), actor="cli:two").finish()
        entry = one.begin(
            book, notebook.apply({"op": "delete", "cell": 1}), actor="cli:one"
        ).finish()
        assert entry is not None
        assert [e.actor for e in one.log(book)] == ["cli:one", "outside", "cli:two", "cli:one"]
        assert one.change(entry).before.layout.to_bytes() != other.to_bytes()
        assert one.change(entry).after.layout.to_bytes() == notebook.to_bytes()


# --- failures in the middle ----------------------------------------------------------------------


def test_a_journal_that_is_locked_too_long_costs_one_wait(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_database, "PATIENCE", 0.2)
    path = tmp_path / "j"

    def patience() -> int:
        connection = journal._recorder.database._connection
        assert connection is not None
        return int(connection.execute("PRAGMA busy_timeout").fetchone()[0])

    with Journal(path) as journal:
        use(journal, book)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        use(journal, book)
        assert len(journal.warnings) == 1
        assert "locked" in journal.warnings[0]
        assert patience() == int(_database.IMPATIENCE * 1000)  # one long wait is enough
        assert len(journal.log(book)) == 2  # reading works all the while
        holder.close()
        journal.warnings.clear()
        use(journal, book)
        assert journal.warnings == []
        assert patience() == 200
        kinds = [entry.kind for entry in journal.log(book)]
        assert kinds == ["edit", "edit", "outside", "edit", "edit"]


@pytest.mark.parametrize(
    ("error", "word"), [(OSError(28, "No space left"), "disk is full"), (MemoryError("no"), "no")]
)
def test_any_failure_while_recording_is_a_warning(
    tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, word: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    with Journal(tmp_path / "j") as journal:
        use(journal, book)
        with monkeypatch.context() as patch:
            patch.setattr(_states, "save_state", fail)
            notebook = cellwright.read(book)
            change = notebook.apply({"op": "insert", "source": "x"})
            assert journal.begin(book, change, actor="cli:me").finish() is None
        assert len(journal.warnings) == 1
        assert word in journal.warnings[0]
        assert journal.begin(book, change, actor="cli:me").finish() is not None  # nothing half-done


def test_a_full_journal_is_a_warning(tmp_path: Path, book: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        use(journal, book)

        def fill() -> None:
            database = journal._recorder.database
            database.run(lambda c: c.execute("PRAGMA max_page_count = 1"), write=False)

        notebook = cellwright.read(book)
        change = notebook.apply({"op": "insert", "source": os.urandom(50_000).hex()})
        fill()
        recording = journal.begin(book, change, actor="cli:me")
        fill()
        assert recording.finish() is None
        assert "full" in journal.warnings[0]
        assert len(journal.log(book)) == 2
        assert journal.begin(book, change, actor="cli:me").finish() is not None


# --- threads and forks ---------------------------------------------------------------------------


def test_threads_share_a_journal(tmp_path: Path) -> None:
    def work(number: int) -> None:
        path = tmp_path / f"{number % 3}.ipynb"
        notebook = Notebook(notebook_bytes("a"))
        for i in range(20):
            change = notebook.apply({"op": "replace", "cell": 0, "source": f"{number} {i}"})
            journal.begin(path, change, actor=f"thread:{number}").finish()
            assert journal.log(path, limit=1)

    with Journal(tmp_path / "j") as journal:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert journal.warnings == []
        for number in range(3):
            log = journal.log(tmp_path / f"{number}.ipynb", limit=1000)
            assert [e.number for e in log] == list(range(len(log), 0, -1))
            assert sum(e.actor != "outside" for e in log) == 40
