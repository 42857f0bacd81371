"""Bring back what is readable of damaged journals, into one new journal in place of the old."""

# ruff: noqa: PTH108, PTH118, PTH119, PTH208
from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import NamedTuple

from cellwright.errors import JournalUnavailable
from cellwright.journal import _states
from cellwright.journal._changes import (
    ChangeRow,
    decode_details,
    decode_origins,
    encode_details,
)
from cellwright.journal._database import (
    JournalDamaged,
    JournalDatabase,
    find_damage,
    name_aside,
    rename_with_logs,
)
from cellwright.journal._recorder import find_or_add_notebook
from cellwright.journal._states import StateContent
from cellwright.journal._store import NAMES, PieceStore, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_LOGS = ("-wal", "-shm", "-journal")
_MOST_GAPS = 100_000
_DANGLING = {
    "changes without their states": "SELECT count(*) FROM change WHERE number IS NOT NULL AND"
    " NOT (before_state IN (SELECT id FROM state) AND after_state IN (SELECT id FROM state))",
    "pieces without their bytes": "SELECT count(*) FROM piece"
    " WHERE pack NOT IN (SELECT id FROM pack)",
}


class Repair(NamedTuple):
    """What a repair found: changes brought back, and rows that could not be read."""

    changes: int
    lost: int
    sources: tuple[str, ...]

    def __str__(self) -> str:
        if not self.sources:
            return "nothing to repair"
        lost = f"; {self.lost} rows could not be read" if self.lost else ""
        return f"{self.changes} changes brought back from {', '.join(self.sources)}{lost}"


def find_problems(connection: sqlite3.Connection, path: str) -> list[str]:
    """What is wrong with a journal, and which journals beside it were put aside."""
    damage = find_damage(path)
    found = [damage] if damage else []
    for what, question in _DANGLING.items() if not damage else ():
        number = connection.execute(question).fetchone()[0]
        found += [f"{number} {what}"] if number else []
    if not found:
        found += [
            f"{number} damaged {what}" for what, number in count_damaged(connection) if number
        ]
    return found + [f"{name} was put aside" for name in map(os.path.basename, list_broken(path))]


def count_damaged(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """Read every row as its users would; yields how many of each kind cannot be read."""
    store = PieceStore(connection)

    def load_pieces(pack: int) -> None:
        rows = connection.execute("SELECT id FROM piece WHERE pack = ?", (pack,)).fetchall()
        store.load(number for (number,) in rows)

    def load_change(number: int) -> None:
        sql = "SELECT details, origins FROM change WHERE id = ?"
        details, origins = connection.execute(sql, (number,)).fetchone()
        decode_details(details)
        decode_origins(origins)

    def load_snapshot(number: int) -> None:
        sql = "SELECT stretches FROM snapshot WHERE id = ?"
        store.load(unpack(connection.execute(sql, (number,)).fetchone()[0]))

    kinds: list[tuple[str, str, Callable[[int], object]]] = [
        ("blocks of bytes", "pack", load_pieces),
        ("states", "state", lambda number: _states.load_state(connection, store, number)),
        ("changes", "change", load_change),
        ("snapshots", "snapshot", load_snapshot),
    ]
    for what, table, load in kinds:
        damaged = 0
        for (number,) in connection.execute(f"SELECT id FROM {table}").fetchall():  # noqa: S608
            try:
                load(number)
            except (JournalDamaged, sqlite3.Error):
                damaged += 1
        yield what, damaged


def list_broken(path: str) -> list[str]:
    """The damaged journals that were put aside and not repaired since, oldest first."""
    return _list_beside(path, "broken")


def list_set_aside(path: str) -> list[str]:
    """All that has history beside the journal: damaged, salvaged, left by a repair that died."""
    return [
        *list_broken(path),
        *_list_beside(path, "salvaged"),
        *(each for each in _list_beside(path, "repair") if _is_left_behind(each)),
    ]


def _list_beside(path: str, kind: str) -> list[str]:
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [
        os.path.join(folder, each)
        for each in sorted(names)
        if each.startswith(f"{name}.{kind}-") and not each.endswith(_LOGS)
    ]


def _is_left_behind(path: str) -> bool:
    """Whether the process that a new journal is named after has ended."""
    number = path.rpartition("-")[2]
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return False


def remove_set_aside(path: str) -> None:
    """Remove all that has history beside the journal; raises `JournalUnavailable`."""
    for each in list_set_aside(path):
        for suffix in (*_LOGS, ""):
            try:
                os.unlink(each + suffix)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise JournalUnavailable(f"{each} cannot be removed: {error.strerror}") from error


def repair_journal(database: JournalDatabase) -> Repair:
    """Make one journal of this one and of all that were put aside; raises `JournalUnavailable`.

    The old files are deleted if every row was read, and otherwise kept as `.salvaged-…`.
    """
    path = database.path
    is_damaged = find_damage(path) is not None
    new = f"{path}.repair-{os.getpid()}"
    for suffix in ("", *_LOGS):
        _remove(new + suffix)
    target = JournalDatabase(new, lambda _: None)
    lost: dict[str, int] = {}
    done: list[tuple[int, str]] = []

    def copy(source: str, connection: sqlite3.Connection) -> int:
        salvage = _Salvage(connection)
        changes = target.run(salvage.copy_to, write=True)
        lost[source] = salvage.lost
        return changes

    def replace(connection: sqlite3.Connection) -> tuple[int, str]:
        # Inside a transaction of the current journal, so that no change is made meanwhile. A
        # damaged one may not be able to end it, and then we are called again with the new one.
        if not done:
            found = copy(path, connection)
            target.close()
            aside = name_aside(path)
            try:
                rename_with_logs(path, aside)
                os.rename(new, path)  # noqa: PTH104
            except OSError as error:
                raise JournalUnavailable(f"{error.strerror} ({path})") from error
            done.append((found, aside))
        return done[0]

    try:
        broken = list_broken(path)
        recovered = sum(_copy_file(each, copy, lost) for each in broken)
        found, aside = database.run(replace, write=True)
    except OSError as error:
        raise JournalUnavailable(f"{error.strerror} ({path})") from error
    finally:
        target.close()
        for suffix in ("", *_LOGS):
            _remove(new + suffix)
    database.close()
    for source, old in [(path, aside), *((each, each) for each in broken)]:
        if lost.get(source):
            rename_with_logs(old, old.replace(".broken-", ".salvaged-"))
        else:
            for suffix in ("", *_LOGS):
                _remove(old + suffix)
    sources = [os.path.basename(each) for each in broken]
    if is_damaged or lost[path]:
        recovered += found
        sources.append(os.path.basename(path))
    return Repair(recovered, sum(lost.values()), tuple(sources))


def _copy_file(source: str, copy: Any, lost: dict[str, int]) -> int:
    try:
        connection = sqlite3.connect(source, isolation_level=None)
        try:
            changes: int = copy(source, connection)
            return changes
        finally:
            connection.close()
    except sqlite3.Error:
        lost[source] = lost.get(source, 0) + 1  # not even its header
        return 0


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class _Salvage:
    """Reads the rows of a journal one by one, and counts those that it cannot."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._pieces = PieceStore(connection)
        self._numbers: dict[int, int] = {}
        self.lost = 0

    def copy_to(self, target: sqlite3.Connection) -> int:
        """Copy all that is readable; returns the number of changes."""
        self.lost, self._numbers = 0, {}
        books = {row[0]: row for row in self._rows("notebook")}
        for number, name in self._find_more_books() if self.lost else ():
            books.setdefault(number, (number, name, 0, 0, 0, None, None, None, None))
        states: dict[int, list[tuple[Any, ...]]] = {}
        changes: dict[int, list[ChangeRow]] = {}
        for row in self._rows("state"):
            states.setdefault(row[1], []).append(row)
        for row in self._rows("change"):
            change = ChangeRow(*row)
            if change.number is not None:
                changes.setdefault(change.notebook, []).append(change)
        copied, places = 0, {}
        store = PieceStore(target)
        for number, row in sorted(books.items(), key=lambda item: item[1][3]):
            places[number] = book = find_or_add_notebook(target, bytes(row[1])).id
            known = self._copy_states(target, store, book, states.get(number, ()))
            copied += self._copy_changes(target, book, row, known, changes.get(number, []))
        self._copy_snapshots(target, store, places)
        store.flush()
        for row in self._rows("execution"):
            if row[1] in places:
                target.execute(
                    "INSERT INTO execution (notebook, cell, cell_index, hash, source, kernel,"
                    " status, count, began, seconds, actor) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (places[row[1]], *row[2:]),
                )
        return copied

    def _copy_states(
        self, target: sqlite3.Connection, store: PieceStore, book: int, rows: Any
    ) -> dict[int, int]:
        """Copy the states of a notebook; returns their new numbers."""
        known = {}
        for row in rows:
            try:
                content = _states.load_state(self._connection, self._pieces, row[0])
                kept = self._keep(store, [n for n in (*content[:3], *content.cells) if n])
            except (JournalDamaged, sqlite3.Error):
                self.lost += 1
                continue
            skeleton, gaps, old = (kept[n] if n else 0 for n in content[:3])
            cells = [kept[n] for n in content.cells]
            known[row[0]] = _states.save_state(
                target, store, book, StateContent(skeleton, gaps, old, cells)
            )
        return known

    def _keep(self, store: PieceStore, numbers: list[int]) -> dict[int, int]:
        """Copy pieces that were not copied yet; returns the new number of each."""
        missing = [n for n in dict.fromkeys(numbers) if n not in self._numbers]
        loaded = self._pieces.load(missing)
        kept = store.keep([loaded[n] for n in missing])
        self._numbers.update(zip(missing, kept, strict=True))
        return {n: self._numbers[n] for n in numbers}

    def _copy_changes(
        self,
        target: sqlite3.Connection,
        book: int,
        row: tuple[Any, ...],
        known: dict[int, int],
        changes: list[ChangeRow],
    ) -> int:
        # The columns of a notebook: id, path, changes, touched, begun, first and last state.
        begun, first, revision, last, signature = row[4:9]
        count, has_first = target.execute(
            "SELECT changes, first_state IS NOT NULL FROM notebook WHERE id = ?", (book,)
        ).fetchone()
        if first in known and not has_first:
            target.execute(
                "UPDATE notebook SET first_state = ?, first_revision = ?, begun = ? WHERE id = ?",
                (known[first], revision, begun, book),
            )
        newest = known.get(first)
        copied = 0
        for change in sorted(changes, key=lambda change: change.number or 0):
            if change.before_state not in known or change.after_state not in known:
                self.lost += 1
                continue
            copied += 1
            newest = known[change.after_state]
            change = self._read_details(change)  # noqa: PLW2901
            target.execute(
                "INSERT OR IGNORE INTO change (handle, notebook, number, kind, actor, label, made,"
                " before_revision, after_revision, before_state, after_state, concerns, undone_by,"
                " origins, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(change.handle, book, count + copied, *change[4:10]),
                    *(known[change.before_state], newest, *change[12:]),
                ),
            )
        newest = known.get(last, newest)
        if newest is not None:
            target.execute(
                "UPDATE notebook SET changes = ?, last_state = ?, signature = ?,"
                " touched = (SELECT max(touched) + 1 FROM notebook) WHERE id = ?",
                (count + copied, newest, signature if last in known else None, book),
            )
        return copied

    def _read_details(self, change: ChangeRow) -> ChangeRow:
        """The change as it is, or without its details if they cannot be read: its states can."""
        try:
            decode_details(change.details)
            decode_origins(change.origins)
        except JournalDamaged:
            self.lost += 1
            return change._replace(details=encode_details([], []), origins="[]")
        return change

    def _copy_snapshots(
        self, target: sqlite3.Connection, store: PieceStore, places: dict[int, int]
    ) -> None:
        for _, notebook, revision, stretches in self._rows("snapshot"):
            try:
                loaded = self._pieces.load(numbers := unpack(stretches))
            except (JournalDamaged, sqlite3.Error):
                self.lost += 1
                continue
            if notebook in places:
                kept = store.keep([loaded[n] for n in numbers], NAMES)
                added = target.execute(
                    "INSERT OR IGNORE INTO snapshot (notebook, revision, stretches)"
                    " VALUES (?, ?, ?)",
                    (places[notebook], revision, pack(kept)),
                )
                if added.rowcount:
                    store.mention(kept)

    def _rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """All rows of a table that can be read, in the order of their ids."""
        last = 0
        while True:
            try:
                for row in self._connection.execute(
                    f"SELECT * FROM {table} WHERE id > ? ORDER BY id",  # noqa: S608
                    (last,),
                ):
                    last = row[0]
                    yield row
            except sqlite3.DatabaseError:
                self.lost += 1
            else:
                return
            row = self._find_after(table, last)
            if row is None:
                return
            last = row[0]
            yield row

    def _find_more_books(self) -> list[tuple[int, bytes]]:
        """The notebooks as their index has them, which is on other pages than their rows."""
        sql = "SELECT id, path FROM notebook INDEXED BY sqlite_autoindex_notebook_1"
        try:
            return self._connection.execute(sql).fetchall()
        except sqlite3.DatabaseError:
            return []

    def _find_after(self, table: str, last: int) -> tuple[Any, ...] | None:
        """The next row behind a damaged page, found by its id."""
        for number in range(last + 1, min(self._largest(table), last + _MOST_GAPS) + 1):
            try:
                row: tuple[Any, ...] | None = self._connection.execute(
                    f"SELECT * FROM {table} WHERE id = ?",  # noqa: S608
                    (number,),
                ).fetchone()
            except sqlite3.DatabaseError:
                continue
            if row is not None:
                return row
        return None

    def _largest(self, table: str) -> int:
        for question in (
            f"SELECT max(id) FROM {table}",  # noqa: S608
            f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",  # noqa: S608
        ):
            try:
                row = self._connection.execute(question).fetchone()
            except sqlite3.DatabaseError:
                continue
            return int(row[0]) if row and row[0] else 0
        return 0
