"""The tools, converted by the libraries of the model APIs themselves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cellwright import AsyncWorkspace, read
from cellwright.errors import CellwrightError
from cellwright.mcp.calls import list_tools
from cellwright.outputs.describe import describe
from cellwright.outputs.sizes import estimate_tokens
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from tests.conftest import ROOT
from tests.corpus import notebooks

PYTHON = ROOT / ".dev" / "converters" / "bin" / "python"
pytestmark = [pytest.mark.all, pytest.mark.timeout(600)]


def ask(value: Any, *words: str) -> Any:
    """What the script answers for a value, in the environment of the libraries."""
    if not PYTHON.exists():
        problem = "needs the environment .dev/converters with the libraries of model APIs"
        if os.environ.get("CI"):
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("converting.py"), *words],
        input=json.dumps(value),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def convert(profile: str) -> Any:
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in list_tools(Toolbox(PROFILES[profile]))
    ]
    return ask(tools)


def test_every_tool_of_every_profile_converts_for_every_model_api() -> None:
    found = convert("all")
    assert len(found["converters"]) == 9
    assert found["problems"] == {}


def test_the_native_table_has_at_most_2600_tokens_of_o200k() -> None:
    found = convert("native")
    assert found["problems"] == {}
    assert found["tokens"] <= 2600


def test_real_notebooks_have_at_most_a_tenth_more_tokens_than_estimated() -> None:
    texts = []
    for path in notebooks():
        try:
            cells = read(path).cells
        except CellwrightError:
            continue
        sources = "\n".join(cell.source for cell in cells)
        said = "\n".join(
            describe(cell.outputs, 4000, images=0).text for cell in cells if cell.type == "code"
        )
        texts += [text[:20_000] for text in (sources, said) if len(text) > 1000]
    assert len(texts) > 100
    counted = ask(texts, "count")
    over = {
        text[:60]: count / estimate_tokens(text)
        for text, count in zip(texts, counted, strict=True)
        if count > 1.1 * estimate_tokens(text)
    }
    assert over == {}


async def test_the_standard_task_has_at_most_1400_tokens_asked_and_answered(tmp_path: Path) -> None:
    from examples.agent import SAMPLE, Agent, task

    texts: list[str] = []
    (tmp_path / "sample.ipynb").write_bytes(SAMPLE.read_bytes())
    async with AsyncWorkspace(tmp_path, cwd=str(tmp_path), engine=False) as workspace:
        caller = ToolCaller(workspace=workspace)

        class Client:
            async def call_tool(self, tool: str, arguments: dict[str, Any]) -> Any:
                done = await Toolbox(PROFILES["native"]).call(tool, arguments, caller)
                texts.extend((f"{tool} {json.dumps(arguments)}", done.text))
                part = SimpleNamespace(type="text", text=done.text)
                meta = {"cellwright/facts": dict(done.data)}
                return SimpleNamespace(content=[part], meta=meta)

        await task(Agent(Client(), shows=False), "sample.ipynb")
    assert len(texts) == 8
    assert "Ran 4 cells: 4 ok." in texts[3]
    assert sum(ask(texts, "count")) <= 1400
