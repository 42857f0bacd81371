"""What a model is told of a notebook of 5,000 cells: how long it takes to find out, and how long it is.

The floor is what a program would do that knows nothing better: parse the whole file as JSON. Where
the file has just been changed, reading it again is most of the work, and is held against the floor.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.replace_cell import Sample
from benchmarks.tables import compare
from cellwright import AsyncWorkspace, Notebook, Workspace, read
from cellwright.assistant.context import (
    MOST_CHARACTERS,
    RuntimeState,
    build_context,
    render_context,
)
from cellwright.assistant.requests import ChatRequest, FileReference, NotebookEditor, detect
from cellwright.journal.executions import ExecutionRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SAMPLE = Sample("5,000 cells", 5_000, 300, 40, None, None)
NAME = "large.ipynb"
MOST_MILLISECONDS = 50
MOST_OF_FLOOR = 2.5
FLOOR, READ = "json.loads of the file", "cellwright.read"
OPEN, SAME, CHANGED = "context, open", "context, from the file", "context, file just changed"
PLACES = ("STATE_HOME", "RUNTIME_DIR", "CACHE_HOME", "CONFIG_HOME")


def run(*, quick: bool = False) -> list[str]:
    """Print the table; returns the goals that were missed."""
    with tempfile.TemporaryDirectory(prefix="cw") as name:
        folder = Path(name)
        for place in PLACES:
            os.environ[f"XDG_{place}"] = name
        size = SAMPLE.write(folder / NAME)
        _record_runs(folder)
        times, length = asyncio.run(
            _measure(folder, SAMPLE.rounds // 4 if quick else SAMPLE.rounds)
        )
    title = f"Context of a notebook of {SAMPLE.name} · {size:,} bytes · {len(times[OPEN])} rounds"
    missed = compare(title, times, FLOOR, {CHANGED: (FLOOR, MOST_OF_FLOOR)})
    return missed + _judge(times, length)


def _record_runs(folder: Path) -> None:
    """As many runs as the history keeps: all of them are looked at."""
    with Workspace(folder, cwd=str(folder), actor="bench:context") as workspace:
        book = workspace.open(NAME)
        book.edit([{"op": "replace", "cell": 0, "source": "begun = True"}])
        for cell in book.load().cells:
            workspace.caller.journal.executed(
                book.real,
                ExecutionRecord(
                    cell=cell.handle,
                    index=cell.index,
                    hash=cell.hash,
                    source=cell.source,
                    kernel="bench",
                    status="ok",
                    count=cell.index,
                    began=time.time(),
                    seconds=0.1,
                    actor="bench:context",
                ),
            )


async def _measure(folder: Path, rounds: int) -> tuple[dict[str, list[float]], int]:
    """The milliseconds of every method, and the characters of the message."""
    path = folder / NAME
    data = path.read_bytes()
    notebook = Notebook(data)
    editor = NotebookEditor(path=NAME, selected=(SAMPLE.cells // 2,))
    request = ChatRequest(prompt="", references=[FileReference(NAME)], editor=editor)
    lengths: list[int] = []
    async with AsyncExitStack() as stack:
        workspace = await stack.enter_async_context(AsyncWorkspace(folder, cwd=str(folder)))
        runs = await workspace.open(NAME).executions()

        async def parse() -> None:
            json.loads(path.read_bytes())

        async def open_it() -> None:
            read(path)

        async def build() -> None:
            standing = RuntimeState(runs=runs, now={})
            lengths.append(
                len(render_context(build_context(notebook, NAME, str(path), editor, standing)))
            )

        async def find() -> None:
            found = await detect(request, workspace)
            assert found.context is not None, found.reason
            lengths.append(len(render_context(found.context)))

        methods: dict[str, Callable[[], Awaitable[None]]] = {
            FLOOR: parse,
            READ: open_it,
            OPEN: build,
            SAME: find,
            CHANGED: find,
        }
        times: dict[str, list[float]] = {name: [] for name in methods}
        for turn in range(rounds + 1):
            for name in random.Random(turn).sample(list(methods), len(methods)):
                path.write_bytes(_edited(data, turn) if name == CHANGED else data)
                if name == SAME:
                    await find()  # as after the turn before
                began = time.perf_counter()
                await methods[name]()
                if turn:  # the first round imports and warms
                    times[name].append((time.perf_counter() - began) * 1e3)
    return times, max(lengths)


def _edited(data: bytes, turn: int) -> bytes:
    """The file with another source in one cell, as a save of an editor leaves it."""
    return data.replace(b"value_7 = 7", b"value_7 = %d" % (turn + 100), 1)


def _judge(times: dict[str, list[float]], length: int) -> list[str]:
    print(f"{'characters of the message':28} {length:,}   goal ≤ {MOST_CHARACTERS:,}")
    missed = []
    if length > MOST_CHARACTERS:
        missed.append(f"the context has {length:,} characters, more than {MOST_CHARACTERS:,}")
    for name in (OPEN, SAME):
        median = statistics.median(times[name])
        print(f"{name:28} {median:9.2f} ms   goal ≤ {MOST_MILLISECONDS} ms")
        if median > MOST_MILLISECONDS:
            missed.append(f"{name}: {median:.1f} ms, more than {MOST_MILLISECONDS}")
    return missed
