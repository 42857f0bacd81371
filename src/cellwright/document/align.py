"""Which cell of one version is which cell of another."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cellwright.document.revision import Snapshot

# Up to this many comparisons the longest common sequence is found exactly.
_EXACT = 4_000_000


def align(old: Snapshot, new: Snapshot) -> dict[int, int]:
    """Pair the cells of two versions: old index to new index.

    By ids that are unique on both sides; what then remains by the longest common sequence of
    hashes, and by hashes that stand once on each side; and what then remains, without an id of
    its own, by position between those.
    """
    old_ids, new_ids = _unique(old.ids), _unique(new.ids)
    pairs = {i: new_ids[id_] for id_, i in old_ids.items() if id_ in new_ids}
    if len(pairs) in (len(old.ids), len(new.ids)):
        return pairs

    def may_pair(i: int, j: int) -> bool:
        # Two cells with an id of their own, and not the same one, are two cells.
        return old.ids[i] not in old_ids or new.ids[j] not in new_ids

    # First among cells without an id of their own: one that has got an id is likelier a new one.
    for everyone in (False, True):
        taken = set(pairs.values())
        here = [
            i
            for i, id_ in enumerate(old.ids)
            if i not in pairs and (everyone or id_ not in old_ids)
        ]
        there = [
            j
            for j, id_ in enumerate(new.ids)
            if j not in taken and (everyone or id_ not in new_ids)
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
    """Pair what is left over and says the same as just one other: it was moved."""
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
        # Only where as many are left on both sides is position worth anything.
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
