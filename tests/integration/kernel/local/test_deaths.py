"""Kernels that die, at any moment: the cell ends at once and says how, with all it had said."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelStartFailed
from cellwright.kernel.events import Finished, KernelExit
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.transport import Code
from cellwright.outputs.events import StreamEvent
from tests.integration.kernel.local.conftest import launch, leftovers, mark_of, run, text, verdict
from tests.integration.kernel.processes import start_again, with_mark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cellwright.kernel.events import KernelEvent

BOUND = 10.0
ENDINGS = {
    "kill": ("os.kill(os.getpid(), 9)", KernelExit(signal=9)),
    "fault": ("import ctypes; ctypes.string_at(0)", KernelExit(signal=11)),
    "exit": ("os._exit(3)", KernelExit(code=3)),
}
PHASES = ["start", "busy", "output", "itself", "idle", "ready"]


@pytest.fixture
async def mortal() -> AsyncIterator[LocalKernel]:
    """A kernel that each death is followed by the restart of."""
    kernel = LocalKernel(launch())
    await kernel.start()
    yield kernel
    await kernel.shutdown(now=True)


@pytest.mark.parametrize("how", ENDINGS)
async def test_a_kernel_that_ends_itself_says_all_and_how(
    mortal: LocalKernel, how: str, tmp_path: Path
) -> None:
    source, expected = ENDINGS[how]

    events = await _say_and_end(mortal, "print('x' * 300_000)", source, tmp_path / "heard")

    assert text(events) == "x" * 300_000 + "\n"
    assert verdict(events) == Finished("died", exit=expected)
    assert not mortal.is_alive
    assert mortal.exit == expected
    assert await run(mortal, "1") == [Finished("died", exit=expected)]


async def _say_and_end(kernel: LocalKernel, say: str, end: str, heard: Path) -> list[KernelEvent]:
    """Run a cell that ends the kernel once its words are out; before that they are its own."""
    wait = f"import os, time\nwhile not os.path.exists({str(heard)!r}): time.sleep(0.001)"
    events = []
    async for event in kernel.execute(Code(f"{say}\n{wait}\n{end}")):
        events.append(event)
        if isinstance(event, StreamEvent) and event.text.endswith("\n"):
            os.close(os.open(heard, os.O_CREAT))
    os.remove(heard)  # noqa: PTH107 - pathlib is said to block
    return events


async def test_a_kernel_that_quits_politely_has_finished_its_cell(mortal: LocalKernel) -> None:
    assert verdict(await run(mortal, "quit()")).status == "ok"

    async with asyncio.timeout(10):
        while mortal.is_alive:
            await asyncio.sleep(0.01)
    assert mortal.exit == KernelExit(code=0)


async def test_a_kernel_that_cannot_end_after_it_quit_is_ended(mortal: LocalKernel) -> None:
    await run(
        mortal,
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=[1000], daemon=False).start()\n"
        "quit()",
    )

    async with asyncio.timeout(10):
        while mortal.is_alive:
            await asyncio.sleep(0.01)
    assert mortal.exit == KernelExit(signal=9)


async def test_a_keeper_that_is_killed_takes_the_cell_along(mortal: LocalKernel) -> None:
    assert mortal._process is not None
    assert mortal._process.kept is not None
    events = []
    async for event in mortal.execute(Code("print('on', flush=True)\nwhile True: pass")):
        events.append(event)
        if isinstance(event, StreamEvent):
            os.kill(mortal._process.kept.keeper_pid, signal.SIGKILL)

    assert verdict(events) == Finished("died", exit=KernelExit(signal=9))


async def test_a_ping_is_answered_by_the_death_of_the_kernel(mortal: LocalKernel) -> None:
    await run(mortal, "pass")
    assert mortal.info.pid is not None
    pinging = asyncio.create_task(mortal.ping(30))
    os.kill(mortal.info.pid, signal.SIGKILL)

    async with asyncio.timeout(10):
        await pinging
    assert mortal.exit == KernelExit(signal=9)
    assert not await mortal.ping(1)


@pytest.mark.parametrize(
    "count", [5, pytest.param(200, marks=[pytest.mark.all, pytest.mark.timeout(1200)])]
)
async def test_deaths_at_random_moments(mortal: LocalKernel, count: int, places: Path) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    for number in range(count):
        phase = PHASES[number % len(PHASES)] if count < 20 else dice.choice(PHASES)
        mark = mark_of(mortal)
        try:
            await _die(mortal, phase, dice, places / "heard")
        except BaseException:
            print(f"seed {seed}, death {number}, {phase}")  # noqa: T201
            raise
        await start_again(mortal)
        assert not with_mark(mark)
        assert text(await run(mortal, "print('new')")) == "new\n"
    await mortal.shutdown()
    assert not leftovers(places)


async def _die(kernel: LocalKernel, phase: str, dice: random.Random, heard: Path) -> None:
    """Let the kernel die in one phase of its life, and check what is told of it."""
    number = dice.choice([signal.SIGKILL, signal.SIGSEGV])
    pid = kernel.info.pid
    assert pid is not None
    if phase == "start":
        await _die_starting(kernel, dice.uniform(0, 0.4))
    elif phase == "idle":
        os.kill(pid, number)
        events = await _end_soon(kernel, "1")
        assert verdict(events).exit == KernelExit(signal=number)
    elif phase == "itself":
        source, expected = ENDINGS[dice.choice(list(ENDINGS))]
        events = await _say_and_end(kernel, "print('last')", source, heard)
        assert text(events) == "last\n"
        assert verdict(events) == Finished("died", exit=expected)
    elif phase == "ready":
        asyncio.get_running_loop().call_later(dice.uniform(0, 0.02), os.kill, pid, number)
        events = await _end_soon(kernel, "1\nimport time\ntime.sleep(100)")
        assert verdict(events) == Finished("died", exit=KernelExit(signal=number))
    else:
        talk = "i = 0\nwhile True: print(i, flush=True); i += 1"
        source = talk if phase == "output" else "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')"
        asyncio.get_running_loop().call_later(dice.uniform(0.05, 0.5), os.kill, pid, number)
        events = await _end_soon(kernel, source)
        assert verdict(events) == Finished("died", exit=KernelExit(signal=number))
        lines = text(events).splitlines()
        assert lines == [str(i) for i in range(len(lines))]


async def _end_soon(kernel: LocalKernel, source: str) -> list[KernelEvent]:
    """Run a cell in which the kernel dies; it ends soon after its process has."""
    assert kernel._process is not None
    assert kernel._process.kept is not None
    deaths: list[float] = []
    kernel._process.kept.on_exit(lambda: deaths.append(time.monotonic()))
    async with asyncio.timeout(20):
        events = await run(kernel, source)
    await asyncio.sleep(0)
    assert time.monotonic() - deaths[0] < BOUND
    return events


async def _die_starting(kernel: LocalKernel, after: float) -> None:
    await kernel.shutdown(now=True)
    starting = asyncio.create_task(kernel.start())
    while kernel._process is None or kernel.exit is not None or not kernel._process.kept:
        await asyncio.sleep(0.001)
    pid = kernel._process.kept.pid
    assert pid is not None
    await asyncio.sleep(after)
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(BOUND + 2):
        try:
            await starting
        except KernelStartFailed:
            return
        # It was ready before it died, perhaps without having said so yet.
        events = await _end_soon(kernel, "1")
    assert verdict(events).exit == KernelExit(signal=signal.SIGKILL)
