"""How long the context of a notebook of 5,000 cells takes; prints, and judges nothing.

.venv/bin/python -m tests.unit.assistant.measure_context
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cellwright import AsyncWorkspace, Notebook
from cellwright.assistant.building import Standing, build_context
from cellwright.assistant.detection import detect
from cellwright.assistant.rendering import render_context
from cellwright.assistant.requests import ChatRequest, FileReference, NotebookEditor
from tests.unit.assistant import notebooks

CELLS, TIMES = 5_000, 20


def say(what: str, seconds: list[float]) -> None:
    middle, best = statistics.median(seconds) * 1000, min(seconds) * 1000
    sys.stdout.write(f"{what}: median {middle:.1f} ms, best {best:.1f} ms of {len(seconds)}\n")


async def measure(folder: str) -> None:
    data = notebooks.many(CELLS, "x{0} = {0}\nprint(x{0})\n" * 5)
    path = Path(folder, "nb.ipynb")
    await asyncio.to_thread(path.write_bytes, data)
    editor = NotebookEditor(path="nb.ipynb", selected=(2_500,))
    request = ChatRequest(prompt="", references=[FileReference("nb.ipynb")], editor=editor)
    pure, whole = [], []
    notebook = Notebook(data)
    text = ""
    for _ in range(TIMES):
        began = time.perf_counter()
        text = render_context(build_context(notebook, "nb", str(path), editor, Standing()))
        pure.append(time.perf_counter() - began)
    async with AsyncWorkspace(folder, cwd=folder) as workspace:
        for _ in range(TIMES):
            began = time.perf_counter()
            found = await detect(request, workspace)
            whole.append(time.perf_counter() - began)
            assert found.context is not None, found.reason
    say("context of an open notebook", pure)
    say("the same from its file, with detection", whole)
    sys.stdout.write(f"{len(text):,} characters\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"XDG_STATE_HOME": place, "XDG_RUNTIME_DIR": place}
        asyncio.run(measure(place))
