"""States in pieces: a skeleton, the cells and the gaps between them, and back to the byte.

The cells of a state are a list of stretches, and a stretch is a list of cells that stand beside
each other. Where one stretch ends depends on the cells alone, so that an edit makes one new
stretch, and states of ten thousand cells share all the others.
"""

from __future__ import annotations

import json
from itertools import chain, groupby
from typing import NamedTuple

from cellwright.document.change import Pieces, State
from cellwright.document.notebook import Notebook
from cellwright.journal._database import Damaged
from cellwright.journal._store import CELLS, Store, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from cellwright.document._bytes.slots import Slot
    from cellwright.document.change import CellChange, Change

_LONGEST = 256


class Content(NamedTuple):
    """A state as numbers of pieces: two are equal when their bytes are."""

    skeleton: int
    gaps: int
    old: int
    cells: list[int]


def keep(store: Store, state: State) -> Content:
    """Keep every byte of a state."""
    if state.old is not None:
        return Content(0, 0, store.keep([state.old])[0], [])
    layout = state.layout
    skeleton, gaps = store.keep([layout.skeleton, _encode_gaps(layout.gaps)])
    return Content(skeleton, gaps, 0, store.keep(_raw(layout.slots)))


def is_same(change: Change, cells: Sequence[CellChange]) -> bool:
    """Whether a change left every byte where it was; `cells` are those concerned."""
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


def keep_changed(
    store: Store, before: Content, change: Change, cells: Sequence[CellChange]
) -> Content:
    """Keep what a change made of a state that is kept already; `cells` are those concerned."""
    if change.before.old is not None or change.after.old is not None:
        return keep(store, change.after)
    was, now = change.before.layout, change.after.layout
    skeleton = before.skeleton
    if now.skeleton is not was.skeleton:
        (skeleton,) = store.keep([now.skeleton])
    if change.origins == range(len(before.cells)):
        numbers = list(before.cells)
    else:
        numbers = [before.cells[i] if i is not None else 0 for i in change.origins]
    # All other cells are the very same as before.
    places = [cell.after for cell in cells if cell.after is not None]
    kept = store.keep(_raw([now.slots[j] for j in places]))
    for j, number in zip(places, kept, strict=True):
        numbers[j] = number
    (gaps,) = store.keep([_encode_gaps(now.gaps)])
    return Content(skeleton, gaps, 0, numbers)


def save(connection: sqlite3.Connection, store: Store, notebook: int, content: Content) -> int:
    """Write a state down; the number it has from now on."""
    stretches = store.keep([pack(stretch) for stretch in _cut(content.cells)], CELLS)
    store.mention(stretches)
    store.mention(number for number in content[:3] if number)
    row = connection.execute(
        "INSERT INTO state (notebook, skeleton, gaps, old, stretches) VALUES (?, ?, ?, ?, ?)",
        (notebook, *content[:3], pack(stretches)),
    )
    return row.lastrowid or 0


def load(connection: sqlite3.Connection, store: Store, state: int) -> Content:
    """What was written down under a number."""
    row = connection.execute(
        "SELECT skeleton, gaps, old, stretches FROM state WHERE id = ?", (state,)
    ).fetchone()
    if row is None:
        raise Damaged("a state is missing")
    stretches = unpack(row[3])
    lists = store.load(stretches)
    return Content(
        row[0], row[1], row[2], list(chain.from_iterable(unpack(lists[n]) for n in stretches))
    )


def delete(connection: sqlite3.Connection, store: Store, state: int) -> None:
    """Forget a state that nothing refers to."""
    skeleton, gaps, old, stretches = connection.execute(
        "SELECT skeleton, gaps, old, stretches FROM state WHERE id = ?", (state,)
    ).fetchone()
    store.forget(unpack(stretches))
    store.forget(number for number in (skeleton, gaps, old) if number)
    connection.execute("DELETE FROM state WHERE id = ?", (state,))


def build(store: Store, content: Content) -> State:
    """The state, byte for byte."""
    if content.old:
        return Notebook(store.load([content.old])[content.old]).state
    loaded = store.load([content.skeleton, content.gaps, *content.cells])
    skeleton = loaded[content.skeleton]
    cut = State.of_pieces(Pieces(skeleton, (), (b"",))).layout.cut
    gaps = _decode_gaps(loaded[content.gaps])
    cells = [loaded[number] for number in content.cells]
    woven = chain.from_iterable(zip(gaps, [*cells, b""], strict=True))
    # A whole file is taken apart much faster than its cells one by one.
    return Notebook(b"".join([skeleton[:cut], *woven, skeleton[cut:]])).state


def build_beside(store: Store, content: Content, other: State, others: Content) -> State:
    """The same, with every cell that the `other` state has as well taken from there.

    Two states that share their cells are compared without a look at every byte.
    """
    if content.old or others.old:
        return build(store, content)
    shared = dict(zip(others.cells, other.layout.slots, strict=True))
    missing = [number for number in dict.fromkeys(content.cells) if number not in shared]
    loaded = store.load([content.skeleton, content.gaps, *missing])
    skeleton, raw = loaded[content.skeleton], [loaded[number] for number in missing]
    new = State.of_pieces(Pieces(skeleton, raw, [b""] * (len(raw) + 1))).layout.slots
    shared.update(zip(missing, new, strict=True))
    layout = other.layout
    if content.skeleton != others.skeleton:
        layout = layout.with_skeleton(skeleton)
    if content.gaps == others.gaps:
        pairs = enumerate(zip(content.cells, others.cells, strict=True))
        return State(layout.with_replaced({i: shared[a] for i, (a, b) in pairs if a != b}))
    slots = [shared[number] for number in content.cells]
    return State(layout.with_cells(slots, _decode_gaps(loaded[content.gaps])))


def _raw(slots: Sequence[Slot]) -> list[memoryview]:
    return [memoryview(slot.buffer)[slot.start : slot.end] for slot in slots]


def _cut(cells: list[int]) -> list[list[int]]:
    """Cut a list where one number in 64 says so, and at the latest after some."""
    # Fibonacci hashing: neighbours in number are spread evenly.
    ends = [i + 1 for i, n in enumerate(cells) if n * 0x9E3779B1 & 0xFC000000 == 0]
    stretches = []
    start = 0
    for end in [*ends, len(cells)]:
        while start < end:
            stretches.append(cells[start : min(end, start + _LONGEST)])
            start += len(stretches[-1])
    return stretches


def _encode_gaps(gaps: Sequence[bytes]) -> bytes:
    # Nearly all are alike; what stands between the values of a JSON array is ASCII.
    runs = [[len(list(same)), gap.decode("latin-1")] for gap, same in groupby(gaps)]
    return json.dumps(runs, separators=(",", ":")).encode()


def _decode_gaps(data: bytes) -> list[bytes]:
    gaps: list[bytes] = []
    for count, gap in json.loads(data):
        gaps += [gap.encode("latin-1")] * count
    return gaps
