"""How a caller points at a cell: an exact id, then `cell-N`, then an integer; never a guess."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cellwright.document.snapshot import Resolver
from tests.unit.document.test_refs import NO, TWO, find

# Ids that look like handles or positions, and ids that several cells have.
odd_ids = st.one_of(
    st.none(),
    st.sampled_from(
        ["", "0", "1", "2", "-1", "00", "cell-0", "cell-1", "cell-2", "cell-00", "cell-01", "a"]
    ),
    st.integers(-12, 12).map(str),
    st.integers(0, 12).map("cell-{}".format),
    st.text(max_size=3),
)


@given(st.lists(odd_ids, max_size=12))
@example([None, "cell-0"])
@example([None, "cell-0", "0"])
@example(["x", "x", "cell-0", "0", "cell-00"])
@example(["0", "0"])
def test_every_handle_finds_its_own_cell_again(ids: list[str | None]) -> None:
    resolver = Resolver(ids)
    handles = [resolver.handle(i) for i in range(len(ids))]
    assert len(set(handles)) == len(handles)
    assert [resolver.index(handle) for handle in handles] == list(range(len(ids)))


@given(st.lists(odd_ids, max_size=12), st.one_of(odd_ids, st.integers(-15, 15)))
def test_no_reference_ever_finds_a_cell_that_it_does_not_name(
    ids: list[str | None], ref: str | int | None
) -> None:
    found = find(ids, ref)
    places = [i for i, id_ in enumerate(ids) if ref is not None and id_ == ref]
    if places:
        assert found == (places[0] if len(places) == 1 else TWO)
    elif isinstance(found, int):
        number = int(str(ref).removeprefix("cell-"))
        assert found == number % len(ids)
        assert -len(ids) <= number < len(ids)
    else:
        assert found == NO
