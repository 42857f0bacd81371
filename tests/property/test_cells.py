"""The cells of a notebook as read-only views of their bytes."""

from __future__ import annotations

import pytest
from hypothesis import given

from cellwright import Notebook
from cellwright.document._bytes.slots import FileSlots, Slot
from cellwright.errors import TooDeep
from tests.property import strategies
from tests.unit.document.samples import (
    fewer_examples,
)


@pytest.mark.parametrize("levels", [100, 1000, 5000, pytest.param(100_000, marks=pytest.mark.all)])
def test_no_depth_and_no_length_of_a_number_raises_anything_but_ours(levels: int) -> None:
    for value in ("[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels, "9" * levels):
        data = (
            f'{{"cells":[{{"cell_type":"raw","id":"aa","metadata":{{"deep":{value}}},"source":"x"}}],'
            f'"metadata":{{"deep":{value}}},"nbformat":4,"nbformat_minor":5,"top":{value}}}'
        ).encode()
        notebook = Notebook(data)
        assert notebook.cells[0].source == "x"
        assert notebook.revision
        notebook.apply([{"op": "replace", "cell": "aa", "source": "y"}, {"op": "insert"}])
        assert value.encode() in notebook.to_bytes()
        for read in (lambda n=notebook: n.cells[0].metadata, lambda n=notebook: n.metadata):
            try:
                assert read().keys() == {"deep"}
            except TooDeep:
                assert levels >= 1000


# --- Two ways of reading -------------------------------------------------------------------------


@given(strategies.files())
@fewer_examples
def test_both_ways_of_reading_all_cells_see_the_same(data: bytes) -> None:
    """A large file is surveyed by msgspec in one go, a small one cell by cell."""
    slots = Notebook(data).state.layout.slots
    assert isinstance(slots, FileSlots)
    fast = FileSlots.of_file(data, slots.starts, slots.ends, strict=True)
    careful = [Slot(data, a, b) for a, b in zip(slots.starts, slots.ends, strict=True)]
    found = fast.survey()
    assert (found.ids, found.types, found.texts(slice(None))) == (
        [slot.facts.id for slot in careful],
        [slot.facts.type for slot in careful],
        [slot.text for slot in careful],
    )
