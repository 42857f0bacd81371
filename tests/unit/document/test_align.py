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


def seen(cells: str, ids: str | None = None) -> Snapshot:
    """One cell a letter, which is its hash; `ids` has a letter for each, `.` for none."""
    letters = "." * len(cells) if ids is None else ids
    return Snapshot("", [None if id_ == "." else id_ for id_ in letters], list(cells))


def pairs(old: Snapshot, new: Snapshot) -> str:
    """The pairs as text: for every old cell the new index, or a dash."""
    found = align(old, new)
    assert len(set(found.values())) == len(found)
    return "".join(str(found[i]) if i in found else "-" for i in range(len(old.ids)))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # the longest common sequence
        ("", "", ""),
        ("abc", "abc", "012"),
        ("abc", "", "---"),
        ("", "abc", ""),
        ("abc", "xabc", "123"),
        ("abc", "axbc", "023"),
        ("abc", "ac", "0-1"),
        ("aab", "ab", "0-1"),
        ("abab", "ab", "01--"),
        ("xaxbxc", "abc", "-0-1-2"),
        # then, what is the same and stands alone: a move
        ("abcde", "bcdea", "40123"),
        ("abcd", "dcba", "3210"),
        # then the place, where as many are left on both sides
        ("abc", "aXc", "012"),
        ("abcd", "aXYd", "0123"),
        ("abc", "XbY", "012"),
        ("abc", "aXYc", "0-3"),
        ("abcd", "aXd", "0--2"),
        ("abc", "xyz", "012"),
        ("ab", "xyz", "--"),
    ],
)
def test_cells_without_ids_are_paired_by_what_they_say_and_then_by_place(
    old: str, new: str, expected: str
) -> None:
    assert pairs(seen(old), seen(new)) == expected


@pytest.mark.parametrize(
    ("old", "old_ids", "new", "new_ids", "expected"),
    [
        ("abc", "ABC", "abc", "ABC", "012"),
        ("abc", "ABC", "cab", "CAB", "120"),
        ("abc", "ABC", "xyz", "BCA", "201"),  # whatever they say now
        ("abc", "ABC", "abc", "XYZ", "---"),  # another id is another cell
        ("abc", "ABC", "aXc", "AXC", "0-2"),
        # an id that stands twice tells nothing
        ("ab", "AA", "ba", "AA", "10"),
        ("abc", "AAC", "xabc", "XAAC", "123"),
        ("abc", "ABC", "abbc", "ABBC", "013"),
        # an id that is missing on one side
        ("abc", "ABC", "abc", "A.C", "012"),
        ("abc", "A.C", "abc", "ABC", "012"),
        ("abc", "A.C", "aXc", "ABC", "012"),
        ("abc", "...", "abc", "ABC", "012"),
        ("abc", "ABC", "Xbc", "...", "012"),
    ],
)
def test_an_id_that_is_unique_on_both_sides_decides(
    old: str, old_ids: str, new: str, new_ids: str, expected: str
) -> None:
    assert pairs(seen(old, old_ids), seen(new, new_ids)) == expected


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
