"""Two older ways to edit: S1's `notebook` action by index, S2's NotebookEdit by id.

What they promise is in the documents; each test says which of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.errors import CellwrightError
from cellwright.workspace.classic import notebook_action, notebook_edit
from tests.property.checks import assert_only_cell_changed
from tests.unit.cli import samples

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 7  # cells of the sample
BROKEN = {
    "not JSON": b'{"cells": [',
    "empty": b"",
    "no cells": b'{"metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "cells are no array": b'{"cells": {}, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "not an object": b"[]",
}


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "nb.ipynb"


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells as another parser reads them."""
    found: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
    return found


# --- S1: notebook --------------------------------------------------------------------------------


def act(workspace: Workspace, action: str, index: Any, **more: Any) -> dict[str, Any]:
    return notebook_action(workspace, action, "nb.ipynb", index, **more)


def refused(workspace: Workspace, path: Path, *words: Any, **more: Any) -> CellwrightError:
    """The error with which an action is refused; it must have written nothing."""
    before = path.read_bytes()
    with pytest.raises(CellwrightError) as caught:
        act(workspace, *words, **more)
    assert path.read_bytes() == before
    assert workspace.open("nb.ipynb").log() == []
    return caught.value


def test_edit_replaces_the_source_and_keeps_the_type(workspace: Workspace, path: Path) -> None:
    for index, kind in ((0, "markdown"), (1, "code"), (6, "raw")):
        act(workspace, "edit", index, content=f"a\nb {index}")
        assert cells(path)[index]["cell_type"] == kind
        assert cells(path)[index]["source"] == ["a\n", f"b {index}"]
    assert len(cells(path)) == COUNT


def test_edit_ignores_a_type_and_keeps_outputs(workspace: Workspace, path: Path) -> None:
    act(workspace, "edit", 1, content="x", cell_type="markdown")
    assert cells(path)[1]["cell_type"] == "code"
    assert cells(path)[1]["outputs"] == [samples.STREAM]
    assert cells(path)[1]["execution_count"] == 1


def test_edit_changes_only_the_bytes_of_its_cell(workspace: Workspace, path: Path) -> None:
    act(workspace, "edit", 2, content="total + 1")
    assert_only_cell_changed(samples.SALES, path.read_bytes(), 2)


@pytest.mark.parametrize("index", range(COUNT + 1))
def test_insert_takes_an_index_from_0_to_the_number_of_cells(
    index: int, workspace: Workspace, path: Path
) -> None:
    act(workspace, "insert", index, content="new")
    found = cells(path)
    assert len(found) == COUNT + 1
    assert found[index]["source"] == ["new"]
    assert found[:index] + found[index + 1 :] == json.loads(samples.SALES)["cells"]


def test_insert_makes_code_with_its_fields_unless_told_otherwise(
    workspace: Workspace, path: Path
) -> None:
    act(workspace, "insert", 0, content="x")
    act(workspace, "insert", 1, content="# y", cell_type="markdown")
    code, markdown = cells(path)[:2]
    assert code.pop("id") != markdown.pop("id")
    assert code == {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": ["x"],
    }
    assert markdown == {"cell_type": "markdown", "metadata": {}, "source": ["# y"]}


def test_insert_into_a_notebook_without_cells(workspace: Workspace, path: Path) -> None:
    path.write_bytes(samples.write())
    act(workspace, "insert", 0, content="x")
    assert [cell["source"] for cell in cells(path)] == [["x"]]


def test_delete_removes_the_cell_and_gives_its_source_back(
    workspace: Workspace, path: Path
) -> None:
    details = act(workspace, "delete", 1)
    assert details["cellSource"] == "total = 42\nprint(total)"
    assert [cell["id"] for cell in cells(path)][:2] == ["intro", "sum"]


def test_the_details_have_the_keys_of_the_document_and_what_happened(
    workspace: Workspace, path: Path
) -> None:
    assert act(workspace, "edit", 2, content="total + 1") == {
        "action": "edit",
        "cellIndex": 2,
        "cellType": "code",
        "totalCells": 7,
        "cellSource": "total + 1",
        "summary": "Replaced cell 2 (code). Notebook now has 7 cells.",
    }
    assert act(workspace, "insert", 7, content="# End", cell_type="markdown") == {
        "action": "insert",
        "cellIndex": 7,
        "cellType": "markdown",
        "totalCells": 8,
        "cellSource": "# End",
        "summary": "Inserted cell 7 (markdown). Notebook now has 8 cells.",
    }
    assert act(workspace, "delete", 0) == {
        "action": "delete",
        "cellIndex": 0,
        "cellType": "markdown",
        "totalCells": 7,
        "cellSource": "# Sales\n\nWhat we sold.",
        "summary": "Deleted cell 0 (markdown). Notebook now has 7 cells.",
    }
    assert len(cells(path)) == 7


@pytest.mark.parametrize(
    ("action", "index", "most"),
    [
        ("edit", COUNT, COUNT - 1),
        ("delete", COUNT, COUNT - 1),
        ("insert", COUNT + 1, COUNT),
        *((action, -1, COUNT if action == "insert" else COUNT - 1) for action in ("edit", "insert", "delete")),
        ("edit", True, COUNT - 1),
        ("edit", 1.0, COUNT - 1),
        ("delete", "1", COUNT - 1),
    ],
)  # fmt: skip
def test_an_index_out_of_range_is_refused_with_the_range_of_the_action(
    action: str, index: Any, most: int, workspace: Workspace, path: Path
) -> None:
    error = refused(workspace, path, action, index, content="x")
    assert error.code == "CELL_NOT_FOUND"
    for_insert = " for insert" if action == "insert" else ""
    assert str(error) == f"Cell index {index} out of range{for_insert} (0-{most}) in nb.ipynb"


@pytest.mark.parametrize("action", ["edit", "insert"])
def test_content_is_required_for_edit_and_insert(
    action: str, workspace: Workspace, path: Path
) -> None:
    error = refused(workspace, path, action, 0)
    assert error.code == "INVALID_EDIT"
    assert str(error) == f"Content is required for {action} action"


def test_empty_content_is_content(workspace: Workspace, path: Path) -> None:
    assert act(workspace, "edit", 0, content="")["cellSource"] == ""
    assert cells(path)[0]["source"] == []


def test_delete_needs_no_content(workspace: Workspace, path: Path) -> None:
    act(workspace, "delete", 0, content=None)
    assert len(cells(path)) == COUNT - 1


def test_the_actions_are_edit_insert_and_delete_and_no_others(
    workspace: Workspace, path: Path
) -> None:
    for action in ("replace", "EDIT", "run", ""):
        assert refused(workspace, path, action, 0, content="x").code == "INVALID_EDIT"
    for action in ("edit", "insert", "delete"):
        before = path.read_bytes()
        assert act(workspace, action, 0, content=f"by {action}")["action"] == action
        assert path.read_bytes() != before


@pytest.mark.parametrize("action", ["edit", "insert", "delete"])
def test_a_missing_notebook_is_an_error_that_names_it_and_makes_none(
    action: str, workspace: Workspace, path: Path
) -> None:
    path.unlink()
    with pytest.raises(CellwrightError) as caught:
        act(workspace, action, 0, content="x")
    assert caught.value.code == "NOTEBOOK_NOT_FOUND"
    assert "nb.ipynb" in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_notebook_is_an_error_that_names_it(
    name: str, workspace: Workspace, path: Path
) -> None:
    path.write_bytes(BROKEN[name])
    error = refused(workspace, path, "edit", 0, content="x")
    assert error.code == "INVALID_NOTEBOOK"
    about = "JSON in notebook" if name in ("not JSON", "empty") else "notebook structure"
    assert str(error).startswith(f"Invalid {about}")
    assert "nb.ipynb" in str(error)


def test_an_action_is_one_change_of_its_actor(workspace: Workspace, path: Path) -> None:
    act(workspace, "edit", 0, content="x")
    act(workspace, "delete", 1)
    log = workspace.open("nb.ipynb").log()
    assert [(entry["kind"], entry["actor"]) for entry in log] == [("edit", "test:ada")] * 2
    workspace.open("nb.ipynb").undo()
    workspace.open("nb.ipynb").undo()
    assert path.read_bytes() == samples.SALES


# --- S2: NotebookEdit ----------------------------------------------------------------------------


def edit(workspace: Workspace, **words: Any) -> dict[str, Any]:
    return notebook_edit(workspace, "nb.ipynb", **words)


def fails(workspace: Workspace, path: Path, error: str, **words: Any) -> None:
    """The edit answers with that error and nothing else, and writes nothing."""
    before = path.read_bytes() if path.exists() else None
    assert edit(workspace, **words) == {"success": False, "error": error}
    assert (path.read_bytes() if path.exists() else None) == before
    assert workspace.open("nb.ipynb").log() == []


def test_replace_is_the_mode_unless_another_is_given(workspace: Workspace, path: Path) -> None:
    answer = edit(workspace, cell_id="load", new_source="a\nb")
    assert answer == {"success": True, "cell_id": "load", "cell_index": 1}
    assert cells(path)[1]["source"] == ["a\n", "b"]
    assert cells(path)[1]["id"] == "load"


def test_replace_clears_the_outputs_of_code(workspace: Workspace, path: Path) -> None:
    edit(workspace, cell_id="load", new_source="x", edit_mode="replace")
    assert cells(path)[1]["outputs"] == []
    assert cells(path)[1]["execution_count"] is None
    before = json.loads(samples.SALES)["cells"]
    assert cells(path)[:1] + cells(path)[2:] == before[:1] + before[2:]


def test_replace_with_the_same_source_clears_outputs_too(workspace: Workspace, path: Path) -> None:
    assert edit(workspace, cell_id="sum", new_source="total")["success"]
    assert cells(path)[2]["outputs"] == []


def test_replace_changes_the_type_when_one_is_given(workspace: Workspace, path: Path) -> None:
    edit(workspace, cell_id="load", new_source="# x", cell_type="markdown")
    assert cells(path)[1] == {
        "cell_type": "markdown",
        "id": "load",
        "metadata": {},
        "source": ["# x"],
    }
    edit(workspace, cell_id="intro", new_source="x", cell_type="code")
    assert cells(path)[0]["outputs"] == []
    assert cells(path)[0]["execution_count"] is None


def test_insert_without_a_cell_goes_to_the_start(workspace: Workspace, path: Path) -> None:
    answer = edit(workspace, new_source="x", cell_type="code", edit_mode="insert")
    first = cells(path)[0]
    assert answer == {"success": True, "cell_id": first["id"], "cell_index": 0}
    assert first["source"] == ["x"]
    assert len(cells(path)) == COUNT + 1


@pytest.mark.parametrize("ref", ["load", "1"])
def test_insert_goes_right_after_the_cell_that_is_named(
    ref: str, workspace: Workspace, path: Path
) -> None:
    words = {"new_source": "# x", "cell_type": "markdown", "edit_mode": "insert"}
    answer = edit(workspace, cell_id=ref, **words)
    assert answer == {"success": True, "cell_id": cells(path)[2]["id"], "cell_index": 2}
    assert cells(path)[2]["source"] == ["# x"]
    assert cells(path)[1]["id"] == "load"


def test_a_new_cell_has_an_id_of_8_hex_digits_and_the_fields_of_its_type(
    workspace: Workspace, path: Path
) -> None:
    for kind in ("code", "markdown", "raw"):
        edit(workspace, new_source="x", cell_type=kind, edit_mode="insert")
        cell = cells(path)[0]
        assert len(cell["id"]) == 8
        assert int(cell.pop("id"), 16) >= 0
        fields = {"outputs": [], "execution_count": None} if kind == "code" else {}
        assert cell == {"cell_type": kind, "metadata": {}, "source": ["x"], **fields}


@pytest.mark.parametrize("ref", ["sum", "2"])
def test_delete_answers_with_the_cell_and_the_index_it_had(
    ref: str, workspace: Workspace, path: Path
) -> None:
    answer = edit(workspace, cell_id=ref, edit_mode="delete")
    assert (answer["success"], answer["cell_index"]) == (True, 2)
    assert answer["cell_id"] in (ref, "sum")
    assert "sum" not in [cell["id"] for cell in cells(path)]


def test_a_reference_is_an_id_first_and_then_an_index(workspace: Workspace, path: Path) -> None:
    path.write_bytes(samples.write(samples.code("one", "x"), samples.code("0", "y")))
    assert edit(workspace, cell_id="0", new_source="z")["cell_index"] == 1
    path.write_bytes(samples.write(samples.code("one", "x"), samples.code("two", "y")))
    assert edit(workspace, cell_id="0", new_source="z")["cell_index"] == 0


@pytest.mark.parametrize("ref", ["nothing", str(COUNT), "-1", "1.0", "", "lo"])
def test_an_unknown_cell_is_not_found(ref: str, workspace: Workspace, path: Path) -> None:
    fails(workspace, path, f"Cell not found: {ref}", cell_id=ref, new_source="x")
    if ref:
        fails(workspace, path, f"Cell not found: {ref}", cell_id=ref, edit_mode="delete")
        words = {"new_source": "x", "cell_type": "code", "edit_mode": "insert"}
        fails(workspace, path, f"Reference cell not found: {ref}", cell_id=ref, **words)


def test_insert_needs_a_type(workspace: Workspace, path: Path) -> None:
    for more in ({}, {"cell_id": "load"}, {"cell_id": "nothing"}):
        words = {"new_source": "x", "edit_mode": "insert", **more}
        fails(workspace, path, "cell_type required for insert", **words)


def test_delete_needs_a_cell(workspace: Workspace, path: Path) -> None:
    fails(workspace, path, "cell_id required for delete", edit_mode="delete")
    fails(workspace, path, "cell_id required for delete", edit_mode="delete", cell_id="")


@pytest.mark.parametrize("mode", ["", "Replace", "append"])
def test_another_mode_is_invalid(mode: str, workspace: Workspace, path: Path) -> None:
    fails(workspace, path, "Invalid edit mode", edit_mode=mode, cell_id="load", new_source="x")


def test_a_missing_notebook_is_not_found(workspace: Workspace, path: Path) -> None:
    path.unlink()
    fails(workspace, path, "Notebook not found", cell_id="load", new_source="x")


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_notebook_has_an_invalid_format(
    name: str, workspace: Workspace, path: Path
) -> None:
    path.write_bytes(BROKEN[name])
    fails(workspace, path, "Invalid notebook format", cell_id="load", new_source="x")


def test_an_unknown_type_of_cell_is_an_error(workspace: Workspace, path: Path) -> None:
    before = path.read_bytes()
    answer = edit(workspace, new_source="x", cell_type="prose", edit_mode="insert")
    assert answer.keys() == {"success", "error"}
    assert not answer["success"]
    assert path.read_bytes() == before


def test_a_file_without_ids_is_edited_by_index_and_gets_none(
    workspace: Workspace, path: Path
) -> None:
    path.write_bytes(samples.write(samples.code(None, "x"), samples.code(None, "y"), minor=4))
    answer = edit(workspace, cell_id="1", new_source="z")
    assert answer == {"success": True, "cell_id": "1", "cell_index": 1}
    edit(workspace, new_source="first", cell_type="code", edit_mode="insert")
    assert [cell["source"] for cell in cells(path)] == [["first"], ["x"], ["z"]]
    assert not any("id" in cell for cell in cells(path))


def test_a_relative_path_is_that_of_the_caller(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "nb.ipynb").rename(folder / "sub" / "nb.ipynb")
    with Workspace(cwd=str(folder / "sub")) as workspace:
        assert edit(workspace, cell_id="load", new_source="x")["success"]
        assert act(workspace, "delete", 0)["totalCells"] == COUNT - 1
        absolute = str(folder / "sub" / "nb.ipynb")
        assert notebook_edit(workspace, absolute, cell_id="sum", new_source="x")["success"]


def test_an_edit_that_raced_with_another_is_not_applied_to_the_wrong_cell(
    workspace: Workspace, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the notebook and changing it, somebody inserts a cell before ours."""
    real = type(workspace.open("nb.ipynb")).load

    def load_and_lose(book: Any) -> Any:
        notebook = real(book)
        monkeypatch.undo()
        with Workspace(path.parent, actor="test:bob", cwd=str(path.parent)) as other:
            other.open("nb.ipynb").edit([{"op": "insert", "source": "b", "id": "bob", "at": 0}])
        return notebook

    monkeypatch.setattr(type(workspace.open("nb.ipynb")), "load", load_and_lose)
    answer = notebook_edit(workspace, str(path), cell_id="1", new_source="mine")
    assert answer["success"]
    assert [cell["source"] for cell in cells(path) if cell["id"] == "load"] == [["mine"]]
    assert [cell["source"] for cell in cells(path) if cell["id"] == "intro"] != [["mine"]]
