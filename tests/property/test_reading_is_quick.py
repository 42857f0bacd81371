"""Every notebook of the corpus, in every view of the reading tools: an answer within a second.

`.dev/sweep.txt` says how many answers there were, which was the slowest, and what was asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from cellwright import AsyncWorkspace
from cellwright.outputs.charts import drawing
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from tests import corpus
from tests.conftest import ROOT

MOST_SECONDS = 1.0
REPORT = ROOT / ".dev" / "sweep.txt"
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "cells": ("notebook_read", {}),
    "outputs": ("notebook_read", {"outputs": True}),
    "text": ("notebook_read", {"view": "text"}),
    "outline": ("notebook_read", {"view": "outline"}),
    "stale": ("notebook_read", {"only": "stale"}),
    "notebook_outputs": ("notebook_outputs", {}),
}


class Stopwatch:
    """Seconds of this process, in three parts.

    `seconds` is what a reader waits on a machine that has a processor for us: the clock, less the
    time in which our threads were ready and the machine ran others. `processor` is what we used.
    """

    def __init__(self) -> None:
        self._began = (time.perf_counter(), time.process_time(), count_waiting())

    def read(self) -> tuple[float, float]:
        now = (time.perf_counter(), time.process_time(), count_waiting())
        clock, processor, waiting = (b - a for a, b in zip(self._began, now, strict=True))
        return max(clock - waiting, processor), processor


def count_waiting() -> float:
    """Seconds that our threads were ready to run and had no processor; 0 where Linux does not say."""
    waited = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # a thread that has just ended
            waited += int(path.read_text("ascii").split()[1])
    return waited / 1e9


async def sweep(paths: list[Path], folder: Path) -> tuple[int, dict[str, float]]:
    """Read all of them; returns how many answers there were, and those that took too long.

    An answer that needed the processor too long is too slow, at once. One that was late although
    it needed little waited for something else, such as a disk that others use: it is asked again.
    """
    slow: dict[str, float] = {}
    again: dict[str, float] = {}
    slowest = (0.0, "")
    count = 0
    box = Toolbox(PROFILES["native"])
    async with AsyncWorkspace(folder, cwd=str(folder), engine=False) as workspace:
        caller = ToolCaller(workspace=workspace)

        async def read(tool: str, arguments: dict[str, Any]) -> tuple[float, float]:
            watch = Stopwatch()
            await box.call(tool, arguments, caller)
            return watch.read()

        for path in paths:
            name = Path(shutil.copyfile(path, folder / "notebook.ipynb")).name
            for view, (tool, more) in VIEWS.items():
                what = f"{corpus.ids(path)} {view}"
                for _ in range(4):
                    seconds, processor = await read(tool, {"path": name, **more})
                    if seconds <= MOST_SECONDS or processor > MOST_SECONDS:
                        break
                    again[what] = seconds
                count += 1
                slowest = max(slowest, (seconds, what))
                if seconds > MOST_SECONDS:
                    slow[what] = seconds
    lines = [
        f"{count:,} answers; seconds are those of the clock, less those without a processor",
        f"the slowest: {slowest[0]:.3f} s, {slowest[1]}",
        *(f"asked again, because the machine was late: {row}" for row in again.items()),
        *(f"TOO SLOW: {row}" for row in slow.items()),
    ]
    REPORT.parent.mkdir(exist_ok=True)
    await asyncio.to_thread(REPORT.write_text, "\n".join([*lines, ""]), encoding="utf-8")
    return count, slow


@pytest.fixture(autouse=True)
def _no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of charts have limits of their own, and are extra."""
    monkeypatch.setattr(drawing, "can_draw", lambda: False)


@pytest.mark.all
@pytest.mark.corpus
async def test_the_largest_notebooks_are_read_within_a_second(tmp_path: Path) -> None:
    largest = sorted(corpus.notebooks(), key=lambda path: path.stat().st_size)[-5:]
    count, slow = await sweep(largest, tmp_path)
    assert (count, slow) == (len(largest) * len(VIEWS), {})


@pytest.mark.all
@pytest.mark.corpus
@pytest.mark.timeout(900)
async def test_every_notebook_is_read_within_a_second_in_every_view(tmp_path: Path) -> None:
    paths = corpus.notebooks()  # nearly 500, so about 3,000 answers
    count, slow = await sweep(paths, tmp_path)
    assert (count, slow) == (len(paths) * len(VIEWS), {})
