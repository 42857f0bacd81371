"""What the documents promise about a notebook on disk, seen through the public API alone.

Only what the document itself holds; what their tools say and answer is held where the tools are.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import cellwright

if TYPE_CHECKING:
    from pathlib import Path

STREAM = {"name": "stdout", "output_type": "stream", "text": ["1\n"]}
OUTPUTS = [
    STREAM,
    {
        "data": {"text/plain": "2"},
        "execution_count": 3,
        "metadata": {},
        "output_type": "execute_result",
    },
    {"data": {"image/png": "QUJD"}, "metadata": {"w": 1}, "output_type": "display_data"},
    {"ename": "E", "evalue": "why", "output_type": "error", "traceback": ["line"]},
]
CELLS: list[dict[str, Any]] = [
    {
        "cell_type": "code",
        "execution_count": 3,
        "id": "abc123",
        "metadata": {"tags": ["keep"], "id": "of another tool", "x_own": {"deep": [1, None]}},
        "outputs": OUTPUTS,
        "source": ["x = 1\n", "x + 1"],
    },
    {"cell_type": "markdown", "id": "def456", "metadata": {"k": 1}, "source": "# One string"},
    {"cell_type": "raw", "id": "xyz789", "metadata": {}, "source": []},
]
VALUE: dict[str, Any] = {
    "cells": CELLS,
    "metadata": {"kernelspec": {"display_name": "Python 3", "name": "python3"}, "x_own": 1},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A notebook that some other program wrote, with an indentation of two."""
    path = tmp_path / "analysis.ipynb"
    path.write_text(json.dumps(VALUE, indent=2), encoding="utf-8")
    return path


def on_disk(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_bytes())
    return value


def edit(path: Path, *edits: dict[str, Any]) -> list[dict[str, Any]]:
    """Make the edits in the file; its cells come back."""
    cellwright.edit(path, edits)
    cells: list[dict[str, Any]] = on_disk(path)["cells"]
    return cells


def refused(path: Path, *edits: dict[str, Any]) -> Any:
    """The error of edits that must leave the file and its folder as they were."""
    before, names = path.read_bytes(), list(path.parent.iterdir())
    with pytest.raises(cellwright.CellwrightError) as caught:
        cellwright.edit(path, edits)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == names
    return caught.value


# --- Sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("a\nb\nc", ["a\n", "b\n", "c"]),
        ("a\nb\n", ["a\n", "b\n"]),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("\n\na", ["\n", "\n", "a"]),
        ("a\r\nb\x0cc\u2028d", ["a\r\n", "b\x0cc\u2028d"]),
        ("", []),
    ],
)
def test_a_source_is_split_into_lines_that_keep_their_newline(
    path: Path, source: str, lines: list[str]
) -> None:
    cells = edit(
        path,
        {"op": "replace", "cell": "abc123", "source": source},
        {"op": "insert", "source": source, "at": 0},
    )
    assert cells[1]["source"] == lines
    assert cells[0]["source"] == lines
    assert cellwright.read(path).cells[1].source == source


def test_an_empty_source_becomes_an_empty_list(path: Path) -> None:
    cells = edit(path, {"op": "replace", "cell": "abc123", "source": ""}, {"op": "insert", "at": 0})
    assert (cells[0]["source"], cells[1]["source"]) == ([], [])


def test_a_source_list_and_a_source_string_are_read_as_one_text(path: Path) -> None:
    sources = [cell.source for cell in cellwright.read(path).cells]
    assert sources == ["x = 1\nx + 1", "# One string", ""]


# --- New cells -----------------------------------------------------------------------------------


def test_a_new_code_cell_has_the_fields_of_code(path: Path) -> None:
    new = edit(path, {"op": "insert", "source": "x", "at": 0})[0]
    assert new == {
        "cell_type": "code",
        "execution_count": None,
        "id": new["id"],
        "metadata": {},
        "outputs": [],
        "source": ["x"],
    }


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_new_text_cell_has_metadata_and_source_only_and_an_id(path: Path, kind: str) -> None:
    new = edit(path, {"op": "insert", "source": "x", "type": kind, "at": 0})[0]
    assert new == {"cell_type": kind, "id": new["id"], "metadata": {}, "source": ["x"]}


@pytest.mark.parametrize("minor", range(6))
def test_a_new_cell_has_an_id_from_version_4_5_on(tmp_path: Path, minor: int) -> None:
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps({**VALUE, "cells": [], "nbformat_minor": minor}))
    new = edit(path, {"op": "insert", "source": "x", "type": "markdown"})[-1]
    with_id = {"id": new["id"]} if minor >= 5 else {}
    assert new == {"cell_type": "markdown", **with_id, "metadata": {}, "source": ["x"]}
    assert on_disk(path)["nbformat_minor"] == minor


def test_a_new_id_has_eight_hexadecimal_digits_and_is_its_own(path: Path) -> None:
    cells = edit(path, *[{"op": "insert"}] * 50)
    ids = [cell["id"] for cell in cells]
    assert all(re.fullmatch("[0-9a-f]{8}", id_) for id_ in ids[3:])
    assert len(set(ids)) == 53


# --- What an edit leaves alone -------------------------------------------------------------------


def test_an_edit_keeps_the_outputs_and_metadata_of_every_cell(path: Path) -> None:
    cells = edit(
        path,
        {"op": "replace", "cell": "abc123", "source": "y = 2"},
        {"op": "insert", "source": "new", "after": "def456"},
        {"op": "delete", "cell": "xyz789"},
    )
    assert cells[:2] == [{**CELLS[0], "source": ["y = 2"]}, CELLS[1]]
    assert on_disk(path)["metadata"] == VALUE["metadata"]


def test_an_edit_changes_one_cell_and_no_byte_of_the_others(path: Path) -> None:
    before = path.read_text(encoding="utf-8")
    edit(path, {"op": "replace", "cell": "def456", "source": "# Another"})
    assert path.read_text(encoding="utf-8") == before.replace("# One string", "# Another")


def test_the_id_of_a_cell_survives_every_edit_of_it(path: Path) -> None:
    for change in (
        {"op": "replace", "source": "new", "outputs": "clear"},
        {"op": "replace_text", "old": "new", "new": "newer"},
        {"op": "set_type", "type": "markdown"},
        {"op": "set_type", "type": "code"},
        {"op": "set_metadata", "metadata": {"tags": None}},
        {"op": "move", "at": 3},
    ):
        cells = edit(path, {**change, "cell": "abc123"})
        assert sorted(cell["id"] for cell in cells) == ["abc123", "def456", "xyz789"]
    assert [cell["id"] for cell in cells] == ["def456", "xyz789", "abc123"]


def test_an_existing_notebook_keeps_its_own_style_and_a_new_one_has_an_indent_of_one(
    path: Path, tmp_path: Path
) -> None:
    edit(path, {"op": "replace", "cell": "abc123", "source": "y"})
    expected = {**VALUE, "cells": [{**CELLS[0], "source": ["y"]}, *CELLS[1:]]}
    assert path.read_text(encoding="utf-8") == json.dumps(expected, indent=2)

    new = tmp_path / "new.ipynb"
    cellwright.edit(new, {"op": "insert", "source": "x"}, create=True)
    text = new.read_text(encoding="utf-8")
    assert text == json.dumps(on_disk(new), indent=1) + "\n"


# --- What an edit does ---------------------------------------------------------------------------


@pytest.mark.parametrize("ref", ["def456", 1, "1", "cell-1", -2])
def test_a_cell_is_named_by_its_id_or_by_its_position_from_zero(path: Path, ref: Any) -> None:
    cells = edit(path, {"op": "replace", "cell": ref, "source": "found"})
    assert [cell["id"] for cell in cells if cell["source"] == "found"] == ["def456"]


def test_an_id_that_is_a_number_is_tried_before_a_position(tmp_path: Path) -> None:
    path = tmp_path / "numbers.ipynb"
    cells = [{**CELLS[2], "id": id_} for id_ in ("2", "1", "0")]
    path.write_text(json.dumps({**VALUE, "cells": cells}))
    found = edit(path, {"op": "replace", "cell": "0", "source": "by id"})
    assert [cell["source"] for cell in found] == [[], [], ["by id"]]
    assert refused(path, {"op": "delete", "cell": "3"}).code == "CELL_NOT_FOUND"
    assert refused(path, {"op": "delete", "cell": 3}).code == "CELL_NOT_FOUND"


def test_replace_changes_the_type_when_one_is_given_and_keeps_it_otherwise(path: Path) -> None:
    cells = edit(path, {"op": "replace", "cell": "def456", "source": "x"})
    assert cells[1]["cell_type"] == "markdown"
    cells = edit(path, {"op": "replace", "cell": "def456", "source": "x = 1", "type": "code"})
    assert cells[1] == {
        **CELLS[1],
        "cell_type": "code",
        "execution_count": None,
        "outputs": [],
        "source": "x = 1",
    }


def test_outputs_are_kept_or_cleared_as_the_caller_chooses(path: Path) -> None:
    replace = {"op": "replace", "cell": "abc123", "source": "y"}
    kept = edit(path, replace)[0]
    assert (kept["outputs"], kept["execution_count"]) == (OUTPUTS, 3)
    cleared = edit(path, {**replace, "outputs": "clear"})[0]
    assert (cleared["outputs"], cleared["execution_count"]) == ([], None)
    assert cleared == {**CELLS[0], "source": ["y"], "outputs": [], "execution_count": None}


def test_cells_are_replaced_inserted_and_deleted(path: Path) -> None:
    edit(path, {"op": "replace", "cell": "abc123", "source": "one"})
    edit(path, {"op": "insert", "source": "two", "after": "abc123", "id": "new"})
    cells = edit(path, {"op": "delete", "cell": "xyz789"})
    assert [(cell["id"], "".join(cell["source"])) for cell in cells] == [
        ("abc123", "one"),
        ("new", "two"),
        ("def456", "# One string"),
    ]


def test_several_operations_are_one_step(path: Path) -> None:
    good = {"op": "replace", "cell": "abc123", "source": "changed"}
    assert refused(path, good, {"op": "delete", "cell": "nobody"}).code == "CELL_NOT_FOUND"
    cells = edit(path, good, {"op": "delete", "cell": "def456"}, {"op": "insert", "at": 0})
    assert [cell["id"] for cell in cells[1:]] == ["abc123", "xyz789"]


def test_a_notebook_is_created_with_its_four_members(tmp_path: Path) -> None:
    path = tmp_path / "new.ipynb"
    assert_missing(path)
    cellwright.write(cellwright.Notebook(), path)
    assert on_disk(path) == {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    assert edit(path, {"op": "insert", "source": "x"})[0]["source"] == ["x"]
    assert cellwright.read(path).validate() is None


def test_a_write_puts_exactly_these_bytes_into_the_file(path: Path, tmp_path: Path) -> None:
    old = b'{"metadata":{},"nbformat":3,"nbformat_minor":0,"worksheets":[]}'
    edited = cellwright.read(path)
    edited.apply([{"op": "delete", "cell": 0}, {"op": "insert", "source": "é\ud800\n"}])
    for number, notebook in enumerate(
        (cellwright.read(path), edited, cellwright.Notebook(), cellwright.Notebook(old))
    ):
        target = tmp_path / f"{number}.ipynb"
        saved = cellwright.write(notebook, target)
        assert target.read_bytes() == notebook.to_bytes()
        assert (saved.path, saved.size) == (str(target), len(notebook.to_bytes()))


def test_outputs_are_of_four_types(path: Path) -> None:
    found = cellwright.read(path).cells[0].outputs
    assert found == (
        cellwright.Stream("stdout", "1\n"),
        cellwright.Result({"text/plain": "2"}, {}, 3),
        cellwright.Display({"image/png": "QUJD"}, {"w": 1}),
        cellwright.ErrorOutput("E", "why", ("line",)),
    )


def test_a_whole_session_of_reading_editing_conflicting_and_undoing(path: Path) -> None:
    before = path.read_bytes()
    seen = cellwright.read(path)
    _, change = cellwright.edit(path, {"op": "replace", "cell": "abc123", "source": "mine"})

    with pytest.raises(cellwright.CellwrightError) as caught:
        cellwright.edit(
            path,
            {"op": "replace", "cell": "abc123", "source": "late"},
            base=seen.snapshot(),
        )
    assert caught.value.code == "CONFLICT"
    edit(path, {"op": "insert", "source": "elsewhere"})
    notebook = cellwright.read(path)
    undone = notebook.apply(change.inverse())
    assert undone.cells[0].handle == "abc123"
    notebook.apply({"op": "delete", "cell": -1})
    cellwright.write(notebook)

    assert path.read_bytes() == before


# --- What is refused -----------------------------------------------------------------------------


def assert_missing(path: Path) -> None:
    for call in (lambda: cellwright.read(path), lambda: cellwright.edit(path, {"op": "insert"})):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert isinstance(caught.value, cellwright.CellwrightError)
        assert caught.value.code == "NOTEBOOK_NOT_FOUND"
    assert not path.exists()


def test_a_missing_notebook_is_an_error(tmp_path: Path) -> None:
    assert_missing(tmp_path / "missing.ipynb")


@pytest.mark.parametrize("content", ["", "{", '{"cells": [}', "not json", '{"cells": [],}'])
def test_invalid_json_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.ipynb"
    path.write_text(content)
    assert refused(path, {"op": "insert"}).code == "INVALID_JSON"
    with pytest.raises(cellwright.CellwrightError) as caught:
        cellwright.read(path)
    assert caught.value.code == "INVALID_JSON"


@pytest.mark.parametrize("cells", [None, {}, "text", 5])
def test_cells_that_are_missing_or_no_array_are_an_error(tmp_path: Path, cells: Any) -> None:
    path = tmp_path / "broken.ipynb"
    for value in ({**VALUE, "cells": cells}, {k: v for k, v in VALUE.items() if k != "cells"}):
        path.write_text(json.dumps(value))
        assert refused(path, {"op": "insert"}).code == "INVALID_NOTEBOOK"
        with pytest.raises(cellwright.CellwrightError) as caught:
            cellwright.read(path)
        assert caught.value.code == "INVALID_NOTEBOOK"


@pytest.mark.parametrize(
    "cell", [5, "text", [], None, {"source": "x"}, {**CELLS[1], "cell_type": "q"}]
)
def test_a_cell_that_is_no_object_or_has_no_known_type_is_an_error(
    tmp_path: Path, cell: Any
) -> None:
    path = tmp_path / "broken.ipynb"
    path.write_text(json.dumps({**VALUE, "cells": [CELLS[0], cell]}))
    error = refused(path, {"op": "replace", "cell": 1, "source": "x"})
    assert (error.code, error.index) == ("INVALID_CELL", 1)
    assert edit(path, {"op": "replace", "cell": 0, "source": "x"})[1] == cell


def test_the_structure_is_verified_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "broken.ipynb"
    for value, code in (
        ([], "INVALID_NOTEBOOK"),
        ({"nbformat": 4, "metadata": {}}, "INVALID_NOTEBOOK"),
        ({"cells": []}, "INVALID_NOTEBOOK"),
        ({"cells": [], "nbformat": 7}, "UNSUPPORTED_VERSION"),
        ({"cells": [], "nbformat": "4"}, "INVALID_NOTEBOOK"),
    ):
        path.write_text(json.dumps(value))
        assert refused(path, {"op": "insert"}).code == code


def test_a_failing_edit_writes_nothing(path: Path) -> None:
    for edits, code in (
        ([{"op": "delete", "cell": "nobody"}], "CELL_NOT_FOUND"),
        ([{"op": "delete", "cell": 3}], "CELL_NOT_FOUND"),
        ([{"op": "replace", "cell": "abc123"}], "INVALID_EDIT"),
        ([{"op": "insert", "at": 4}], "INVALID_EDIT"),
        ([{"op": "delete", "cell": 0}, {"op": "delete", "cell": 0}], "INVALID_EDIT"),
        ([{"op": "delete", "cell": 0, "expect": "0"}], "CONFLICT"),
        ([{"op": "set_metadata", "metadata": {"authors": 1}}], "INVALID_METADATA"),
    ):
        assert refused(path, *edits).code == code


def test_editing_executes_nothing_of_what_a_notebook_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "executed"
    program = f"open({str(marker)!r}, 'w').close()"
    cell = {**CELLS[0], "source": [program], "metadata": {"init": program}}
    cell["outputs"] = [{**STREAM, "text": program}]
    path = tmp_path / "trap.ipynb"
    path.write_text(json.dumps({**VALUE, "cells": [cell]}))

    def use() -> None:
        notebook = cellwright.read(path)
        assert notebook.cells[0].outputs
        change = notebook.apply({"op": "replace", "cell": 0, "source": f"{program}\n{program}"})
        cellwright.write(notebook)
        assert change.diff()
        notebook.apply(change.inverse())
        cellwright.write(notebook)

    use()  # what is imported on the way is executed, and is now there
    executed = []
    with monkeypatch.context() as patch:
        for owner, name in (
            (builtins, "exec"),
            (builtins, "eval"),
            (builtins, "compile"),
            (os, "system"),
            (subprocess, "Popen"),
        ):
            patch.setattr(owner, name, lambda *given, **_: executed.append(given))
        use()

    assert executed == []
    assert not marker.exists()
