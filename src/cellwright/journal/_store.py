"""Pieces: bytes that are stored once, however many states use them, packed to save space."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

from cellwright.document.costs import blake2b
from cellwright.journal._database import JournalDamaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    Bytes = bytes | memoryview

BYTES, CELLS, NAMES, LONG = range(4)
"""What a piece is: a part of a notebook, a list of such parts, a part of a snapshot, or a part of a
notebook that is so long that it is stored as a list of other pieces, its sections."""

# The same bytes may be all of these, and are then as many pieces.
_PERSONS = {BYTES: b"", CELLS: b"cells", NAMES: b"names", LONG: b"long"}
SECTION = 4 * 2**20
"""A longer piece is stored in sections of this size, which fit into transactions of their own."""

LISTS = (CELLS, LONG)
"""The kinds that count as uses of other pieces."""

_PLAIN, _ZLIB = range(2)
PIECE_COSTS = 8 * 1024
"""The smallest cost of a piece: deleting it takes as long as deleting this many bytes."""

# A row for each small cell would cost more than the cell; one row for all could never be freed.
_PACK = 256 * 1024
# Compressing must not delay an edit: the rest of a large notebook is stored as it is.
_COMPRESSED_AT_ONCE = 8 * 2**20
_SAMPLE = 2048
_DAMAGE = "a part of this history is damaged"
# SQLite accepts more, but the text of the statement grows with it.
_AT_ONCE = 500


class PieceStore:
    """The pieces, during one transaction; `flush` writes new pieces and counts.

    `added` is the cost of the new ones, in bytes. `budget` is how many bytes it may compress.
    """

    def __init__(self, connection: sqlite3.Connection, budget: int | None = None) -> None:
        self.budget = _COMPRESSED_AT_ONCE if budget is None else budget
        self._connection = connection
        self._new: dict[bytes, tuple[int, int, Bytes]] = {}
        self._mentions: Counter[int] = Counter()
        self._next = 0
        self.added = 0

    def keep(self, items: Sequence[Bytes], kind: int = BYTES) -> list[int]:
        """Store pieces; returns their numbers. The caller counts each use with `mention`."""
        kinds = [LONG if kind == BYTES and len(item) > SECTION else kind for item in items]
        hashes = [_hash(item, own) for item, own in zip(items, kinds, strict=True)]
        known = self._find_known(hashes)
        numbers = []
        for hash_, own, item in zip(hashes, kinds, items, strict=True):
            number = known.get(hash_)
            if number is None:
                data = pack(self.keep(list(cut(item)))) if own == LONG else item
                number = known[hash_] = self._number()
                self._new[hash_] = (number, own, data)
                self.added += max(len(data), PIECE_COSTS)
                if own in LISTS:
                    self.mention(unpack(bytes(data)))
            numbers.append(number)
        return numbers

    def mention(self, numbers: Iterable[int]) -> None:
        """Count one more use of each of these pieces."""
        self._mentions.update(numbers)

    def forget(self, numbers: Iterable[int]) -> None:
        """Count one use less of each; unused pieces are deleted later."""
        self._mentions.subtract(numbers)

    def flush(self) -> None:
        """Write the new pieces and the counts of uses."""
        rows = []
        for pack, members in self._packs():
            start = 0
            for hash_, number, kind, item in members:
                refs = self._mentions.pop(number, 0)
                rows.append((number, hash_, kind, refs, pack, start, len(item)))
                start += len(item)
        execute_many = self._connection.executemany
        execute_many("INSERT INTO piece VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        changes: dict[int, list[int]] = {}
        for number, by in self._mentions.items():
            changes.setdefault(by, []).append(number)
        changes.pop(0, None)
        for by, numbers in changes.items():  # most by one: all of these in one statement
            list(self._select(f"UPDATE piece SET refs = refs + {by} WHERE id IN (?)", numbers))  # noqa: S608
        self._new, self._mentions = {}, Counter()

    def load(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The bytes of pieces, checked against their hashes.

        Raises:
            JournalDamaged: a piece is missing, or its bytes have changed.
        """
        found: dict[int, bytes] = {}
        for number, kind, hash_, piece in self._read(numbers):
            whole = piece
            if kind == LONG:
                sections = unpack(piece)
                loaded = self.load(sections)
                whole = b"".join([loaded[section] for section in sections])
            if _hash(whole, kind) != hash_:
                raise JournalDamaged(_DAMAGE)
            found[number] = whole
        return found

    def list_members(self, numbers: Iterable[int]) -> list[int]:
        """The pieces that these lists of pieces mention; raises `JournalDamaged` as `load` does."""
        rows = self._read(numbers)
        return [member for _, _, _, piece in rows for member in unpack(piece)]

    def _read(self, numbers: Iterable[int]) -> Iterator[tuple[int, int, bytes, bytes]]:
        """The number, kind, hash and stored bytes of each piece."""
        wanted = list(dict.fromkeys(numbers))
        sql = "SELECT pack, id, kind, hash, start, size FROM piece WHERE id IN (?)"
        rows: list[tuple[int, int, int, bytes, int, int]] = sorted(self._select(sql, wanted))
        if len(rows) != len(wanted):
            raise JournalDamaged(_DAMAGE)
        opened, data = -1, b""
        for pack, number, kind, hash_, start, size in rows:
            if pack != opened:
                opened, data = pack, self._open(pack)
            yield number, kind, hash_, data if size == len(data) else data[start : start + size]

    def drop_dead_bytes(self) -> None:
        """Write those packs anew that have bytes of pieces that were deleted."""
        packs = self._connection.execute(
            "SELECT pack.id, codec, length(data), sum(size) FROM pack"
            " JOIN piece ON piece.pack = pack.id GROUP BY pack.id"
        ).fetchall()
        for pack, codec, length, used in packs:
            if used == (len(self._open(pack)) if codec == _ZLIB else length):
                continue
            members = self._connection.execute(
                "SELECT id, size FROM piece WHERE pack = ? ORDER BY start", (pack,)
            ).fetchall()
            found = self.load(number for number, _ in members)
            data = b"".join([found[number] for number, _ in members])
            row = self._connection.execute(
                "INSERT INTO pack (codec, data) VALUES (?, ?)",
                (codec, zlib.compress(data, 1) if codec == _ZLIB else data),
            )
            start = 0
            for number, size in members:
                self._connection.execute(
                    "UPDATE piece SET pack = ?, start = ? WHERE id = ?",
                    (row.lastrowid, start, number),
                )
                start += size
            self._connection.execute("DELETE FROM pack WHERE id = ?", (pack,))

    def _open(self, pack: int) -> bytes:
        row = self._connection.execute(
            "SELECT codec, data FROM pack WHERE id = ?", (pack,)
        ).fetchone()
        if row is None:
            raise JournalDamaged(_DAMAGE)
        codec, data = row
        try:
            return zlib.decompress(data) if codec == _ZLIB else bytes(data)
        except (zlib.error, TypeError):
            raise JournalDamaged(_DAMAGE) from None

    def _packs(self) -> Iterator[tuple[int, list[tuple[bytes, int, int, Bytes]]]]:
        """Write the new bytes in packs, each with its members; each list gets its own pack."""
        members: list[tuple[bytes, int, int, Bytes]] = []
        size = 0
        packs: list[list[tuple[bytes, int, int, Bytes]]] = []
        for hash_, (number, kind, item) in self._new.items():
            if kind != BYTES:
                packs.append([(hash_, number, kind, item)])
                continue
            if members and size + len(item) > _PACK:
                packs.append(members)
                members, size = [], 0
            members.append((hash_, number, kind, item))
            size += len(item)
        if members:
            packs.append(members)
        for pack in packs:
            data = pack[0][-1]
            if len(pack) > 1 or not isinstance(data, bytes):  # one may be large, and is not copied
                data = b"".join([item for *_, item in pack])
            codec = _PLAIN
            if len(data) <= self.budget and _is_worth_it(data):
                packed = zlib.compress(data, 1)
                self.budget -= len(data)
                if len(packed) < len(data) * 0.8:
                    codec, data = _ZLIB, packed
            row = self._connection.execute(
                "INSERT INTO pack (codec, data) VALUES (?, ?)", (codec, data)
            )
            yield row.lastrowid or 0, pack

    def _find_known(self, hashes: Sequence[bytes]) -> dict[bytes, int]:
        sql = "SELECT hash, id FROM piece WHERE hash IN (?)"
        known: dict[bytes, int] = dict(self._select(sql, list(set(hashes))))
        if self._new:
            known.update((h, self._new[h][0]) for h in hashes if h in self._new)
        return known

    def _number(self) -> int:
        if not self._next:
            sql = "SELECT seq FROM sqlite_sequence WHERE name = 'piece'"
            row = self._connection.execute(sql).fetchone()
            self._next = row[0] if row else 0
        self._next += 1
        return self._next

    def _select(self, sql: str, values: list[int] | list[bytes]) -> Iterator[Any]:
        for at in range(0, len(values), _AT_ONCE):
            part = values[at : at + _AT_ONCE]
            yield from self._connection.execute(
                sql.replace("(?)", f"({', '.join('?' * len(part))})"), part
            )


def pack(numbers: Sequence[int]) -> bytes:
    """A list of pieces as bytes."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpack(data: bytes) -> tuple[int, ...]:
    """The list of pieces that was packed."""
    try:
        return struct.unpack(f"<{len(data) // 4}I", data)
    except (struct.error, TypeError):
        raise JournalDamaged(_DAMAGE) from None


def cut(item: Bytes) -> Iterator[memoryview]:
    """The sections of a long piece."""
    view = memoryview(item)
    for at in range(0, len(view), SECTION):
        yield view[at : at + SECTION]


def _hash(item: Bytes, kind: int) -> bytes:
    if kind == LONG:
        made = blake2b(digest_size=16, person=_PERSONS[LONG])
        for section in cut(item):
            made.update(_hash(section, BYTES))
        return made.digest()
    return blake2b(item, digest_size=16, person=_PERSONS[kind]).digest()


def _is_worth_it(data: bytes) -> bool:
    """Whether compression is worth it, judged by a sample; base64, for example, is not."""
    if len(data) < 128:
        return False
    if len(data) <= 4 * _SAMPLE:
        return True
    middle = len(data) // 2
    sample = data[:_SAMPLE] + data[middle : middle + _SAMPLE]
    return len(zlib.compress(sample, 1)) < len(sample) * 0.6
