"""A text that was made from an older state of the notebook than there is now."""

from __future__ import annotations

import pytest

from cellwright import Notebook, Snapshot
from cellwright.errors import Conflict
from cellwright.text.combine import edits_for
from cellwright.text.view import parse_text, to_text
from tests.unit.text.samples import STREAM, book, cell, sources

with_and_without_ids = pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])


def notebook_of(*texts: str, ids: bool = True) -> Notebook:
    cells = [cell("code", text, f"id-{n}" if ids else None) for n, text in enumerate(texts)]
    return book(*cells, minor=5 if ids else 4)


def remembered(notebook: Notebook) -> Snapshot:
    """The base as somebody wrote it down: nothing but revision, ids and hashes."""
    seen = notebook.snapshot()
    return Snapshot(seen.revision, list(seen.ids), list(seen.hashes))


def write(text: str, notebook: Notebook, base: Snapshot) -> None:
    notebook.apply(edits_for(parse_text(text), notebook, base))


def conflict_of(text: str, notebook: Notebook, base: Snapshot) -> Conflict:
    before = notebook.to_bytes()
    with pytest.raises(Conflict) as raised:
        write(text, notebook, base)
    assert notebook.to_bytes() == before
    assert raised.value.code == "CONFLICT"
    return raised.value


@with_and_without_ids
def test_numbers_mean_the_cells_of_the_base(ids: bool) -> None:
    notebook = notebook_of("a", "b", "c", ids=ids)
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "insert", "source": "new", "at": 0})
    notebook.apply({"op": "insert", "source": "newer", "at": 0})
    write(
        text.replace("c", "c2").replace("[c2ode]", "[code]").replace("c2ell", "cell"),
        notebook,
        base,
    )
    assert sources(notebook) == ["newer", "new", "a", "b", "c2"]


@with_and_without_ids
def test_changes_in_different_cells_are_merged(ids: bool) -> None:
    notebook = notebook_of("one", "two", "three", ids=ids)
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "replace", "cell": 0, "source": "one here"})
    write(text.replace("three", "three there"), notebook, base)
    assert sources(notebook) == ["one here", "two", "three there"]


@with_and_without_ids
def test_a_cell_changed_on_both_sides_is_a_conflict_that_shows_both(ids: bool) -> None:
    notebook = notebook_of("one", "two", "three", ids=ids)
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "replace", "cell": 1, "source": "two here"})
    edited = text.replace("two", "two there").replace("three", "three there")
    [cell] = conflict_of(edited, notebook, base).cells
    assert (cell.handle, cell.index) == ("id-1" if ids else "cell-1", 1)
    assert (cell.base, cell.current, cell.other) == (None, "two here", "two there")


def test_all_cells_in_conflict_are_named_at_once() -> None:
    notebook = notebook_of("one", "two", "three")
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply([{"op": "replace", "cell": n, "source": "here"} for n in (0, 2)])
    edited = text.replace("one", "there").replace("three", "there")
    assert [cell.handle for cell in conflict_of(edited, notebook, base).cells] == ["id-0", "id-2"]


@with_and_without_ids
def test_the_same_change_on_both_sides_is_no_conflict(ids: bool) -> None:
    notebook = notebook_of("one", "two", ids=ids)
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "replace", "cell": 1, "source": "same", "type": "raw"})
    before = notebook.to_bytes()
    write(text.replace("two", "same").replace("code] cell:1", "raw] cell:1"), notebook, base)
    assert notebook.to_bytes() == before


def test_a_type_counts_as_part_of_what_a_cell_says() -> None:
    notebook = notebook_of("one", "two")
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "set_type", "cell": 1, "type": "raw"})
    retyped = text.replace("[code] cell:1", "[markdown] cell:1")
    assert [cell.index for cell in conflict_of(retyped, notebook, base).cells] == [1]
    write(text.replace("one", "one there"), notebook, base)
    assert [cell.type for cell in notebook.cells] == ["code", "raw"]


@with_and_without_ids
def test_deleted_by_the_text_and_edited_since_is_a_conflict(ids: bool) -> None:
    notebook = notebook_of("one", "two", ids=ids)
    base = remembered(notebook)
    notebook.apply({"op": "replace", "cell": 1, "source": "two here"})
    [cell] = conflict_of("# %% [code] cell:0\none", notebook, base).cells
    assert (cell.index, cell.current, cell.other) == (1, "two here", None)


@with_and_without_ids
def test_deleted_since_and_edited_by_the_text_is_a_conflict(ids: bool) -> None:
    notebook = notebook_of("one", "two", "three", ids=ids)
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "delete", "cell": 1})
    [cell] = conflict_of(text.replace("two", "two there"), notebook, base).cells
    assert (cell.handle, cell.index) == ("id-1" if ids else "cell-1", None)
    assert (cell.current, cell.other) == (None, "two there")


@with_and_without_ids
def test_deleted_since_and_left_alone_by_the_text_stays_deleted(ids: bool) -> None:
    notebook = notebook_of("one", "two", "three", ids=ids)
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "delete", "cell": 1})
    write(text.replace("three", "three there"), notebook, base)
    assert sources(notebook) == ["one", "three there"]


@with_and_without_ids
def test_deleted_on_both_sides_is_deleted(ids: bool) -> None:
    notebook = notebook_of("one", "two", ids=ids)
    base = remembered(notebook)
    notebook.apply({"op": "delete", "cell": 0})
    write("# %% [code] cell:1\ntwo", notebook, base)
    assert sources(notebook) == ["two"]


@with_and_without_ids
def test_cells_added_since_stay_although_the_text_does_not_name_them(ids: bool) -> None:
    notebook = notebook_of("one", "two", ids=ids)
    base = remembered(notebook)
    notebook.apply({"op": "insert", "source": "added", "at": 1})
    write("# %% [code] cell:0\none", notebook, base)
    assert sources(notebook) == ["one", "added"]


def test_new_cells_of_the_text_follow_the_cell_they_follow_there() -> None:
    notebook = notebook_of("a", "b", "c")
    base = remembered(notebook)
    notebook.apply([{"op": "insert", "source": "added", "at": 1}, {"op": "delete", "cell": 1}])
    rows = ["cell:0", "a", "", "first", "cell:1", "b", "", "second", "cell:2", "c", "", "third"]
    text = "\n".join(
        f"# %% [code] {row}".strip() if n % 2 == 0 else row for n, row in enumerate(rows)
    )
    write(text, notebook, base)
    assert sources(notebook) == ["a", "first", "second", "added", "c", "third"]


def test_a_cell_moved_by_the_text_and_edited_since_is_both() -> None:
    notebook = notebook_of("a", "b", "c")
    base = remembered(notebook)
    notebook.apply({"op": "replace", "cell": 0, "source": "a here"})
    text = "# %% [code] cell:1\nb\n# %% [code] cell:2\nc\n# %% [code] cell:0\na"
    write(text, notebook, base)
    assert sources(notebook) == ["b", "c", "a here"]


def test_a_cell_moved_since_is_edited_where_it_is_now() -> None:
    notebook = notebook_of("a", "b", "c")
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply({"op": "move", "cell": 0, "at": 3})
    write(text.replace("\na\n", "\na there\n"), notebook, base)
    assert sources(notebook) == ["b", "c", "a there"]


def test_where_both_moved_a_cell_it_stays_where_it_is_now() -> None:
    notebook = notebook_of("a", "b", "c", "d")
    base = remembered(notebook)
    notebook.apply({"op": "move", "cell": 0, "at": 4})
    blocks = ["# %% [code] cell:1\nb", "# %% [code] cell:2\nc", "# %% [code] cell:0\na"]
    write("\n".join([*blocks, "# %% [code] cell:3\nd"]), notebook, base)
    assert sources(notebook) == ["b", "c", "d", "a"]


@with_and_without_ids
def test_writing_the_same_text_again_adds_nothing_twice(ids: bool) -> None:
    """A caller that got no answer may ask again with the base it knows."""
    notebook = notebook_of("a", "b", ids=ids)
    base = remembered(notebook)
    rows = ["# %% [code] cell:0", "a", "# %% [code]", "x", "# %% [code]", "x", "# %% [raw]", "y"]
    text = "\n".join([*rows, "# %% [code] cell:1", "b there"])
    write(text, notebook, base)
    assert sources(notebook) == ["a", "x", "x", "y", "b there"]
    before = notebook.to_bytes()
    assert edits_for(parse_text(text), notebook, base) == []
    assert notebook.to_bytes() == before


@with_and_without_ids
def test_a_cell_added_on_both_sides_is_one_even_if_the_text_deletes_the_one_before(
    ids: bool,
) -> None:
    notebook = notebook_of("a", "b", "c", ids=ids)
    base = remembered(notebook)
    notebook.apply({"op": "insert", "source": "x", "at": 2})
    write("# %% [code] cell:0\na\n# %% [code]\nx\n# %% [code] cell:2\nc", notebook, base)
    assert sources(notebook) == ["a", "x", "c"]


def test_a_cell_with_an_id_that_is_gone_is_gone_whatever_others_say() -> None:
    notebook = notebook_of("a", "b", "c")
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply(
        [{"op": "delete", "cell": "id-1"}, {"op": "insert", "source": "b there", "at": 1}]
    )
    edited = text.replace("\nb\n", "\nb there\n")
    assert [cell.handle for cell in conflict_of(edited, notebook, base).cells] == ["id-1"]


def test_which_of_two_equal_cells_was_edited_is_not_guessed() -> None:
    notebook = notebook_of("a", "b", ids=False)
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply([{"op": "delete", "cell": 1}] + [{"op": "insert", "source": "same"}] * 2)
    edited = text.replace("\nb", "\nsame")
    assert [cell.handle for cell in conflict_of(edited, notebook, base).cells] == ["cell-1"]


def test_what_follows_a_cell_that_was_added_on_both_sides_follows_it_still() -> None:
    notebook = notebook_of("a", "b")
    base = remembered(notebook)
    notebook.apply({"op": "insert", "source": "x", "at": 1})
    write(
        "# %% [code] cell:0\na\n# %% [code]\nx\n# %% [code]\ny\n# %% [code] cell:1\nb",
        notebook,
        base,
    )
    assert sources(notebook) == ["a", "x", "y", "b"]


def test_outputs_that_came_since_stay() -> None:
    """Outputs are no part of a base: a run makes nobody's text stale."""
    notebook = notebook_of("a", "b")
    base, text = remembered(notebook), to_text(notebook)
    ran = book(
        cell("code", "a", "id-0", outputs=[STREAM], execution_count=1),
        cell("code", "b", "id-1"),
        minor=5,
    )
    write(text.replace("\na\n", "\na there\n"), ran, base)
    assert sources(ran) == ["a there", "b"]
    assert ran.cells[0].to_dict()["outputs"] == [STREAM]


def test_bytes_of_cells_that_the_text_left_alone_stay_as_they_are_now() -> None:
    notebook = notebook_of("a", "b", "c")
    base, text = remembered(notebook), to_text(notebook)
    notebook.apply(
        [
            {"op": "set_metadata", "cell": 0, "metadata": {"new": 1}},
            {"op": "replace", "cell": 1, "source": "b here"},
        ]
    )
    raws = [found.raw for found in notebook.cells]
    write(text + "\nmore", notebook, base)
    assert [found.raw for found in notebook.cells][:2] == raws[:2]
    assert sources(notebook)[2] == "c\nmore"


def test_a_cell_broken_since_is_left_alone_or_a_conflict() -> None:
    notebook = notebook_of("a", "b")
    base, text = remembered(notebook), to_text(notebook)
    broken = book(cell("code", "a", "id-0"), {"cell_type": "code", "id": "id-1"}, minor=5)
    write(text.replace("\na\n", "\na there\n"), broken, base)
    assert sources(broken) == ["a there", ""]
    assert [cell.index for cell in conflict_of(text + " there", broken, base).cells] == [1]
