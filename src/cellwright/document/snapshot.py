"""What a reader saw: the order, ids and hashes of all cells, and the revision that names them.

A `Resolver` finds the cell that a caller means: by its exact id, then `cell-N`, then an integer.
`align` pairs the cells of two snapshots.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import cast

from cellwright.document._bytes.slots import hash_cell, survey_cells
from cellwright.errors import AmbiguousCell, CellNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cellwright.document._bytes.slots import Slot, Survey

__all__ = ["CellRef", "Resolver", "Snapshot", "align", "hash_cell"]
CellRef = str | int
_handle = re.compile(r"cell-(\d{1,9})", re.ASCII).fullmatch
_number = re.compile(r"-?\d{1,9}", re.ASCII).fullmatch
# Jupyter's ids are eight random hex digits; one in forty has no letter, and is still an id.
_number_as_id = re.compile(r"-?\d{1,7}", re.ASCII).fullmatch
# Up to this many comparisons, the longest common sequence is computed exactly.
_EXACT = 4_000_000


class Snapshot:
    """The ordered ids and hashes of a notebook's cells, and the revision that names them.

    Outputs, counts and metadata are not part of it, so a running cell does not change it. A
    snapshot from the journal is made from the revision, the ids and the hashes.
    """

    __slots__ = ("_hashes", "_resolver", "_revision", "_survey", "ids")

    def __init__(self, revision: str, ids: Sequence[str | None], hashes: Sequence[str]) -> None:
        self.ids = ids
        self._revision: str | None = revision
        self._hashes: Sequence[str] | None = hashes
        self._survey: Survey | None = None
        self._resolver: Resolver | None = None

    @classmethod
    def of(cls, slots: Sequence[Slot]) -> Snapshot:
        """The snapshot of these cells."""
        found = survey_cells(slots)
        snapshot = cls("", found.ids, ())
        snapshot._revision = snapshot._hashes = None
        snapshot._survey = found
        return snapshot

    @property
    def hashes(self) -> Sequence[str]:
        """A short hash of the type and source of each cell."""
        if self._hashes is None:
            assert self._survey is not None  # noqa: S101  # set where the hashes are not
            self._hashes = self._survey.hashes()
        return self._hashes

    @property
    def revision(self) -> str:
        """A short hash over the ordered ids, types and sources."""
        if self._revision is None:
            assert self._survey is not None  # noqa: S101  # set where the hashes are not
            self._revision = self._survey.revision
        return self._revision

    @property
    def resolver(self) -> Resolver:
        """Finds the cells of this snapshot."""
        if self._resolver is None:
            self._resolver = Resolver(self.ids)
        return self._resolver


class Resolver:
    """Finds cells by reference among ordered ids; None is a cell without an id."""

    __slots__ = ("_places", "_repeated", "ids")

    def __init__(self, ids: Sequence[str | None]) -> None:
        self.ids = ids
        # A dict of lists would cost more than all else that an edit of ten thousand cells does.
        self._places: dict[str | None, int] = dict(zip(ids, range(len(ids)), strict=True))
        self._repeated: dict[str, list[int]] = {}
        if len(self._places) < len(ids):
            for i, id_ in enumerate(ids):
                if id_ is not None and self._places[id_] != i:
                    self._repeated.setdefault(id_, []).append(i)
            for id_, places in self._repeated.items():
                places.append(self._places[id_])

    def index(self, ref: CellRef) -> int:
        """The index of the one cell that a reference means; it never guesses.

        Raises:
            CellNotFound: no cell has this id or position; the hint has similar ids.
            AmbiguousCell: two cells have that id.
        """
        if isinstance(ref, str):
            place = self._places.get(ref)
            if place is not None:
                if ref in self._repeated:
                    raise AmbiguousCell(ref, self._repeated[ref])
                return place
            found = _handle(ref)
            if found and int(found[1]) < len(self.ids):
                return int(found[1])
            # Where ids are numbers, a number that is not an id is more likely a deleted cell than
            # a position.
            if _number(ref) and not any(map(_number_as_id, self._known_ids())):
                return self._position(int(ref), ref)
        elif type(ref) is int:  # a bool is not an index
            return self._position(ref, ref)
        raise CellNotFound(ref, near=self._near(ref), count=len(self.ids))

    @property
    def handles(self) -> Sequence[str]:
        """The handles of all cells in order."""
        if not self._repeated and None not in self._places:  # of most notebooks
            return cast("Sequence[str]", self.ids)
        return [self.handle(index) for index in range(len(self.ids))]

    def handle(self, index: int) -> str:
        """A text that refers to exactly this cell: its id, or its position if that is ambiguous."""
        id_ = self.ids[index]
        if id_ is not None and id_ not in self._repeated:
            return id_
        # Another cell may have this text as its id; with leading zeros it still means this one.
        padded = (f"cell-{index:0{width}}" for width in range(1, 10))
        return next(handle for handle in padded if handle not in self._places)

    def _position(self, number: int, ref: CellRef) -> int:
        count = len(self.ids)
        if -count <= number < count:
            return number % count
        raise CellNotFound(ref, count=count)

    def _known_ids(self) -> list[str]:
        return [id_ for id_ in self._places if id_ is not None]

    def _near(self, ref: object) -> list[str]:
        from difflib import get_close_matches

        known = self._known_ids()
        text = str(ref)
        starts = [id_ for id_ in known if text and id_.startswith(text)]
        return list(dict.fromkeys(starts + get_close_matches(text, known)))[:3]


def align(old: Snapshot, new: Snapshot) -> dict[int, int]:
    """Pair the cells of two versions: old index to new index.

    First by ids that are unique on both sides. Then the rest by the longest common sequence of
    hashes, and by hashes that occur once on each side. Then what is left, without an id of its
    own, by position between those.
    """
    old_ids, new_ids = _unique(old.ids), _unique(new.ids)
    pairs = {i: new_ids[id_] for id_, i in old_ids.items() if id_ in new_ids}
    if len(pairs) in (len(old.ids), len(new.ids)):
        return pairs

    def may_pair(i: int, j: int) -> bool:
        # Two cells with different unique ids are two cells.
        return old.ids[i] not in old_ids or new.ids[j] not in new_ids

    # First among cells without a unique id: a cell with one is more likely a new cell.
    for with_ids in (False, True):
        taken = set(pairs.values())
        here = [
            i
            for i, id_ in enumerate(old.ids)
            if i not in pairs and (with_ids or id_ not in old_ids)
        ]
        there = [
            j
            for j, id_ in enumerate(new.ids)
            if j not in taken and (with_ids or id_ not in new_ids)
        ]
        common = _common([old.hashes[i] for i in here], [new.hashes[j] for j in there])
        pairs.update((here[a], there[b]) for a, b in common if may_pair(here[a], there[b]))
    _pair_by_hash(pairs, old, new, may_pair)
    _pair_by_position(pairs, len(old.ids), len(new.ids), may_pair)
    return pairs


def _unique(ids: Sequence[str | None]) -> dict[str, int]:
    count = Counter(ids)
    return {id_: i for i, id_ in enumerate(ids) if id_ is not None and count[id_] == 1}


def _pair_by_hash(
    pairs: dict[int, int], old: Snapshot, new: Snapshot, may_pair: Callable[[int, int], bool]
) -> None:
    """Pair cells that are left over and have the hash of exactly one other: they were moved."""
    taken = set(pairs.values())
    here = [i for i in range(len(old.ids)) if i not in pairs]
    there = [j for j in range(len(new.ids)) if j not in taken]
    count_here = Counter(old.hashes[i] for i in here)
    count_there = Counter(new.hashes[j] for j in there)
    places = {new.hashes[j]: j for j in there}
    for i in here:
        hash_ = old.hashes[i]
        if count_here[hash_] == 1 == count_there[hash_] and may_pair(i, places[hash_]):
            pairs[i] = places[hash_]


def _pair_by_position(
    pairs: dict[int, int], old_count: int, new_count: int, may_pair: Callable[[int, int], bool]
) -> None:
    """Between two matches that are neighbours in order, pair what is left, one by one."""
    taken = set(pairs.values())
    fixed = [(-1, -1), *sorted(pairs.items()), (old_count, new_count)]
    for (i, j), (next_i, next_j) in pairwise(fixed):
        free = [k for k in range(j + 1, next_j) if k not in taken]
        # Position means something only if the same number of cells is left on both sides.
        if len(free) != next_i - i - 1:
            continue
        left = zip(range(i + 1, next_i), free, strict=True)
        found = {a: b for a, b in left if may_pair(a, b)}
        pairs.update(found)
        taken.update(found.values())  # where cells were moved, stretches overlap


def _common(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The longest common subsequence, as pairs of indices."""
    head = 0
    while head < len(old) and head < len(new) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    pairs = [(i, i) for i in range(head)]
    pairs += _middle(old[head : len(old) - tail], new[head : len(new) - tail], head)
    pairs += [(len(old) - k, len(new) - k) for k in range(tail, 0, -1)]
    return pairs


def _middle(old: list[str], new: list[str], shift: int) -> list[tuple[int, int]]:
    if not old or not new:
        return []
    if len(old) * len(new) > _EXACT:
        from difflib import SequenceMatcher

        blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        return [(shift + b.a + k, shift + b.b + k) for b in blocks for k in range(b.size)]
    # lengths[i][j]: the longest common sequence of old[i:] and new[j:].
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        for j in range(len(new) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if old[i] == new[j] else max(below[j], row[j + 1])
    pairs = []
    i = j = 0
    while i < len(old) and j < len(new):
        if old[i] == new[j]:
            pairs.append((shift + i, shift + j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
