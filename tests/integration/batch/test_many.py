"""A thousand notebooks in real kernels: all are done, and neither the command nor the engine grows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.engines import engine_of_its_own
from tests.unit.cli.calling import command

pytestmark = [pytest.mark.all, pytest.mark.timeout(3600)]
MANY, WARM = 1000, 300
GROWTH = 16 * 2**20
"""Bytes that 700 results may take: 23 KB for each."""


def measure_memory(pid: int) -> int:
    """What a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_a_thousand_notebooks_in_flat_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
    for number in range(MANY):
        cells = [{**cell, "source": f"print({number})"}]
        shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / f"n{number:03}.ipynb").write_text(json.dumps(shape))
    batch = command("batch", "n*.ipynb", "--out", "out", "-j", "3", "--json")
    sizes: list[tuple[int, int]] = []
    ended = 0
    with engine_of_its_own(monkeypatch) as engine:
        engine_pid = engine.pid
        with subprocess.Popen(batch, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                if json.loads(line).get("event") == "end":
                    ended += 1
                    if ended in (WARM, MANY):
                        sizes.append((measure_memory(running.pid), measure_memory(engine_pid)))
        assert running.returncode == 0
        report = json.loads(line)["data"]
    assert [run["status"] for run in report["runs"]] == ["ok"] * MANY
    for number in range(MANY):
        (saved,) = json.loads((tmp_path / "out" / f"n{number:03}.ipynb").read_text())["cells"]
        assert "".join(saved["outputs"][0]["text"]) == f"{number}\n"
    (command_before, engine_before), (command_after, engine_after) = sizes
    assert command_after - command_before < GROWTH, sizes
    assert engine_after - engine_before < GROWTH, sizes
