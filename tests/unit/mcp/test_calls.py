from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from cellwright.kernel.events import InputRequested
from cellwright.tools.tool import ToolResult
from tests.unit.mcp.serving import ERAS, door, serving, text_of, tool

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import ToolCaller


@pytest.mark.parametrize("era", ERAS)
async def test_progress_rises_and_says_which_cell_runs(tmp_path: Path, era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    one_told, two_told = asyncio.Event(), asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        one_told.set()
        if len(heard) >= 2:
            two_told.set()

    async def work(caller: ToolCaller, _params: Any) -> ToolResult:
        assert caller.progress is not None
        caller.progress({"run": "r1"})
        for cell in ("a", "b"):
            caller.progress({"cell": cell, "handle": cell, "status": "pending"})
        caller.progress({"cell": "a", "handle": "a", "status": "ok"})
        caller.progress({"cell": "b", "handle": "b", "status": "running"})
        await one_told.wait()
        for number in range(200):
            caller.progress({"cell": "b", "handle": "b", "text": f"line {number}\n"})
        await two_told.wait()
        return ToolResult("done")

    async with serving(door(tmp_path, tools=(tool("work", work),)), era) as client:
        result = await client.call_tool("work", {}, progress_callback=hear)

    assert text_of(result) == "done"
    values = [progress for progress, _, _ in heard]
    assert all(one < two for one, two in itertools.pairwise(values))
    assert len(heard) < 20, "two hundred lines in a moment are not two hundred notifications"
    assert heard[0][1] == 2.0
    assert "cell 2 of 2 (b): running" in (heard[0][2] or "")
    assert "line 199" in (heard[-1][2] or "")


@pytest.mark.parametrize("era", ERAS)
async def test_a_cell_that_asks_gets_what_the_person_types(tmp_path: Path, era: str) -> None:
    asked: list[str] = []

    async def person(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": f"line {len(asked)}"})

    async def work(caller: ToolCaller, _params: Any) -> ToolResult:
        assert caller.ask is not None
        first = await caller.ask(InputRequested("Your name? "))
        second = await caller.ask(InputRequested("Password: ", password=True))
        return ToolResult(f"{first} and {second}")

    made = door(tmp_path, tools=(tool("work", work),))
    async with serving(made, era, elicitation_callback=person) as client:
        result = await client.call_tool("work", {})

    assert text_of(result) == "line 1 and line 2"
    assert "Your name?" in asked[0]
    assert "not hidden" in asked[1]


@pytest.mark.parametrize("era", ERAS)
async def test_a_person_who_declines_gives_no_line(tmp_path: Path, era: str) -> None:
    async def person(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def work(caller: ToolCaller, _params: Any) -> ToolResult:
        assert caller.ask is not None
        return ToolResult(repr(await caller.ask(InputRequested("?"))))

    made = door(tmp_path, tools=(tool("work", work),))
    async with serving(made, era, elicitation_callback=person) as client:
        assert text_of(await client.call_tool("work", {})) == "None"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_is_not_asked(tmp_path: Path, era: str) -> None:
    async def work(caller: ToolCaller, _params: Any) -> ToolResult:
        return ToolResult(str(caller.ask))

    async with serving(door(tmp_path, tools=(tool("work", work),)), era) as client:
        assert text_of(await client.call_tool("work", {})) == "None"


async def test_a_call_that_waits_for_an_answer_is_found_by_its_own_handle_only(
    tmp_path: Path,
) -> None:
    async def person(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        raise AssertionError("the test answers itself")

    async def work(caller: ToolCaller, _params: Any) -> ToolResult:
        assert caller.ask is not None
        return ToolResult(str(await caller.ask(InputRequested("?"))))

    made = door(tmp_path, tools=(tool("work", work), tool("other", work)))
    answers = {"input": types.ElicitResult(action="accept", content={"answer": "mine"})}
    async with serving(made, elicitation_callback=person) as client:
        first = await client.session.call_tool("work", {}, allow_input_required=True)
        assert isinstance(first, types.InputRequiredResult)
        state = first.request_state
        for name, arguments, guess in (
            ("work", {}, "guessed"),
            ("work", {}, ""),
            ("work", {"text": "x"}, state),
            ("other", {}, state),
        ):
            with pytest.raises(MCPError) as refused:
                await client.session.call_tool(
                    name, arguments, input_responses=answers, request_state=guess
                )
            assert refused.value.error.code == types.INVALID_PARAMS
        second = await client.session.call_tool(
            "work", {}, input_responses=answers, request_state=state
        )
        assert isinstance(second, types.CallToolResult)
        assert text_of(second) == "mine"
        with pytest.raises(MCPError):  # once
            await client.session.call_tool("work", {}, input_responses=answers, request_state=state)
