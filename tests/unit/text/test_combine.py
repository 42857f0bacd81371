"""A text written back into the notebook it came from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cellwright import Notebook
from cellwright.document.edits import Delete, Insert, Move, Replace, SetType
from cellwright.errors import InvalidCell, InvalidText, NeedsUpgrade
from cellwright.text.combine import edits_for, from_text
from cellwright.text.view import parse_text, to_text
from tests.unit.text.samples import STREAM, book, cell, sources, text

RICH = {"tags": ["keep"], "nested": {"a": [1, None]}}
ATTACHED = {"a.png": {"image/png": "QUJD"}}


def rich_book() -> Notebook:
    return book(
        cell("code", "x = 1", "aa", metadata=RICH, outputs=[STREAM], execution_count=3),
        cell("markdown", "text", "bb", metadata=RICH, attachments=ATTACHED),
        cell("raw", "raw", "cc"),
        minor=5,
    )


def values(notebook: Notebook) -> list[dict[str, Any]]:
    return [found.to_dict() for found in notebook.cells]


def test_a_marker_with_a_number_keeps_all_of_that_cell_but_source_and_type() -> None:
    """S3: the cell is cloned, its type and source are updated."""
    notebook = rich_book()
    edited = from_text(
        text("# %% [code] cell:0", "x = 2", "# %% [markdown] cell:1", "more", "# %% [code] cell:2"),
        base=notebook,
    )
    old, new = values(notebook), values(edited)
    assert new[0] == {**old[0], "source": "x = 2"}
    assert new[1] == {**old[1], "source": "more"}
    assert new[2] == {
        **old[2], "cell_type": "code", "source": "", "execution_count": None, "outputs": []
    }  # fmt: skip
    assert sources(notebook) == ["x = 1", "text", "raw"]


def test_text_that_was_not_changed_changes_no_byte() -> None:
    notebook = rich_book()
    again = from_text(to_text(notebook), base=notebook)
    assert again.to_bytes() == notebook.to_bytes()
    assert edits_for(parse_text(to_text(notebook)), notebook) == []


def test_metadata_stays_with_the_cell_that_a_marker_refers_to() -> None:
    edited = from_text(
        text("# %% [markdown] cell:1", "new text", "# %% [code] cell:0", "y"), base=rich_book()
    )
    assert [found.metadata for found in edited.cells] == [RICH, RICH]
    assert [found.id for found in edited.cells] == ["bb", "aa"]
    assert edited.cells[0].attachments == ATTACHED
    assert edited.cells[1].to_dict()["outputs"] == [STREAM]


@pytest.mark.parametrize("number", ["", " cell:0", " cell:3", " cell:99999999999999999999999"])
@pytest.mark.parametrize("kind", ["code", "markdown", "raw"])
def test_any_other_marker_makes_a_new_cell_with_empty_metadata(kind: str, number: str) -> None:
    """S3: missing, used before, out of range."""
    notebook = rich_book()
    edited = from_text(to_text(notebook) + f"\n# %% [{kind}]{number}\nnew", base=notebook)
    assert values(edited)[:3] == values(notebook)
    value = values(edited)[3]
    assert value.pop("id") not in {"aa", "bb", "cc", None}
    extra = {"execution_count": None, "outputs": []} if kind == "code" else {}
    assert value == {"cell_type": kind, "metadata": {}, "source": "new", **extra}


def test_the_first_use_of_a_number_has_the_cell() -> None:
    notebook = book(cell("code", "a", "aa"), minor=5)
    edited = from_text(text("# %% [code] cell:0", "b", "# %% [code] cell:0", "a"), base=notebook)
    assert sources(edited) == ["b", "a"]
    assert edited.cells[0].id == "aa"
    assert edited.cells[1].id != "aa"


def test_a_cell_that_becomes_code_gets_outputs_and_a_count() -> None:
    edited = from_text(text("# %% [code] cell:0", "# Title"), base=book(cell("raw", "# Title")))
    assert values(edited)[0] == cell("code", "# Title")


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_cell_that_becomes_text_loses_outputs_and_count(kind: str) -> None:
    notebook = book(cell("code", "x", outputs=[STREAM], execution_count=2))
    edited = from_text(text(f"# %% [{kind}] cell:0", "x"), base=notebook)
    assert values(edited)[0] == cell(kind, "x")


def test_cells_that_the_text_leaves_out_are_deleted() -> None:
    notebook = book(cell("code", "a"), cell("code", "b"), cell("code", "c"))
    edited = from_text(text("# %% [code] cell:1", "b"), base=notebook)
    assert sources(edited) == ["b"]
    assert sources(from_text("", base=notebook)) == []


def test_without_a_notebook_the_text_starts_from_an_empty_one_of_4_5() -> None:
    """S3: missing notebooks start from an empty nbformat 4.5 notebook."""
    made = from_text(text("# %% [markdown]", "# Hello", "", "# %% [code] cell:4", "a", "b"))
    value = json.loads(made.to_bytes())
    assert (value["nbformat"], value["nbformat_minor"], value["metadata"]) == (4, 5, {})
    assert [(c["cell_type"], c["source"]) for c in value["cells"]] == [
        ("markdown", ["# Hello\n"]),
        ("code", ["a\n", "b"]),
    ]
    assert made.validate() is None
    assert from_text("").to_bytes() == Notebook().to_bytes()


def test_text_that_is_no_text_view_changes_nothing() -> None:
    notebook = rich_book()
    before = notebook.to_bytes()
    with pytest.raises(InvalidText) as raised:
        from_text("\n" + to_text(notebook), base=notebook)
    assert raised.value.line == 1
    assert notebook.to_bytes() == before


def test_markers_are_part_of_the_text_and_do_not_get_lost() -> None:
    """S3: they are no comments; taking one out joins two cells, adding one splits a cell."""
    notebook = book(cell("code", "a"), cell("code", "b"))
    joined = to_text(notebook).replace("# %% [code] cell:1\n", "")
    assert sources(from_text(joined, base=notebook)) == ["a\nb"]
    split = to_text(notebook).replace("b", "b1\n# %% [code]\nb2")
    assert sources(from_text(split, base=notebook)) == ["a", "b1", "b2"]


def test_the_edits_say_what_the_text_changed_and_no_more() -> None:
    notebook = book(
        cell("code", "a", "aa"),
        cell("code", "b", "bb"),
        cell("code", "c", "cc"),
        cell("code", "d", "dd"),
        minor=5,
    )
    edits = edits_for(
        parse_text(
            text(
                *("# %% [markdown]", "first"),
                *("# %% [raw] cell:2", "c"),
                *("# %% [code]", "new"),
                *("# %% [code] cell:3", "d2"),
                *("# %% [markdown] cell:0", "a2"),
            )
        ),
        notebook,
    )
    assert edits == [
        Delete("bb"),
        Insert("first", "markdown", at=0),
        SetType("cc", "raw"),
        Insert("new", "code", after="cc"),
        Replace("dd", "d2"),
        Replace("aa", "a2", "markdown"),
        Move("aa", after="dd"),
    ]
    change = notebook.apply(edits)
    assert sources(notebook) == ["first", "c", "new", "d2", "a2"]
    notebook.apply(change.inverse())
    assert sources(notebook) == ["a", "b", "c", "d"]


def test_new_cells_between_moved_ones_stand_where_the_text_has_them() -> None:
    notebook = book(*[cell("code", name) for name in "abcd"])
    order = text(
        *("# %% [code] cell:3", "d", "# %% [code]", "1", "# %% [code] cell:2", "c"),
        *("# %% [code]", "2", "# %% [code] cell:1", "b", "# %% [code]", "3"),
        *("# %% [code] cell:0", "a", "# %% [code]", "4"),
    )
    assert sources(from_text(order, base=notebook)) == list("d1c2b3a4")


def test_a_cell_without_an_id_of_its_own_is_found_by_position() -> None:
    """Two cells with one id, and one whose id looks like a position."""
    notebook = book(
        cell("code", "a", "same"), cell("code", "b", "same"), cell("code", "c", "cell-0"), minor=5
    )
    edited = from_text(to_text(notebook).replace("b", "b2").replace("c\n", "c2"), base=notebook)
    assert sources(edited) == ["a", "b2", "c"]


def test_a_broken_cell_can_be_left_out_but_not_rewritten() -> None:
    notebook = book(cell("code", "a"), {"cell_type": "code"})
    with pytest.raises(InvalidCell) as raised:
        from_text(text("# %% [code] cell:0", "a", "# %% [code] cell:1"), base=notebook)
    assert raised.value.index == 1
    assert sources(from_text(text("# %% [code] cell:0", "b"), base=notebook)) == ["b"]


def test_an_old_notebook_comes_back_as_it_is_and_is_not_edited_in_place() -> None:
    worksheet = {"cells": [{"cell_type": "code", "input": "x", "outputs": []}]}
    value = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [worksheet]}
    notebook = Notebook(json.dumps(value).encode())
    again = from_text(to_text(notebook), base=notebook)
    assert again.to_bytes() == notebook.to_bytes()
    assert again.needs_upgrade
    with pytest.raises(NeedsUpgrade):
        from_text(text("# %% [code] cell:0", "y"), base=notebook)
