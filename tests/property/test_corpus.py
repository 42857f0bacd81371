"""Losslessness on notebooks that nobody here wrote: the test suites of the notebook tools."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright import Notebook
from tests import corpus
from tests.cases import for_each
from tests.property import checks

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus
every_notebook = for_each("path", corpus.notebooks(), name=corpus.ids, parts=4)


def editable(path: Path) -> tuple[bytes, Notebook, random.Random]:
    """A notebook of the corpus and dice of its own; old ones cannot be edited in place."""
    data = path.read_bytes()
    notebook = Notebook(data)
    if notebook.needs_upgrade:
        notebook.upgrade()
        data = notebook.to_bytes()
        notebook = Notebook(data)
    return data, notebook, random.Random(path.name)


def some_cell(notebook: Notebook, dice: random.Random) -> int | None:
    """A random cell that is valid; a broken one is not edited, only moved and deleted."""
    choice = [cell.index for cell in notebook.cells if cell.problem is None]
    return dice.choice(choice) if choice else None


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(corpus.notebooks()) > 450


@every_notebook
def test_saving_what_was_not_edited_changes_nothing(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    copy = tmp_path / f"copy-{path.name}"
    copy.write_bytes(data)
    notebook = cellwright.read(copy)
    assert notebook.to_bytes() == data
    cellwright.write(notebook, copy)
    assert copy.read_bytes() == data
    elsewhere = tmp_path / f"elsewhere-{path.name}"
    cellwright.write(notebook, elsewhere)
    assert elsewhere.read_bytes() == data


@every_notebook
def test_replacing_a_random_cell_changes_only_its_bytes(path: Path) -> None:
    data, notebook, dice = editable(path)
    index = some_cell(notebook, dice)
    if index is None:
        assert not [cell for cell in notebook.cells if cell.problem is None]
        return
    source = "# new\nprint('é')\n\nx = 1"
    notebook.apply({"op": "replace", "cell": index, "source": source})
    after = notebook.to_bytes()
    checks.assert_only_cell_changed(data, after, index)
    assert Notebook(after).cells[index].source == source


@every_notebook
def test_inserting_at_a_random_place_changes_no_other_byte(path: Path) -> None:
    data, notebook, dice = editable(path)
    index = dice.randrange(len(notebook.cells) + 1)
    notebook.apply({"op": "insert", "source": "a = 1\nb", "at": index})
    checks.assert_only_inserted(data, notebook.to_bytes(), index)


@every_notebook
def test_deleting_a_random_cell_changes_no_other_byte(path: Path) -> None:
    data, notebook, dice = editable(path)
    if not len(notebook.cells):
        return
    index = dice.randrange(len(notebook.cells))
    change = notebook.apply({"op": "delete", "cell": index})
    checks.assert_only_deleted(data, notebook.to_bytes(), index)
    notebook.apply(change.inverse())
    assert notebook.to_bytes() == data


@every_notebook
def test_moving_a_random_cell_keeps_the_bytes_of_all(path: Path) -> None:
    data, notebook, dice = editable(path)
    count = len(notebook.cells)
    if not count:
        return
    index, place = dice.randrange(count), dice.randrange(count + 1)
    notebook.apply({"op": "move", "cell": index, "at": place})
    target = place - 1 if place > index else place
    checks.assert_only_moved(data, notebook.to_bytes(), index, target)


@every_notebook
def test_metadata_of_a_random_cell_and_of_the_notebook_change_nothing_else(path: Path) -> None:
    data, notebook, dice = editable(path)
    index = some_cell(notebook, dice)
    if index is not None:
        notebook.apply({"op": "set_metadata", "cell": index, "metadata": {"x_new": {"a": [1]}}})
        after = notebook.to_bytes()
        checks.assert_only_cell_changed(data, after, index)
        assert Notebook(after).cells[index].metadata["x_new"] == {"a": [1]}
    before = notebook.to_bytes()
    notebook.apply({"op": "set_metadata", "metadata": {"x_new": {"b": "é"}}})
    checks.assert_only_metadata_changed(before, notebook.to_bytes())
    assert Notebook(notebook.to_bytes()).metadata["x_new"] == {"b": "é"}


@every_notebook
def test_a_valid_notebook_is_valid_after_a_list_of_edits(path: Path) -> None:
    _, notebook, dice = editable(path)
    if notebook.validate() is not None:
        return
    count = len(notebook.cells)
    edits: list[dict[str, object]] = [{"op": "insert", "source": "x", "type": "markdown"}]
    if count:
        cell = dice.randrange(count)
        edits += [
            {"op": "set_type", "cell": cell, "type": dice.choice(["code", "markdown", "raw"])},
            {"op": "replace", "cell": cell, "source": "y", "outputs": "clear"},
            {"op": "move", "cell": cell, "at": 0},
            {"op": "clear_outputs"},
        ]
    notebook.apply(edits)
    assert notebook.validate() is None
