"""Which cell of one version is which cell of another."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellwright import Snapshot
from cellwright.document import snapshot as aligning
from cellwright.document.snapshot import align

few_letters = st.text("abc", max_size=9)


def longest(old: str, new: str) -> int:
    """The length of the longest common sequence, by its definition."""

    @lru_cache(None)
    def best(i: int, j: int) -> int:
        if i == len(old) or j == len(new):
            return 0
        if old[i] == new[j]:
            return 1 + best(i + 1, j + 1)
        return max(best(i + 1, j), best(i, j + 1))

    return best(0, 0)


@given(few_letters, few_letters)
def test_the_common_sequence_is_a_longest_one(old: str, new: str) -> None:
    found = aligning._common(list(old), list(new))
    assert all(old[i] == new[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))
    assert len(found) == longest(old, new)


@given(few_letters, few_letters)
def test_of_very_many_cells_some_common_sequence_is_found(old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligning, "_EXACT", 0)
        found = aligning._common(list(old), list(new))
    assert all(old[i] == new[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))
    assert bool(found) == bool(set(old) & set(new))


some_ids = st.lists(st.sampled_from([None, "A", "B", "C", "D"]), max_size=7)


@given(st.data())
def test_no_cell_is_paired_twice_and_none_with_another_cell_s_id(draw: st.DataObject) -> None:
    sides = []
    for _ in range(2):
        ids = draw.draw(some_ids)
        hashes = draw.draw(st.lists(st.sampled_from("abc"), min_size=len(ids), max_size=len(ids)))
        sides.append(Snapshot("", ids, hashes))
    old, new = sides
    found = align(old, new)
    assert len(set(found.values())) == len(found)
    for i, j in found.items():
        one, two = old.ids[i], new.ids[j]
        if one is not None and two is not None and one != two:
            assert list(old.ids).count(one) > 1 or list(new.ids).count(two) > 1
    for i, id_ in enumerate(old.ids):
        if id_ is not None and list(old.ids).count(id_) == list(new.ids).count(id_) == 1:
            assert found[i] == list(new.ids).index(id_)
    same = align(old, old)
    assert same == {i: i for i in range(len(old.ids))}
