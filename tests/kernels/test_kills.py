"""Kernels are killed at random moments; every call says what happened, and the next one works."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.config.settings import Settings
from cellwright.kernel.session import Key, Session
from cellwright.kernel.transport import Code
from tests.kernels.fleet import KINDS, Kind, launch

if TYPE_CHECKING:
    from cellwright.kernel.session import CellOutcome
    from cellwright.kernel.transport import Transport

# Below the time limit of a cell, so that an exit was noticed and not waited for; nothing else
# looks at the kernel here. How soon it is on an idle machine, benchmarks measure.
TIME_LIMIT = 60.0
ANSWERED_WITHIN = WORKS_WITHIN = 20.0
REAL = [kind for kind in KINDS if kind.name in ("runner", "ipykernel 7")]
WAYS = {
    "kill": "os.kill(os.getpid(), 9)",
    "segv": "import ctypes; ctypes.string_at(0)",
    "exit": "os._exit(7)",
}


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Killed:
    """A notebook's session whose kernel is killed again and again."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self.kernels: list[Transport] = []
        self.number = 0

        async def start() -> Transport:
            kernel = kind.make(launch(kind, folder))
            await kernel.start()
            self.kernels.append(kernel)
            return kernel

        path = str(folder / "nb.ipynb")
        key = Key(path, str(folder), f"notebook:{path}")
        self.session = Session(key, start, Settings(), kind="notebook", retries=False)

    async def run(self, source: str) -> CellOutcome:
        """Run a cell that first notes that it was run."""
        self.number += 1
        noted = f"import os; open({str(self.ledger)!r}, 'a').write('{self.number}\\n')\n{source}"
        return await self.session.run(Code(noted), timeout=TIME_LIMIT)

    async def from_inside(self, dice: random.Random) -> None:
        name = dice.choice(list(WAYS))
        before = dice.choice(["", "print('x' * 100_000)\n", "import time; time.sleep(0.01)\n"])
        loop = asyncio.get_running_loop()
        began = loop.time()
        ran = await self.run(before + WAYS[name])
        assert loop.time() - began <= ANSWERED_WITHIN
        self.died(ran, {"kill": (None, 9), "segv": (None, 11), "exit": (7, None)}[name])

    async def from_outside(self, dice: random.Random) -> None:
        kernel = self.kernels[-1]
        assert kernel.info.pid is not None
        number = dice.choice([signal.SIGKILL, signal.SIGSEGV])
        loop = asyncio.get_running_loop()
        delay = dice.choice([0.0, 0.001, 0.005, 0.02, 0.1])
        killed: list[float] = []

        def kill(pid: int) -> None:
            os.kill(pid, number)
            killed.append(loop.time())

        loop.call_later(delay, kill, kernel.info.pid)
        ran = await self.run("while True: print('flood' * 10)")
        assert loop.time() - killed[0] <= ANSWERED_WITHIN
        self.died(ran, (None, number))

    def died(self, ran: CellOutcome, how: tuple[int | None, int | None]) -> None:
        assert (ran.outcome.status, ran.retried) == ("died", False)
        assert not ran.outcome.state_kept
        assert ran.outcome.exit is not None
        assert (ran.outcome.exit.code, ran.outcome.exit.signal) == how

    async def works_again(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        ran = await self.run("6 * 7")
        assert (ran.outcome.status, ran.replaced) == ("ok", True)
        assert loop.time() - began <= WORKS_WITHIN

    def nothing_ran_twice(self) -> None:
        numbers = self.ledger.read_text().split()
        assert len(numbers) == len(set(numbers))


async def storm(kind: Kind, folder: Path, times: int) -> None:
    dice = random.Random(times)
    killed = Killed(kind, folder)
    try:
        await killed.run("1")
        await asyncio.sleep(0.1)
        files, threads = open_files(), threading.active_count()
        for _ in range(times):
            await dice.choice([killed.from_inside, killed.from_outside])(dice)
            await killed.works_again()
            killed.nothing_ran_twice()
        await asyncio.sleep(0.1)
        assert open_files() <= files + 2
        assert threading.active_count() <= threads + 1
    finally:
        await killed.session.close()


@pytest.mark.parametrize("kind", REAL, ids=str)
@pytest.mark.timeout(120)
async def test_a_killed_kernel_is_told_and_replaced(kind: Kind, tmp_path: Path) -> None:
    await storm(kind, tmp_path, 5)


@pytest.mark.all
@pytest.mark.parametrize("kind", REAL, ids=str)
@pytest.mark.timeout(600)
async def test_two_hundred_killed_kernels_are_told_and_replaced(kind: Kind, tmp_path: Path) -> None:
    await storm(kind, tmp_path, 100)
