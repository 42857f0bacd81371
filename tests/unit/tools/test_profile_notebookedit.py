"""The profile `notebookedit` as transcripts: `NotebookEdit` by id or index."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import AsyncWorkspace
from cellwright.errors import NotebookNotFound
from cellwright.tools.profiles import PROFILES
from cellwright.tools.toolbox import Toolbox
from tests.unit.cli import samples
from tests.unit.tools.conftest import Call
from tests.unit.tools.support import BROKEN, COUNT, cells, is_there, log, read, remove, write

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import ToolResult
    from tests.memory_kernel import MemoryKernel


async def ask(call: Call, **words: Any) -> ToolResult:
    return await call("NotebookEdit", "notebookedit", **{"notebook_path": "nb.ipynb", **words})


async def edit(call: Call, **words: Any) -> dict[str, Any]:
    return (await ask(call, **words)).data


async def fails(call: Call, path: Path, error: str, **words: Any) -> None:
    """The edit answers with that error and nothing else, and writes nothing."""
    before = read(path) if is_there(path) else None
    answer = await ask(call, **words)
    assert answer.data == {"success": False, "error": error}
    assert answer.text.split("\n")[0] == error
    assert answer.is_error
    assert (read(path) if is_there(path) else None) == before
    if before is None:  # and there never was one
        with pytest.raises(NotebookNotFound):
            await log(call)
    else:
        assert await log(call) == []


async def test_replace_is_the_mode_unless_another_is_given(call: Call, path: Path) -> None:
    answer = await edit(call, cell_id="load", new_source="a\nb")
    assert answer == {"success": True, "cell_id": "load", "cell_index": 1}
    assert cells(path)[1]["source"] == ["a\n", "b"]
    assert cells(path)[1]["id"] == "load"


async def test_replace_clears_the_outputs_of_code(call: Call, path: Path) -> None:
    await edit(call, cell_id="load", new_source="x", edit_mode="replace")
    assert cells(path)[1]["outputs"] == []
    assert cells(path)[1]["execution_count"] is None
    before = json.loads(samples.SALES)["cells"]
    assert cells(path)[:1] + cells(path)[2:] == before[:1] + before[2:]


async def test_replace_with_the_same_source_clears_outputs_too(call: Call, path: Path) -> None:
    assert (await edit(call, cell_id="sum", new_source="total"))["success"]
    assert cells(path)[2]["outputs"] == []


async def test_replace_changes_the_type_when_one_is_given(call: Call, path: Path) -> None:
    await edit(call, cell_id="load", new_source="# x", cell_type="markdown")
    assert cells(path)[1] == {
        "cell_type": "markdown",
        "id": "load",
        "metadata": {},
        "source": ["# x"],
    }
    await edit(call, cell_id="intro", new_source="x", cell_type="code")
    assert cells(path)[0]["outputs"] == []
    assert cells(path)[0]["execution_count"] is None


async def test_insert_without_a_cell_goes_to_the_start(call: Call, path: Path) -> None:
    answer = await edit(call, new_source="x", cell_type="code", edit_mode="insert")
    first = cells(path)[0]
    assert answer == {"success": True, "cell_id": first["id"], "cell_index": 0}
    assert first["source"] == ["x"]
    assert len(cells(path)) == COUNT + 1


@pytest.mark.parametrize("ref", ["load", "1"])
async def test_insert_goes_right_after_the_cell_that_is_named(
    ref: str, call: Call, path: Path
) -> None:
    words = {"new_source": "# x", "cell_type": "markdown", "edit_mode": "insert"}
    answer = await edit(call, cell_id=ref, **words)
    assert answer == {"success": True, "cell_id": cells(path)[2]["id"], "cell_index": 2}
    assert cells(path)[2]["source"] == ["# x"]
    assert cells(path)[1]["id"] == "load"


async def test_a_new_cell_has_an_id_of_8_hex_digits_and_the_fields_of_its_type(
    call: Call, path: Path
) -> None:
    for kind in ("code", "markdown", "raw"):
        await edit(call, new_source="x", cell_type=kind, edit_mode="insert")
        cell = cells(path)[0]
        assert len(cell["id"]) == 8
        assert int(cell.pop("id"), 16) >= 0
        fields = {"outputs": [], "execution_count": None} if kind == "code" else {}
        assert cell == {"cell_type": kind, "metadata": {}, "source": ["x"], **fields}


@pytest.mark.parametrize("ref", ["sum", "2"])
async def test_delete_answers_with_the_cell_and_the_index_it_had(
    ref: str, call: Call, path: Path
) -> None:
    answer = await edit(call, cell_id=ref, edit_mode="delete")
    assert (answer["success"], answer["cell_index"]) == (True, 2)
    assert answer["cell_id"] in (ref, "sum")
    assert "sum" not in [cell["id"] for cell in cells(path)]


async def test_a_reference_is_an_id_first_and_then_an_index(call: Call, path: Path) -> None:
    write(path, samples.write(samples.code("one", "x"), samples.code("0", "y")))
    assert (await edit(call, cell_id="0", new_source="z"))["cell_index"] == 1
    write(path, samples.write(samples.code("one", "x"), samples.code("two", "y")))
    assert (await edit(call, cell_id="0", new_source="z"))["cell_index"] == 0


@pytest.mark.parametrize("ref", ["nothing", str(COUNT), "-1", "1.0", "", "lo"])
async def test_an_unknown_cell_is_not_found(ref: str, call: Call, path: Path) -> None:
    await fails(call, path, f"Cell not found: {ref}", cell_id=ref, new_source="x")
    if ref:
        await fails(call, path, f"Cell not found: {ref}", cell_id=ref, edit_mode="delete")
        words = {"new_source": "x", "cell_type": "code", "edit_mode": "insert"}
        await fails(call, path, f"Reference cell not found: {ref}", cell_id=ref, **words)


async def test_insert_needs_a_type(call: Call, path: Path) -> None:
    for more in ({}, {"cell_id": "load"}, {"cell_id": "nothing"}):
        words = {"new_source": "x", "edit_mode": "insert", **more}
        await fails(call, path, "cell_type required for insert", **words)


async def test_delete_needs_a_cell(call: Call, path: Path) -> None:
    await fails(call, path, "cell_id required for delete", edit_mode="delete")
    await fails(call, path, "cell_id required for delete", edit_mode="delete", cell_id="")


@pytest.mark.parametrize("mode", ["Replace", "append"])
async def test_another_mode_is_invalid(mode: str, call: Call, path: Path) -> None:
    await fails(call, path, "Invalid edit mode", edit_mode=mode, cell_id="load", new_source="x")


async def test_a_missing_notebook_is_not_found(call: Call, path: Path) -> None:
    remove(path)
    await fails(call, path, "Notebook not found", cell_id="load", new_source="x")


@pytest.mark.parametrize("name", BROKEN)
async def test_a_file_that_is_no_notebook_has_an_invalid_format(
    name: str, call: Call, path: Path
) -> None:
    write(path, BROKEN[name])
    await fails(call, path, "Invalid notebook format", cell_id="load", new_source="x")


async def test_an_unknown_type_of_cell_is_an_error(call: Call, path: Path) -> None:
    before = read(path)
    answer = await edit(call, new_source="x", cell_type="prose", edit_mode="insert")
    assert answer.keys() == {"success", "error"}
    assert not answer["success"]
    assert read(path) == before


async def test_a_file_without_ids_is_edited_by_index_and_gets_none(call: Call, path: Path) -> None:
    write(path, samples.write(samples.code(None, "x"), samples.code(None, "y"), minor=4))
    answer = await edit(call, cell_id="1", new_source="z")
    assert answer == {"success": True, "cell_id": "1", "cell_index": 1}
    await edit(call, new_source="first", cell_type="code", edit_mode="insert")
    assert [cell["source"] for cell in cells(path)] == [["first"], ["x"], ["z"]]
    assert not any("id" in cell for cell in cells(path))


async def test_a_path_is_that_of_the_caller_or_absolute(call: Call, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "nb.ipynb").rename(folder / "sub" / "nb.ipynb")
    here = AsyncWorkspace(folder, cwd=str(folder / "sub"))
    other = Call(replace(call.caller, workspace=here))
    assert (await edit(other, cell_id="load", new_source="x"))["success"]
    absolute = str(folder / "sub" / "nb.ipynb")
    answer = await edit(call, notebook_path=absolute, cell_id="sum", new_source="x")
    assert answer["success"]
    await here.close()


async def test_an_edit_that_raced_with_another_is_not_applied_to_the_wrong_cell(
    call: Call, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the notebook and changing it, somebody inserts a cell before ours."""
    workspace = call.caller.workspace
    kind = type(workspace.open("nb.ipynb"))
    real = kind.load

    async def load_and_lose(book: Any) -> Any:
        notebook = await real(book)
        monkeypatch.undo()
        edits = [{"op": "insert", "source": "b", "id": "bob", "at": 0}]
        await workspace.open("nb.ipynb").edit(edits)
        return notebook

    monkeypatch.setattr(kind, "load", load_and_lose)
    assert (await edit(call, cell_id="1", new_source="mine"))["success"]
    assert [cell["source"] for cell in cells(path) if cell["id"] == "load"] == [["mine"]]
    assert [cell["source"] for cell in cells(path) if cell["id"] == "intro"] != [["mine"]]


async def test_the_words_of_an_answer_are_those_of_the_document(call: Call, path: Path) -> None:
    answer = await ask(call, cell_id="load", new_source="x")
    assert (
        answer.text == "✓ Cell updated\n  Notebook: nb.ipynb\n  Cell: load (index 1)\n  Type: code"
    )
    words = {"new_source": "# x", "cell_type": "markdown", "edit_mode": "insert"}
    answer = await ask(call, cell_id="load", **words)
    made = cells(path)[2]["id"]
    assert answer.text == (
        f"✓ Cell inserted\n  Notebook: nb.ipynb\n  New cell: {made} (index 2)\n"
        "  Type: markdown\n  Inserted after: load"
    )
    answer = await ask(call, cell_id="load", edit_mode="delete")
    assert answer.text == "✓ Cell deleted\n  Notebook: nb.ipynb\n  Removed: load (was at index 1)"


async def test_an_error_has_a_hint_beside_the_words_of_the_document(call: Call) -> None:
    answer = await ask(call, cell_id="lod", new_source="x")
    assert answer.text == "Cell not found: lod\nhint: Did you mean load?"
    answer = await ask(call, notebook_path="nob.ipynb", cell_id="load", new_source="x")
    assert answer.text == "Notebook not found\nhint: Did you mean `nb.ipynb`?"


async def test_replace_and_insert_need_a_source(call: Call, path: Path) -> None:
    await fails(call, path, "new_source required for replace", cell_id="load")
    words = {"edit_mode": "insert", "cell_type": "code"}
    await fails(call, path, "new_source required for insert", **words)


async def test_parameters_of_another_type_are_answered_in_the_same_shape(
    call: Call, path: Path
) -> None:
    answer = await ask(call, cell_id=5, new_source="x")
    assert answer.data["success"] is False
    assert "cell_id" in answer.data["error"]
    assert read(path) == samples.SALES


async def test_no_edit_starts_a_kernel(call: Call, kernels: list[MemoryKernel]) -> None:
    await edit(call, cell_id="load", new_source="print 1")
    await edit(call, cell_type="code", new_source="print 1", edit_mode="insert")
    await edit(call, cell_id="load", edit_mode="delete")
    assert kernels == []


def test_the_description_and_the_schema_state_parameters_operations_and_notes() -> None:
    (row,) = Toolbox(PROFILES["notebookedit"]).table()
    told = row["description"] + json.dumps(row["inputSchema"])
    for word in ("notebook_path", "cell_id", "cell_type", "new_source", "edit_mode"):
        assert word in row["inputSchema"]["properties"]
    properties = row["inputSchema"]["properties"]
    assert properties["cell_type"]["enum"] == ["code", "markdown", "raw"]
    assert properties["edit_mode"]["enum"] == ["replace", "insert", "delete"]
    assert properties["edit_mode"]["default"] == "replace"
    for note in ("replace: ", "insert: ", "delete: ", "at the start", "cleared", "Ids are kept"):
        assert note in told
    assert "0-based index" in told


# --- Beyond one cell -----------------------------------------------------------------------------


async def test_a_list_of_edits_is_applied_at_once_or_not_at_all(call: Call, path: Path) -> None:
    edits = [
        {"cell_id": "load", "new_source": "a", "outputs": "keep"},
        {"cell_id": "sum", "new_source": "b"},
        {"edit_mode": "insert", "cell_type": "markdown", "new_source": "# First"},
        {"edit_mode": "delete", "cell_id": "notes"},
    ]
    wrong = [*edits, {"edit_mode": "delete", "cell_id": "nope"}]
    await fails(call, path, "Cell not found: nope", edits=wrong)
    await fails(call, path, "Give edits, or one cell, not both", edits=edits, cell_id="load")
    answer = await ask(call, edits=edits)
    assert answer.data["success"]
    assert "✓ 4 edits" in answer.text
    found = cells(path)
    assert [cell["source"] for cell in found[:3:2]] == [["# First"], ["a"]]
    assert found[2]["outputs"] == [samples.STREAM]
    assert found[3]["outputs"] == []
    assert "notes" not in [cell["id"] for cell in found]
    assert {row["cell_id"] for row in answer.data["cells"]} >= {"load", "sum", "notes"}
    assert len(await log(call)) == 1


async def test_outputs_are_kept_if_asked_and_a_backup_is_written(call: Call, path: Path) -> None:
    answer = await ask(call, cell_id="load", new_source="x", outputs="keep", backup=True)
    assert cells(path)[1]["outputs"] == [samples.STREAM]
    assert read(path.parent / answer.data["backup"]) == samples.SALES
    assert answer.data["backup"] in answer.text
    await ask(call, cell_id="load", new_source="y")
    answer = await ask(call, cell_id="load", new_source="y", outputs="drop")
    assert answer.data["error"] == "Invalid outputs"


async def test_a_missing_notebook_is_made_if_asked(call: Call, path: Path) -> None:
    made = path.parent / "made.ipynb"
    words = {"edit_mode": "insert", "cell_type": "code", "new_source": "x = 1"}
    answer = await ask(call, notebook_path="made.ipynb", **words)
    assert answer.data["error"] == "Notebook not found"
    answer = await ask(call, notebook_path="made.ipynb", create=True, **words)
    assert answer.data["success"]
    assert [cell["source"] for cell in cells(made)] == [["x = 1"]]
