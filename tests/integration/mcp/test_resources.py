from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.mcp.serving import ERAS, door, make_root, serving

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


@pytest.mark.parametrize("era", ERAS)
async def test_long_output_is_a_resource_by_its_handle(root: Path, era: str) -> None:
    async with serving(door(root), era) as client:
        code = "for n in range(9000): print(n)"
        result = await client.call_tool("eval", {"cells": [{"code": code}]})
        handle = result.meta["cellwright/facts"]["cells"][0]["artifact"]
        found = await client.read_resource(f"artifact://{handle}")

    assert found.contents[0].text.splitlines()[:9000] == [str(n) for n in range(9000)]
