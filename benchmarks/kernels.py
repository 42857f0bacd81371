"""What a cell costs: warm, first, cold and in a flood, against jupyter_client and bare Python."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from benchmarks.raw_client import RawClient
from benchmarks.tables import compare, judge
from cellwright.config.settings import Settings
from cellwright.kernel.factory import SpareKernel
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.runner import Runner
from cellwright.kernel.session import Key, Session
from cellwright.kernel.transport import Code, Launch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cellwright.kernel.transport import Transport

CELL = "1+1"
FLOODS = {
    "1,000,000 lines": "for i in range(1_000_000): print(i)",
    "100 MB in short lines": "line = 'x' * 99\nfor i in range(1_000_000): print(line)",
    "100 MB in long lines": "line = 'x' * 999\nfor i in range(100_000): print(line)",
}


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = folder
        missed = asyncio.run(_cells(folder, 30 if quick else 200, 3 if quick else 10))
        missed += _cold(folder, 5 if quick else 15)
        missed += _floods(folder, 1 if quick else 3)
    return missed


def _launch(folder: str) -> Launch:
    return Launch(folder, dict(os.environ), python=sys.executable)


async def _session(folder: str, make: Callable[[Launch], Transport]) -> Session:
    async def start() -> Transport:
        kernel = make(_launch(folder))
        await kernel.start()
        return kernel

    session = Session(Key("bench", folder), start, Settings())
    await session.run(Code(CELL))
    return session


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def _cells(folder: str, rounds: int, starts: int) -> list[str]:
    raw = RawClient(folder)
    local = await _session(folder, LocalKernel)
    runner = await _session(folder, Runner)
    rows: dict[str, list[float]] = {}

    async def raw_cell() -> None:
        raw.run(CELL)

    methods = {
        "raw jupyter_client": raw_cell,
        "session, ipykernel": lambda: local.run(Code(CELL)),
        "session, runner": lambda: runner.run(Code(CELL)),
    }
    for _ in range(rounds):
        for name, work in methods.items():
            rows.setdefault(name, []).append(await _timed(work))
    spare = SpareKernel(LocalKernel)
    for _ in range(starts):
        rows.setdefault("first cell, cold", []).append(await _timed(lambda: _first(folder, None)))
        spare.prepare(_launch(folder))
        await asyncio.sleep(2)
        rows.setdefault("first cell, spare", []).append(await _timed(lambda: _first(folder, spare)))
    await spare.release()
    for session in (local, runner):
        await session.close()
    raw.close()
    goals = {
        "session, ipykernel": ("raw jupyter_client", 1.0),
        "first cell, spare": ("session, ipykernel", 2.0),
    }
    return compare(f"One cell `{CELL}` · {rounds} rounds", rows, "raw jupyter_client", goals)


_kernels: list[Transport] = []


async def _first(folder: str, spare: SpareKernel | None) -> None:
    kernel = await spare.take(_launch(folder)) if spare is not None else None
    if kernel is None:
        kernel = LocalKernel(_launch(folder))
        await kernel.start()
    async for _ in kernel.execute(Code(CELL)):
        pass
    _kernels.append(kernel)
    asyncio.get_running_loop().call_soon(asyncio.ensure_future, kernel.shutdown(now=True))


def _cold(folder: str, rounds: int) -> list[str]:
    rows: dict[str, list[float]] = {}

    async def runner() -> None:
        kernel = Runner(_launch(folder))
        await kernel.start()
        async for _ in kernel.execute(Code(CELL)):
            pass
        rows.setdefault("runner, start to result", []).append((time.perf_counter() - began) * 1000)
        await kernel.shutdown(now=True)

    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "print(1+1)"], check=True, capture_output=True)
        rows.setdefault("bare python", []).append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        asyncio.run(runner())
    goals = {"runner, start to result": ("bare python", 1.3)}
    return compare(f"A cold start · {rounds} rounds", rows, "bare python", goals)


def _floods(folder: str, rounds: int) -> list[str]:
    missed: list[str] = []
    for name, code in FLOODS.items():
        times: dict[str, list[float]] = {}
        memory: dict[str, list[float]] = {}
        lost = False
        for _ in range(rounds):
            for who in ("raw jupyter_client", "session, ipykernel", "session, runner"):
                words = [sys.executable, "-m", "benchmarks.flood", who, folder, code]
                done = subprocess.run(words, check=True, capture_output=True, text=True)
                found = json.loads(done.stdout)
                times.setdefault(who, []).append(found["seconds"] * 1000)
                memory.setdefault(who, []).append(found["megabytes"])
                lost = lost or found.get("complete") is False
        goals = {"session, ipykernel": ("raw jupyter_client", 1.1)}
        missed += compare(f"{name} of output · {rounds} rounds", times, "raw jupyter_client", goals)
        for who, values in memory.items():
            line = f"{who:28} +{max(values):.1f} MB of memory"
            if who != "raw jupyter_client":
                verdict, late = judge(f"{name}: {who}, memory", max(values), 8, " MB")
                line += f"   goal {verdict}"
                missed += late
            print(line)
        if lost:
            missed.append(f"{name}: something is missing from the artifact")
    return missed
