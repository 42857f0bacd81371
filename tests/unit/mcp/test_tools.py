from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from cellwright.mcp.calls import FACTS, is_program
from cellwright.outputs.images import ModelImage
from cellwright.tools.native import NATIVE
from cellwright.tools.profiles.positron import POSITRON
from cellwright.tools.tool import ToolResult
from tests.unit.mcp.serving import ERAS, PIXEL, door, named, notebook, serving, text_of, tool

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import ToolCaller


@pytest.mark.parametrize("era", ERAS)
async def test_clients_of_both_kinds_get_every_tool_of_the_table(tmp_path: Path, era: str) -> None:
    made = door(tmp_path)
    async with serving(made, era) as client:
        listed = (await client.list_tools()).tools

    assert [tool.name for tool in listed] == [tool.name for tool in NATIVE]
    table = {row["name"]: row for row in made.toolbox.table()}
    for one in listed:
        assert one.description == table[one.name]["description"]
        assert one.input_schema == table[one.name]["inputSchema"]
        assert one.output_schema is None, "a schema of the output would promise it to every client"


async def test_annotations_say_what_a_tool_may_do(tmp_path: Path) -> None:
    async with serving(door(tmp_path)) as client:
        hints = {one.name: one.annotations for one in (await client.list_tools()).tools}

    assert hints["notebook_read"].read_only_hint is True
    assert hints["notebook_read"].idempotent_hint is True
    assert hints["notebook_read"].open_world_hint is False
    assert hints["notebook_edit"].read_only_hint is False
    assert hints["eval"].destructive_hint is True
    assert hints["eval"].open_world_hint is True


async def test_what_the_mode_forbids_is_not_listed_and_is_refused_by_name(tmp_path: Path) -> None:
    path = notebook(tmp_path / "a.ipynb", ("one", "1"))
    before = path.read_bytes()
    async with serving(door(tmp_path, mode="ask")) as client:
        listed = {one.name: one for one in (await client.list_tools()).tools}
        edits = [{"op": "replace", "cell": "one", "source": "2"}]
        edit = await client.call_tool("notebook_edit", {"path": "a.ipynb", "edits": edits})
        undo = await client.call_tool("notebook_history", {"path": "a.ipynb", "action": "undo"})

    assert "notebook_edit" not in listed
    assert "notebook_run" not in listed
    assert listed["notebook_history"].input_schema["properties"]["action"]["enum"] == [
        "log",
        "diff",
    ]
    assert listed["notebook_history"].annotations.read_only_hint is True
    assert [edit.is_error, undo.is_error] == [True, True]
    assert edit.meta[FACTS]["code"] == undo.meta[FACTS]["code"] == "MODE_FORBIDS"
    assert path.read_bytes() == before


@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_tool_is_an_error_of_the_protocol_and_wrong_parameters_an_answer(
    tmp_path: Path, era: str
) -> None:
    async with serving(door(tmp_path), era) as client:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("notebook_raed", {})
        wrong = await client.call_tool("notebook_read", {"pth": "a.ipynb"})

    assert unknown.value.code == -32602
    assert "notebook_read" in unknown.value.message
    assert wrong.is_error
    assert "path" in text_of(wrong)


async def test_models_get_the_text_and_programs_the_facts_too(tmp_path: Path) -> None:
    async def answer(_caller: ToolCaller, _params: Any) -> ToolResult:
        return ToolResult("what the cell said", {"revision": "abc"})

    found = {}
    for name in ("claude-code", "Visual Studio Code", "somebody-new", "mcp", "cellwright-doctor"):
        made = door(tmp_path, tools=(tool("say", answer),))
        async with serving(made, client_info=named(name)) as client:
            result = await client.call_tool("say", {})
        assert text_of(result) == "what the cell said"
        assert result.meta[FACTS] == {"revision": "abc"}
        found[name] = result.structured_content

    assert found == {
        "claude-code": None,
        "Visual Studio Code": None,
        "somebody-new": None,
        "mcp": None,
        "cellwright-doctor": {"revision": "abc"},
    }


async def test_facts_go_to_everybody_when_the_user_says_so(tmp_path: Path) -> None:
    made = door(tmp_path, structured=True)
    async with serving(made, client_info=named("claude-code")) as client:
        result = await client.call_tool("notebook_list", {})

    assert result.structured_content == {"notebooks": [], "total": 0}
    assert not is_program("claude-code")


async def test_pictures_are_images_and_never_base64_in_text_or_facts(tmp_path: Path) -> None:
    shown = {"output_type": "display_data", "metadata": {}, "data": {"image/png": PIXEL}}
    notebook(tmp_path / "a.ipynb", ("one", "plot()"), outputs={"one": [shown]})
    async with serving(door(tmp_path)) as client:
        result = await client.call_tool("notebook_outputs", {"path": "a.ipynb"})

    images = [part for part in result.content if part.type == "image"]
    assert [image.mime_type for image in images] == ["image/png"]
    told = json.dumps([text_of(result), result.structured_content, result.meta])
    assert PIXEL[:24] not in told


async def test_text_that_utf8_cannot_carry_does_not_end_the_connection(tmp_path: Path) -> None:
    async def answer(_caller: ToolCaller, _params: Any) -> ToolResult:
        return ToolResult("half \ud800 a pair", {"path": "\udcff.ipynb", "list": ["\ud800"]})

    async with serving(door(tmp_path, tools=(tool("say", answer),))) as client:
        result = await client.call_tool("say", {})

    text_of(result).encode()
    json.dumps(result.meta, ensure_ascii=False).encode()
    assert text_of(result) == "half <U+D800> a pair"


async def test_an_error_of_a_cell_is_marked_as_one(tmp_path: Path) -> None:
    async def answer(_caller: ToolCaller, _params: Any) -> ToolResult:
        return ToolResult("FAILED", is_error=True, images=(_pixel(),))

    async with serving(door(tmp_path, tools=(tool("fail", answer),))) as client:
        result = await client.call_tool("fail", {})

    assert result.is_error
    assert [part.type for part in result.content] == ["text", "image"]


def _pixel() -> ModelImage:
    size = {"width": 1, "height": 1, "original_width": 1, "original_height": 1}
    return ModelImage("image/png", b"\x89PNG", **size, original_bytes=4)


async def test_a_client_says_which_notebook_and_cells_its_person_looks_at(tmp_path: Path) -> None:
    notebook(tmp_path / "a.ipynb", ("one", "1"), ("two", "2"))
    meta: Any = {"cellwright/notebook": "a.ipynb", "cellwright/selected": ["two"]}
    async with serving(door(tmp_path, tools=POSITRON)) as client:
        alone = await client.call_tool("GetNotebookCells", {})
        there = await client.call_tool("GetNotebookCells", {}, meta=meta)
        wrong: Any = {"cellwright/notebook": 7, "cellwright/selected": "two"}
        ignored = await client.call_tool("GetNotebookCells", {}, meta=wrong)
    assert text_of(alone) == text_of(ignored) == "No active notebook found"
    assert not there.is_error
    assert text_of(there).count("selection selected") == 1
