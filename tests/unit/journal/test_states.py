"""States in pieces that other states share, and what an edit adds to the file."""

from __future__ import annotations

import base64
import os
import sqlite3
from typing import TYPE_CHECKING

import pytest

from cellwright import Notebook
from cellwright.journal import Journal, _changes, _recorder, _states, _store
from cellwright.journal._store import PieceStore
from tests.unit.journal.conftest import assert_counts_are_right, notebook_bytes, stored

if TYPE_CHECKING:
    from pathlib import Path


def noise(size: int) -> str:
    return base64.b64encode(os.urandom(size)).decode()[:size]


def test_text_is_compressed_and_noise_is_not(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        text = Notebook(notebook_bytes("import numpy as np\nprint(np.zeros(3))\n" * 2_000))
        journal.begin("/a", text.apply({"op": "insert"}), actor="cli:me").finish()
        assert stored(journal) < 20_000
        with sqlite3.connect(journal.path) as connection:
            assert connection.execute("SELECT max(codec) FROM pack").fetchone() == (1,)
        connection.close()
    assert not _store._is_worth_it(noise(100_000).encode())
    assert not _store._is_worth_it(b"{}")


def test_compressing_never_takes_more_than_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_store, "_COMPRESSED_AT_ONCE", 300_000)
    notebook = Notebook(notebook_bytes(*("text " * 20_000 for _ in range(10))))
    notebook.apply([{"op": "replace", "cell": i, "source": f"{i}" * 90_000} for i in range(10)])
    with Journal(tmp_path / "j") as journal:
        journal.begin("/a", notebook.apply({"op": "delete", "cell": 0}), actor="cli:me").finish()
        assert 500_000 < stored(journal) < 900_000
        change = journal.change(journal.log("/a")[0])
        assert change.after.layout.to_bytes() == notebook.to_bytes()


def test_a_large_state_is_stored_in_several_transactions_and_none_of_it_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_recorder, "_LARGE", 50_000)
    steps: list[int] = []
    monkeypatch.setattr(_recorder, "_TURN", 0)
    with Journal(tmp_path / "j") as journal:

        def collect(connection: sqlite3.Connection) -> None:
            """What another process may do in its turn."""
            steps.append(connection.execute("SELECT count(*) FROM piece").fetchone()[0])
            connection.execute("DELETE FROM piece WHERE refs = 0 AND id % 3 = 0")

        def take_turn(_: float) -> None:
            journal._recorder.database.run(collect, write=True)

        monkeypatch.setattr(_recorder.time, "sleep", take_turn)
        notebook = Notebook(notebook_bytes(*(noise(20_000) for _ in range(12))))
        change = notebook.apply({"op": "replace", "cell": 3, "source": "x"})
        journal.begin("/a", change, actor="cli:me").finish()
        first = len(steps)
        assert first >= 4
        assert steps[0] < steps[first - 1]
        again = journal.change(journal.log("/a")[0])
        assert again.before.to_bytes() == change.before.to_bytes()
        assert again.after.to_bytes() == notebook.to_bytes()
        change = notebook.apply({"op": "replace", "cell": 4, "source": "x"})
        journal.begin("/a", change, actor="cli:me").finish()
        assert len(steps) == first  # the state before is known


def test_a_long_cell_is_stored_in_sections_and_no_transaction_holds_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever edits another notebook waits for a transaction."""
    monkeypatch.setattr(_recorder, "_LARGE", 20_000)
    monkeypatch.setattr(_recorder, "_TURN", 0)
    monkeypatch.setattr(_store, "SECTION", 20_000)
    added: list[int] = []
    flush = PieceStore.flush

    def watch(store: PieceStore) -> None:
        added.append(store.added)
        flush(store)

    monkeypatch.setattr(PieceStore, "flush", watch)
    first, second = noise(150_000), noise(170_000)
    with Journal(tmp_path / "j") as journal:
        notebook = Notebook(notebook_bytes(first, "short"))
        states = [notebook.to_bytes()]
        for edit in (
            {"op": "replace", "cell": 1, "source": "x"},
            {"op": "replace", "cell": 0, "source": second},
            {"op": "delete", "cell": 0},
            {"op": "insert", "at": 0, "source": first},
        ):
            change = notebook.apply(edit)
            journal.begin("/a", change, actor="cli:me").finish()
            states.append(notebook.to_bytes())
        found = [journal.change(entry) for entry in journal.log("/a")]
        assert [change.after.to_bytes() for change in found] == states[:0:-1]
        assert [change.before.to_bytes() for change in found] == states[-2::-1]
        assert sum(added) > 300_000
        assert max(added) < 60_000
        assert_counts_are_right(journal)
        journal.forget("/a")
        assert stored(journal) < 1_000
        assert_counts_are_right(journal)
        # What another program writes is stored in the same way.
        journal.begin("/b", notebook.apply({"op": "insert"}), actor="cli:me").finish("1")
        other = Notebook(notebook_bytes(second, "short"))
        added.clear()
        assert journal.catch_up("/b", other.state, "2", lambda: "2") is not None
        assert sum(added) > 150_000
        assert max(added) < 60_000
        assert_counts_are_right(journal)


def test_a_long_piece_that_was_stored_whole_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(tmp_path / "j") as journal:
        notebook = Notebook(notebook_bytes(noise(100_000), "short"))
        change = notebook.apply({"op": "replace", "cell": 1, "source": "x"})
        journal.begin("/a", change, actor="cli:me").finish()
        monkeypatch.setattr(_store, "SECTION", 20_000)
        change = notebook.apply({"op": "replace", "cell": 1, "source": "y"})
        journal.begin("/a", change, actor="cli:me").finish()
        newest = journal.change(journal.log("/a")[0])
        assert newest.after.to_bytes() == notebook.to_bytes()
        assert_counts_are_right(journal)


def test_a_list_is_cut_by_what_is_in_it() -> None:
    numbers = list(range(1, 5_001))
    cuts = _states._cut(numbers)
    assert [n for cut in cuts for n in cut] == numbers
    assert 40 < len(cuts) < 160
    longer = [*numbers[:2_500], 77_777, *numbers[2_500:]]
    fresh = {tuple(cut) for cut in _states._cut(longer)} - {tuple(cut) for cut in cuts}
    assert len(fresh) <= 2
    assert [len(cut) for cut in _states._cut([5] * 1_000)] == [256, 256, 256, 232]
    assert _states._cut([]) == []


def test_gaps_are_kept_to_the_byte() -> None:
    gaps = [b"\n  ", *[b",\n  "] * 1_000, b" ,\t", b",", b"\r\n"]
    data = _states._encode_gaps(gaps)
    assert len(data) < 100
    assert _states._decode_gaps(data) == gaps


@pytest.mark.parametrize(
    "origins",
    [
        [],
        [None],
        [None, None, 0, 1, 2, None, 9, 8, 7],
        [3, 3, 4, None],
        list(range(1_000)),
        range(5),
        range(0),
    ],
)
def test_origins_survive(origins: list[int | None] | range) -> None:
    text = _changes.encode_origins(origins)
    assert _changes.decode_origins(text) == list(origins)
    assert len(text) < 60
