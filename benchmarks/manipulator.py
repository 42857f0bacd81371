"""What a call from a running cell to its notebook costs."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.tables import judge
from cellwright.document.notebook import Notebook
from cellwright.kernel.events import CommMessage
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import StreamEvent
from cellwright.protocol.bridge import CommBridge, add_kernel_path
from cellwright.protocol.conformance.reference import MemoryAccess

if TYPE_CHECKING:
    from cellwright.protocol.messages import Reply

# Milliseconds of a call, by the middle of them: what changes a file waits for the disk.
GOALS = {"get_cell_count": 1.0, "get_cell_range": 3.0, "splice_cell_range": 4.0}
CALLS = 200
SOURCE = f"""
from statistics import median, quantiles
from time import perf_counter
from cellwright_kernel import notebook
notebook.cell_count()
for name, ask in (("get_cell_count", notebook.cell_count),
                  ("get_cell_range", lambda: notebook.cell_range(0, 20)),
                  ("splice_cell_range", lambda: notebook.splice(0, 1, "x"))):
    took = []
    for _ in range({CALLS}):
        began = perf_counter()
        ask()
        took.append((perf_counter() - began) * 1000)
    print(name, median(took), quantiles(took, n=20)[-1])
"""


FLOOD = """
import threading, time
from cellwright_kernel import notebook
def flood():
    for _ in range({requests}):
        notebook.futures.cell_range(0, 20)
flooding = threading.Thread(target=flood)
flooding.start()
while flooding.is_alive():
    print("at", time.time(), flush=True)
    time.sleep(0.02)
"""
FLOOD_GOAL = 100.0


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    requests = 1_000 if quick else 5_000
    with tempfile.TemporaryDirectory() as folder:
        measured = asyncio.run(_measure(folder, requests))
        saved = _on_disk(folder)
    print(f"\nA call from a running cell to its notebook, {CALLS} of each, in milliseconds")
    print(f"{'':20} {'median':>8} {'95 %':>8}")
    missed = []
    for place, calls in (("in memory", measured.calls), ("in a file", saved)):
        print(place)
        for name, middle, high in (line.split() for line in calls.splitlines()):
            what = f"A call from a running cell, {place}: {name}"
            words, more = judge(what, float(middle), GOALS[name], " ms")
            print(f"  {name:18} {float(middle):8.2f} {float(high):8.2f}   goal {words}")
            missed += more
    # A kernel that floods us is busy with that itself; what we add is how long we look away.
    print(f"\nOutput of a cell beside {requests:,} requests of its thread, in milliseconds")
    print(f"{'':20} {'median':>8} {'most':>8} {'we looked away':>16}")
    for name, late, away in measured.floods:
        what = f"Output beside a flood of requests, {name}: we looked away for"
        words, more = judge(what, away * 1000, FLOOD_GOAL, " ms")
        print(
            f"{name:20} {median(late) * 1000:8.1f} {max(late) * 1000:8.1f} {away * 1000:16.1f}"
            f"   goal {words}"
        )
        missed += more
    return missed


def _on_disk(folder: str) -> str:
    """The same calls of a cell that is run in its file."""
    from cellwright import Workspace, write

    book = Notebook()
    book.apply([{"op": "insert", "source": f"x = {number}"} for number in range(20)])
    book.apply({"op": "insert", "source": SOURCE})
    write(book, f"{folder}/calls.ipynb")
    with Workspace(folder, cwd=folder) as workspace:
        done = workspace.open("calls.ipynb").run([20])
        if done[0].status != "ok":
            raise AssertionError(done[0].to_json())
        return "".join("".join(each.get("text", "")) for each in done[0].outputs)


@dataclass
class Measured:
    """What was measured: the table of calls, and for each flood how late its lines came."""

    calls: str = ""
    floods: list[tuple[str, list[float], float]] = field(default_factory=list)


async def _measure(folder: str, requests: int) -> Measured:
    env = add_kernel_path({**os.environ, "IPYTHONDIR": folder})
    kernel = LocalKernel(Launch(folder, env, python=sys.executable))
    await kernel.start()
    book = Notebook()
    book.apply([{"op": "insert", "source": f"x = {number}"} for number in range(20)])
    host = MemoryAccess(book)

    async def send(answer: Reply) -> None:
        await kernel.send_comm(CommMessage("msg", answer.comm_id, data=answer.data))

    bridge = CommBridge(lambda: host, send)
    measured = Measured()
    flood = FLOOD.format(requests=requests)
    try:
        async for event in kernel.execute(Code(SOURCE)):
            if isinstance(event, CommMessage):
                bridge.feed(event)
            elif isinstance(event, StreamEvent):
                measured.calls += event.text
        for name, answers in (("not answered", False), ("answered", True)):
            late: list[float] = []
            watch = asyncio.create_task(_longest_absence())
            async for event in kernel.execute(Code(flood)):
                if isinstance(event, CommMessage) and answers:
                    bridge.feed(event)
                elif isinstance(event, StreamEvent):
                    now = time.time()
                    late += [now - float(at) for at in event.text.split()[1::2]]
            await bridge.settle()
            watch.cancel()
            measured.floods.append((name, late, await watch))
    finally:
        await bridge.close()
        await kernel.shutdown()
    return measured


async def _longest_absence() -> float:
    """The longest time, until cancelled, in which the event loop did not come by."""
    longest = 0.0
    loop = asyncio.get_running_loop()
    try:
        while True:
            before = loop.time()
            await asyncio.sleep(0.005)
            longest = max(longest, loop.time() - before - 0.005)
    except asyncio.CancelledError:
        return longest


if __name__ == "__main__":
    raise SystemExit(bool(run()))
