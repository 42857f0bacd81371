"""Merging loses nothing and doubles nothing, whatever both sides did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from cellwright import Notebook, merge
from tests.property import strategies
from tests.property.test_lossless import edit_lists

if TYPE_CHECKING:
    from cellwright import Cell


def edited(data: bytes, draw: Any, *, metadata: bool = True) -> Notebook:
    """The notebook after a list of edits, or two."""
    notebook = Notebook(data)
    for _ in range(draw.draw(st.integers(1, 2))):
        notebook.apply(draw.draw(edit_lists(len(notebook.cells))))
    if metadata and draw.draw(st.booleans()):
        value = draw.draw(st.integers(0, 9))
        notebook.apply({"op": "set_metadata", "metadata": {"k": {str(value): value}}})
    return notebook


def raws(notebook: Notebook) -> list[bytes]:
    return [cell.raw for cell in notebook.cells]


@given(strategies.files(), st.data())
def test_what_only_the_current_side_did_is_the_result_to_the_byte(data: bytes, draw: Any) -> None:
    base, current = Notebook(data), edited(data, draw)
    merged = merge(base, current, base)
    assert merged.conflicts == ()
    assert merged.notebook.to_bytes() == current.to_bytes()


@given(strategies.files(), st.data())
def test_what_only_the_other_side_did_is_taken_over(data: bytes, draw: Any) -> None:
    base, other = Notebook(data), edited(data, draw)
    merged = merge(base, base, other)
    assert merged.conflicts == ()
    assert raws(merged.notebook) == raws(other)
    assert merged.notebook.metadata == other.metadata


@given(strategies.files(), st.data())
def test_the_same_on_both_sides_is_the_result_to_the_byte(data: bytes, draw: Any) -> None:
    base, both = Notebook(data), edited(data, draw)
    merged = merge(base, both, Notebook(both.to_bytes()))
    assert merged.conflicts == ()
    assert merged.notebook.to_bytes() == both.to_bytes()


@st.composite
def notebooks_with_ids(draw: st.DrawFn) -> bytes:
    """A valid notebook in which every cell has an id of its own."""
    value = draw(strategies.values(valid=True))
    value["nbformat_minor"] = 5
    for number, cell in enumerate(value["cells"]):
        cell["id"] = f"cell_{number}"
    return strategies.write(value, draw(strategies.styles))


def by_id(notebook: Notebook) -> dict[str | None, Cell]:
    cells = {cell.id: cell for cell in notebook.cells}
    assert len(cells) == len(notebook.cells)
    return cells


def disjoint(edits: list[dict[str, Any]], mine: set[int]) -> list[dict[str, Any]]:
    """Those of some edits that touch only certain cells, or none."""
    kept = []
    for edit in edits:
        touched = edit.get("cells", [edit["cell"]] if "cell" in edit else [])
        if set(touched) <= mine:
            kept.append(edit)
    return kept


@given(notebooks_with_ids(), st.data())
def test_edits_of_different_cells_are_all_in_the_result(data: bytes, draw: Any) -> None:
    base = Notebook(data)
    count = len(base.cells)
    mine = set(draw.draw(st.lists(st.integers(0, max(count - 1, 0)), unique=True)))
    theirs = set(range(count)) - mine
    current, other = Notebook(data), Notebook(data)
    current.apply(disjoint(draw.draw(edit_lists(count)), mine))
    other.apply(disjoint(draw.draw(edit_lists(count)), theirs))

    merged = merge(base, current, other)

    assert merged.conflicts == ()
    was, here, there = by_id(base), by_id(current), by_id(other)
    expected = {}
    for id_ in {**was, **here, **there}:
        if id_ not in was:
            expected[id_] = (here.get(id_) or there[id_]).raw
        elif id_ in here and id_ in there:
            changed = there[id_].raw != was[id_].raw
            expected[id_] = there[id_].raw if changed else here[id_].raw
    assert {id_: cell.raw for id_, cell in by_id(merged.notebook).items()} == expected
    assert merged.notebook.validate() is None


@given(notebooks_with_ids(), st.data())
def test_no_cell_is_lost_or_doubled_or_made_up(data: bytes, draw: Any) -> None:
    base, current, other = Notebook(data), edited(data, draw), edited(data, draw)

    merged = merge(base, current, other)

    was, here, there = by_id(base), by_id(current), by_id(other)
    result = by_id(merged.notebook)
    disputed = {conflict.handle for conflict in merged.conflicts}
    for id_ in {**was, **here, **there}:
        if id_ not in was:
            assert result[id_].raw == (here.get(id_) or there[id_]).raw
        elif id_ not in here:
            assert id_ not in result
            assert (id_ in disputed) == (id_ in there and there[id_].hash != was[id_].hash)
        elif id_ not in there:
            edited_here = here[id_].hash != was[id_].hash
            assert (id_ in result) == (id_ in disputed) == edited_here
        elif id_ in disputed or there[id_].raw == was[id_].raw:
            assert result[id_].raw == here[id_].raw
        elif here[id_].raw == was[id_].raw:
            assert result[id_].raw == there[id_].raw
        else:
            assert result[id_].source in (here[id_].source, there[id_].source)
            assert result[id_].type in (here[id_].type, there[id_].type)
    assert set(result) <= {**was, **here, **there}.keys()
    assert merged.notebook.validate() is None
    assert Notebook(merged.notebook.to_bytes()).revision == merged.notebook.revision


@given(strategies.files(), st.data())
def test_any_notebook_can_be_merged_and_every_cell_comes_from_a_side(
    data: bytes, draw: Any
) -> None:
    base, current, other = Notebook(data), edited(data, draw), edited(data, draw)

    merged = merge(base, current, other).notebook

    known = {cell.hash for side in (current, other) for cell in side.cells}
    mixed = {cell.source for side in (current, other) for cell in side.cells}
    for cell in merged.cells:
        assert cell.hash in known or cell.source in mixed
    assert Notebook(merged.to_bytes()).revision == merged.revision
    assert merge(base, base, base).notebook.to_bytes() == data


@given(st.data())
def test_without_ids_a_cell_that_nobody_touched_is_there_once(draw: Any) -> None:
    """Also where both sides moved it, which without ids looks like a delete and an insert."""
    count = draw.draw(st.integers(1, 6))
    cells = [
        {"cell_type": "raw", "metadata": {}, "source": f"cell {number}"} for number in range(count)
    ]
    value = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    data = strategies.write(value, draw.draw(strategies.styles))
    base, current, other = Notebook(data), edited(data, draw), edited(data, draw)

    merged = merge(base, current, other).notebook

    was, here, there, found = (
        Counter(cell.hash for cell in side.cells) for side in (base, current, other, merged)
    )
    for hash_ in was:
        if was[hash_] == here[hash_] == there[hash_] == 1:
            assert found[hash_] == 1
