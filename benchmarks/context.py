"""What a model reads: of a notebook of 5,000 cells in a chat, and of real ones over MCP.

The first table has how long it takes to find out, and how long it is. The floor is what a program would do that knows nothing better: parse the whole file as JSON. Where
the file has just been changed, reading it again is most of the work, and is held against the floor.

The second table has the tokens (o200k) of reading real notebooks, beside jupyter-mcp-server: all
sources, and the list of cells. Ours also have ids, statuses and a revision.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.replace_cell import Sample
from benchmarks.tables import compare, judge
from cellwright import AsyncWorkspace, Notebook, Workspace, read
from cellwright.assistant.context import (
    MOST_CHARACTERS,
    RuntimeState,
    build_context,
    render_context,
)
from cellwright.assistant.requests import ChatRequest, FileReference, NotebookEditor, detect
from cellwright.journal.executions import ExecutionRecord
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from tests.corpus import notebooks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SAMPLE = Sample("5,000 cells", 5_000, 300, 40, None, None)
NAME = "large.ipynb"
REAL = (
    "nbconvert-Widget_List-f19ad207",
    "nbgrader-managing_assignment_files-947d9048",
    "nbval-index-a7429b48",
    # Small ones, where every word of ours counts most.
    "voila-basics-725d60f9",
    "papermill-binder-f8df5def",
    "jupyterlab-simple_notebook-d2fa42c7",
)
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
    return missed + _judge(times, length) + asyncio.run(_compare_tokens())


def _record_runs(folder: Path) -> None:
    """As many runs as the history keeps: all of them are looked at."""
    with Workspace(folder, cwd=str(folder), actor="bench:context") as workspace:
        book = workspace.open(NAME)
        book.edit([{"op": "replace", "cell": 0, "source": "begun = True"}])
        for cell in book.load().cells:
            workspace.caller.journal.record_execution(
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


async def _compare_tokens() -> list[str]:
    """Read real notebooks with our tools and with the rival's; returns the goals that were missed."""
    from benchmarks.mcp_rival import rival

    chosen = [path for path in notebooks() if path.stem in REAL]
    answers: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="cw") as name:
        for path in chosen:
            shutil.copyfile(path, Path(name) / path.name)
        async with AsyncExitStack() as stack:
            workspace = await stack.enter_async_context(AsyncWorkspace(name, cwd=name))
            theirs = await stack.enter_async_context(rival(name))
            box = Toolbox(PROFILES["native"])
            for path in chosen:
                for view in ("text", "cells", "outline"):
                    arguments = {"path": path.name, "view": view, "max_tokens": 100_000}
                    found = await box.call(
                        "notebook_read", arguments, ToolCaller(workspace=workspace)
                    )
                    answers[f"{path.stem}, {view}"] = found.text
                if theirs is None:
                    continue
                words: dict[str, Any] = {
                    "notebook_name": path.stem,
                    "notebook_path": path.name,
                }
                await theirs.call_tool("use_notebook", words)
                for form in ("detailed", "brief"):
                    words = {"notebook_name": path.stem, "response_format": form, "limit": 0}
                    result = await theirs.call_tool("read_notebook", words)
                    answers[f"{path.stem}, {form}"] = result.content[0].text
    return _judge_tokens(dict(zip(answers, _count_tokens([*answers.values()]), strict=True)))


def _count_tokens(texts: list[str]) -> list[int]:
    script = Path(__file__).parent.parent / "tests" / "integration" / "tools" / "converting.py"
    done = subprocess.run(
        [os.environ["CELLWRIGHT_BENCH_CONVERTERS"], str(script), "count"],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    counts: list[int] = json.loads(done.stdout)
    return counts


def _judge_tokens(tokens: dict[str, int]) -> list[str]:
    print("\nTokens of reading a notebook                       sources    with ids     outline")
    missed = []
    for name in REAL:
        rows = {"cellwright": ("text", "cells", "outline")}
        rows |= {"jupyter-mcp-server": ("detailed", "detailed", "brief")}
        for side, views in rows.items():
            found = [tokens.get(f"{name}, {view}") for view in views]
            if None not in found:
                print(f"  {name[:28]:28} {side:20} " + "".join(f"{each:10,}  " for each in found))
        ours, theirs = tokens[f"{name}, text"], tokens.get(f"{name}, detailed")
        if theirs is not None:
            words, late = judge(f"{name}: tokens, × the rival's", ours / theirs, 1)
            print(f"  {name[:28]:28} goal × jupyter-mcp-server {words}")
            missed += late
    return missed


def _edited(data: bytes, turn: int) -> bytes:
    """The file with another source in one cell, as a save of an editor leaves it."""
    return data.replace(b"value_7 = 7", b"value_7 = %d" % (turn + 100), 1)


def _judge(times: dict[str, list[float]], length: int) -> list[str]:
    words, missed = judge("The context: characters", length, MOST_CHARACTERS)
    print(f"{'characters of the message':28} goal {words}")
    for name in (OPEN, SAME):
        median = statistics.median(times[name])
        words, late = judge(f"The context: {name}", median, MOST_MILLISECONDS, " ms")
        print(f"{name:28} goal {words}")
        missed += late
    return missed
