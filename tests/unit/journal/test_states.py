"""States in pieces that other states share, and what an edit adds to the file."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from typing import TYPE_CHECKING

import pytest

from cellwright import Notebook
from cellwright.journal import Journal, _changes, _states, _store
from tests.unit.journal.conftest import notebook_bytes

if TYPE_CHECKING:
    from pathlib import Path


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


def stored(journal: Journal) -> int:
    """The bytes of all rows that grow with every edit, without what pages leave free."""

    def rows(connection: sqlite3.Connection) -> int:
        return sum(
            connection.execute(sql).fetchone()[0] or 0
            for sql in (
                "SELECT sum(length(data)) FROM pack",
                "SELECT sum(length(stretches) + 20) FROM state",
                "SELECT sum(length(stretches) + 30) FROM snapshot",
                "SELECT sum(length(details) + length(origins) + 100) FROM change",
                "SELECT sum(60) FROM piece",
            )
        )

    return journal._recorder.database.run(rows, write=False)


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
        journal.record("/a", notebook.apply(EDITS[0]), actor="cli:me")
        before = stored(journal), size(journal)
        change = notebook.apply(edit if edit is not EDITS[0] else {**edit, "cell": 1})
        assert journal.record("/a", change, actor="cli:me") is not None
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
        journal.record("/a", notebook.apply({"op": "delete", "cell": 0}), actor="cli:me")
        assert stored(journal) < len(data) * 1.02
        before = size(journal)
        edit = {"op": "replace", "cell": 7, "source": "y", "outputs": "clear"}
        journal.record("/a", notebook.apply(edit), actor="cli:me")
        assert size(journal) - before < 50_000
        edit = {"op": "replace", "cell": 8, "source": "y"}
        journal.record("/a", notebook.apply(edit), actor="cli:me")
        assert size(journal) - before < 250_000
        journal.record("/copy", notebook.apply({"op": "delete", "cell": 9}), actor="cli:me")
        assert size(journal) - before < 300_000  # a copy shares every cell
        assert journal.first("/a").layout.to_bytes() == data
        assert journal.warnings == []


def test_text_is_compressed_and_noise_is_not(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        text = Notebook(notebook_bytes("import numpy as np\nprint(np.zeros(3))\n" * 2_000))
        journal.record("/a", text.apply({"op": "insert"}), actor="cli:me")
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
        journal.record("/a", notebook.apply({"op": "delete", "cell": 0}), actor="cli:me")
        assert 500_000 < stored(journal) < 900_000
        change = journal.change(journal.log("/a")[0])
        assert change.after.layout.to_bytes() == notebook.to_bytes()


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
