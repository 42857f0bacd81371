"""What a hash and a revision stand for: the order, ids, types and sources of cells, no more."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cellwright import Notebook
from tests.property import strategies
from tests.unit.document.samples import (
    fewer_examples,
)


@given(st.data())
@fewer_examples
def test_writing_a_cell_another_way_changes_no_hash(draw: Any) -> None:
    value = draw.draw(strategies.values())
    one = Notebook(strategies.write(value, draw.draw(strategies.styles)))
    two = Notebook(strategies.write(value, draw.draw(strategies.styles)))
    assert [cell.hash for cell in one.cells] == [cell.hash for cell in two.cells]
    assert one.revision == two.revision


@given(strategies.files(), st.data())
@fewer_examples
def test_the_revision_is_that_of_the_file_when_it_is_read_again(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    for cell in list(notebook.cells)[:2]:
        edit = {"op": "replace", "cell": cell.index, "source": draw.draw(strategies.text)}
        notebook.apply(edit)
    notebook.apply({"op": "insert", "source": draw.draw(strategies.text), "at": 0})
    again = Notebook(notebook.to_bytes())
    assert again.revision == notebook.revision
    assert [cell.hash for cell in again.cells] == [cell.hash for cell in notebook.cells]
