"""A notebook on a desk: the journal and whoever edits beside it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright.journal import Journal, signature
from cellwright.journal._store import LISTS, PieceStore, unpack

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from cellwright.document.change import Change
    from cellwright.journal import Entry


def notebook_bytes(*sources: str, minor: int = 5) -> bytes:
    cells = []
    for number, source in enumerate(sources):
        cell: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
            "source": source.splitlines(keepends=True),
        }
        if minor < 5:
            del cell["id"]
        cells.append(cell)
    value = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    return (json.dumps(value, indent=1) + "\n").encode()


def assert_counts_are_right(journal: Journal) -> None:
    """Every count of mentions is the number of mentions, and nothing is left without an owner."""

    def check(connection: sqlite3.Connection) -> None:
        mentions: Counter[int] = Counter()
        for *pieces, stretches in connection.execute(
            "SELECT skeleton, gaps, old, stretches FROM state"
        ):
            mentions.update(number for number in pieces if number)
            mentions.update(unpack(stretches))
        for (stretches,) in connection.execute("SELECT stretches FROM snapshot"):
            mentions.update(unpack(stretches))
        rows = connection.execute("SELECT id, kind, refs, pack FROM piece").fetchall()
        lists = [number for number, kind, *_ in rows if kind in LISTS]
        mentions.update(PieceStore(connection).list_members(lists))
        assert {number: refs for number, _, refs, _ in rows if refs} == dict(mentions)
        for table in ("change", "state", "snapshot"):
            orphans = f"SELECT * FROM {table} WHERE notebook NOT IN (SELECT id FROM notebook)"  # noqa: S608
            assert connection.execute(orphans).fetchall() == []
        packs = {number for (number,) in connection.execute("SELECT id FROM pack")}
        assert {pack for *_, pack in rows} == packs

    journal._recorder.database.run(check, write=False)


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


class Desk:
    """Does with one notebook what the workspace does: catch up, edit, save, record."""

    def __init__(self, path: Path, journal: Journal) -> None:
        self.path = path
        self.journal = journal

    def bytes(self) -> bytes:
        return self.path.read_bytes()

    def edit(self, *edits: dict[str, Any], actor: str = "cli:me", **facts: Any) -> Entry:
        notebook = cellwright.read(self.path)
        return self.save(notebook, notebook.apply(list(edits)), actor=actor, **facts)

    def replace(self, cell: str | int, source: str, **facts: Any) -> Entry:
        return self.edit({"op": "replace", "cell": cell, "source": source}, **facts)

    def undo(self, change: str | None = None, actor: str = "cli:me") -> Entry:
        target = self.journal.undo_target(self.path, actor, change)
        return self._step("undo", target, self.journal.change(target).inverse(), actor)

    def redo(self, change: str | None = None, actor: str = "cli:me") -> Entry:
        target = self.journal.redo_target(self.path, actor, change)
        return self._step("redo", target, self.journal.change(target), actor)

    def outside(self, data: bytes) -> Entry | None:
        """Somebody else saves the file, and we look at it."""
        self.path.write_bytes(data)
        return self.look()

    def look(self) -> Entry | None:
        found = signature(self.path)
        return self.journal.catch_up(self.path, cellwright.read(self.path).state, found)

    def save(self, notebook: cellwright.Notebook, change: Change, **facts: Any) -> Entry:
        self.journal.catch_up(self.path, change.before, signature(self.path))
        recording = self.journal.begin(self.path, change, **facts)
        cellwright.write(notebook, self.path)
        entry = recording.finish(signature(self.path))
        assert entry is not None, self.journal.warnings
        return entry

    def _step(self, kind: str, target: Entry, change: Change, actor: str) -> Entry:
        notebook = cellwright.read(self.path)
        done = notebook.apply(change)
        return self.save(notebook, done, actor=actor, kind=kind, concerns=target.id)


@pytest.fixture
def journal() -> Iterator[Journal]:
    """The journal of this test's user, which must have worked."""
    with Journal() as journal:
        yield journal
        assert journal.warnings == []


@pytest.fixture
def desk(tmp_path: Path, journal: Journal) -> Desk:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook_bytes("a = 1", "b = 2", "c = 3"))
    return Desk(path, journal)
