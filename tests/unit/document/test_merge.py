"""What two sides made of one base, merged cell by cell."""

from __future__ import annotations

from typing import Any

import pytest

from cellwright import CellConflict, Merged, Notebook, merge
from cellwright.errors import Conflict, NeedsUpgrade
from tests.unit.document.samples import (
    IMAGE,
    MINIFIED,
    RESULT,
    STREAM,
    book,
    code,
    ids,
    markdown,
    sources,
    values,
    write,
)

LETTERS = "abcde"


def letters(text: str = LETTERS, *, with_ids: bool = True, **more: dict[str, Any]) -> Notebook:
    """One code cell a letter, its id `id-a`; `more` are members of some, by letter."""
    cells = [
        code(letter, f"id-{letter}" if with_ids else None, **more.get(letter, {}))
        for letter in text
    ]
    return book(*cells, minor=5 if with_ids else 4)


def after(notebook: Notebook, *edits: dict[str, Any]) -> Notebook:
    """A copy of a notebook in which those edits were made, one after the other."""
    copy = Notebook(notebook.to_bytes())
    for edit in edits:
        copy.apply(edit)
    return copy


def clean(base: Notebook, current: Notebook, other: Notebook) -> Notebook:
    """The merge of two sides that do not disagree; neither of them is touched."""
    before = [side.to_bytes() for side in (base, current, other)]
    merged = merge(base, current, other)
    assert merged.conflicts == ()
    assert merged.raise_for_conflicts() is merged
    assert [side.to_bytes() for side in (base, current, other)] == before
    if all(side.validate() is None for side in (base, current, other)):
        assert merged.notebook.validate() is None
    assert Notebook(merged.notebook.to_bytes()).revision == merged.notebook.revision
    return merged.notebook


def dispute(base: Notebook, current: Notebook, other: Notebook) -> CellConflict:
    """The one conflict of a merge, which leaves the notebook as the current side has it."""
    merged = merge(base, current, other)
    with pytest.raises(Conflict) as caught:
        merged.raise_for_conflicts()
    assert caught.value.code == "CONFLICT"
    assert caught.value.cells == merged.conflicts
    (conflict,) = merged.conflicts
    return conflict


def sides(conflict: CellConflict) -> tuple[Any, ...]:
    return (conflict.handle, conflict.index, conflict.base, conflict.current, conflict.other)


with_and_without_ids = pytest.mark.parametrize("with_ids", [True, False], ids=["ids", "no ids"])


def replace(cell: int | str, source: str) -> dict[str, Any]:
    return {"op": "replace", "cell": cell, "source": source}


def insert(source: str, at: int, **more: Any) -> dict[str, Any]:
    return {"op": "insert", "source": source, "at": at, **more}


def delete(cell: int | str) -> dict[str, Any]:
    return {"op": "delete", "cell": cell}


def move(cell: int | str, at: int) -> dict[str, Any]:
    return {"op": "move", "cell": cell, "at": at}


# --- Different cells on both sides ---------------------------------------------------------------

# What each side does to abcde, and what comes of both.
TOGETHER = {
    "edits of different cells": ([replace(0, "A")], [replace(4, "E")], "A b c d E"),
    "edits of neighbours": ([replace(1, "B")], [replace(2, "C")], "a B C d e"),
    "an edit and an insert": ([replace(2, "C")], [insert("x", 2)], "a b x C d e"),
    "an insert and an edit": ([insert("x", 2)], [replace(2, "C")], "a b x C d e"),
    "an edit and a delete": ([replace(1, "B")], [delete(3)], "a B c e"),
    "a delete and an edit": ([delete(3)], [replace(1, "B")], "a B c e"),
    "deletes of different cells": ([delete(0)], [delete(4)], "b c d"),
    "deletes of neighbours": ([delete(1)], [delete(2)], "a d e"),
    "the same delete": ([delete(1)], [delete(1)], "a c d e"),
    "overlapping deletes": ([delete(1), delete(1)], [delete(2), delete(2)], "a e"),
    "the same edit": ([replace(1, "B")], [replace(1, "B")], "a B c d e"),
    "inserts at different places": ([insert("x", 0)], [insert("y", 5)], "x a b c d e y"),
    "an insert at the start": ([insert("x", 3)], [insert("y", 0)], "y a b c x d e"),
    "inserts at the same place": ([insert("x", 2)], [insert("y", 2)], "a b y x c d e"),
    "several inserts at the same place": (
        [insert("x", 2), insert("w", 2)],
        [insert("z", 2), insert("y", 2)],
        "a b y z w x c d e",
    ),
    "an insert after a deleted cell": ([delete(1)], [insert("x", 2)], "a x c d e"),
    "an insert after the first cell, deleted": ([delete(0)], [insert("x", 1)], "x b c d e"),
    "a delete after which there was an insert": ([insert("x", 2)], [delete(1)], "a x c d e"),
    "everything deleted but for an insert": (
        [delete(0)] * 5,
        [insert("x", 3)],
        "x",
    ),
    "an insert where everything is deleted": (
        [insert("x", 3)],
        [delete(0)] * 5,
        "x",
    ),
    "everything deleted twice": ([delete(0)] * 5, [delete(0)] * 5, ""),
}


@with_and_without_ids
@pytest.mark.parametrize("name", TOGETHER)
def test_what_does_not_meet_is_merged(name: str, with_ids: bool) -> None:
    ours, theirs, result = TOGETHER[name]
    base = letters(with_ids=with_ids)

    merged = clean(base, after(base, *ours), after(base, *theirs))

    assert sources(merged) == result.split()


def test_a_merge_changes_no_byte_that_it_need_not() -> None:
    cells = [
        code(letter, f"id-{letter}", metadata={"n": i}, outputs=[STREAM])
        for i, letter in enumerate(LETTERS)
    ]
    base = book(*cells)
    current = Notebook(write(*cells, style=MINIFIED))  # somebody reformatted the file
    other = after(base, replace("id-c", "C\nc"), insert("x", 1, id="new"))

    merged = clean(base, current, other)

    changed = {**cells[2], "source": ["C\n", "c"]}
    assert values(merged) == [cells[0], code("x", "new"), cells[1], changed, *cells[3:]]
    kept = [i for i in range(6) if i not in (1, 3)]
    assert [merged.cells[i].raw for i in kept] == [current.cells[i].raw for i in (0, 1, 3, 4)]
    head = write(style=MINIFIED).partition(b"[")[0]
    assert merged.to_bytes().startswith(head)


@with_and_without_ids
def test_when_nothing_changed_on_one_side_the_other_side_is_the_result(with_ids: bool) -> None:
    base = letters(with_ids=with_ids)
    edited = after(base, replace(1, "B"), insert("x", 3), move(0, 4), delete(2))
    assert clean(base, edited, base).to_bytes() == edited.to_bytes()
    assert values(clean(base, base, edited)) == values(edited)
    assert clean(base, edited, edited).to_bytes() == edited.to_bytes()
    assert clean(base, base, base).to_bytes() == base.to_bytes()


# --- The same insert on both sides ---------------------------------------------------------------


def test_an_insert_with_the_same_id_on_both_sides_is_one_cell() -> None:
    base = letters()
    both = insert("x", 2, id="new")
    assert sources(clean(base, after(base, both), after(base, both))) == [
        "a",
        "b",
        "x",
        "c",
        "d",
        "e",
    ]
    elsewhere = {**both, "at": 5}
    merged = clean(base, after(base, both), after(base, elsewhere))
    assert sources(merged) == ["a", "b", "x", "c", "d", "e"]  # the order is the current one


def test_inserts_of_the_same_text_with_ids_of_their_own_are_two_cells() -> None:
    base = letters()
    merged = clean(base, after(base, insert("x", 2)), after(base, insert("x", 2)))
    assert sources(merged) == ["a", "b", "x", "x", "c", "d", "e"]


def test_without_ids_the_same_insert_at_the_same_place_is_one_cell() -> None:
    base = letters(with_ids=False)
    both = insert("x", 2)
    assert sources(clean(base, after(base, both), after(base, both))) == [
        "a",
        "b",
        "x",
        "c",
        "d",
        "e",
    ]
    merged = clean(base, after(base, both), after(base, insert("x", 4)))
    assert sources(merged) == ["a", "b", "x", "c", "d", "x", "e"]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"), [(1, 2, 2), (2, 1, 2), (2, 2, 2), (3, 1, 3), (0, 2, 2)]
)
def test_without_ids_each_copy_stands_for_one_of_the_other_side(
    ours: int, theirs: int, expected: int
) -> None:
    base = letters("ab", with_ids=False)
    current = after(base, *[insert("x", 1)] * ours)
    other = after(base, *[insert("x", 1)] * theirs)
    assert sources(clean(base, current, other)) == ["a", *["x"] * expected, "b"]


def test_an_insert_with_the_same_id_and_another_text_is_a_conflict() -> None:
    base = letters("ab")
    current = after(base, insert("x", 1, id="new"))
    other = after(base, insert("y", 1, id="new"))

    conflict = dispute(base, current, other)

    assert sides(conflict) == ("new", 1, None, "x", "y")
    assert merge(base, current, other).notebook.to_bytes() == current.to_bytes()


# --- Moves ---------------------------------------------------------------------------------------

MOVES = {
    "moved here": ([move(0, 5)], [], "b c d e a"),
    "moved there": ([], [move(0, 5)], "b c d e a"),
    "moved there to the start": ([], [move(3, 0)], "d a b c e"),
    "moved the same way": ([move(0, 3)], [move(0, 3)], "b c a d e"),
    "different cells": ([move(0, 3)], [move(4, 2)], "b e c a d"),
    "the same cell to different places": ([move(0, 5)], [move(0, 2)], "b c d e a"),
    "moved here, edited there": ([move(0, 5)], [replace(0, "A")], "b c d e A"),
    "edited here, moved there": ([replace(0, "A")], [move(0, 5)], "b c d e A"),
    "moved here, deleted there": ([move(0, 5)], [delete(0)], "b c d e"),
    "deleted here, moved there": ([delete(0)], [move(0, 5)], "b c d e"),
    "moved there behind a deleted cell": ([delete(3)], [move(0, 4)], "b c a e"),
    "moved there behind an edited cell": ([replace(3, "D")], [move(0, 4)], "b c D a e"),
    "inserted here, moved there": ([insert("x", 1)], [move(0, 5)], "x b c d e a"),
    "inserted there behind a moved cell": ([move(1, 5)], [insert("x", 2)], "a c d e b x"),
    "two moved there": ([], [move(0, 5), move(0, 5)], "c d e a b"),
    "turned around there": ([], [move(4, 0), move(4, 1), move(4, 2), move(4, 3)], "e d c b a"),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_of_either_side_are_followed(name: str) -> None:
    ours, theirs, result = MOVES[name]
    base = letters()
    merged = clean(base, after(base, *ours), after(base, *theirs))
    assert sources(merged) == result.split()


def test_without_ids_a_move_is_found_where_the_order_of_the_rest_shows_it() -> None:
    base = letters(with_ids=False)
    merged = clean(base, after(base, replace(4, "E")), after(base, move(0, 3)))
    assert sorted(sources(merged)) == sorted(["b", "c", "a", "d", "E"])
    assert sources(merged) == ["b", "c", "a", "d", "E"]


def test_without_ids_a_cell_that_both_sides_moved_is_not_doubled() -> None:
    base = letters(with_ids=False)
    merged = clean(base, after(base, move(0, 5)), after(base, move(0, 2)))
    assert sources(merged) == ["b", "c", "d", "e", "a"]


# --- Edits of one cell on both sides -------------------------------------------------------------


@with_and_without_ids
def test_a_cell_edited_differently_on_both_sides_is_a_conflict_that_shows_all_three(
    with_ids: bool,
) -> None:
    base = letters(with_ids=with_ids)
    current = after(base, replace(2, "ours"), insert("x", 0))
    other = after(base, replace(2, "theirs"), replace(4, "E"))

    conflict = dispute(base, current, other)

    assert sides(conflict) == ("id-c" if with_ids else "cell-3", 3, "c", "ours", "theirs")
    merged = merge(base, current, other)
    assert sources(merged.notebook) == ["x", "a", "b", "ours", "d", "E"]


@with_and_without_ids
@pytest.mark.parametrize("deleted_here", [True, False])
def test_a_cell_deleted_on_one_side_and_edited_on_the_other_is_a_conflict(
    deleted_here: bool, with_ids: bool
) -> None:
    base = letters(with_ids=with_ids)
    current, other = after(base, delete(2)), after(base, replace(2, "edited"))
    if not deleted_here:
        current, other = other, current

    conflict = dispute(base, current, other)

    handle = "id-c" if with_ids else "cell-2"
    if deleted_here:
        assert sides(conflict) == (handle, None, "c", None, "edited")
    else:
        assert sides(conflict) == (handle, 2, "c", "edited", None)
    assert merge(base, current, other).notebook.to_bytes() == current.to_bytes()


def test_every_conflict_is_told_and_the_rest_is_merged() -> None:
    base = letters()
    current = after(base, replace("id-a", "A"), delete("id-b"), replace("id-c", "C"))
    other = after(
        base,
        replace("id-a", "Z"),
        replace("id-b", "Z"),
        delete("id-c"),
        replace("id-d", "D"),
        insert("x", 3),
    )

    merged = merge(base, current, other)

    assert [conflict.handle for conflict in merged.conflicts] == ["id-a", "id-b", "id-c"]
    assert sources(merged.notebook) == ["A", "C", "D", "x", "e"]
    assert isinstance(merged, Merged)


def test_a_type_change_and_a_source_edit_of_one_cell_go_together() -> None:
    base = letters("ab")
    current = after(base, {"op": "set_type", "cell": 0, "type": "markdown"})
    other = after(base, replace(0, "A"))
    merged = clean(base, current, other)
    assert values(merged)[0] == markdown("A", "id-a")
    assert values(clean(base, other, current))[0] == markdown("A", "id-a")


def test_different_type_changes_are_a_conflict() -> None:
    base = letters("ab")
    current = after(base, {"op": "set_type", "cell": 0, "type": "markdown"})
    other = after(base, {"op": "set_type", "cell": 0, "type": "raw"})
    assert dispute(base, current, other).handle == "id-a"


def test_a_source_that_is_only_written_another_way_is_not_an_edit() -> None:
    base = book({**code("", "aa"), "source": ["a\n", "b"]})
    current = book({**code("", "aa"), "source": "a\nb"})
    other = after(base, replace("aa", "new"))
    assert sources(clean(base, current, other)) == ["new"]
    assert sources(clean(base, other, current)) == ["new"]


# --- Outputs -------------------------------------------------------------------------------------

RAN = {"outputs": [STREAM], "execution_count": 1}
RAN_AGAIN = {"outputs": [RESULT], "execution_count": 2}


@with_and_without_ids
@pytest.mark.parametrize(
    ("was", "here", "there", "result"),
    [
        ({}, RAN, {}, RAN),
        ({}, {}, RAN, RAN),
        (RAN, RAN, RAN_AGAIN, RAN_AGAIN),
        (RAN, RAN_AGAIN, RAN, RAN_AGAIN),
        ({}, RAN, RAN_AGAIN, RAN),
        (RAN, {}, RAN_AGAIN, {}),
        (RAN, RAN_AGAIN, {}, RAN_AGAIN),
        (RAN, RAN, {}, {}),
        # a run that printed the same again is still a run of this side
        (RAN, {**RAN, "execution_count": 5}, RAN_AGAIN, {**RAN, "execution_count": 5}),
    ],
)
def test_outputs_are_of_the_side_that_changed_them_otherwise_the_current(
    was: dict[str, Any],
    here: dict[str, Any],
    there: dict[str, Any],
    result: dict[str, Any],
    with_ids: bool,
) -> None:
    versions = [letters("abc", with_ids=with_ids, b=more) for more in (was, here, there)]

    merged = clean(*versions)

    assert values(merged) == values(letters("abc", with_ids=with_ids, b=result))


def test_outputs_of_one_side_and_a_source_of_the_other_go_together() -> None:
    base = letters("ab")
    ran = letters("ab", a=RAN)
    edited = after(base, replace("id-a", "A"))
    expected = code("A", "id-a", **RAN)
    assert values(clean(base, ran, edited))[0] == expected
    assert values(clean(base, edited, ran))[0] == expected


def test_a_deleted_cell_stays_deleted_although_it_was_run() -> None:
    base = letters("ab")
    gone = after(base, delete("id-a"))
    assert sources(clean(base, letters("ab", a=RAN), gone)) == ["b"]
    assert sources(clean(base, gone, letters("ab", a=RAN))) == ["b"]


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_text_gets_no_outputs_from_a_run_of_the_other_side(kind: str) -> None:
    base = letters("ab", a=RAN)
    text = after(base, {"op": "set_type", "cell": "id-a", "type": kind})
    ran = letters("ab", a=RAN_AGAIN)
    for merged in (clean(base, text, ran), clean(base, ran, text)):
        assert values(merged)[0] == {**markdown("a", "id-a"), "cell_type": kind}


def test_a_cell_made_code_gets_what_code_needs() -> None:
    base = book(markdown("a", "aa"), markdown("b", "bb"))
    made_code = after(base, {"op": "set_type", "cell": "aa", "type": "code"})
    tagged = after(base, {"op": "set_metadata", "cell": "aa", "metadata": {"k": 1}})
    for merged in (clean(base, made_code, tagged), clean(base, tagged, made_code)):
        assert values(merged)[0] == code("a", "aa", metadata={"k": 1})


def test_code_gets_no_attachments_from_the_other_side() -> None:
    base = book(markdown("a", "aa"))
    made_code = after(base, {"op": "set_type", "cell": "aa", "type": "code"})
    attached = book(markdown("a", "aa", attachments=IMAGE))
    for current, other in ((made_code, attached), (attached, made_code)):
        merged = merge(base, current, other)
        assert merged.notebook.validate() is None
        if not merged.conflicts:
            assert values(merged.notebook) == [code("a", "aa")]


@pytest.mark.parametrize(
    "metadata", [{"collapsed": "half"}, {"scrolled": 1}, {"execution": {"x": 1}}]
)
def test_metadata_that_only_one_type_allows_never_make_the_merge_invalid(
    metadata: dict[str, Any],
) -> None:
    base = book(markdown("a", "aa"))
    made_code = after(base, {"op": "set_type", "cell": "aa", "type": "code"})
    tagged = after(base, {"op": "set_metadata", "cell": "aa", "metadata": metadata})
    for current, other in ((made_code, tagged), (tagged, made_code)):
        assert merge(base, current, other).notebook.validate() is None


# --- Metadata ------------------------------------------------------------------------------------


def tagged(metadata: dict[str, Any], *, whole: bool) -> Notebook:
    """A notebook with those metadata, of its cell or its own."""
    if whole:
        return book(code("a", "aa"), metadata=metadata)
    return book(code("a", "aa", metadata=metadata))


METADATA: list[tuple[Any, ...]] = [
    ({}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ({"a": 1}, {"a": 1, "b": 2}, {}, {"b": 2}),
    ({"a": 1}, {"a": 2}, {"a": 1, "c": 3}, {"a": 2, "c": 3}),
    ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}),
    ({}, {"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
    (
        {"a": {"x": 1, "y": {"z": 1}}},
        {"a": {"x": 2, "y": {"z": 1}}},
        {"a": {"x": 1, "y": {"z": 2, "w": 3}}},
        {"a": {"x": 2, "y": {"w": 3, "z": 2}}},
    ),
    ({"a": 1, "b": 1}, {"b": 1}, {"a": 1}, {}),
    ({"a": 1.0}, {"a": 1.0, "b": 1}, {"a": 1}, {"a": 1, "b": 1}),
]


@pytest.mark.parametrize(("was", "here", "there", "result"), METADATA)
@pytest.mark.parametrize("whole", [False, True], ids=["cell", "notebook"])
def test_metadata_are_merged_key_by_key(
    was: Any, here: Any, there: Any, result: Any, whole: bool
) -> None:
    merged = clean(*(tagged(metadata, whole=whole) for metadata in (was, here, there)))
    assert merged.to_bytes() == tagged(result, whole=whole).to_bytes()


@pytest.mark.parametrize(
    ("was", "here", "there"),
    [
        ({"a": 1}, {"a": 2}, {"a": 3}),
        ({}, {"a": 1}, {"a": 2}),
        ({"a": 1}, {}, {"a": 2}),
        ({"a": 1}, {"a": 2}, {}),
        ({"a": {"x": 1}}, {"a": {"x": 2}}, {"a": {"x": 3, "y": 1}}),
        ({"a": 1}, {"a": [1]}, {"a": {"x": 1}}),
        ({"a": 1}, {"a": True}, {"a": 1.0}),
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["cell", "notebook"])
def test_one_key_changed_differently_on_both_sides_is_a_conflict(
    was: Any, here: Any, there: Any, whole: bool
) -> None:
    base, current, other = (tagged(metadata, whole=whole) for metadata in (was, here, there))

    conflict = dispute(base, current, other)

    assert (conflict.handle, conflict.index) == (("the notebook", None) if whole else ("aa", 0))
    assert merge(base, current, other).notebook.to_bytes() == current.to_bytes()


def test_what_a_frontend_writes_by_itself_is_no_conflict() -> None:
    times = [{"execution": {"iopub.status.idle": time}} for time in ("1", "2", "3")]
    times = [{**value, "collapsed": bool(i % 2)} for i, value in enumerate(times)]
    versions = [book(code("a", "aa", metadata=metadata)) for metadata in times]
    assert values(clean(*versions)) == values(versions[1])


def test_metadata_of_a_cell_and_its_source_go_together() -> None:
    base = letters("ab")
    edited = after(base, replace("id-a", "A"))
    marked = after(base, {"op": "set_metadata", "cell": "id-a", "metadata": {"tags": ["t"]}})
    expected = code("A", "id-a", metadata={"tags": ["t"]})
    assert values(clean(base, edited, marked))[0] == expected
    assert values(clean(base, marked, edited))[0] == expected


def test_unknown_members_of_cell_and_notebook_are_merged_too() -> None:
    def version(x: int, y: int) -> Notebook:
        data = write(code("a", "aa", x_own=x, y_own=y)).rstrip()[:-2]
        return Notebook(data + f',\n "x_top": {x},\n "y_top": {y}\n}}\n'.encode())

    merged = clean(version(1, 1), version(2, 1), version(1, 2))
    assert merged.to_bytes() == version(2, 2).to_bytes()


def test_the_notebooks_metadata_and_the_cells_are_merged_at_once() -> None:
    base = letters("ab")
    current = after(base, {"op": "set_metadata", "metadata": {"a": 1}}, replace(0, "A"))
    other = after(base, {"op": "set_metadata", "metadata": {"b": 1}}, replace(1, "B"))
    merged = clean(base, current, other)
    assert (merged.metadata, sources(merged)) == ({"a": 1, "b": 1}, ["A", "B"])


# --- Ids that do not tell ------------------------------------------------------------------------


def test_cells_that_share_an_id_are_aligned_by_what_they_say() -> None:
    base = book(code("1", "same"), code("2", "same"), code("3", "cc"), code("4", "same"))
    current = after(base, replace("cell-1", "two"))
    other = after(base, insert("0", 0, id="new"), replace("cell-4", "four"))

    merged = clean(base, current, other)

    assert sources(merged) == ["0", "1", "two", "3", "four"]
    assert ids(merged) == ["new", "same", "same", "cc", "same"]


def test_an_id_that_was_unique_and_is_doubled_loses_no_cell() -> None:
    base = letters("abc")
    doubled = book(code("a", "id-a"), code("b", "id-b"), code("x", "id-b"), code("c", "id-c"))
    other = after(base, replace("id-c", "C"))
    assert sources(clean(base, doubled, other)) == ["a", "b", "x", "C"]
    assert sources(clean(base, other, doubled)) == ["a", "b", "x", "C"]


def test_cells_without_ids_among_others_are_aligned_by_what_they_say() -> None:
    base = book(code("a", "aa"), code("b"), code("c", "cc"), code("d"))
    current = after(base, move("aa", 4))
    other = after(base, replace(3, "D"))
    assert sources(clean(base, current, other)) == ["b", "c", "D", "a"]


def test_without_ids_an_edited_cell_is_found_between_its_neighbours() -> None:
    base = letters(with_ids=False)
    current = after(base, replace(1, "B"), replace(3, "D"))
    other = after(base, insert("x", 0), delete(5))
    assert sources(clean(base, current, other)) == ["x", "a", "B", "c", "D"]


def test_cells_that_say_the_same_are_paired_in_order() -> None:
    base = letters("aaaa", with_ids=False)
    current = after(base, insert("x", 2))
    other = after(base, delete(3))
    assert sources(clean(base, current, other)) == ["a", "a", "x", "a"]


def test_broken_cells_are_merged_as_a_whole() -> None:
    base = book(code("a", "aa"), {"cell_type": "code"}, code("c", "cc"))
    current = book(code("A", "aa"), {"cell_type": "code"}, code("c", "cc"))
    other = book(code("a", "aa"), {"cell_type": "code", "x": 1}, code("c", "cc"))
    merged = clean(base, current, other)
    assert values(merged) == [code("A", "aa"), {"cell_type": "code", "x": 1}, code("c", "cc")]

    ours = book(code("a", "aa"), {"cell_type": "code", "x": 2}, code("c", "cc"))
    assert dispute(base, ours, other).index == 1


# --- Versions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("upgraded", ["current", "other"])
def test_an_upgrade_on_one_side_gives_ids_to_the_cells_of_the_other(upgraded: str) -> None:
    base = letters("ab", with_ids=False)
    one = Notebook(base.to_bytes())
    one.upgrade()
    two = after(base, insert("x", 1), replace(0, "A"))

    merged = clean(base, *((one, two) if upgraded == "current" else (two, one)))

    assert (merged.version, sources(merged)) == ("4.5", ["A", "x", "b"])
    assert None not in ids(merged)
    assert merged.validate() is None


def test_a_cell_that_lacked_its_id_before_is_not_given_one() -> None:
    base = book(*(code("", "same") for _ in range(4)), code("", None))
    other = after(base, {"op": "delete", "cell": 0})

    assert values(clean(base, base, other)) == values(other)


def test_an_upgrade_on_both_sides_keeps_the_current_ids() -> None:
    base = letters("ab", with_ids=False)
    current, other = Notebook(base.to_bytes()), Notebook(base.to_bytes())
    current.upgrade()
    other.upgrade()
    other.apply(replace(1, "B"))

    merged = merge(base, current, other)

    assert merged.notebook.validate() is None
    assert len(merged.notebook.cells) == 2


def test_a_merge_of_old_notebooks_must_wait_for_an_upgrade() -> None:
    old = Notebook(b'{"metadata":{},"nbformat":3,"nbformat_minor":0,"worksheets":[]}')
    new = letters("a")
    for three in ((old, new, new), (new, old, new), (new, new, old)):
        with pytest.raises(NeedsUpgrade):
            merge(*three)


def test_the_merged_notebook_is_the_current_one_otherwise() -> None:
    current = Notebook(write(code("a", "aa")), path="somewhere.ipynb")
    merged = merge(book(code("a", "aa")), current, book(code("b", "aa"))).notebook
    assert merged.path == "somewhere.ipynb"
    assert merged is not current
    assert sources(current) == ["a"]


def test_a_large_merge_takes_no_time_to_speak_of() -> None:
    base = book(*[code(str(i), f"id-{i}") for i in range(3000)], style=MINIFIED)
    current = after(base, *[replace(f"id-{i}", "ours") for i in (5, 1000, 2500)])
    other = after(base, {"op": "splice", "start": 1500, "delete_count": 700}, move(0, 2300))
    merged = clean(base, current, other)
    assert len(merged.cells) == 2300
