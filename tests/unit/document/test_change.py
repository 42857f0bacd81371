"""What a change says of itself, shows of itself, and how it is taken back."""

from __future__ import annotations

from typing import Any

import pytest

from cellwright import CellChange, Change, Notebook
from cellwright.document.change import Pieces, State, longest_increasing
from tests.unit.document.samples import (
    IMAGE,
    RESULT,
    STREAM,
    STYLES,
    book,
    code,
    markdown,
    raw,
    refusal,
    sources,
    write,
)

CELLS = (
    code("a = 1\nb = 2", "aa", execution_count=3, outputs=[STREAM, RESULT]),
    markdown("# Title", "bb", metadata={"k": 1}, attachments=IMAGE),
    code("c", "cc"),
    raw("d", "dd"),
)


def what(change: Change) -> list[tuple[Any, ...]]:
    return [(cell.kind, cell.handle, cell.type, cell.before, cell.after) for cell in change.cells]


# --- What happened to each cell ------------------------------------------------------------------

KINDS = {
    "edited": (
        {"op": "replace", "cell": "aa", "source": "x"},
        [("edited", "aa", "code", 0, 0)],
    ),
    "edited, by its type": (
        {"op": "set_type", "cell": "aa", "type": "raw"},
        [("edited", "aa", "raw", 0, 0)],
    ),
    "updated, by its metadata": (
        {"op": "set_metadata", "cell": "bb", "metadata": {"k": 2}},
        [("updated", "bb", "markdown", 1, 1)],
    ),
    "updated, by its outputs": (
        {"op": "clear_outputs"},
        [("updated", "aa", "code", 0, 0)],
    ),
    "inserted": (
        {"op": "insert", "type": "markdown", "id": "new", "at": 1},
        [("inserted", "new", "markdown", None, 1)],
    ),
    "deleted": (
        {"op": "delete", "cell": "bb"},
        [("deleted", "bb", "markdown", 1, None)],
    ),
    "moved down": (
        {"op": "move", "cell": "aa", "at": 4},
        [("moved", "aa", "code", 0, 3)],
    ),
    "moved up": (
        {"op": "move", "cell": "dd", "at": 0},
        [("moved", "dd", "raw", 3, 0)],
    ),
    "moved and edited": (
        [
            {"op": "move", "cell": "aa", "at": 4},
            {"op": "replace", "cell": "aa", "source": "x"},
        ],
        [("edited", "aa", "code", 0, 3)],
    ),
    "merged": (
        {"op": "merge", "cells": ["bb", "cc"]},
        [("deleted", "cc", "code", 2, None), ("edited", "bb", "markdown", 1, 1)],
    ),
    "several": (
        [
            {"op": "delete", "cell": "dd"},
            {"op": "delete", "cell": "bb"},
            {"op": "insert", "id": "new", "at": 0},
            {"op": "replace", "cell": "cc", "source": "x"},
        ],
        [
            ("deleted", "bb", "markdown", 1, None),
            ("deleted", "dd", "raw", 3, None),
            ("inserted", "new", "code", None, 0),
            ("edited", "cc", "code", 2, 2),
        ],
    ),
    "the notebook's metadata": ({"op": "set_metadata", "metadata": {"k": 1}}, []),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_change_tells_what_happened_to_each_cell(name: str) -> None:
    edits, expected = KINDS[name]
    change = book(*CELLS).apply(edits)
    assert what(change) == expected
    assert bool(change)


def test_cells_of_a_notebook_without_ids_are_told_by_their_places() -> None:
    notebook = book(code("a"), code("b"), code("c"), minor=4)
    change = notebook.apply(
        [
            {"op": "delete", "cell": 0},
            {"op": "replace", "cell": 2, "source": "x"},
            {"op": "insert", "source": "new"},
        ]
    )
    assert what(change) == [
        ("deleted", "cell-0", "code", 0, None),
        ("edited", "cell-1", "code", 2, 1),
        ("inserted", "cell-2", "code", None, 2),
    ]


def test_a_split_is_an_edit_and_an_insert() -> None:
    notebook = book(*CELLS)
    change = notebook.apply({"op": "split", "cell": "aa", "line": 1})
    new = notebook.cells[1].id
    assert what(change) == [
        ("edited", "aa", "code", 0, 0),
        ("inserted", new, "code", None, 1),
    ]


def test_a_swap_calls_as_few_cells_moved_as_it_can() -> None:
    notebook = book(*[code(str(i), f"c{i}") for i in range(6)])
    change = notebook.apply(
        [{"op": "move", "cell": 0, "at": 6}, {"op": "move", "cell": 4, "at": 1}]
    )
    assert {(cell.kind, cell.handle) for cell in change.cells} == {("moved", "c0"), ("moved", "c4")}


@pytest.mark.parametrize(
    ("values", "size"),
    [([], 0), ([0], 1), ([0, 1, 2], 3), ([2, 1, 0], 1), ([1, 2, 0], 2), ([3, 0, 4, 1, 5], 3)],
)
def test_the_longest_run_in_order_is_found(values: list[int], size: int) -> None:
    found = longest_increasing(values)
    assert len(found) == size
    in_order = [value for value in values if value in found]
    assert in_order == sorted(in_order)


def test_a_change_knows_its_edits_and_where_each_cell_came_from() -> None:
    notebook = book(*CELLS)
    edits = [{"op": "delete", "cell": "bb"}, {"op": "insert", "at": 0}]
    change = notebook.apply(edits)
    assert [edit.to_json() for edit in change.edits] == edits
    assert list(change.origins) == [None, 0, 2, 3]


@pytest.mark.parametrize(
    "edits",
    [
        [],
        {"op": "replace", "cell": "cc", "source": "c"},
        {"op": "set_type", "cell": "cc", "type": "code"},
        {"op": "clear_outputs", "cells": ["cc", "bb"]},
        {"op": "set_metadata", "cell": "bb", "metadata": {}},
        {"op": "set_metadata", "cell": "bb", "metadata": {"k": 1, "gone": None}},
        {"op": "set_metadata", "cell": "bb", "metadata": {"k": 1}, "merge": False},
        {"op": "set_metadata", "metadata": {}},
        {"op": "move", "cell": "bb", "at": 1},
        {"op": "move", "cell": "bb", "at": 2},
        {"op": "move", "cell": "bb", "after": "aa"},
        {"op": "splice", "start": 2},
        {"op": "replace_text", "cell": "cc", "old": "c", "new": "c"},
    ],
    ids=repr,
)
def test_what_changes_nothing_is_an_empty_change(edits: Any) -> None:
    notebook = book(*CELLS)
    change = notebook.apply(edits)
    assert not change
    assert change.cells == []
    assert change.diff() == ""
    assert notebook.to_bytes() == write(*CELLS)


def test_a_cell_change_shows_no_content() -> None:
    (cell,) = book(*CELLS).apply({"op": "delete", "cell": "bb"}).cells
    assert isinstance(cell, CellChange)
    assert repr(cell) == "<deleted bb: 1 -> None>"


# --- Taking it back ------------------------------------------------------------------------------

EDITS = {
    "replace": {"op": "replace", "cell": "aa", "source": "x", "outputs": "clear"},
    "replace_text": {"op": "replace_text", "cell": "aa", "old": "a", "new": ""},
    "insert": {"op": "insert", "source": "new", "at": 1},
    "delete": {"op": "delete", "cell": "aa"},
    "delete the last": {"op": "delete", "cell": "dd"},
    "move": {"op": "move", "cell": "aa", "at": 3},
    "split": {"op": "split", "cell": "aa", "line": 1},
    "merge": {"op": "merge", "cells": ["aa", "bb", "cc"]},
    "set_type": {"op": "set_type", "cell": "bb", "type": "code"},
    "cell metadata": {"op": "set_metadata", "cell": "bb", "metadata": {"k": None}},
    "notebook metadata": {"op": "set_metadata", "metadata": {"k": 1}},
    "clear_outputs": {"op": "clear_outputs"},
    "splice": {"op": "splice", "start": 0, "delete_count": 4},
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_inverse_gives_every_byte_back(edit: dict[str, Any], style: dict[str, Any]) -> None:
    notebook = book(*CELLS, style=style)
    change = notebook.apply(edit)
    after = notebook.to_bytes()

    back = notebook.apply(change.inverse())
    assert notebook.to_bytes() == write(*CELLS, style=style)

    notebook.apply(back.inverse())
    assert notebook.to_bytes() == after


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_inverse_leaves_what_was_done_elsewhere_since(edit: dict[str, Any]) -> None:
    notebook = book(*CELLS, code("last", "ee"))
    change = notebook.apply(edit)
    later = [
        {"op": "replace", "cell": "ee", "source": "later"},
        {"op": "insert", "source": "added", "id": "new"},
        {"op": "set_metadata", "metadata": {"later": True}},
    ]
    notebook.apply(later)

    notebook.apply(change.inverse())

    expected = book(*CELLS, code("last", "ee"))
    expected.apply(later)
    assert notebook.to_bytes() == expected.to_bytes()


def test_the_inverse_of_a_deletion_finds_its_place_among_others() -> None:
    notebook = book(*CELLS)
    change = notebook.apply({"op": "delete", "cell": "bb"})
    notebook.apply([{"op": "insert", "source": "new", "at": 0}, {"op": "delete", "cell": "dd"}])

    notebook.apply(change.inverse())

    assert sources(notebook) == ["new", "a = 1\nb = 2", "# Title", "c"]
    assert notebook.cells[2].raw == book(*CELLS).cells[1].raw


def test_undoing_twice_brings_outputs_back() -> None:
    notebook = book(*CELLS)
    cleared = notebook.apply({"op": "clear_outputs"})
    edited = notebook.apply({"op": "replace", "cell": "aa", "source": "x"})

    notebook.apply(edited.inverse())
    notebook.apply(cleared.inverse())

    assert notebook.to_bytes() == write(*CELLS)


def test_an_undo_restores_outputs_although_the_cell_was_run_since() -> None:
    """Undo compares hashes, never outputs, and restores whole before-images."""
    notebook = book(*CELLS)
    change = notebook.apply({"op": "replace", "cell": "aa", "source": "x", "outputs": "clear"})
    ran = code("x", "aa", execution_count=9, outputs=[RESULT])
    notebook = Notebook(write(ran, *CELLS[1:]))

    notebook.apply(change.inverse())

    assert notebook.to_bytes() == write(*CELLS)


@pytest.mark.parametrize(
    ("edit", "again"),
    [
        (EDITS["replace"], {"op": "replace", "cell": "aa", "source": "again"}),
        (EDITS["replace"], {"op": "delete", "cell": "aa"}),
        (EDITS["set_type"], {"op": "replace", "cell": "bb", "source": "again"}),
        (EDITS["clear_outputs"], {"op": "replace", "cell": "aa", "source": "again"}),
        (EDITS["insert"], {"op": "replace", "cell": 1, "source": "again"}),
        (EDITS["split"], {"op": "replace", "cell": 1, "source": "again"}),
        (EDITS["merge"], {"op": "replace", "cell": "aa", "source": "again"}),
        (
            {"op": "set_metadata", "metadata": {"k": 1}},
            {"op": "set_metadata", "metadata": {"k": 2}},
        ),
    ],
    ids=lambda edit: edit["op"],
)
def test_undoing_what_was_changed_again_is_a_conflict(
    edit: dict[str, Any], again: dict[str, Any]
) -> None:
    notebook = book(*CELLS)
    change = notebook.apply(edit)
    notebook.apply(again)

    error = refusal(notebook, change.inverse())

    assert error.code == "CONFLICT"
    assert error.cells


def test_a_conflict_of_an_undo_shows_what_the_cell_holds_now() -> None:
    notebook = book(*CELLS)
    change = notebook.apply({"op": "replace", "cell": "cc", "source": "mine"})
    notebook.apply({"op": "replace", "cell": "cc", "source": "theirs"})

    (cell,) = refusal(notebook, change.inverse()).cells

    assert (cell.handle, cell.index) == ("cc", 2)
    assert (cell.base, cell.current, cell.other) == ("mine", "theirs", "c")


def test_undoing_a_deletion_of_a_cell_that_came_back_is_no_second_cell() -> None:
    notebook = book(*CELLS)
    change = notebook.apply({"op": "delete", "cell": "cc"})
    notebook.apply({"op": "insert", "source": "c", "id": "cc", "at": 2})
    notebook.apply(change.inverse())
    assert sources(notebook) == ["a = 1\nb = 2", "# Title", "c", "d"]


def test_undoing_after_a_move_finds_the_cell_where_it_is() -> None:
    notebook = book(*CELLS)
    change = notebook.apply({"op": "replace", "cell": "aa", "source": "x"})
    notebook.apply({"op": "move", "cell": "aa", "at": 4})

    notebook.apply(change.inverse())

    assert notebook.to_bytes() == write(*CELLS[1:], CELLS[0])


def test_a_change_can_be_followed_by_another_copy_of_the_notebook() -> None:
    change = book(*CELLS).apply({"op": "replace", "cell": "cc", "source": "x"})
    copy = book(code("first", "new"), *CELLS)
    copy.apply(change)
    assert sources(copy) == ["first", "a = 1\nb = 2", "# Title", "x", "d"]


def test_the_inverse_of_nothing_is_nothing() -> None:
    notebook = book(*CELLS)
    change = notebook.apply([])
    assert not notebook.apply(change.inverse())
    notebook.apply({"op": "delete", "cell": 0})
    after = notebook.to_bytes()
    notebook.apply(change.inverse())
    assert notebook.to_bytes() == after


def test_what_the_inverse_does_is_a_change_like_any_other() -> None:
    notebook = book(*CELLS)
    change = notebook.apply([{"op": "delete", "cell": "bb"}, {"op": "insert", "id": "new"}])
    back = notebook.apply(change.inverse())
    assert what(back) == [
        ("deleted", "new", "code", 3, None),
        ("inserted", "bb", "markdown", None, 1),
    ]


# --- States --------------------------------------------------------------------------------------


def restored(notebook: Notebook) -> Notebook:
    """The notebook after it was taken to pieces and put together again."""
    pieces = notebook.state.pieces()
    if pieces.old is None:
        assert len(pieces.gaps) == len(pieces.cells) + 1 == len(notebook.cells) + 1
    copy = Notebook()
    copy.state = State.of_pieces(
        Pieces(pieces.skeleton, list(pieces.cells), list(pieces.gaps), pieces.old)
    )
    return copy


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("edit", [*EDITS.values(), []], ids=[*EDITS, "nothing"])
def test_a_state_that_was_taken_to_pieces_is_put_together_again(
    edit: Any, style: dict[str, Any]
) -> None:
    notebook = book(*CELLS, style=style)
    notebook.apply(edit)
    copy = restored(notebook)
    assert copy.to_bytes() == notebook.to_bytes()
    assert (copy.revision, copy.version) == (notebook.revision, notebook.version)
    copy.apply({"op": "insert", "source": "x", "id": "new", "at": 0})
    notebook.apply({"op": "insert", "source": "x", "id": "new", "at": 0})
    assert copy.to_bytes() == notebook.to_bytes()


def test_the_first_cells_of_a_notebook_are_pieces_like_any_other() -> None:
    notebook = Notebook()
    assert restored(notebook).to_bytes() == notebook.to_bytes()
    notebook.apply([{"op": "insert", "source": "a"}, {"op": "insert", "source": "b"}])
    assert restored(notebook).to_bytes() == notebook.to_bytes()
    notebook.apply([{"op": "delete", "cell": 0}, {"op": "delete", "cell": 1}])
    assert restored(notebook).to_bytes() == notebook.to_bytes() == Notebook().to_bytes()


def test_states_share_the_pieces_that_did_not_change() -> None:
    notebook = book(*CELLS)
    before = notebook.state.pieces()
    notebook.apply({"op": "replace", "cell": "cc", "source": "new"})
    after = notebook.state.pieces()
    assert after.skeleton == before.skeleton
    assert list(after.gaps) == list(before.gaps)
    assert [one == two for one, two in zip(before.cells, after.cells, strict=True)] == [
        True,
        True,
        False,
        True,
    ]


def test_a_state_of_an_old_notebook_is_its_file() -> None:
    old = b'{"metadata":{},"nbformat":3,"nbformat_minor":0,"worksheets":[]}'
    copy = restored(Notebook(old))
    assert copy.to_bytes() == old
    assert (copy.version, copy.needs_upgrade) == ("3.0", True)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_step_between_two_states_leads_from_one_to_the_other(edit: dict[str, Any]) -> None:
    one, two = book(*CELLS), book(*CELLS)
    made = two.apply(edit)

    step = Change.between(one.state, two.state)

    assert what(step) == what(made)
    one.apply(step)
    assert one.to_bytes() == two.to_bytes()
    one.apply(step.inverse())
    assert one.to_bytes() == write(*CELLS)


def test_the_step_between_equal_states_changes_nothing() -> None:
    step = Change.between(book(*CELLS).state, book(*CELLS).state)
    notebook = book(*CELLS)
    assert step.cells == []
    notebook.apply(step)
    assert notebook.to_bytes() == write(*CELLS)


# --- Showing it ----------------------------------------------------------------------------------

LONG = "\n".join(f"line {number}" for number in range(1, 21))
HEAD = "--- a/notebook.ipynb\n+++ b/notebook.ipynb\n"

DIFFS = {
    "edited": (
        {"op": "replace_text", "cell": "aa", "old": "b = 2", "new": "b = 3\nc"},
        """\
@@ cell aa (code, index 0) edited @@
 a = 1
-b = 2
+b = 3
+c
""",
    ),
    "emptied": (
        {"op": "replace", "cell": "aa", "source": ""},
        """\
@@ cell aa (code, index 0) edited @@
-a = 1
-b = 2
""",
    ),
    "a newline at the end": (
        {"op": "replace", "cell": "cc", "source": "c\n"},
        """\
@@ cell cc (code, index 2) edited @@
 c
+
""",
    ),
    "retyped": (
        {"op": "set_type", "cell": "aa", "type": "markdown"},
        """\
@@ cell aa (markdown, index 0) edited @@
-[code]
+[markdown]
-outputs: 2
+outputs: none
""",
    ),
    "inserted": (
        {"op": "insert", "source": "x\n\ny", "type": "markdown", "id": "new", "at": 1},
        """\
@@ cell new (markdown, index 1) inserted @@
+x
+
+y
""",
    ),
    "inserted with nothing in it": (
        {"op": "insert", "id": "new"},
        "@@ cell new (code, index 4) inserted @@\n",
    ),
    "deleted": (
        {"op": "delete", "cell": "bb"},
        """\
@@ cell bb (markdown, was at index 1) deleted @@
-# Title
""",
    ),
    "moved": (
        {"op": "move", "cell": "aa", "at": 3},
        "@@ cell aa (code, index 0 -> 2) moved @@\n",
    ),
    "cleared": (
        {"op": "clear_outputs"},
        """\
@@ cell aa (code, index 0) updated @@
-outputs: 2
+outputs: none
""",
    ),
    "metadata of a cell": (
        {"op": "set_metadata", "cell": "bb", "metadata": {"k": 2, "é": [1]}},
        """\
@@ cell bb (markdown, index 1) updated @@
 {
- "k": 1
+ "k": 2,
+ "é": [
+  1
+ ]
 }
""",
    ),
    "two cells": (
        [
            {"op": "replace", "cell": "cc", "source": "x"},
            {"op": "delete", "cell": "aa"},
        ],
        """\
@@ cell aa (code, was at index 0) deleted @@
-a = 1
-b = 2
@@ cell cc (code, index 2 -> 1) edited @@
-c
+x
""",
    ),
}


@pytest.mark.parametrize("name", DIFFS)
def test_a_diff_shows_exactly_this(name: str) -> None:
    edits, expected = DIFFS[name]
    assert book(*CELLS).apply(edits).diff() == HEAD + expected


def test_a_diff_of_the_notebooks_metadata_speaks_of_the_notebook_and_not_of_its_cells() -> None:
    notebook = book(*CELLS, metadata={"a": 1})
    change = notebook.apply({"op": "set_metadata", "metadata": {"b": 2}})
    diff = change.diff()
    assert diff.startswith(HEAD + "@@ notebook @@\n")
    assert [line for line in diff.splitlines()[3:] if line[0] in "+-"] == [
        '-  "a": 1',
        '+  "a": 1,',
        '+  "b": 2',
    ]
    assert "cells" not in diff


def test_a_diff_names_the_path_it_is_given() -> None:
    change = book(*CELLS).apply({"op": "delete", "cell": "dd"})
    assert change.diff("a b/x.ipynb").splitlines()[:2] == ["--- a/a b/x.ipynb", "+++ b/a b/x.ipynb"]


@pytest.mark.parametrize("line", [2, 10, 15, 20])
def test_a_hunk_inside_a_long_cell_says_at_which_line(line: int) -> None:
    notebook = book(code(LONG, "aa"))
    source = LONG.split("\n")
    source[line - 1] = "changed"
    change = notebook.apply({"op": "replace", "cell": "aa", "source": "\n".join(source)})
    first, last = max(line - 3, 1), min(line + 3, 20)
    head = f"@@ -{first},{last - first + 1} +{first},{last - first + 1} @@\n" if first > 1 else ""
    rows = [f" line {n}\n" for n in range(first, last + 1)]
    rows[line - first] = f"-line {line}\n+changed\n"
    assert change.diff() == HEAD + "@@ cell aa (code, index 0) edited @@\n" + head + "".join(rows)


def test_a_diff_has_several_hunks_and_as_much_context_as_asked_for() -> None:
    notebook = book(code(LONG, "aa"))
    source = LONG.replace("line 1\n", "first\n").replace("line 20", "last")
    change = notebook.apply({"op": "replace", "cell": "aa", "source": source})
    assert change.diff(context=1) == HEAD + (
        "@@ cell aa (code, index 0) edited @@\n"
        "-line 1\n"
        "+first\n"
        " line 2\n"
        "@@ -19,2 +19,2 @@\n"
        " line 19\n"
        "-line 20\n"
        "+last\n"
    )


def test_a_diff_of_the_inverse_is_the_other_way_round() -> None:
    change = book(*CELLS).apply({"op": "replace", "cell": "cc", "source": "x"})
    assert change.inverse().diff() == HEAD + "@@ cell cc (code, index 2) edited @@\n-x\n+c\n"


def test_a_diff_of_cells_without_ids_names_their_places() -> None:
    notebook = book(code("a"), code("b"), minor=4)
    change = notebook.apply({"op": "delete", "cell": 0})
    assert change.diff() == HEAD + "@@ cell cell-0 (code, was at index 0) deleted @@\n-a\n"


def test_a_diff_of_broken_and_of_deep_cells_fails_on_neither() -> None:
    deep = "[" * 3000 + "]" * 3000
    output = (
        f'{{"output_type":"display_data","metadata":{{}},"data":{{"application/json":{deep}}}}}'
    )
    data = (
        '{"cells":[{"cell_type":"code"},{"cell_type":"code","execution_count":null,"id":"aa",'
        f'"metadata":{{"m":{deep}}},"outputs":[{output}],"source":"x"}}],"metadata":{{}},'
        '"nbformat":4,"nbformat_minor":5}'
    )
    notebook = Notebook(data.encode())
    change = notebook.apply(
        [
            {"op": "delete", "cell": 0},
            {"op": "replace", "cell": "aa", "source": "y", "outputs": "clear"},
        ]
    )
    rows = change.diff().splitlines()
    assert '-{"cell_type":"code"}' in rows
    assert rows[-4:] == ["-x", "+y", "-outputs: 1", "+outputs: none"]


def test_outputs_that_were_replaced_by_as_many_are_said_to_have_changed() -> None:
    notebook = Notebook(
        b'{"cells":[{"cell_type":"code","execution_count":1,"id":"a","metadata":{},"outputs":'
        b'[{"name":"stdout","output_type":"stream","text":"1"}],"source":"x"}],"metadata":{},'
        b'"nbformat":4,"nbformat_minor":5}'
    )
    other = Notebook(notebook.to_bytes().replace(b'"text":"1"', b'"text":"2"'))
    rows = Change.between(notebook.state, other.state).diff().splitlines()
    assert rows[-2:] == ["-outputs: 1", "+outputs: 1, changed"]
