"""What an agent waits for: the MCP server against jupyter-mcp-server and a raw kernel client."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.mcp_lean import LeanClient
from benchmarks.mcp_rival import rival
from benchmarks.raw_client import RawClient
from benchmarks.tables import compare, judge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Method = Callable[[], Awaitable[Any]]

CELL = "1+1"
RIVAL = "jupyter-mcp-server"
SAMPLE = Path(__file__).parent.parent / "examples" / "harvest.ipynb"
SIZES = {"20 cells": (20, 0), "1,000 cells": (1000, 0), "50 MB": (1000, 50_000_000)}
# Seconds that a call may take.
LIMITS = {
    ("50 MB", "read an outline"): 0.1,
    ("50 MB", "edit a cell"): 0.1,
    ("50 MB", "run a cell"): 0.25,
    ("1,000 cells", "read an outline"): 0.02,
}


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    # A short path, because sockets are in it.
    with tempfile.TemporaryDirectory(prefix="cwb") as name:
        places = {"XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run", "IPYTHONDIR": "ipython"}
        for variable, place in places.items():
            (Path(name) / place).mkdir(mode=0o700)
            os.environ[variable] = f"{name}/{place}"
        os.environ["CELLWRIGHT_ENGINE"] = "always"
        folder = Path(name) / "notebooks"
        folder.mkdir()
        try:
            return asyncio.run(_measure(folder, 7 if quick else 30))
        finally:
            words = [sys.executable, "-m", "cellwright", "engine", "stop", "--quiet"]
            subprocess.run(words, check=False, stdout=subprocess.DEVNULL)


async def _measure(folder: Path, rounds: int) -> list[str]:
    from mcp import Client, StdioServerParameters

    for name, (cells, size) in SIZES.items():
        for side in ("ours", "theirs"):
            _make(folder / f"{side}-{cells}-{size}.ipynb", cells, size)
        print(f"made the notebook of {name}", file=sys.stderr)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "cellwright", "mcp", "--root", str(folder)],
        env=dict(os.environ),
    )
    missed: list[str] = []
    async with Client(server) as ours, rival(str(folder)) as theirs:
        if theirs is None:
            print(f"{RIVAL} is not there: ./dev bench mcp makes its environment")
        missed += await _cells(folder, theirs, rounds * 5)
        for name, (cells, size) in SIZES.items():
            missed += await _notebook(f"{cells}-{size}.ipynb", name, ours, theirs, rounds)
        await _task(folder, ours, theirs)
        await _schemas(ours, theirs)
    return missed


async def _call(client: Any, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise AssertionError(f"{tool}: {result.content[0].text[:300]}")
    return result


async def _cells(folder: Path, theirs: Any, rounds: int) -> list[str]:
    raw, lean = RawClient(str(folder)), LeanClient(str(folder))

    def ours(tool: str, **arguments: Any) -> Method:
        return lambda: asyncio.to_thread(lean.call, tool, **arguments)

    cells = [{"code": CELL}]
    methods: dict[str, Method] = {
        "raw jupyter_client": lambda: asyncio.to_thread(raw.run, CELL),
        "eval, runner": ours("eval", cells=cells),
        "eval, ipykernel": ours("eval", cells=cells, kernel="python3", session="k"),
        "notebook_run, saved": ours("notebook_run", path="ours-20-0.ipynb", cells=[0]),
    }
    try:
        rows = await _interleaved(methods, rounds)
    finally:
        raw.close()
        lean.close()
    if theirs is not None:
        await _call(theirs, "use_notebook", notebook_name="n", notebook_path="theirs-20-0.ipynb")
        more: dict[str, Method] = {
            f"{RIVAL} execute_code": lambda: _call(theirs, "execute_code", code=CELL),
            f"{RIVAL} execute_cell": lambda: _call(theirs, "execute_cell", cell_index=0),
        }
        rows |= await _interleaved(more, max(3, rounds // 25))
    raw_name = "raw jupyter_client"
    goals = {
        "eval, runner": (raw_name, 1.25),
        "eval, ipykernel": (raw_name, 1.25),
        "notebook_run, saved": (raw_name, 1.6),
    }
    times = {name: [each * 1000 for each in seconds] for name, seconds in rows.items()}
    return compare(f"One warm cell `{CELL}` over MCP · {rounds} rounds", times, raw_name, goals)


async def _notebook(path: str, name: str, ours: Any, theirs: Any, rounds: int) -> list[str]:
    mine = f"ours-{path}"
    turn = iter(range(10**9))

    def edit() -> Awaitable[Any]:
        change = {"op": "replace", "cell": 3, "source": f"y = {next(turn)}"}
        return _call(ours, "notebook_edit", path=mine, edits=[change])

    methods: dict[str, Method] = {
        "read an outline": lambda: _call(ours, "notebook_read", path=mine, view="outline"),
        "edit a cell": edit,
        "run a cell": lambda: _call(ours, "notebook_run", path=mine, cells=[0]),
    }
    rows = await _interleaved(methods, rounds)
    print(f"\n{name}")
    found = await _rival_notebook(theirs, f"theirs-{path}", rounds) if theirs is not None else {}
    missed: list[str] = []
    for what, times in rows.items():
        median = statistics.median(times)
        other = found.get(what, "")
        if isinstance(other, list):
            theirs_median = statistics.median(other)
            other = f"{RIVAL} {theirs_median * 1000:9.1f} ms  {theirs_median / median:7.1f} ×"
        goal = ""
        if (name, what) in LIMITS:
            goal, late = judge(f"{name} over MCP: {what}", median, LIMITS[name, what], " s")
            missed += late
        print(f"  {what:18} {median * 1000:9.1f} ms   {goal:26} {other}")
    return missed


async def _rival_notebook(theirs: Any, path: str, rounds: int) -> dict[str, Any]:
    """Its times, or what it said instead of doing it."""
    name = path.removesuffix(".ipynb")
    methods: dict[str, Method] = {
        "read an outline": lambda: _call(
            theirs, "read_notebook", notebook_name=name, response_format="brief"
        ),
        "edit a cell": lambda: _call(
            theirs, "overwrite_cell_source", cell_index=3, cell_source=f"y = {time.monotonic()}"
        ),
        "run a cell": lambda: _call(theirs, "execute_cell", cell_index=0),
    }
    try:
        await _call(theirs, "use_notebook", notebook_name=name, notebook_path=path)
        read = await methods["read an outline"]()
        if " 0 cells" in read.content[0].text or "empty" in read.content[0].text:
            return dict.fromkeys(methods, f"{RIVAL} says: 0 cells, without an error")
        return await _interleaved(methods, min(rounds, 5))
    except Exception as error:  # noqa: BLE001  # whatever it is, it belongs into the table
        return dict.fromkeys(methods, f"{RIVAL} fails: {str(error)[:60]!r}")


async def _task(folder: Path, ours: Any, theirs: Any) -> None:
    """The same task: find the failing cell, mend it, run what is stale, see the chart, undo."""
    from examples.agent import BROKEN, MENDED, Agent, task

    shutil.copyfile(SAMPLE, folder / "ours.ipynb")
    agent = Agent(ours, shows=False)
    await task(agent, "ours.ipynb")
    rows = {"cellwright": agent.tally}
    if theirs is not None:
        shutil.copyfile(SAMPLE, folder / "theirs.ipynb")
        source = json.loads(SAMPLE.read_text("utf-8"))["cells"][3]["source"]
        old = "".join(source)
        other = Agent(theirs, shows=False)
        steps: list[tuple[str, dict[str, Any]]] = [
            ("use_notebook", {"notebook_name": "t", "notebook_path": "theirs.ipynb"}),
            ("read_cell", {"cell_index": 1}),
            ("read_cell", {"cell_index": 3}),
            (
                "overwrite_cell_source",
                {"cell_index": 3, "cell_source": old.replace(BROKEN, MENDED)},
            ),
            *(("execute_cell", {"cell_index": index}) for index in (1, 3, 5, 6)),
            ("overwrite_cell_source", {"cell_index": 3, "cell_source": old}),
        ]
        for tool, arguments in steps:
            await other.call("", tool, **arguments)
        rows[RIVAL] = other.tally
    print("\nThe agent's task: find what fails, mend it, run what is stale, see the chart, undo")
    for name, tally in rows.items():
        characters = tally.asked + tally.answered
        print(
            f"  {name:20} {tally.calls:3} calls {characters:7,} characters "
            f"{tally.pictures} pictures {tally.seconds:6.2f} s"
        )


async def _schemas(ours: Any, theirs: Any) -> None:
    print("\nTool schemas in the model's context")
    for name, client in (("cellwright", ours), (RIVAL, theirs)):
        if client is not None:
            tools = (await client.list_tools()).tools
            dumped = [tool.model_dump_json(by_alias=True, exclude_none=True) for tool in tools]
            size = sum(map(len, dumped))
            print(f"  {name:20} {len(tools):3} tools {size:7,} characters ≈ {size // 4:,} tokens")


async def _interleaved(methods: dict[str, Method], rounds: int) -> dict[str, list[float]]:
    """Seconds of each method; they take turns in a random order, after one that warms up."""
    rows: dict[str, list[float]] = {name: [] for name in methods}
    for work in methods.values():
        await work()
    order = list(methods)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            began = time.perf_counter()
            await methods[name]()
            rows[name].append(time.perf_counter() - began)
    return rows


def _make(path: Path, cells: int, size: int) -> None:
    """A notebook of code cells; each has a share of the size as a picture."""
    picture = base64.b64encode(random.Random(1).randbytes(size // cells * 3 // 4)).decode()
    shown = {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}}
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell{index}",
            "metadata": {},
            "outputs": [shown] if size and index > 3 else [],
            "source": [CELL if index == 0 else f"x{index} = {index}\n", *["# a line\n"] * 3]
            if index
            else [CELL],
        }
        for index in range(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    whole = {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
