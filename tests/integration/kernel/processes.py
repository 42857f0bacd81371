"""What tests of kept processes need: a nasty family, and a look at who is left."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cellwright.kernel.processes import find_marked_processes

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.kernel.transport import Transport

FAMILY = """
import os, signal, subprocess, sys, time
DAEMON = '''
import os, signal, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
print(flush=True)
os.closerange(0, 64)
os.chdir("/")
while True: time.sleep(1)
'''
sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
daemon = subprocess.Popen([sys.executable, "-S", "-c", DAEMON], stdout=subprocess.PIPE)
daemon.stdout.readline()
"""
"""Leaves a child in a session of its own, and a daemon that ignores signals."""

STUCK = "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')"
"""Holds the interpreter's lock in C code, for longer than anybody waits."""


def python(source: str) -> list[str]:
    return [sys.executable, "-S", "-c", source]


def with_mark(mark: str) -> list[int]:
    return [pid for pid, found in find_marked_processes().items() if found == mark]


def told_of(mark: str) -> list[int]:
    """Who has the mark among its arguments: the keeper does."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in place.read_bytes():
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(is_so: Callable[[], object], within: float = 30.0) -> bool:
    """Look again and again; true as soon as it is so."""
    end = time.monotonic() + within
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


async def eventually(is_so: Callable[[], object], within: float = 30.0) -> bool:
    """The same, on an event loop that goes on meanwhile."""
    end = time.monotonic() + within
    while not is_so():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.005)
    return True


async def start_again(kernel: Transport) -> None:
    """End a kernel and start another in its place, as sessions do to restart one."""
    await kernel.shutdown(now=True)
    await kernel.start()
