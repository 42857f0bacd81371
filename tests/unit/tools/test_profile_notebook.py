"""The profile `notebook` as transcripts: `notebook` by index, `python` in a kernel."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.tools.profiles import PROFILES
from cellwright.tools.toolbox import Toolbox
from tests.property.checks import assert_only_cell_changed
from tests.unit.cli import samples
from tests.unit.tools.support import (
    BROKEN,
    COUNT,
    cells,
    is_there,
    log,
    outside,
    read,
    remove,
    within,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import ToolResult
    from tests.memory_kernel import MemoryKernel
    from tests.unit.tools.conftest import Call


async def act(call: Call, action: str, index: Any, **more: Any) -> dict[str, Any]:
    """The details of an action, and its summary."""
    words = {"action": action, "notebook_path": "nb.ipynb", "cell_index": index, **more}
    answer = await call("notebook", "notebook", **words)
    assert not answer.is_error, answer.text
    return {**answer.data, "summary": answer.text}


async def refused(call: Call, path: Path, action: str, index: Any, **more: Any) -> ToolResult:
    """The answer with which an action is refused; it must have written nothing."""
    before = read(path)
    words = {"action": action, "notebook_path": "nb.ipynb", "cell_index": index, **more}
    answer = await call("notebook", "notebook", **words)
    assert answer.is_error
    assert answer.text.startswith("Error: ")
    assert read(path) == before
    assert await log(call) == []
    return answer


async def test_edit_replaces_the_source_and_keeps_the_type(call: Call, path: Path) -> None:
    for index, kind in ((0, "markdown"), (1, "code"), (6, "raw")):
        await act(call, "edit", index, content=f"a\nb {index}")
        assert cells(path)[index]["cell_type"] == kind
        assert cells(path)[index]["source"] == ["a\n", f"b {index}"]
    assert len(cells(path)) == COUNT


async def test_edit_ignores_a_type_and_keeps_outputs(call: Call, path: Path) -> None:
    await act(call, "edit", 1, content="x", cell_type="markdown")
    assert cells(path)[1]["cell_type"] == "code"
    assert cells(path)[1]["outputs"] == [samples.STREAM]
    assert cells(path)[1]["execution_count"] == 1


async def test_edit_changes_only_the_bytes_of_its_cell(call: Call, path: Path) -> None:
    await act(call, "edit", 2, content="total + 1")
    assert_only_cell_changed(samples.SALES, read(path), 2)


@pytest.mark.parametrize("index", range(COUNT + 1))
async def test_insert_takes_an_index_from_0_to_the_number_of_cells(
    index: int, call: Call, path: Path
) -> None:
    await act(call, "insert", index, content="new")
    found = cells(path)
    assert len(found) == COUNT + 1
    assert found[index]["source"] == ["new"]
    assert found[:index] + found[index + 1 :] == json.loads(samples.SALES)["cells"]


async def test_insert_makes_code_with_its_fields_unless_told_otherwise(
    call: Call, path: Path
) -> None:
    await act(call, "insert", 0, content="x")
    await act(call, "insert", 1, content="# y", cell_type="markdown")
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


async def test_insert_into_a_notebook_without_cells(call: Call, path: Path) -> None:
    write(path, samples.write())
    await act(call, "insert", 0, content="x")
    assert [cell["source"] for cell in cells(path)] == [["x"]]


async def test_delete_removes_the_cell_and_gives_its_source_back(call: Call, path: Path) -> None:
    details = await act(call, "delete", 1)
    assert details["cellSource"] == "total = 42\nprint(total)"
    assert [cell["id"] for cell in cells(path)][:2] == ["intro", "sum"]


async def test_the_details_have_the_keys_of_the_document_and_what_happened(
    call: Call, path: Path
) -> None:
    assert await act(call, "edit", 2, content="total + 1") == {
        "action": "edit",
        "cellIndex": 2,
        "cellType": "code",
        "totalCells": 7,
        "cellSource": "total + 1",
        "summary": "Replaced cell 2 (code). Notebook now has 7 cells.",
    }
    assert await act(call, "insert", 7, content="# End", cell_type="markdown") == {
        "action": "insert",
        "cellIndex": 7,
        "cellType": "markdown",
        "totalCells": 8,
        "cellSource": "# End",
        "summary": "Inserted cell 7 (markdown). Notebook now has 8 cells.",
    }
    assert await act(call, "delete", 0) == {
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
    ],
)  # fmt: skip
async def test_an_index_out_of_range_is_refused_with_the_range_of_the_action(
    action: str, index: Any, most: int, call: Call, path: Path
) -> None:
    answer = await refused(call, path, action, index, content="x")
    assert answer.data["code"] == "CELL_NOT_FOUND"
    for_insert = " for insert" if action == "insert" else ""
    said = f"Error: Cell index {index} out of range{for_insert} (0-{most}) in nb.ipynb"
    assert answer.text.split("\n")[0] == said


@pytest.mark.parametrize(
    ("cells", "action", "said", "hint"),
    [
        (0, "edit", "out of range (no cells)", "The notebook has no cells"),
        (0, "insert", "out of range for insert (0-0)", "The notebook has no cells"),
        (1, "delete", "out of range (0-0)", "The notebook has 1 cell: cell-0"),
        (
            2,
            "insert",
            "out of range for insert (0-2)",
            "The notebook has 2 cells: cell-0 to cell-1",
        ),
    ],
)
async def test_the_range_and_the_hint_count_the_cells_that_there_are(
    cells: int, action: str, said: str, *, hint: str, call: Call, path: Path
) -> None:
    made = samples.write(*(samples.code(f"c{at}", "1") for at in range(cells)))
    write(path, made)  # small, and alone
    answer = await refused(call, path, action, 9, content="x")
    assert said in answer.text
    assert hint in answer.text


@pytest.mark.parametrize("action", ["edit", "insert"])
async def test_content_is_required_for_edit_and_insert(action: str, call: Call, path: Path) -> None:
    answer = await refused(call, path, action, 0)
    assert answer.data["code"] == "INVALID_EDIT"
    assert answer.text == f"Error: Content is required for {action} action (nb.ipynb)"


async def test_empty_content_is_content(call: Call, path: Path) -> None:
    assert (await act(call, "edit", 0, content=""))["cellSource"] == ""
    assert cells(path)[0]["source"] == []


async def test_delete_needs_no_content(call: Call, path: Path) -> None:
    await act(call, "delete", 0, content=None)
    assert len(cells(path)) == COUNT - 1


async def test_the_actions_are_edit_insert_and_delete_and_no_others(call: Call, path: Path) -> None:
    for action in ("replace", "EDIT", "run", ""):
        answer = await refused(call, path, action, 0, content="x")
        assert answer.data["code"] == "INVALID_PARAMETERS"
    for action in ("edit", "insert", "delete"):
        before = read(path)
        assert (await act(call, action, 0, content=f"by {action}"))["action"] == action
        assert read(path) != before


@pytest.mark.parametrize("action", ["edit", "insert", "delete"])
async def test_a_missing_notebook_is_an_error_that_names_it_and_makes_none(
    action: str, call: Call, path: Path
) -> None:
    remove(path)
    words = {"action": action, "notebook_path": "nb.ipynb", "cell_index": 0, "content": "x"}
    answer = await call("notebook", "notebook", **words)
    assert answer.is_error
    assert answer.text.split("\n")[0] == "Error: Notebook not found: nb.ipynb"
    assert not is_there(path)


@pytest.mark.parametrize("name", BROKEN)
async def test_a_file_that_is_no_notebook_is_an_error_that_names_it(
    name: str, call: Call, path: Path
) -> None:
    write(path, BROKEN[name])
    answer = await refused(call, path, "edit", 0, content="x")
    assert answer.data["code"] == "INVALID_NOTEBOOK"
    about = "JSON in notebook" if name in ("not JSON", "empty") else "notebook structure"
    assert answer.text.startswith(f"Error: Invalid {about}")
    assert "nb.ipynb" in answer.text


async def test_an_action_is_one_change_of_its_actor(call: Call, path: Path) -> None:
    await act(call, "edit", 0, content="x")
    await act(call, "delete", 1)
    found = await log(call)
    assert [(entry.kind, entry.actor) for entry in found] == [("edit", "test:ada")] * 2
    for _ in range(2):
        await call.caller.workspace.open("nb.ipynb").undo()
    assert read(path) == samples.SALES


@pytest.mark.parametrize("index", [True, 1.0, "1", None, [1]])
async def test_an_index_must_be_an_integer(index: Any, call: Call, path: Path) -> None:
    answer = await refused(call, path, "edit", index, content="x")
    assert "cell_index" in answer.text


async def test_a_path_is_relative_to_the_folder_of_the_session(call: Call, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "nb.ipynb").write_bytes(samples.SALES)
    words = {"action": "delete", "notebook_path": "sub/nb.ipynb", "cell_index": 0}
    answer = await call("notebook", "notebook", **words)
    assert answer.text == "Deleted cell 0 (markdown). Notebook now has 6 cells."
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_a_missing_path_is_answered_with_a_similar_one(call: Call) -> None:
    words = {"action": "delete", "notebook_path": "nob.ipynb", "cell_index": 0}
    answer = await call("notebook", "notebook", **words)
    assert answer.text.split("\n")[1] == "hint: Did you mean `nb.ipynb`?"


async def test_no_action_starts_a_kernel(call: Call, kernels: list[MemoryKernel]) -> None:
    await act(call, "edit", 1, content="print 1")
    await act(call, "insert", 0, content="print 1")
    await act(call, "delete", 0)
    assert kernels == []


# --- python --------------------------------------------------------------------------------------


async def test_python_runs_cells_in_order_with_the_words_of_the_profile(call: Call) -> None:
    cells = [{"code": "set x 1"}, {"code": "get x", "title": "look"}]
    answer = await call("python", "notebook", cells=cells)
    lines = outside(answer.text)
    assert lines[0] == "Done."
    assert lines[1].startswith("cell 0 · complete · ")
    assert lines[2].startswith("cell 1 (look) · complete · ")
    assert "1" in within(answer.text)


async def test_a_reset_comes_before_the_first_cell_and_no_other(
    call: Call, kernels: list[MemoryKernel]
) -> None:
    await call("python", "notebook", cells=[{"code": "set x 1"}])
    before = sum(kernel.starts for kernel in kernels)
    cells = [{"code": "set y 2"}, {"code": "get y"}]
    answer = await call("python", "notebook", cells=cells, reset=True)
    assert not answer.is_error, answer.text
    assert sum(kernel.starts for kernel in kernels) == before + 1
    gone = await call("python", "notebook", cells=[{"code": "get x"}])
    assert "NameError" in gone.text


async def test_a_cell_that_fails_ends_the_call_with_its_error(call: Call) -> None:
    cells = [{"code": "raise Oops sorry"}, {"code": "print never"}]
    answer = await call("python", "notebook", cells=cells)
    assert answer.is_error
    assert outside(answer.text)[1].startswith("cell 0 · error · ")
    assert outside(answer.text)[2] == "cell 1 · pending"
    assert "Oops: sorry" in within(answer.text)


async def test_a_cell_that_takes_too_long_is_timed_out_in_the_words_of_the_profile(
    call: Call,
) -> None:
    answer = await call("python", "notebook", cells=[{"code": "sleep 60"}], timeout=0.2)
    assert "Command timed out after 0.2 seconds" in answer.text
    assert "error, timed out" in answer.text


async def test_python_runs_in_the_folder_that_is_named(call: Call, folder: Path) -> None:
    (folder / "sub").mkdir()
    answer = await call("python", "notebook", cells=[{"code": "cwd"}], cwd="sub")
    assert str(folder / "sub") in within(answer.text)
    answer = await call("python", "notebook", cells=[{"code": "cwd"}], cwd="/")
    assert answer.text.startswith("Error: ")


async def test_python_keeps_state_shows_pictures_cuts_output_and_can_be_stopped(
    call: Call,
) -> None:
    from base64 import b64encode

    from tests.unit.tools.support import png

    told: list[dict[str, Any]] = []
    watching = replace(call.caller, progress=told.append)
    box = Toolbox(PROFILES["notebook"])
    shown = b64encode(png()).decode()
    cells = [{"code": "set x 5"}, {"code": f"show image/png {shown}"}, {"code": "flood 40000"}]
    answer = await box.call("python", {"cells": cells}, watching)
    assert not answer.is_error, answer.text
    assert len(answer.images) == 1
    assert "LEFT OUT: parts of 40,000 lines; python with cells=" in answer.text
    assert any("text" in event for event in told)  # streamed while it ran
    assert "5" in within((await call("python", "notebook", cells=[{"code": "get x"}])).text)
    task = asyncio.ensure_future(
        call("python", "notebook", cells=[{"code": "sleep 600"}], timeout=0)
    )
    async with asyncio.timeout(30):
        while not any(run.state == "running" for run in await call.caller.workspace.runs()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert "5" in within((await call("python", "notebook", cells=[{"code": "get x"}])).text)


async def test_the_same_edits_of_the_same_notebook_give_the_same_bytes(
    call: Call, path: Path
) -> None:
    found = []
    for _ in range(2):
        write(path, samples.SALES)
        await act(call, "edit", 1, content="a\nb")
        await act(call, "delete", 3)
        await act(call, "insert", 2, content="new")
        made = cells(path)[2]["id"]  # random, so that two agents never make the same
        found.append(read(path).replace(made.encode(), b"made"))
    assert found[0] == found[1]


async def test_a_notebook_is_edited_and_its_code_is_run(call: Call, path: Path) -> None:
    await act(call, "insert", 7, content="print hello")
    source = "".join(cells(path)[7]["source"])
    answer = await call("python", "notebook", cells=[{"code": source}])
    assert "hello" in within(answer.text)


async def test_every_error_names_the_notebook(call: Call, path: Path) -> None:
    for action, index, more in (("edit", 0, {}), ("edit", 99, {"content": "x"}), ("insert", 0, {})):
        answer = await refused(call, path, action, index, **more)
        assert "nb.ipynb" in answer.text.split("\n")[0]


async def test_python_has_a_kernel_of_its_own_for_a_call_if_asked(call: Call) -> None:
    await call("python", "notebook", cells=[{"code": "set x 1"}])
    answer = await call("python", "notebook", cells=[{"code": "get x"}], per_call=True)
    assert answer.is_error
    answer = await call("python", "notebook", cells=[{"code": "get x"}])
    assert "1" in within(answer.text)
    sessions = await call.caller.workspace.sessions()
    assert len(sessions) == 1


async def test_json_pictures_and_status_reach_the_model_as_typed_parts(call: Call) -> None:
    status = '{"op": "read", "path": "a"}'
    source = f'show application/json {{"a": [1]}}\nshow application/x-omp-status {status}'
    answer = await call("python", "notebook", cells=[{"code": source}])
    parts = answer.data["cells"][0]["outputs"]
    assert [part["type"] for part in parts] == ["json", "status"]
    assert parts[0]["value"] in ({"a": [1]}, '{"a": [1]}')
    assert parts[1]["value"] == {"op": "read", "path": "a"}
    assert "status of cell 0" in answer.text
