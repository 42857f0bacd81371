"""A thousand notebooks: all of them are done, and the memory of the parent does not grow."""

from __future__ import annotations

import gc
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from cellwright import Workspace
from cellwright.batch import run_batch
from tests.unit.workspace.memory import MemoryKernels, make_hub, make_notebook

pytestmark = [pytest.mark.all, pytest.mark.timeout(2400)]
MANY, WARM = 1000, 300
GROWTH = 16 * 2**20
"""Bytes that 700 results may take: 23 KB for each."""


def measure_memory() -> int:
    """What this process has in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_thousand_notebooks_in_flat_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(MANY):
        make_notebook(tmp_path, f"print {number}", name=f"n{number}.ipynb")
    sizes: list[int] = []
    ended = 0

    def look(event: dict[str, Any]) -> None:
        nonlocal ended
        ended += event["event"] == "end"
        if event["event"] == "end" and ended in (WARM, MANY):
            sizes.append(measure_memory())

    kernels = MemoryKernels()
    kernels.made = deque(maxlen=1)  # type: ignore[assignment]  # else the test itself would grow

    def open_workspace() -> Workspace:
        return Workspace(tmp_path, cwd=str(tmp_path), hub=make_hub(kernels))

    names = [f"n{number}.ipynb" for number in range(MANY)]
    report = run_batch(names, out="out", jobs=2, progress=look, open_workspace=open_workspace)
    assert report.ok
    assert len(report.results) == MANY
    assert sizes[1] - sizes[0] < GROWTH, sizes
