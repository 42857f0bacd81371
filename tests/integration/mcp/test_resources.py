from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.mcp.serving import ERAS, door, notebook, serving

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "deep er").mkdir(parents=True)
    notebook(folder / "a.ipynb", ("one", "x = 1"), ("two", "print('é')"))
    notebook(folder / "deep er" / "ü.ipynb", ("only", "1"))
    notebook(tmp_path / "secret.ipynb", ("s", "TOP SECRET"))
    notebook(tmp_path / "root-evil.ipynb", ("s", "TOP SECRET"))
    (tmp_path / "secret.txt").write_text("TOP SECRET")
    (folder / "link.ipynb").symlink_to(tmp_path / "secret.ipynb")
    return folder


@pytest.mark.parametrize("era", ERAS)
async def test_long_output_is_a_resource_by_its_handle(root: Path, era: str) -> None:
    async with serving(door(root), era) as client:
        code = "for n in range(9000): print(n)"
        result = await client.call_tool("eval", {"cells": [{"code": code}]})
        handle = result.meta["cellwright/facts"]["cells"][0]["artifact"]
        found = await client.read_resource(f"artifact://{handle}")

    assert found.contents[0].text.splitlines()[:9000] == [str(n) for n in range(9000)]
