"""The text view is exact on notebooks that nobody here wrote."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from cellwright import Notebook
from cellwright.errors import InvalidCell, NeedsUpgrade
from cellwright.text.combine import edits_for, from_text
from cellwright.text.view import (
    drop_last_newline,
    end_with_newline,
    parse_text,
    render_text,
    to_text,
)
from tests import corpus
from tests.cases import for_each
from tests.property import checks

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus
every_notebook = for_each("path", corpus.notebooks(), name=corpus.ids, parts=4)


def readable(path: Path) -> tuple[bytes, Notebook] | None:
    """A notebook of the corpus; None, and a named refusal, if one of its cells is broken."""
    data = path.read_bytes()
    notebook = Notebook(data)
    broken = [cell.index for cell in notebook.cells if cell.problem]
    if not broken:
        return data, notebook
    with pytest.raises(InvalidCell) as raised:
        to_text(notebook)
    assert raised.value.index == broken[0]
    return None


@every_notebook
def test_rendering_and_parsing_is_the_identity_for_every_real_notebook(path: Path) -> None:
    found = readable(path)
    if found is None:
        return
    data, notebook = found
    text = to_text(notebook)
    assert [(cell.type, cell.source, cell.number) for cell in parse_text(text)] == [
        (cell.type, cell.source, cell.index) for cell in notebook.cells
    ]
    assert edits_for(parse_text(text), notebook) == []
    assert edits_for(parse_text(text), notebook, notebook.snapshot()) == []
    again = from_text(drop_last_newline(end_with_newline(text)), base=notebook)
    assert again.to_bytes() == data
    assert [cell.id for cell in again.cells] == [cell.id for cell in notebook.cells]
    assert to_text(again) == text


@every_notebook
def test_changing_one_line_changes_only_that_cell_of_a_real_notebook(path: Path) -> None:
    found = readable(path)
    if found is None:
        return
    data, notebook = found
    view = render_text(notebook)
    places = [place for place in view.cells if place.cell.source]
    if not places:
        assert not any(cell.source for cell in notebook.cells)
        return
    dice = random.Random(path.name)
    place = dice.choice(places)
    lines = list(view.lines)
    lines[dice.randint(place.first, place.last) - 1] += "  # changed: é"
    text = "\n".join(lines)
    if notebook.needs_upgrade:
        with pytest.raises(NeedsUpgrade):
            from_text(text, base=notebook)
        return
    result = from_text(text, base=notebook)
    checks.assert_only_cell_changed(data, result.to_bytes(), place.cell.index)
    assert "  # changed: é" in Notebook(result.to_bytes()).cells[place.cell.index].source


@every_notebook
def test_shuffled_text_shuffles_a_real_notebook_byte_by_byte(path: Path) -> None:
    found = readable(path)
    if found is None or found[1].needs_upgrade:
        return
    data, notebook = found
    view = render_text(notebook)
    blocks = ["\n".join(view.lines[p.marker - 1 : p.last]) for p in view.cells]
    order = list(range(len(blocks)))
    random.Random(path.name).shuffle(order)
    result = from_text("\n".join(blocks[i] for i in order), base=notebook)
    old, new = checks.anatomy(data), checks.anatomy(result.to_bytes())
    assert new.cells == [old.cells[i] for i in order]
    assert new.frame == old.frame


def test_almost_every_notebook_of_the_corpus_is_readable() -> None:
    """So that the tests above cannot pass by refusing."""
    books = [Notebook(path.read_bytes()) for path in corpus.notebooks()]
    broken = [book for book in books if any(cell.problem for cell in book.cells)]
    assert len(broken) < len(books) / 20
