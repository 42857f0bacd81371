"""The profile `positron` as transcripts: five tools about the notebook that is open."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.tools.profiles import PROFILES
from cellwright.tools.toolbox import Toolbox
from tests.unit.cli import samples
from tests.unit.tools.support import book, outside, picture, refuse_to_save, stream, within

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import ToolCaller, ToolResult
    from tests.memory_kernel import MemoryKernel

WORDS: dict[str, dict[str, Any]] = {
    "GetNotebookCells": {},
    "GetCellOutputs": {"cellId": "load"},
    "RunNotebookCells": {"cellIds": ["load"]},
    "AddNotebookCell": {"type": "code", "index": 0, "content": "x"},
    "UpdateNotebookCell": {"cellId": "load", "content": "x"},
}


@pytest.fixture
def active(caller: ToolCaller) -> ToolCaller:
    """Somebody who looks at `nb.ipynb`, with a cell selected and another being edited."""
    return replace(caller, active="nb.ipynb", selected={"load": "selected", "sum": "active"})


async def ask(caller: ToolCaller, name: str, **words: Any) -> ToolResult:
    return await Toolbox(PROFILES["positron"]).call(name, words, caller)


def cells(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "nb.ipynb").read_bytes())["cells"]
    return found


@pytest.mark.parametrize("name", WORDS)
async def test_without_an_active_notebook_every_tool_says_so(name: str, caller: ToolCaller) -> None:
    answer = await ask(caller, name, **WORDS[name])
    assert answer.text == "No active notebook found"
    assert answer.is_error


@pytest.mark.parametrize("name", WORDS)
async def test_a_path_names_the_notebook_and_wins_over_the_active_one(
    name: str, active: ToolCaller, folder: Path
) -> None:
    (folder / "other.ipynb").write_bytes(samples.write(samples.code("load", "print 1")))
    before = (folder / "nb.ipynb").read_bytes()
    answer = await ask(active, name, **WORDS[name], path="other.ipynb")
    assert not answer.is_error, answer.text
    assert (folder / "nb.ipynb").read_bytes() == before


async def test_cells_come_as_blocks_with_id_status_and_source(active: ToolCaller) -> None:
    answer = await ask(active, "GetNotebookCells")
    lines = outside(answer.text)
    assert lines[:6] == [
        "### Cell 0 (markdown)",
        "ID: intro",
        "Status: selection unselected, no output",
        "### Cell 1 (code)",
        "ID: load",
        "Status: selection selected, execution idle, order 1, last run succeeded, has output",
    ]
    assert lines[14] == (
        "Status: selection unselected, execution idle, order 4, last run failed, has output"
    )
    assert lines[17] == "Status: selection unselected, execution idle, never run, no output"
    assert "total = 42\nprint(total)" in within(answer.text)


async def test_cells_have_the_fields_of_the_document(active: ToolCaller) -> None:
    data = (await ask(active, "GetNotebookCells")).data["cells"]
    assert data[0] == {
        "id": "intro",
        "index": 0,
        "type": "markdown",
        "hasOutput": False,
        "selectionStatus": "unselected",
    }
    assert data[2] == {
        "id": "sum",
        "index": 2,
        "type": "code",
        "hasOutput": True,
        "selectionStatus": "active",
        "executionStatus": "idle",
        "executionOrder": 3,
        "lastRunSuccess": True,
        "lastExecutionDuration": None,
        "lastRunEndTime": None,
    }


async def test_after_a_run_its_duration_and_end_are_known(active: ToolCaller, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one"))
    await ask(active, "RunNotebookCells", cellIds=["c0"])
    (cell,) = (await ask(active, "GetNotebookCells")).data["cells"]
    assert cell["lastRunSuccess"] is True
    assert cell["executionOrder"] == 1
    assert isinstance(cell["lastExecutionDuration"], int)
    assert cell["lastRunEndTime"].endswith("Z")


@pytest.mark.usefixtures("stuck")
async def test_a_cell_that_runs_is_running_and_the_next_is_pending(
    active: ToolCaller, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book("sleep 600", "print one"))
    workspace = active.workspace
    run = await workspace.open("nb.ipynb").run(detach=0.05)
    data = (await ask(active, "GetNotebookCells")).data["cells"]
    assert [cell["executionStatus"] for cell in data] == ["running", "pending"]
    await workspace.cancel(run.run)


async def test_some_cells_by_id_or_index(active: ToolCaller) -> None:
    answer = await ask(active, "GetNotebookCells", cellIds=["sum", 4])
    assert [cell["id"] for cell in answer.data["cells"]] == ["sum", "plot"]


async def test_ids_that_are_not_there_are_passed_over_and_named(active: ToolCaller) -> None:
    answer = await ask(active, "GetNotebookCells", cellIds=["lod", "sum"])
    assert [cell["id"] for cell in answer.data["cells"]] == ["sum"]
    assert outside(answer.text)[-1] == "LEFT OUT: No cell `lod`. Did you mean load?"
    answer = await ask(active, "GetNotebookCells", cellIds=["lod"])
    assert answer.text.split("\n")[0] == "No cells found with the specified IDs"
    assert "Did you mean load?" in answer.text


async def test_a_notebook_without_cells(active: ToolCaller, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(samples.write())
    assert (await ask(active, "GetNotebookCells")).text == "The notebook has no cells"


async def test_many_cells_are_cut_and_can_be_asked_for(active: ToolCaller, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book(*(["x = 1\n" * 100] * 200)))
    answer = await ask(active, "GetNotebookCells")
    last = outside(answer.text)[-1]
    assert last.startswith("LEFT OUT: ")
    rest = json.loads(last.partition("cellIds=")[2])
    assert rest[0] == f"c{len(answer.data['cells'])}"
    more = await ask(active, "GetNotebookCells", cellIds=rest)
    assert [cell["id"] for cell in more.data["cells"]] == rest


async def test_the_outputs_of_a_cell(active: ToolCaller, folder: Path) -> None:
    answer = await ask(active, "GetCellOutputs", cellId="plot")
    assert "NameError: name 'y' is not defined" in within(answer.text)
    for cell in ("later", "intro"):
        answer = await ask(active, "GetCellOutputs", cellId=cell)
        assert answer.text == f"Cell {cell} has no outputs"
        assert not answer.is_error
    (folder / "nb.ipynb").write_bytes(samples.write(samples.code("p", "plot()", picture())))
    assert len((await ask(active, "GetCellOutputs", cellId="p")).images) == 1


async def test_an_unknown_cell_is_a_failure_with_a_hint(active: ToolCaller) -> None:
    answer = await ask(active, "GetCellOutputs", cellId="lod")
    assert answer.text == "Failed to get cell outputs: No cell `lod`. Did you mean load?"
    assert answer.is_error
    answer = await ask(active, "UpdateNotebookCell", cellId="lod", content="x")
    assert answer.text.startswith("Failed to update notebook cell: ")
    answer = await ask(active, "RunNotebookCells", cellIds=["lod"])
    assert answer.text.startswith("Failed to run notebook cells: ")


async def test_cells_are_run_and_their_outputs_follow(active: ToolCaller, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one", "set x 1", "result two"))
    answer = await ask(active, "RunNotebookCells", cellIds=["c0", "c1", "c2"])
    assert outside(answer.text) == [
        "Successfully executed 3 cell(s).",
        "",
        "Outputs:",
        "Cell c0:",
        "Cell c2:",
    ]
    assert "one" in within(answer.text)
    assert cells(folder)[0]["outputs"]


async def test_a_run_in_which_a_cell_failed_is_no_success(active: ToolCaller, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one", "raise Oops no", "print two"))
    answer = await ask(active, "RunNotebookCells", cellIds=["c0", "c1", "c2"])
    assert answer.is_error
    assert outside(answer.text)[0] == (
        "Failed to run notebook cells: cell c1 ended with error (Oops); "
        "1 of 3 cell(s) executed successfully."
    )
    assert "Oops: no" in within(answer.text)


async def test_cells_of_text_are_passed_over(active: ToolCaller, folder: Path) -> None:
    found = [samples.markdown("m", "# x"), samples.code("c", "print 1")]
    (folder / "nb.ipynb").write_bytes(samples.write(*found))
    answer = await ask(active, "RunNotebookCells", cellIds=["m", "c"])
    assert answer.text.startswith("Successfully executed 1 cell(s).")


async def test_no_cells_to_run_is_a_failure(active: ToolCaller) -> None:
    answer = await ask(active, "RunNotebookCells", cellIds=[])
    assert answer.text.startswith("Failed to run notebook cells: cellIds is empty")


@pytest.mark.parametrize(("index", "place"), [(0, 0), (3, 3), (7, 7), (-1, 7)])
async def test_a_cell_is_added(index: int, place: int, active: ToolCaller, folder: Path) -> None:
    words = {"type": "markdown", "index": index, "content": "# New"}
    answer = await ask(active, "AddNotebookCell", **words)
    made = cells(folder)[place]
    assert answer.text == (
        f"Successfully added markdown cell at index {place}. Cell ID: {made['id']}"
    )
    assert made["source"] == ["# New"]
    assert made["cell_type"] == "markdown"


async def test_a_place_that_is_not_there(active: ToolCaller, folder: Path) -> None:
    words = {"type": "code", "content": "x"}
    answer = await ask(active, "AddNotebookCell", index=8, **words)
    assert answer.text == (
        "Failed to add notebook cell: index 8 is out of range (0-7, or -1 for the end)"
    )
    answer = await ask(active, "AddNotebookCell", index=-2, **words)
    assert answer.is_error
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_a_cell_is_updated_and_keeps_its_outputs(
    active: ToolCaller, folder: Path, kernels: list[MemoryKernel]
) -> None:
    answer = await ask(active, "UpdateNotebookCell", cellId="load", content="total = 1")
    assert answer.text == "Successfully updated cell load"
    assert cells(folder)[1]["source"] == ["total = 1"]
    assert cells(folder)[1]["outputs"] == [samples.STREAM]
    assert kernels == []


async def test_a_long_output_is_read_in_parts(active: ToolCaller, folder: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    (folder / "nb.ipynb").write_bytes(samples.write(samples.code("p", "say()", stream(text))))
    answer = await ask(active, "GetCellOutputs", cellId="p")
    assert "GetCellOutputs with offset=0" in answer.text
    seen, offset = "", 0
    for _ in range(20):
        answer = await ask(active, "GetCellOutputs", cellId="p", offset=offset)
        seen += within(answer.text)
        found = re.search(r"GetCellOutputs with offset=(\d+) continues", answer.text)
        if found is None:
            break
        offset = int(found[1])
    assert {f"line {number}" for number in range(100, 20_000, 500)} <= set(seen.split("\n"))
    assert "line 19999" in seen


async def test_outputs_that_could_not_be_saved_are_no_success(
    active: ToolCaller, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "nb.ipynb").write_bytes(book("print " + "long " * 20_000))
    refuse_to_save(monkeypatch)
    answer = await ask(active, "RunNotebookCells", cellIds=["c0"])
    assert answer.is_error
    assert answer.text.startswith("Failed to save outputs of 1 of 1 cell(s), which were executed.")
    assert "no space left" in answer.text
    assert "LEFT OUT: parts of outputs; the resource artifact://" in answer.text
    assert "outputs in the notebook" not in answer.text


async def test_outputs_that_were_cut_and_saved_are_read_from_the_notebook(
    active: ToolCaller, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book("print " + "long " * 20_000))
    answer = await ask(active, "RunNotebookCells", cellIds=["c0"])
    assert not answer.is_error
    assert "LEFT OUT: parts of outputs; GetCellOutputs with cellId=c0" in answer.text


@pytest.mark.usefixtures("stuck")
async def test_a_run_that_takes_long_says_which_tools_tell_of_its_end(
    active: ToolCaller, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellwright.tools.profiles.positron.DEADLINE", 0.05)
    (folder / "nb.ipynb").write_bytes(book("sleep 600"))
    answer = await ask(active, "RunNotebookCells", cellIds=["c0"])
    assert answer.text.startswith("Still running: GetNotebookCells says when ")
    assert not answer.is_error
    await active.workspace.cancel(answer.data["run"])


async def test_a_source_that_is_cut_continues_where_the_answer_says(
    active: ToolCaller, folder: Path
) -> None:
    source = "".join(f"line = {number}  # \u202e\n" for number in range(5000))
    (folder / "nb.ipynb").write_bytes(samples.write(samples.code("long", source)))
    seen, words = "", dict[str, Any]()
    for _ in range(20):
        answer = await ask(active, "GetNotebookCells", **words)
        (part,) = [part.text for part in answer.parts if part.name == "source"]
        seen += part.removesuffix("⟦…⟧")
        found = re.search(
            r"LEFT OUT: [\d,]+ characters of cell 0; cellIds=(.*), offset=(\d+) ", answer.text
        )
        if found is None:
            break
        words = {"cellIds": json.loads(found[1]), "offset": int(found[2])}
    assert [int(number) for number in re.findall(r"line = (\d+)", seen)] == list(range(5000))
    several = samples.write(samples.code("a", "1"), samples.code("b", "2"))
    (folder / "nb.ipynb").write_bytes(several)
    refused = await ask(active, "GetNotebookCells", offset=3)
    assert refused.is_error
    assert "one cell" in refused.text
