"""Which cell of one version is which cell of another."""

from __future__ import annotations

import pytest

from cellwright import Snapshot
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
