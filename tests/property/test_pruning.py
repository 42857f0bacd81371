"""The journal keeps within its limits, and keeps what it promises to keep."""

from __future__ import annotations

import base64
import os
import random
from typing import TYPE_CHECKING

from cellwright import Notebook
from cellwright.journal import Journal, JournalLimits
from tests.unit.journal.conftest import assert_counts_are_right, notebook_bytes

if TYPE_CHECKING:
    from pathlib import Path


def noise(size: int) -> str:
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


def test_counts_stay_right_whatever_is_done(tmp_path: Path) -> None:
    dice = random.Random(7)
    limits = JournalLimits(total=150_000, changes=4, step=20_000, snapshots=5)
    with Journal(tmp_path / "j", limits=limits) as journal:
        books = {f"/{n}": Notebook(notebook_bytes("a", "b", "a", "c")) for n in range(4)}
        for _ in range(250):
            path, notebook = dice.choice(list(books.items()))
            count = len(notebook.cells)
            source = dice.choice(["a", "b", "c", noise(2000)])
            edits = [{"op": "insert", "source": source, "at": dice.randint(0, count)}]
            if count > 3:
                edits.append({"op": "delete", "cell": dice.randrange(count)})
            change = notebook.apply(edits)
            recording = journal.begin(path, change, actor="cli:me")
            if dice.random() < 0.2:
                recording.abandon()
                notebook.state = change.before
            else:
                recording.finish()
            if dice.random() < 0.3:
                journal.remember(path, notebook.snapshot())
        assert journal.warnings == []
        assert_counts_are_right(journal)
        for path, notebook in books.items():
            log = journal.log(path, limit=1)
            if log:
                state = journal.state(path, log[0].id)
                assert state.layout.to_bytes() == notebook.to_bytes()
