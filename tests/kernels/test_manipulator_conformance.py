"""Our client passes the kernel's half of the conformance kit, in every ipykernel."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from cellwright.cli.main import main
from tests.conftest import ROOT
from tests.kernels.manipulating import frontend, notebook

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = [".venv", ".dev/ipykernel6", ".dev/ipykernel631", ".dev/ipykernel70", ".dev/ipykernel73"]


@pytest.mark.parametrize(
    "folder",
    [pytest.param(f, marks=[] if f == ".venv" else [pytest.mark.all]) for f in FOLDERS],
)
def test_every_statement_about_the_kernels_side_holds(
    folder: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    python = str(ROOT / folder / "bin" / "python")
    code = main(["conformance", "kernel", "--python", python, "--json"])
    answer = json.loads(capfd.readouterr().out)
    assert [row for row in answer["data"]["rows"] if row["verdict"] != "passed"] == []
    assert code == 0


async def test_a_frontend_is_tried_from_a_notebook_that_is_open_in_it(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    source = f"from cellwright.protocol.conformance.inside import start\nstart({str(results)!r}, after=0.2)"
    python = str(ROOT / ".venv/bin/python")
    async with frontend(tmp_path, notebook(source), python=python) as front:
        assert (await front.cell("c0")).status == "ok"
        async with asyncio.timeout(50):
            while not results.exists():
                await asyncio.sleep(0.05)
    rows = json.loads(results.read_text())["rows"]
    assert [row for row in rows if row["verdict"] == "failed"] == []
    # Whether there is a notebook, and in which mode, cannot be changed from inside it.
    skipped = [row["id"] for row in rows if row["verdict"] == "skipped"]
    assert skipped == ["F-60", "F-61", "F-62"]
    assert len(rows) > 40
