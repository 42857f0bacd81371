"""Interrupts: they stop the cell, whatever it does, and break nothing else."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import textwrap
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.events import Finished, InputRequested, KernelEvent, Started
from cellwright.kernel.transport import Code
from cellwright.outputs.events import StreamEvent
from tests.integration.kernel.runner.conftest import Ran

if TYPE_CHECKING:
    from tests.integration.kernel.runner.conftest import Driver

# A shell that is about to start a program may lose an interrupt, so the program itself is ready.
SYSTEM = """
import os, sys
program = "import time; print('ready', flush=True); time.sleep(60)"
os.system(f'exec {sys.executable} -S -c "{program}"')
"""
BUSY = {
    "python": "while True: pass",
    "sleep": "import time\ntime.sleep(60)",
    "system": SYSTEM,
    "subprocess": "import subprocess\nsubprocess.run(['sleep', '60'])",
    "shell magic": "!sleep 60",
    "script": "%%bash\nsleep 60",
    "captured": "x = !sleep 60",
    "await": "import asyncio\nawait asyncio.sleep(60)",
    "asyncio.run": "import asyncio\nasyncio.run(asyncio.sleep(60))",
    "flood": "while True: print('flood' * 100)",
    "one big print": "import sys\nsys.stdout.write('b' * 10**9)",
    "displays": "while True: display('d' * 10000)",
    "thread join": "import threading\nthreading.Event().wait()",
    "pipe": "import os\nos.read(os.pipe()[0], 1)",
    "input": "input()",
    "own handler": "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "while True: print('x' * 500)",
}

TASKS: list[asyncio.Future[None]] = []  # the loop itself holds none of them


async def interrupted(cells: Driver, source: str) -> list[KernelEvent]:
    """Interrupt a cell when it prints "ready", or soon after its start if it never does."""
    events: list[KernelEvent] = []
    printed = ""
    async with asyncio.timeout(30):
        async for event in cells.runner.execute(Code(source)):
            if isinstance(event, StreamEvent):
                was_ready, printed = "ready" in printed, printed[-10:] + event.text
                if "ready" in printed and not was_ready:
                    await cells.runner.interrupt()
                continue
            events.append(event)
            if isinstance(event, Started) and "ready" not in source:
                asyncio.get_running_loop().call_later(0.05, interrupt_soon, cells)
    return events


def interrupt_soon(cells: Driver) -> None:
    TASKS.append(asyncio.ensure_future(cells.runner.interrupt()))


def signal_at_once(cells: Driver, times: int) -> None:
    """Past the keeper, which has no order with the cells: it may be late, and hit a later one."""
    pid = cells.runner.info.pid  # the process's own word; the keeper's may come later
    assert pid is not None
    for _ in range(times):
        os.kill(pid, signal.SIGINT)


@pytest.mark.parametrize("name", BUSY)
async def test_a_busy_cell_is_cancelled_and_the_runner_lives_on(cells: Driver, name: str) -> None:
    await cells.ok("kept = 5")
    events = await interrupted(cells, BUSY[name])
    assert isinstance(events[-1], Finished)
    # `os.system` itself ignores the interrupt; its child does not, and the cell goes on.
    assert events[-1].status == ("ok" if name == "system" else "cancelled")
    after = await cells.ok("print('fine')\nkept")
    assert (after.stdout, after.result) == ("fine\n", "5")


async def test_an_interrupt_before_the_cell_begins_is_not_lost(cells: Driver) -> None:
    ran = cells.begin("while True: pass")
    await asyncio.sleep(0)
    await cells.runner.interrupt()
    assert (await ran).finished == Finished("cancelled", 1)


async def test_an_idle_runner_takes_no_notice(cells: Driver) -> None:
    await cells.runner.interrupt()
    signal_at_once(cells, times=20)
    assert await cells.runner.ping(10)
    assert (await cells.ok("1")).result == "1"


async def test_a_cell_may_handle_the_interrupt_itself(cells: Driver) -> None:
    source = "import time\ntry:\n    print('ready')\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('handled')"
    events = await interrupted(cells, source)
    assert events[-1] == Finished("ok", 1)


async def test_an_interrupt_that_a_cell_handles_does_not_stop_the_next(cells: Driver) -> None:
    source = """
        import signal, time
        taken = []
        signal.signal(signal.SIGINT, lambda *_: taken.append(1))
        print("ready")
        while not taken: pass
    """
    for _ in range(3):
        events = await interrupted(cells, textwrap.dedent(source))
        assert isinstance(events[-1], Finished)
        assert events[-1].status == "ok"
        await cells.ok("time.sleep(0.2)")


async def test_one_interrupt_is_one_interrupt(cells: Driver) -> None:
    source = """
        import time
        caught = 0
        for seconds in (20, 0.3):
            try:
                print("ready")
                end = time.monotonic() + seconds
                while time.monotonic() < end: time.sleep(0.01)
            except KeyboardInterrupt:
                caught += 1
        caught
    """
    for after in (0.0, 0.01, 0.03):
        events: list[KernelEvent] = []
        async for event in cells.runner.execute(Code(textwrap.dedent(source))):
            if isinstance(event, StreamEvent) and not events:
                await asyncio.sleep(after)
                await cells.runner.interrupt()
            if not isinstance(event, Started):
                events.append(event)
        assert Ran(events).result == "1"


async def test_no_interrupt_gets_lost_on_the_way_to_sleep(cells: Driver) -> None:
    for _ in range(30):
        async with asyncio.timeout(20):
            async for event in cells.runner.execute(Code("input()")):
                if isinstance(event, InputRequested):
                    await cells.runner.interrupt()
                last = event
        assert isinstance(last, Finished)
        assert last.status == "cancelled"


async def test_an_ignored_interrupt_ignores_only_for_its_cell(cells: Driver) -> None:
    await cells.ok("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN);")
    events = await interrupted(cells, "while True: pass")
    assert events[-1] == Finished("cancelled", 2)


async def rounds(cells: Driver, count: int, seed: int) -> None:
    """Interrupt at random moments; every cell ends once, and each next one is right."""
    choice = random.Random(seed)
    work = [
        "for i in range(2000): print('line', i)",
        "for i in range(50): display(i)",
        "sum(range(10**5))",
        "import os\nfor i in range(5): os.write(1, b'raw\\n'); os.system(':')",
        "1 / 0",
        "import asyncio\nfor i in range(20): await asyncio.sleep(0)",
    ]
    for n in range(count):
        ran = cells.begin(choice.choice(work))
        await asyncio.sleep(choice.random() ** 3 * 0.03)
        signal_at_once(cells, times=choice.choice([1, 1, 2, 5]))  # also when it is idle again
        assert (await ran).status in {"ok", "error", "cancelled"}
        check = await cells.run(f"print('check')\n{n} + 1")
        assert (check.stdout, check.result) == ("check\n", str(n + 1))


async def test_interrupts_at_random_moments_break_nothing(cells: Driver) -> None:
    await rounds(cells, 30, seed=1)


@pytest.mark.all
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(4))
async def test_many_interrupts_at_random_moments_break_nothing(cells: Driver, seed: int) -> None:
    await rounds(cells, 200, seed)
