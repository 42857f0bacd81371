"""States of notebooks stored in pieces and rebuilt to the byte; and snapshots of revisions.

A state is a skeleton, its cells, and the gaps between them. The cells are a list of stretches, and
a stretch is a list of neighbouring cells. Where a stretch ends depends only on its cells. So an
edit makes one new stretch, and states of ten thousand cells share all the others.

A snapshot is remembered when its revision is given to a reader, so that a later edit can be made
against it.
"""

from __future__ import annotations

import json
from itertools import chain, groupby
from typing import NamedTuple

from cellwright.document._bytes.slots import Slot
from cellwright.document.change import Pieces, State
from cellwright.document.notebook import Notebook
from cellwright.document.snapshot import Snapshot
from cellwright.journal._database import JournalDamaged
from cellwright.journal._store import CELLS, NAMES, PieceStore, cut, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from cellwright.document.change import CellChange, Change

_LONGEST_STRETCH = 256
# As with states, where a stretch ends depends only on its cells. Hashes are hex digits, and four
# of 256 first pairs end a stretch.
_ENDS = frozenset({"00", "01", "02", "03"})


class StateContent(NamedTuple):
    """A state as numbers of pieces; two are equal if their bytes are."""

    skeleton: int
    gaps: int
    old: int
    cells: list[int]


def keep_state(store: PieceStore, state: State) -> StateContent:
    """Store every byte of a state."""
    if state.old is not None:
        return StateContent(0, 0, store.keep([state.old])[0], [])
    layout = state.layout
    skeleton, gaps = store.keep([layout.skeleton, _encode_gaps(layout.gaps)])
    return StateContent(skeleton, gaps, 0, store.keep(_raw(layout.slots)))


def list_pieces(slots: Iterable[Slot], most: int) -> Iterator[list[memoryview]]:
    """The pieces that cells are stored as, in lists of about `most` bytes."""
    pieces: list[memoryview] = []
    size = 0
    for slot in slots:
        for piece in cut(memoryview(slot.buffer)[slot.start : slot.end]):
            pieces.append(piece)
            size += len(piece)
            if size >= most:
                yield pieces
                pieces, size = [], 0
    yield pieces


def changes_nothing(change: Change, cells: Sequence[CellChange]) -> bool:
    """Whether a change left every byte as it was; `cells` are the changed cells."""
    was, now = change.before.layout, change.after.layout
    return (
        change.before.old is change.after.old
        and was.skeleton == now.skeleton
        and all(
            cell.after is not None
            and cell.before == cell.after
            and was.slots[cell.after].raw == now.slots[cell.after].raw
            for cell in cells
        )
        and (was is now or was.gaps == now.gaps)
    )


def keep_changed_state(
    store: PieceStore, before: StateContent, change: Change, cells: Sequence[CellChange]
) -> StateContent:
    """Store the state after a change, from that before it; `cells` are the changed cells."""
    if change.before.old is not None or change.after.old is not None:
        return keep_state(store, change.after)
    was, now = change.before.layout, change.after.layout
    skeleton = before.skeleton
    if now.skeleton is not was.skeleton:
        (skeleton,) = store.keep([now.skeleton])
    if change.origins == range(len(before.cells)):
        numbers = list(before.cells)
    else:
        numbers = [before.cells[i] if i is not None else 0 for i in change.origins]
    # All other cells are the same as before.
    places = [cell.after for cell in cells if cell.after is not None]
    kept = store.keep(_raw([now.slots[j] for j in places]))
    for j, number in zip(places, kept, strict=True):
        numbers[j] = number
    (gaps,) = store.keep([_encode_gaps(now.gaps)])
    return StateContent(skeleton, gaps, 0, numbers)


def save_state(
    connection: sqlite3.Connection, store: PieceStore, notebook: int, content: StateContent
) -> int:
    """Insert a state; returns its number."""
    stretches = store.keep([pack(stretch) for stretch in _cut(content.cells)], CELLS)
    store.mention(stretches)
    store.mention(number for number in content[:3] if number)
    row = connection.execute(
        "INSERT INTO state (notebook, skeleton, gaps, old, stretches) VALUES (?, ?, ?, ?, ?)",
        (notebook, *content[:3], pack(stretches)),
    )
    return row.lastrowid or 0


def load_state(connection: sqlite3.Connection, store: PieceStore, state: int) -> StateContent:
    """The content of the state with this number."""
    return load_states(connection, store, [state])[0]


def load_states(
    connection: sqlite3.Connection, store: PieceStore, states: Sequence[int]
) -> list[StateContent]:
    """The contents of these states; what they share is read once."""
    sql = "SELECT skeleton, gaps, old, stretches FROM state WHERE id = ?"
    rows = [connection.execute(sql, (state,)).fetchone() for state in states]
    if None in rows:
        raise JournalDamaged("a state is missing")
    stretches = [unpack(row[3]) for row in rows]
    loaded = store.load(chain.from_iterable(stretches))
    lists = {number: unpack(piece) for number, piece in loaded.items()}
    return [
        StateContent(row[0], row[1], row[2], [*chain.from_iterable(lists[each] for each in mine)])
        for row, mine in zip(rows, stretches, strict=True)
    ]


def delete_state(connection: sqlite3.Connection, store: PieceStore, state: int) -> None:
    """Delete a state that nothing refers to."""
    row = connection.execute(
        "SELECT skeleton, gaps, old, stretches FROM state WHERE id = ?", (state,)
    ).fetchone()
    if row is None:
        return
    skeleton, gaps, old, stretches = row
    store.forget(unpack(stretches))
    store.forget(number for number in (skeleton, gaps, old) if number)
    connection.execute("DELETE FROM state WHERE id = ?", (state,))


def build_state(store: PieceStore, content: StateContent) -> State:
    """Build a state, byte for byte."""
    if content.old:
        return Notebook(store.load([content.old])[content.old]).state
    loaded = store.load([content.skeleton, content.gaps, *content.cells])
    skeleton = loaded[content.skeleton]
    cut = State.of_pieces(Pieces(skeleton, (), (b"",))).layout.cut
    gaps = _decode_gaps(loaded[content.gaps])
    cells = [loaded[number] for number in content.cells]
    woven = chain.from_iterable(zip(gaps, [*cells, b""], strict=True))
    # Parsing a whole file is much faster than parsing its cells one by one.
    return Notebook(b"".join([skeleton[:cut], *woven, skeleton[cut:]])).state


def build_state_beside(
    store: PieceStore, content: StateContent, other: State, others: StateContent
) -> State:
    """Build a state that shares its cells with `other`, as far as they are the same.

    Two states that share their cells are compared without reading every byte.
    """
    if content.old or others.old:
        return build_state(store, content)
    # A slot is an object for each cell, made when it is asked for: most are never.
    places = {number: place for place, number in enumerate(others.cells)}
    missing = [number for number in dict.fromkeys(content.cells) if number not in places]
    loaded = store.load([content.skeleton, content.gaps, *missing])
    skeleton, raw = loaded[content.skeleton], [loaded[number] for number in missing]
    pieces = Pieces(skeleton, raw, [b""] * (len(raw) + 1))
    new = dict(zip(missing, State.of_pieces(pieces).layout.slots, strict=True))

    def find(number: int) -> Slot:
        return new[number] if number in new else other.layout.slots[places[number]]

    layout = other.layout
    if content.skeleton != others.skeleton:
        layout = layout.with_skeleton(skeleton)
    if content.gaps == others.gaps:
        pairs = enumerate(zip(content.cells, others.cells, strict=True))
        return State(layout.with_replaced({i: find(a) for i, (a, b) in pairs if a != b}))
    slots = [find(number) for number in content.cells]
    return State(layout.with_cells(slots, _decode_gaps(loaded[content.gaps])))


def build_change_of(
    store: PieceStore, was: StateContent, now: StateContent, here: State
) -> tuple[State, State] | None:
    """Build the states before and after a change as if `here` were one of the two.

    That needs the changed cells alone. None if cells came, went or moved, or if `here` has the
    changed ones neither as they were nor as they became. None also if a changed cell has no id of
    its own: then which cell it is today is for a merge of the whole states to say.
    """
    slots = here.layout.slots
    if was.old or now.old or here.old is not None or was.gaps != now.gaps:
        return None
    if not len(was.cells) == len(now.cells) == len(slots):
        return None
    pairs = zip(was.cells, now.cells, strict=True)
    places = [place for place, (a, b) in enumerate(pairs) if a != b]
    ids, handle_of = here.snapshot.ids, here.snapshot.resolver.handle
    if any(handle_of(place) != ids[place] for place in places):
        return None
    changed = [content.cells[place] for place in places for content in (was, now)]
    loaded = store.load([was.skeleton, now.skeleton, *changed])
    for side, other in ((was, now), (now, was)):
        if here.layout.skeleton != loaded[side.skeleton]:
            continue
        if any(slots[place].raw != loaded[side.cells[place]] for place in places):
            continue
        layout = here.layout.with_replaced(
            {place: Slot.of(loaded[other.cells[place]]) for place in places}
        )
        if was.skeleton != now.skeleton:
            layout = layout.with_skeleton(loaded[other.skeleton])
        return (here, State(layout)) if side is was else (State(layout), here)
    return None


def _raw(slots: Sequence[Slot]) -> list[memoryview]:
    return [memoryview(slot.buffer)[slot.start : slot.end] for slot in slots]


def _cut(cells: list[int]) -> list[list[int]]:
    """Split a list after about one number in 64, and at the latest after `_LONGEST_STRETCH`."""
    # Fibonacci hashing: it spreads consecutive numbers evenly.
    ends = [i + 1 for i, n in enumerate(cells) if n * 0x9E3779B1 & 0xFC000000 == 0]
    stretches = []
    start = 0
    for end in [*ends, len(cells)]:
        while start < end:
            stretches.append(cells[start : min(end, start + _LONGEST_STRETCH)])
            start += len(stretches[-1])
    return stretches


def _encode_gaps(gaps: Sequence[bytes]) -> bytes:
    # Nearly all are the same, and the bytes between the values of a JSON array are ASCII.
    runs = [[len(list(same)), gap.decode("latin-1")] for gap, same in groupby(gaps)]
    return json.dumps(runs, separators=(",", ":")).encode()


def _decode_gaps(data: bytes) -> list[bytes]:
    gaps: list[bytes] = []
    for count, gap in json.loads(data):
        gaps += [gap.encode("latin-1")] * count
    return gaps


def is_snapshot_fresh(
    connection: sqlite3.Connection, notebook: int, revision: str, kept: int
) -> bool:
    """Whether a revision is remembered and will not be forgotten soon.

    The revisions before and after recorded changes need no snapshot.
    """
    row = connection.execute(
        "SELECT count(*) FROM snapshot WHERE notebook = ? AND id >= ("
        "SELECT id FROM snapshot WHERE notebook = ? AND revision = ?)",
        (notebook, notebook, revision),
    ).fetchone()
    return 0 < row[0] <= kept // 2 or _state_of(connection, notebook, revision) is not None


def remember_snapshot(
    connection: sqlite3.Connection, store: PieceStore, notebook: int, snapshot: Snapshot
) -> None:
    """Remember a snapshot as the newest of its notebook."""
    forget_snapshot(connection, store, notebook, snapshot.revision)
    stretches: list[list[tuple[str | None, str]]] = [[]]
    for id_, hash_ in zip(snapshot.ids, snapshot.hashes, strict=True):
        stretches[-1].append((id_, hash_))
        if hash_[:2] in _ENDS or len(stretches[-1]) == _LONGEST_STRETCH:
            stretches.append([])
    texts = [json.dumps(s, separators=(",", ":")).encode() for s in stretches if s]
    numbers = store.keep(texts, NAMES)
    store.mention(numbers)
    connection.execute(
        "INSERT INTO snapshot (notebook, revision, stretches) VALUES (?, ?, ?)",
        (notebook, snapshot.revision, pack(numbers)),
    )


def forget_snapshot(
    connection: sqlite3.Connection, store: PieceStore, notebook: int, revision: str
) -> None:
    """Forget one snapshot, if it is remembered."""
    row = connection.execute(
        "SELECT id, stretches FROM snapshot WHERE notebook = ? AND revision = ?",
        (notebook, revision),
    ).fetchone()
    if row is not None:
        store.forget(unpack(row[1]))
        connection.execute("DELETE FROM snapshot WHERE id = ?", (row[0],))


def forget_oldest_snapshots(
    connection: sqlite3.Connection, store: PieceStore, notebook: int, kept: int
) -> None:
    """Forget all but the newest snapshots of a notebook."""
    rows = connection.execute(
        "SELECT revision FROM snapshot WHERE notebook = ? ORDER BY id DESC LIMIT -1 OFFSET ?",
        (notebook, kept),
    ).fetchall()
    for (revision,) in rows:
        forget_snapshot(connection, store, notebook, revision)


def recall_snapshot(
    connection: sqlite3.Connection, store: PieceStore, notebook: int, revision: str
) -> Snapshot | None:
    """The snapshot of a revision, remembered or from a recorded state."""
    row = connection.execute(
        "SELECT stretches FROM snapshot WHERE notebook = ? AND revision = ?", (notebook, revision)
    ).fetchone()
    if row is None:
        state = _state_of(connection, notebook, revision)
        if state is None:
            return None
        content = load_state(connection, store, state)
        return build_state(store, content).snapshot
    numbers = unpack(row[0])
    loaded = store.load(numbers)
    cells = [cell for number in numbers for cell in json.loads(loaded[number])]
    return Snapshot(revision, [id_ for id_, _ in cells], [hash_ for _, hash_ in cells])


def _state_of(connection: sqlite3.Connection, notebook: int, revision: str) -> int | None:
    row = connection.execute(
        "SELECT CASE after_revision WHEN ? THEN after_state ELSE before_state END FROM change "
        "WHERE notebook = ? AND (after_revision = ? OR before_revision = ?) LIMIT 1",
        (revision, notebook, revision, revision),
    ).fetchone()
    return int(row[0]) if row is not None else None
