"""The profile `manipulator` as transcripts: the six methods of the protocol as tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.tools.profiles import PROFILES
from cellwright.tools.toolbox import Toolbox
from tests.unit.cli import samples
from tests.unit.tools.support import book, picture, refuse_to_save, within

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import ToolCaller
    from tests.unit.tools.conftest import Call

PATH = {"path": "nb.ipynb"}


async def ask(call: Call, method: str, **params: Any) -> dict[str, Any]:
    answer = await call(method, "manipulator", **PATH, **params)
    assert answer.is_error == (answer.data["status"] == "error")
    return answer.data


def cells(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "nb.ipynb").read_bytes())["cells"]
    return found


def error(code: str, message: str) -> dict[str, Any]:
    return {"status": "error", "error": {"message": message, "code": code}}


async def test_the_number_of_cells(call: Call) -> None:
    assert await ask(call, "get_cell_count") == {"status": "ok", "result": {"count": 7}}


async def test_the_metadata(call: Call) -> None:
    result = (await ask(call, "get_notebook_metadata"))["result"]
    assert result == {"metadata": json.loads(samples.SALES)["metadata"]}


async def test_a_range_of_cells(call: Call) -> None:
    result = (await ask(call, "get_cell_range", start=1, end=3))["result"]
    assert [cell["id"] for cell in result["cells"]] == ["load", "sum"]
    assert result["cells"][0]["source"] == "total = 42\nprint(total)"
    assert result["cells"][0]["execution_count"] == 1
    assert result["cells"][0]["outputs"][0]["output_type"] == "stream"
    assert (await ask(call, "get_cell_range", start=2, end=2))["result"] == {"cells": []}


@pytest.mark.parametrize("method", ["get_cell_range", "execute_cell_range"])
async def test_ranges_that_are_refused(method: str, call: Call) -> None:
    assert await ask(call, method, start=10, end=5) == error(
        "INVALID_RANGE", "Invalid cell range: start=10, end=5"
    )
    assert await ask(call, method, start=0, end=100) == error(
        "OUT_OF_BOUNDS", "Cell range out of bounds: end=100 exceeds cell count of 7"
    )
    assert (await ask(call, method))["error"]["code"] == "INVALID_RANGE"


async def test_cells_are_spliced(call: Call, folder: Path) -> None:
    new = [
        {"cell_type": "code", "source": "val x = 42", "metadata": {"name": None}},
        {"cell_type": "markdown", "source": ["# New\n", "Section"], "metadata": {}},
    ]
    answer = await ask(call, "splice_cell_range", start=2, delete_count=1, cells=new)
    assert answer["result"] == {"affected_range": {"start": 2, "end": 4}}
    assert [cell["source"] for cell in cells(folder)][2:4] == [
        ["val x = 42"],
        ["# New\n", "Section"],
    ]
    answer = await ask(call, "splice_cell_range", start=2, delete_count=2, cells=[])
    assert answer["result"] == {"affected_range": {"start": 2, "end": 2}}
    assert len(cells(folder)) == 6


async def test_splices_that_are_refused(call: Call, folder: Path) -> None:
    assert await ask(call, "splice_cell_range", start=10, delete_count=0) == error(
        "INVALID_SPLICE_PARAMS", "Invalid splice parameters: start=10 is out of bounds"
    )
    for params in (
        {"start": 0, "delete_count": -1},
        {"start": "x"},
        {"start": 0, "delete_count": 8},
    ):
        answer = await ask(call, "splice_cell_range", **params)
        assert answer["error"]["code"] == "INVALID_SPLICE_PARAMS"
    for wrong in ([5], "x", [{"cell_type": "poem", "source": ""}]):
        answer = await ask(call, "splice_cell_range", start=0, cells=wrong)
        assert answer["error"]["code"] == "INVALID_CELL_DATA"
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_metadata_are_merged_or_replaced(call: Call, folder: Path) -> None:
    assert await ask(call, "set_notebook_metadata", metadata={"mine": 1}) == {
        "status": "ok",
        "result": {},
    }
    metadata = json.loads((folder / "nb.ipynb").read_bytes())["metadata"]
    assert metadata.keys() == {"kernelspec", "mine"}
    await ask(call, "set_notebook_metadata", metadata={"other": 2}, merge=False)
    assert json.loads((folder / "nb.ipynb").read_bytes())["metadata"] == {"other": 2}


async def test_metadata_that_are_refused(call: Call) -> None:
    for params in ({}, {"metadata": 5}, {"metadata": {}, "merge": "perhaps"}):
        answer = await ask(call, "set_notebook_metadata", **params)
        assert answer["error"]["code"] == "INVALID_METADATA"


async def test_cells_are_run(call: Call, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one", "print two", "print three"))
    assert await ask(call, "execute_cell_range", start=0, end=2) == {"status": "ok", "result": {}}
    assert [bool(cell["outputs"]) for cell in cells(folder)] == [True, True, False]


async def test_a_cell_that_fails_is_named_by_its_index(call: Call, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one", "raise Oops no", "print three"))
    assert await ask(call, "execute_cell_range", start=0, end=3) == error(
        "EXECUTION_FAILED", "Cell execution failed at index 1: Oops"
    )
    assert not cells(folder)[2]["outputs"]


async def test_without_a_notebook(caller: ToolCaller) -> None:
    box = Toolbox(PROFILES["manipulator"])
    answer = await box.call("get_cell_count", {}, caller)
    assert answer.data == error("NO_ACTIVE_NOTEBOOK", "No active notebook is available")
    answer = await box.call("get_cell_count", {}, replace(caller, active="nb.ipynb"))
    assert answer.data["result"] == {"count": 7}
    answer = await box.call("get_cell_count", {"path": "nob.ipynb"}, caller)
    assert answer.data["error"]["code"] == "INTERNAL_ERROR"
    assert "Did you mean `nb.ipynb`?" in answer.data["error"]["message"]


async def test_pictures_come_beside_the_cells(call: Call, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(samples.write(samples.code("p", "plot()", picture())))
    answer = await call("get_cell_range", "manipulator", **PATH, start=0, end=1)
    assert len(answer.images) == 1
    assert "iVBORw0KGgo" not in answer.text + json.dumps(answer.data)
    data = answer.data["result"]["cells"][0]["outputs"][0]["data"]
    assert data["image/png"].endswith("characters left out⟧")
    assert data["text/plain"] == ["<Figure>"]


async def test_a_range_that_is_too_long_is_cut_with_the_rest_named(
    call: Call, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book(*(["x" * 5000] * 20)))
    answer = await call("get_cell_range", "manipulator", **PATH, start=0, end=20)
    shown = len(answer.data["result"]["cells"])
    assert 0 < shown < 20
    assert f"ask for the range from {shown} of it on" in answer.text


async def test_the_text_has_the_result_inside_a_fence(call: Call) -> None:
    answer = await call("get_cell_count", "manipulator", **PATH)
    assert json.loads(within(answer.text)) == {"count": 7}


async def test_outputs_that_could_not_be_saved_are_no_success(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one"))
    refuse_to_save(monkeypatch)
    assert await ask(call, "execute_cell_range", start=0, end=1) == error(
        "EXECUTION_FAILED", "Cell execution failed at index 0: its outputs were not saved"
    )
