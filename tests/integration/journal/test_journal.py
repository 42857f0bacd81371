"""The journal under several processes, `kill -9`, and a disk without space."""

from __future__ import annotations

import base64
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright import Notebook
from cellwright.journal import Journal
from tests.conftest import ROOT, RUN_ALL
from tests.unit.journal.conftest import Desk, assert_counts_are_right, notebook_bytes, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITER = """
import sys
from cellwright.document import files
from cellwright.journal import Journal, signature

name, count, *paths = sys.argv[1:]
journal = Journal()

def edit(path, source):
    recordings = []
    def make(notebook):
        journal.catch_up(path, notebook.state)
        return notebook.apply({"op": "replace", "cell": -1, "source": source})
    files.update(
        path,
        make,
        saving=lambda change: recordings.append(
            journal.begin(path, change, actor=f"test:{name}")
        ),
        saved=lambda: recordings[-1].finish(signature(path)),
        failed=lambda: recordings[-1].abandon(),
    )

for i in range(int(count)):
    edit(paths[i % len(paths)], f"{name} wrote {i}")
    print(i, flush=True)
if journal.warnings:
    sys.exit("\\n".join(journal.warnings))
"""

READER = """
import sys
from cellwright.document import files
from cellwright.journal import Journal, signature

journal = Journal()
while True:
    for path in sys.argv[1:]:
        before = signature(path)
        notebook = files.read(path)
        if signature(path) == before:
            journal.remember(path, notebook.snapshot())
            journal.catch_up(path, notebook.state, before)
    if journal.warnings:
        sys.exit("\\n".join(journal.warnings))
    print(flush=True)
"""


def new_notebook(path: Path, cells: int = 5) -> bytes:
    notebook = Notebook()
    notebook.apply([{"op": "insert", "source": f"x = {i}", "id": f"c{i}"} for i in range(cells)])
    path.write_bytes(notebook.to_bytes())
    return notebook.to_bytes()


def start(name: str, count: int, *paths: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, name, str(count), *map(str, paths)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def assert_sound(journal: Journal) -> None:
    with closing(sqlite3.connect(journal.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def assert_chain(journal: Journal, path: Path, original: bytes) -> None:
    """Numbers have no gap, each change begins where the one before ended, and the file is last."""
    log = journal.log(path, limit=100_000)
    assert [entry.number for entry in log] == list(range(len(log), 0, -1))
    for newer, older in pairwise(log):
        assert newer.before == older.after
    if log:
        assert journal.first(path).layout.to_bytes() == original
        assert journal.state(path, log[0].id).layout.to_bytes() == path.read_bytes()


def test_eight_writers_and_a_reader_lose_and_invent_no_entry(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.ipynb" for n in range(3)]
    originals = {path: new_notebook(path) for path in paths}
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, *map(str, paths)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    writers = [start(f"w{n}", 50, *paths) for n in range(8)]
    for writer in writers:
        _, errors = writer.communicate(timeout=100)
        assert (writer.returncode, errors) == (0, b"")
    assert reader.poll() is None
    reader.kill()
    assert reader.communicate()[1] == b""
    with Journal() as journal:
        assert_sound(journal)
        entries = []
        for path in paths:
            assert_chain(journal, path, originals[path])
            entries += journal.log(path, limit=1_000)
        assert sorted((entry.actor, entry.edits[0]["source"]) for entry in entries) == sorted(
            (f"test:w{n}", f"w{n} wrote {i}") for n in range(8) for i in range(50)
        )
        assert len({entry.id for entry in entries}) == 400


KILLS = 10


def run_and_kill(dice: random.Random, path: Path, others: Path) -> None:
    """Let a writer work for a while and kill it where it is; sometimes one beside it works on."""
    neighbour = start("neighbour", 20, others) if dice.random() < 0.3 else None
    with start("victim", 10_000, path) as writer:
        assert writer.stdout is not None
        for _ in range(dice.randint(1, 5)):
            writer.stdout.readline()
        # Until some moment of the next edit; the pipe wakes us if it is done before.
        select.select([writer.stdout], [], [], dice.random() * 0.008)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    if neighbour is not None:
        assert neighbour.communicate(timeout=100)[1] == b""


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.all) for seed in range(2, 20))]
)
def test_a_killed_writer_leaves_a_journal_that_opens_and_agrees_with_the_file(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    path, others = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    originals = {path: new_notebook(path), others: new_notebook(others)}
    for _ in range(KILLS):
        run_and_kill(dice, path, others)
        with Journal() as journal:
            assert_sound(journal)
            journal.catch_up(path, cellwright.read(path).state)
            for book, original in originals.items():
                assert_chain(journal, book, original)
            # What was saved was announced before, so that nobody else gets the blame.
            assert {e.actor for e in journal.log(path, limit=10_000)} <= {"test:victim"}
            assert journal.warnings == []
    with Journal() as journal:
        notebook = cellwright.read(path)
        for entry in journal.log(path, limit=10_000):
            notebook.apply(journal.change(entry).inverse())
        assert notebook.to_bytes() == originals[path]


def test_a_process_that_keeps_the_journal_open_sees_it_moved_aside(tmp_path: Path) -> None:
    """One process finds the file damaged; the other goes on in the new one."""
    path = tmp_path / "a.ipynb"
    new_notebook(path)
    with Journal() as journal:
        notebook = cellwright.read(path)
        change = notebook.apply({"op": "insert", "source": "x"})
        assert journal.begin(path, change, actor="test:me").finish() is not None
        for file in list(Path(journal.path).parent.iterdir()):
            file.rename(tmp_path / f"aside-{file.name}")
        with start("other", 3, path) as writer:
            assert writer.communicate(timeout=100)[1] == b""
        journal.catch_up(path, cellwright.read(path).state)
        assert [entry.actor for entry in journal.log(path)] == ["test:other"] * 3
        assert journal.warnings == []


def test_several_processes_that_find_it_damaged_move_it_aside_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.ipynb" for n in range(4)]
    for path in paths:
        new_notebook(path)
    with Journal() as journal:
        assert journal.log(paths[0]) == []
        place = Path(journal.path)
    place.write_bytes(b"no database " * 1_000)
    for writer in [start("w", 5, path) for path in paths]:
        writer.communicate(timeout=100)  # it may have warned
    assert len([f for f in place.parent.iterdir() if ".broken-" in f.name]) == 1
    with Journal() as journal:
        assert_sound(journal)
        for path in paths:
            journal.catch_up(path, cellwright.read(path).state)
            log = journal.log(path)
            assert [entry.number for entry in log] == list(range(len(log), 0, -1))
            assert len(log) >= 4  # what was going on when it was moved may be lost
            assert journal.state(path, log[0].id).layout.to_bytes() == path.read_bytes()
        assert journal.warnings == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", str(folder)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"needs the right to mount: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.root
def test_a_full_disk_stops_the_history_and_not_the_edits(tmp_path: Path, small_disk: Path) -> None:
    path = tmp_path / "a.ipynb"
    new_notebook(path)
    with Journal(small_disk / "journal.sqlite3") as journal:
        recorded = 0
        for number in range(20):
            notebook = cellwright.read(path)
            source = os.urandom(20_000).hex()
            change = notebook.apply({"op": "replace", "cell": 0, "source": source})
            recording = journal.begin(path, change, actor="test:me")
            cellwright.write(notebook)
            recorded += recording.finish() is not None
            assert cellwright.read(path).cells[0].source == source, number
        assert 0 <= recorded < 20
        assert len(journal.warnings) >= 1
        assert any("full" in warning for warning in journal.warnings)
    # With space again, history goes on.
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    with Journal(small_disk / "journal.sqlite3") as journal:
        assert_sound(journal)
        change = cellwright.read(path).apply({"op": "delete", "cell": 0})
        assert journal.begin(path, change, actor="test:me").finish() is not None
        assert journal.warnings == []


@pytest.mark.root
def test_a_folder_that_may_not_be_written_to_stops_nothing(tmp_path: Path) -> None:
    """As another user: root may write everywhere."""
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    state.chmod(0o755)
    code = (
        "import json, os, sys, cellwright\n"
        "from cellwright.journal import Journal\n"
        "from cellwright.errors import JournalUnavailable\n"
        "journal = Journal(sys.argv[1]); journal.warnings\n"
        "import bisect, sqlite3, cellwright.journal.history\n"
        "notebook = cellwright.Notebook(); notebook.apply({'op': 'insert', 'source': 'x'})\n"
        "import cellwright.document.snapshot\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "change = notebook.apply({'op': 'insert', 'source': 'y'})\n"
        "entry = journal.begin('/x.ipynb', change, actor='a').finish()\n"
        "try: journal.log('/x.ipynb'); said = None\n"
        "except JournalUnavailable as error: said = error.code\n"
        "print(json.dumps([entry, len(journal.warnings), said]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(state / "journal.sqlite3")],
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    assert json.loads(done.stdout) == [None, 1, "JOURNAL_UNAVAILABLE"]
    assert list(state.iterdir()) == []


def test_an_edit_waits_for_a_busy_journal_and_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    new_notebook(path)
    with Journal() as journal:
        assert journal.log(path) == []
        with closing(sqlite3.connect(journal.path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with start("waits", 1, path) as writer:
                assert writer.stdout is not None
                # It gets as far as the journal, and no further while we hold it.
                assert not select.select([writer.stdout], [], [], 0.5)[0]
                holder.execute("COMMIT")
                assert writer.communicate(timeout=100) == (b"0\n", b"")
        assert len(journal.log(path)) == 1


def record(journal: Journal, book: Path) -> None:
    """Do all that records."""
    notebook = cellwright.read(book)
    journal.remember(book, notebook.snapshot())
    journal.catch_up(book, notebook.state)
    change = notebook.apply({"op": "insert", "source": "x"})
    recording = journal.begin(book, change, actor="test:me")
    cellwright.write(notebook)
    recording.finish()
    change = notebook.apply({"op": "insert", "source": "y"})
    journal.begin(book, change, actor="test:me").abandon()
    cellwright.write(notebook)
    journal.begin(book, change, actor="test:me").finish()


def test_a_failure_at_any_step_leaves_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first statement fails, then the second, and so on, until one run gets through."""
    path, book = tmp_path / "j", tmp_path / "a.ipynb"
    new_notebook(book)
    left = 0
    connect = sqlite3.connect

    class Failing(sqlite3.Connection):
        def execute(self, *args: Any) -> Any:
            self.count_down()
            return super().execute(*args)

        def executemany(self, *args: Any) -> Any:
            self.count_down()
            return super().executemany(*args)

        def count_down(self) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Failing, **k))
    with Journal(path) as journal:
        record(journal, book)
    for step in range(1, 1000, 1 if RUN_ALL else 5):
        left = step
        with Journal(path) as journal:
            record(journal, book)
            done = not journal.warnings
            assert done or "I/O" in journal.warnings[0]
        left = 0
        with Journal(path) as journal:
            journal.catch_up(book, cellwright.read(book).state)
            newest = journal.log(book)[0]
            assert journal.state(book, newest.id).layout.to_bytes() == book.read_bytes()
            assert_counts_are_right(journal)
            assert journal.warnings == []
        if done:
            break
        new_notebook(book, step)
    assert 30 < step < 500


# --- sizes ---------------------------------------------------------------------------------------


def large(count: int, output: int) -> bytes:
    cells = [
        {
            "cell_type": "code",
            "execution_count": i,
            "id": f"{i:08x}",
            "metadata": {},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": [noise(output)]}],
            "source": [f"x = {i}\n", "print(x)"],
        }
        for i in range(count)
    ]
    value = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(value, indent=1).encode()


def noise(size: int) -> str:
    return base64.b64encode(os.urandom(size)).decode()[:size]


def size(journal: Journal) -> int:
    """The bytes of the database, with all that is still in its log."""

    def pages(connection: sqlite3.Connection) -> int:
        count = connection.execute("PRAGMA page_count").fetchone()[0]
        return int(count * connection.execute("PRAGMA page_size").fetchone()[0])

    return journal._recorder.database.run(pages, write=False)


EDITS = [
    {"op": "replace", "cell": 5_000, "source": "y"},
    {"op": "insert", "at": 7_000, "source": "z"},
    {"op": "move", "cell": 100, "at": 9_000},
    {"op": "delete", "cell": 42},
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit["op"])
def test_an_edit_of_ten_thousand_cells_adds_a_few_kilobytes(
    tmp_path: Path, edit: dict[str, object]
) -> None:
    notebook = Notebook(large(10_000, 100))
    with Journal(tmp_path / "j") as journal:
        journal.begin("/a", notebook.apply(EDITS[0]), actor="cli:me").finish()
        before = stored(journal), size(journal)
        change = notebook.apply(edit if edit is not EDITS[0] else {**edit, "cell": 1})
        assert journal.begin("/a", change, actor="cli:me").finish() is not None
        assert stored(journal) - before[0] < 6_000
        assert size(journal) - before[1] < 50_000
        journal.remember("/b", notebook.snapshot())
        before = stored(journal), size(journal)
        notebook.apply({"op": "replace", "cell": 9_000, "source": "q"})
        journal.remember("/b", notebook.snapshot())
        assert stored(journal) - before[0] < 8_000
        assert size(journal) - before[1] < 50_000
        log = journal.log("/a")
        assert journal.state("/a", log[0].id).layout.to_bytes() == change.after.layout.to_bytes()
        assert journal.warnings == []


def test_an_edit_of_fifty_megabytes_adds_only_the_cell(tmp_path: Path) -> None:
    data = large(500, 100_000)
    notebook = Notebook(data)
    with Journal(tmp_path / "j") as journal:
        journal.begin("/a", notebook.apply({"op": "delete", "cell": 0}), actor="cli:me").finish()
        assert stored(journal) < len(data) * 1.02
        before = size(journal)
        edit = {"op": "replace", "cell": 7, "source": "y", "outputs": "clear"}
        journal.begin("/a", notebook.apply(edit), actor="cli:me").finish()
        assert size(journal) - before < 50_000
        edit = {"op": "replace", "cell": 8, "source": "y"}
        journal.begin("/a", notebook.apply(edit), actor="cli:me").finish()
        assert size(journal) - before < 250_000
        journal.begin("/copy", notebook.apply({"op": "delete", "cell": 9}), actor="cli:me").finish()
        assert size(journal) - before < 300_000  # a copy shares every cell
        assert journal.first("/a").layout.to_bytes() == data
        assert journal.warnings == []


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook_bytes("a = 1", "b = 2"))
    return path


def test_a_forked_process_uses_a_connection_of_its_own(tmp_path: Path, book: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        desk = Desk(book, journal)
        desk.replace(0, "parent")
        database = journal._recorder.database
        parents = database._connection
        child = os.fork()
        if not child:
            code = 1
            try:
                desk.replace(0, "child")
                code = len(journal.warnings) + (database._connection is parents)
                journal.close()
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        desk.replace(0, "parent again")
        assert [e.number for e in journal.log(book)] == [3, 2, 1]
        assert journal.warnings == []
