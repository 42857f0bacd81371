"""A mark in the environment of every kernel, by which leftovers are found and known as ours.

A mark names its owner: PID namespace, process id and the time that process began, so that a mark
whose owner is gone can be told from one whose owner lives, also after the id was used again.
Processes without a mark are never touched. One that gave itself a new environment has none.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK_VARIABLE = "CELLWRIGHT_KERNEL_MARK"
_PREFIX = MARK_VARIABLE.encode() + b"="
_PR_SET_CHILD_SUBREAPER = 36
_adopts_orphans = False


def new_mark() -> str:
    """Make the mark of one more kernel of this process."""
    me = os.getpid()
    return f"{_namespace()}-{me}-{_start_time(me)}-{secrets.token_hex(8)}"


def is_stale(mark: str) -> bool:
    """Tell whether the owner of `mark` is surely gone.

    A mark from another PID namespace is not ours to judge: there our ids mean other processes.
    """
    try:
        namespace, pid, start, _ = mark.split("-")
        owner = int(pid)
    except ValueError:
        return False
    return namespace == _namespace() != "0" and str(_start_time(owner)) != start


def marked_processes() -> dict[int, str]:
    """Every living process of this user that carries a mark."""
    found: dict[int, str] = {}
    for pid in _processes():
        mark = _mark_of(pid)
        if mark is not None:
            found[pid] = mark
    return found


class Sweep:
    """Kills all processes whose mark is wanted, in rounds: one may fork while it is looked at."""

    def __init__(self, is_wanted: Callable[[str], bool]) -> None:
        self._is_wanted = is_wanted
        self._killed: set[int] = set()

    def round(self) -> int:
        """Kill what is there now; 0 once nothing is."""
        targets = [pid for pid, mark in marked_processes().items() if self._is_wanted(mark)]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in targets:
                # Ids are used again: look once more, right before the signal.
                mark = _mark_of(pid)
                if mark is not None and self._is_wanted(mark):
                    _kill(pid, number)
        self._killed.update(targets)
        self._reap()
        return len(targets)

    @property
    def killed(self) -> int:
        """How many processes were sent the last signal."""
        return len(self._killed)

    def _reap(self) -> None:
        for pid in self._killed:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue  # never fell to us, or is collected already


def sweep_stale(within: float = 5.0) -> int:
    """Kill what kernels of owners that are gone have left behind; returns how many processes.

    For the start of an owner: the one before may have died together with its keepers.
    """
    import time

    sweep = Sweep(is_stale)
    end = time.monotonic() + within
    while sweep.round() and time.monotonic() < end:
        time.sleep(0.005)
    return sweep.killed


def adopt_orphans() -> None:
    """Become a child subreaper: what a killed keeper leaves falls to this process."""
    global _adopts_orphans  # noqa: PLW0603 - an attribute of the process, set once
    if _adopts_orphans or not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _adopts_orphans = True


def _processes() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:  # no /proc on this system
        return []


def _mark_of(pid: int) -> str | None:
    place = f"/proc/{pid}"
    try:
        if Path(place).stat().st_uid != os.geteuid():
            return None
        environment = Path(f"{place}/environ").read_bytes()
    except OSError:  # gone, or not for us to see
        return None
    for entry in environment.split(b"\0"):
        if entry.startswith(_PREFIX):
            return entry[len(_PREFIX) :].decode("ascii", "replace")
    return None


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0"


def _start_time(pid: int) -> int:
    """When the process began, in clock ticks since boot; 0 if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return 0 if fields[0] in {b"Z", b"X"} else int(fields[19])
    except (OSError, ValueError, IndexError):
        return 0


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return
