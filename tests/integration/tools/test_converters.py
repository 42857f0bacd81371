"""The tools, converted by the libraries of the model APIs themselves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cellwright.mcp.results import list_tools
from cellwright.tools.profiles import PROFILES
from cellwright.tools.toolbox import Toolbox
from tests.conftest import ROOT

PYTHON = ROOT / ".dev" / "converters" / "bin" / "python"
pytestmark = pytest.mark.all


def convert(profile: str) -> dict[str, Any]:
    if not PYTHON.exists():
        problem = "needs the environment .dev/converters with the libraries of model APIs"
        if os.environ.get("CI"):
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in list_tools(Toolbox(PROFILES[profile]))
    ]
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("converting.py")],
        input=json.dumps(tools),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_tool_of_every_profile_converts_for_every_model_api() -> None:
    found = convert("all")
    assert len(found["converters"]) == 9
    assert found["problems"] == {}


def test_the_native_table_has_at_most_2600_tokens_of_o200k() -> None:
    found = convert("native")
    assert found["problems"] == {}
    assert found["tokens"] <= 2600
