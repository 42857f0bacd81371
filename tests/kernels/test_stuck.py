"""A cell may be stuck in any way there is: its caller gets an answer, and then a working kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.config.settings import Settings
from cellwright.kernel.session import Key, Session
from cellwright.kernel.transport import Code
from tests.kernels.fleet import KINDS, Kind, launch

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.kernel.transport import Transport

TIMEOUT, GRACE, MORE = 1.0, 1.0, 2.0

SHAPES = {
    "a loop": "while True: pass",
    "interrupts ignored": (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(99)"
    ),
    "interrupts blocked": (
        "import signal, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\ntime.sleep(99)"
    ),
    "interrupts caught": (
        "import time\n"
        "while True:\n    try:\n        time.sleep(99)\n    except BaseException:\n        pass"
    ),
    "a regular expression": "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
    "a read from a pipe": "import os; os.read(os.pipe()[0], 1)",
    "a thread joined": (
        "import threading, time\n"
        "t = threading.Thread(target=time.sleep, args=(99,), daemon=True); t.start(); t.join()"
    ),
    "a lock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a subprocess": "import subprocess; subprocess.run(['sleep', '99'])",
    "a subprocess deaf to signals": (
        "import subprocess; subprocess.run(['sh', '-c', 'trap \"\" INT TERM; sleep 99; sleep 99'])"
    ),
    "a coroutine": "import asyncio; await asyncio.sleep(99)",
    "sleeping in C": "import ctypes; ctypes.CDLL(None).sleep(99)",
    "sleeping in C with the lock of Python": "import ctypes; ctypes.PyDLL(None).sleep(99)",
    "a socket": "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()",
}
QUICK = ("a loop", "interrupts ignored", "sleeping in C with the lock of Python", "a coroutine")
REAL = [kind for kind in KINDS if kind.name in ("runner", "ipykernel 7")]


@pytest.mark.parametrize("kind", REAL, ids=str)
@pytest.mark.parametrize(
    "shape",
    [pytest.param(s, marks=[] if s in QUICK else [pytest.mark.all]) for s in SHAPES],
)
@pytest.mark.timeout(60)
async def test_a_stuck_cell_is_answered_in_bounded_time(
    kind: Kind, shape: str, tmp_path: Path
) -> None:
    async def start() -> Transport:
        kernel = kind.make(launch(kind, tmp_path))
        await kernel.start()
        return kernel

    session = Session(Key("s", str(tmp_path)), start, Settings(interrupt_grace=GRACE))
    try:
        await session.run(Code("x = 1"))
        ran = await session.run(Code(SHAPES[shape]), timeout=TIMEOUT)
        assert ran.outcome.status == "timed_out"
        assert ran.outcome.seconds <= TIMEOUT + GRACE + MORE
        kept = ran.outcome.state_kept
        ran = await session.run(Code("x"), timeout=20)
        # What the answer said of the state was true.
        assert ran.outcome.status == ("ok" if kept else "error")
        assert ran.replaced is not kept
    finally:
        await session.close()
