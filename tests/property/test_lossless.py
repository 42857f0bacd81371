"""Untouched bytes stay identical, whatever the file looks like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellwright import Notebook
from cellwright.document import costs
from cellwright.document._bytes import slots as slot_module
from cellwright.document._bytes.slots import FileSlots, Slot, Survey, SurveyMaker
from cellwright.document._json import fast
from cellwright.document._json import index as indexing
from tests.property import checks, strategies


@given(strategies.files())
def test_a_notebook_that_was_not_edited_keeps_every_byte(data: bytes) -> None:
    assert Notebook(data).to_bytes() == data
    layout = Notebook(data).state.layout
    assert b"".join(layout.with_cells(layout.slots, layout.gaps).parts()) == data


@given(strategies.files())
def test_both_parsers_find_the_same_cells(data: bytes) -> None:
    start = indexing.skip_space(data, 3 if data.startswith(indexing.BOM) else 0)
    careful = indexing.index_with_standard_library(data, start)
    spans = list(zip(careful.starts, careful.ends, strict=True))
    assert [data[a:b] for a, b in spans] == checks.anatomy(data).cells
    fast = indexing.index_by_measuring(data, start)
    if fast is not None:  # msgspec refuses lone surrogates
        assert (fast.starts, fast.ends) == (careful.starts, careful.ends)
        assert (fast.cells_open, fast.cells_close) == (careful.cells_open, careful.cells_close)
        assert fast.members.keys() == careful.members.keys()


@given(strategies.files(), st.integers(0, 200), st.integers(1, 400), st.integers(18, 40))
def test_blocks_of_any_size_have_the_same_cells(
    data: bytes, size: int, large: int, piece: int
) -> None:
    """Cells from `large` bytes on are decoded and hashed in pieces of `piece`."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((indexing, "LARGE_CELL_BYTES"), (slot_module, "LARGE_CELL_BYTES")):
            patch.setattr(module, name, large)
        for module, name in ((fast, "_PIECE"), (costs, "LONG_TEXT"), (slot_module, "LONG_TEXT")):
            patch.setattr(module, name, piece)
        _check_blocks(data, size)


def _check_blocks(data: bytes, size: int) -> None:
    start = indexing.skip_space(data, 3 if data.startswith(indexing.BOM) else 0)
    careful = indexing.index_with_standard_library(data, start)
    survey = SurveyMaker(len(data))
    found = indexing.index_in_blocks(data, start, survey.note, size)
    if found is None:  # written on one line, no cells, or cells that are not valid
        return
    assert found.blocks is not None
    spans = (careful.starts, careful.ends)
    assert [found.blocks.span(i) for i in range(found.blocks.count)] == list(
        zip(*spans, strict=True)
    )
    assert found.blocks.spans() == spans
    assert (found.cells_open, found.cells_close) == (careful.cells_open, careful.cells_close)
    assert found.members.keys() == careful.members.keys()
    slots = FileSlots.of_blocks(data, found.blocks, survey)
    one_by_one = [Slot(data, *span) for span in zip(*spans, strict=True)]
    assert [slot.row for slot in slots] == [slot.row for slot in one_by_one]
    revision, hashes = slots.survey().revision, [slot.hash for slot in slots]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_module, "LONG_TEXT", 2**40)
        assert revision == Survey.of(slot.row for slot in one_by_one).revision
        assert hashes == [slot.hash for slot in one_by_one]


@given(strategies.files(), strategies.text, st.data())
def test_replacing_a_source_changes_only_that_cell(data: bytes, source: str, draw: Any) -> None:
    notebook = Notebook(data)
    if not len(notebook.cells):
        return
    index = draw.draw(st.integers(0, len(notebook.cells) - 1))
    notebook.apply({"op": "replace", "cell": index, "source": source})
    after = notebook.to_bytes()
    checks.assert_only_cell_changed(data, after, index)
    old, new = checks.load(data)["cells"][index], checks.load(after)["cells"][index]
    assert checks.source_of(new) == source == Notebook(after).cells[index].source
    for key in old.keys() - {"source", "id"}:
        if not (key in ("outputs", "execution_count") and old["cell_type"] != "code"):
            assert old[key] == new[key]


@given(strategies.files(), strategies.text, st.sampled_from(["code", "markdown", "raw"]), st.data())
def test_inserting_a_cell_changes_no_other_byte(
    data: bytes, source: str, kind: str, draw: Any
) -> None:
    notebook = Notebook(data)
    index = draw.draw(st.integers(0, len(notebook.cells)))
    notebook.apply({"op": "insert", "source": source, "type": kind, "at": index})
    after = notebook.to_bytes()
    checks.assert_only_inserted(data, after, index)
    cell = checks.load(after)["cells"][index]
    assert (cell["cell_type"], checks.source_of(cell), cell["metadata"]) == (kind, source, {})
    assert ("id" in cell) == (notebook.nbformat_minor >= 5)
    assert (cell.get("outputs"), "execution_count" in cell) == (
        ([], True) if kind == "code" else (None, False)
    )


@given(strategies.files(), st.data())
def test_deleting_a_cell_changes_no_other_byte(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    if not len(notebook.cells):
        return
    index = draw.draw(st.integers(0, len(notebook.cells) - 1))
    notebook.apply({"op": "delete", "cell": index})
    checks.assert_only_deleted(data, notebook.to_bytes(), index)


@given(strategies.files(), st.data())
def test_moving_a_cell_keeps_the_bytes_of_all(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    count = len(notebook.cells)
    if not count:
        return
    index = draw.draw(st.integers(0, count - 1))
    place = draw.draw(st.integers(0, count))
    notebook.apply({"op": "move", "cell": index, "at": place})
    target = place - 1 if place > index else place
    checks.assert_only_moved(data, notebook.to_bytes(), index, target)


patches = st.dictionaries(
    strategies.keys,
    st.recursive(
        st.none() | st.booleans() | st.integers(-99, 99) | strategies.text,
        lambda inner: st.dictionaries(strategies.keys, inner, max_size=3),
        max_leaves=4,
    ),
    max_size=3,
)


@given(strategies.files(), patches, st.booleans(), st.data())
def test_metadata_of_a_cell_merge_as_rfc_7396_says(
    data: bytes, patch: dict[str, Any], merge: bool, draw: Any
) -> None:
    notebook = Notebook(data)
    if not len(notebook.cells):
        return
    index = draw.draw(st.integers(0, len(notebook.cells) - 1))
    notebook.apply({"op": "set_metadata", "cell": index, "metadata": patch, "merge": merge})
    after = notebook.to_bytes()
    checks.assert_only_cell_changed(data, after, index)
    old = checks.load(data)["cells"][index].get("metadata", {})
    expected = _merged(old, patch) if merge else _spelled(patch)
    assert checks.load(after)["cells"][index].get("metadata", {}) == expected


@given(strategies.files(), patches, st.booleans())
def test_metadata_of_the_notebook_change_no_cell(
    data: bytes, patch: dict[str, Any], merge: bool
) -> None:
    notebook = Notebook(data)
    notebook.apply({"op": "set_metadata", "metadata": patch, "merge": merge})
    after = notebook.to_bytes()
    checks.assert_only_metadata_changed(data, after)
    expected = _merged(checks.load(data)["metadata"], patch) if merge else _spelled(patch)
    assert checks.load(after)["metadata"] == expected


def _merged(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7396, section 2."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key), value)
        else:
            result[key] = _spelled(value)
    return result


def _spelled(value: Any) -> Any:
    """Numbers as `checks.load` gives them."""
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    return str(value) if type(value) is int else value


@st.composite
def edit_lists(draw: st.DrawFn, count: int) -> list[dict[str, Any]]:
    """Edits that make sense for a notebook of `count` cells, each cell touched once."""
    free = list(range(count))
    edits: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 5))):
        op = draw(st.sampled_from(["replace", "insert", "delete", "move", "type", "meta", "clear"]))
        if op == "insert":
            edits.append(
                {
                    "op": "insert",
                    "source": draw(strategies.text),
                    "type": draw(st.sampled_from(["code", "markdown", "raw"])),
                    "at": draw(st.integers(0, count)),
                }
            )
            continue
        if not free:
            continue
        cell = free.pop(draw(st.integers(0, len(free) - 1)))
        if op == "replace":
            edit: dict[str, Any] = {"op": "replace", "source": draw(strategies.text)}
            edit["outputs"] = draw(st.sampled_from(["keep", "clear"]))
        elif op == "move":
            edit = {"op": "move", "at": draw(st.integers(0, count))}
        elif op == "type":
            edit = {"op": "set_type", "type": draw(st.sampled_from(["code", "markdown", "raw"]))}
        elif op == "meta":
            edit = {"op": "set_metadata", "metadata": draw(patches)}
        elif op == "clear":
            edits.append({"op": "clear_outputs", "cells": [cell]})
            continue
        else:
            edit = {"op": "delete"}
        edits.append({**edit, "cell": cell})
    return edits


@given(strategies.files(), st.data())
def test_the_inverse_of_any_edits_gives_the_bytes_back(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    changes = []
    for _ in range(3):
        edits = draw.draw(edit_lists(len(notebook.cells)))
        before = notebook.to_bytes()
        changes.append((before, notebook.apply(edits)))
        assert Notebook(notebook.to_bytes()).revision == notebook.revision
    for before, change in reversed(changes):
        notebook.apply(change.inverse())
        assert notebook.to_bytes() == before


@given(strategies.files(valid=True), st.data())
def test_a_valid_notebook_stays_valid_whatever_is_edited(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    if notebook.validate() is not None:
        pytest.fail("the strategy should draw valid notebooks")
    edits = draw.draw(edit_lists(len(notebook.cells)))
    notebook.apply(edits)
    assert notebook.validate() is None


@given(strategies.files())
def test_an_edit_that_changes_nothing_changes_no_byte(data: bytes) -> None:
    notebook = Notebook(data)
    for cell in notebook.cells:
        notebook.apply({"op": "replace", "cell": cell.index, "source": cell.source})
        if cell.metadata:
            notebook.apply({"op": "set_metadata", "cell": cell.index, "metadata": {}})
        notebook.apply({"op": "set_type", "cell": cell.index, "type": cell.type})
    assert notebook.to_bytes() == data
