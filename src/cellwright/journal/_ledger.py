"""How a change gets into the journal: what the file held before, what was done, what it holds.

A change is announced before the file is replaced and confirmed afterwards. If its author dies in
between, the next look at the file tells which of the two it holds.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from cellwright.journal import _changes, _states
from cellwright.journal._changes import Facts, Row
from cellwright.journal._store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from cellwright.document._bytes.layout import Layout
    from cellwright.document.change import Change, State
    from cellwright.journal._states import Content


class Known(NamedTuple):
    """A state in memory, by what makes it up, that is known to be the one with this number."""

    layout: Layout
    old: bytes | None
    state: int
    content: Content | None

    @classmethod
    def of(cls, state: State, number: int, content: Content | None = None) -> Known:
        """What there is to know about a state that was found or written."""
        return cls(state.layout, state.old, number, content)

    def is_of(self, state: State) -> bool:
        """Whether it is about this state; one that only looks the same has to be compared."""
        return self.layout is state.layout and self.old is state.old


class Book(NamedTuple):
    """A notebook as it stands in its table."""

    id: int
    first_state: int | None
    last_state: int | None
    signature: str | None


def find(connection: sqlite3.Connection, path: bytes) -> Book | None:
    """The notebook at a path, if it was ever seen."""
    row = connection.execute(
        "SELECT id, first_state, last_state, signature FROM notebook WHERE path = ?", (path,)
    ).fetchone()
    return Book(*row) if row is not None else None


def find_or_add(connection: sqlite3.Connection, path: bytes) -> Book:
    """The notebook at a path."""
    book = find(connection, path)
    if book is not None:
        return book
    row = connection.execute(
        "INSERT INTO notebook (path, begun, touched)"
        " SELECT ?, ?, coalesce(max(touched), 0) + 1 FROM notebook",
        (path, int(time.time() * 1000)),
    )
    return Book(row.lastrowid or 0, None, None, None)


def announced(connection: sqlite3.Connection, book: Book) -> list[Row]:
    """Changes of which nobody has said yet that they were made."""
    return _changes.select(connection, "notebook = ? AND number IS NULL ORDER BY id", book.id)


class Writer:
    """Writes one change, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, path: bytes, known: Known | None) -> None:
        self.connection = connection
        self.store = Store(connection)
        self.book = find_or_add(connection, path)
        self.known = known if known and known.state == self.book.last_state else None

    def settle(self, state: State, signature: str | None) -> Row | None:
        """Take note of what the file holds; the `outside` change, if there was one."""
        last = self.book.last_state
        waiting = announced(self.connection, self.book)
        if last is None or (self.known and self.known.is_of(state) and not waiting):
            self._sign(signature)
            return None
        # If all its pieces are there already, this keeps nothing new.
        content = _states.keep(self.store, state)
        before = self._load(last)
        if content == before:
            self._sign(signature)
            self.known = Known.of(state, last, content)
            return None
        for row in waiting:
            if row.before_state == last and content == self._load(row.after_state):
                _changes.confirm(self.connection, row, signature)
                self.known = Known.of(state, row.after_state, content)
                self.book = self.book._replace(last_state=row.after_state)
                return None
        return self._outside(before, content, state, signature)

    def announce(self, change: Change, facts: Facts) -> Row | None:
        """Write down what is about to be done; None if it does nothing."""
        cells = change.cells
        if facts.kind != "create" and _states.is_same(change, cells):
            return None
        if self.book.last_state is None:
            self._begin(change.before)
        else:
            self.settle(change.before, None)
            self.withdraw()
        assert self.known is not None  # noqa: S101  # both ways lead to it
        before = self.known.content or self._load(self.known.state)
        after = _states.keep_changed(self.store, before, change, cells)
        if after == before and facts.kind != "create":
            return None
        number = _states.save(self.connection, self.store, self.book.id, after)
        row = _changes.insert(
            self.connection,
            self.book.id,
            change,
            facts,
            cells=cells,
            states=(self.known.state, number),
        )
        self.known = Known.of(change.after, number, after)
        return row

    def withdraw(self) -> None:
        """Drop what was announced and not made. Only who holds the notebook's lock can know."""
        for row in announced(self.connection, self.book):
            drop(self.connection, self.store, row)

    def _begin(self, state: State) -> None:
        """Keep the very first before-image."""
        content = _states.keep(self.store, state)
        number = _states.save(self.connection, self.store, self.book.id, content)
        self.connection.execute(
            "UPDATE notebook SET first_state = ?1, last_state = ?1, first_revision = ?2, begun = ?3"
            " WHERE id = ?4",
            (number, state.snapshot.revision, int(time.time() * 1000), self.book.id),
        )
        self.known = Known.of(state, number, content)
        self.book = self.book._replace(first_state=number, last_state=number)

    def _outside(
        self, before: Content, content: Content, state: State, signature: str | None
    ) -> Row:
        from cellwright.document.change import Change

        self.withdraw()
        then = _states.build_beside(self.store, before, state, content)
        number = _states.save(self.connection, self.store, self.book.id, content)
        change = Change.between(then, state)
        row = _changes.insert(
            self.connection,
            self.book.id,
            change,
            Facts(_changes.OUTSIDE, _changes.OUTSIDE, "", None),
            cells=change.cells,
            states=(self.book.last_state or 0, number),
        )
        self.known = Known.of(state, number, content)
        self.book = self.book._replace(last_state=number)
        return _changes.confirm(self.connection, row, signature)

    def _load(self, state: int) -> Content:
        if self.known is not None and self.known.state == state and self.known.content is not None:
            return self.known.content
        return _states.load(self.connection, self.store, state)

    def _sign(self, signature: str | None) -> None:
        if signature is not None and signature != self.book.signature:
            self.connection.execute(
                "UPDATE notebook SET signature = ? WHERE id = ?", (signature, self.book.id)
            )


def drop(connection: sqlite3.Connection, store: Store, row: Row) -> None:
    """Forget an announced change, with the state it would have led to."""
    connection.execute("DELETE FROM change WHERE id = ?", (row.id,))
    _states.delete(connection, store, row.after_state)
