"""The owner's side: start a command under a keeper, signal it, learn how it ended.

Everything arrives through one socket on the event loop: no thread, no polling. The owner's end of
that socket is what keeps the command alive; whoever drops the `KeptProcess` lets go of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import weakref
from pathlib import Path

from cellwright.kernel.events import KernelExit
from cellwright.kernel.keeper.marks import MARK_VARIABLE, Sweep, adopt_orphans, new_mark
from cellwright.kernel.keeper.memory import MemoryKills

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SCRIPT = str(Path(__file__).with_name("keeper.py"))
_REAP_INTERVAL = 0.002
_SWEEP_INTERVAL = 0.01
_SWEEP_WITHIN = 5.0
_ABANDON_WITHIN = 2.0


async def start_kept(
    command: Sequence[str], *, cwd: str, env: Mapping[str, str], output: int | None = None
) -> KeptProcess:
    """Start `command` under a keeper; `output` is the descriptor for its stdout and stderr.

    Raises:
        OSError: it could not be started; nothing of it is left.
    """
    adopt_orphans()
    mark = new_mark()
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            ours.settimeout(0)
            # A bare interpreter: no site-packages, no variables that change what it imports.
            keeper = subprocess.Popen(  # noqa: S603, ASYNC220 - a spawn takes a millisecond
                [
                    *(sys.executable, "-I", "-S", _SCRIPT),
                    *(str(theirs.fileno()), str(os.getpid())),
                    *(f"{MARK_VARIABLE}={mark}", "--", *command),
                ],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if output is None else output,
                stderr=subprocess.DEVNULL if output is None else output,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    process = KeptProcess(mark, ours, keeper)
    try:
        await process.started()
    except BaseException:
        process.kill()
        await process.wait_gone(_ABANDON_WITHIN)
        process.close()
        raise
    return process


class KeptProcess:
    """A command that runs under a keeper; made by `start_kept`, inside an event loop."""

    def __init__(self, mark: str, channel: socket.socket, keeper: subprocess.Popen[bytes]) -> None:
        self.mark = mark
        self.pid: int | None = None
        self.keeper_pid = keeper.pid
        self.exit: KernelExit | None = None
        self.memory = MemoryKills()
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._keeper = keeper
        self._lines = b""
        self._failure: OSError | None = None
        self._was_killed_by_us = False
        self._is_clean = False
        self._on_exit: list[Callable[[], None]] = []
        self._start = asyncio.Event()
        self._gone = asyncio.Event()
        self._loop.add_reader(channel.fileno(), self._read)
        self._release = weakref.finalize(self, _abandon, channel, keeper)

    async def started(self) -> None:
        """Wait until the command runs.

        Raises:
            OSError: it could not be started.
        """
        await self._start.wait()
        if self._failure is not None:
            raise self._failure
        if self.pid is None:
            raise ChildProcessError(f"its keeper ended first: {self.exit}")

    def on_exit(self, call: Callable[[], None]) -> None:
        """Have `call` called once the command has ended; at once if it has."""
        if self.exit is not None:
            self._loop.call_soon(call)
        else:
            self._on_exit.append(call)

    def send_signal(self, number: int) -> None:
        """Send a signal to the command's process group, through the keeper."""
        if number == signal.SIGKILL:
            self._was_killed_by_us = True
        self._send(number)

    def kill(self) -> None:
        """Kill the command and everything it started, now."""
        self._was_killed_by_us = True
        self._send(0)

    async def wait_gone(self, within: float) -> bool:
        """Wait until nothing is left, neither descendants nor the keeper; false if that is late."""
        try:
            async with asyncio.timeout(within):
                await self._gone.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Let go: whatever still runs is killed by the keeper. May be called twice."""
        if not self._loop.is_closed() and self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel.fileno())
        if self._gone.is_set():
            self._release.detach()
            self._channel.close()
        else:
            self._release()

    def _send(self, number: int) -> None:
        try:
            self._channel.send(bytes([number]))
        except BlockingIOError:
            # A keeper that took nothing of thousands of signals is stopped; its end ends the rest.
            self._keeper.kill()
        except OSError:
            return  # it is gone, and with it the command

    def _read(self) -> None:
        try:
            data = self._channel.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            self._take(word, int(number))
        if not data:
            self._loop.remove_reader(self._channel.fileno())
            self._reap_keeper()

    def _take(self, word: bytes, number: int) -> None:
        if word == b"pid":
            self.pid = number
            self._start.set()
        elif word == b"failed":
            self._failure = OSError(number, os.strerror(number))
            self._is_clean = True
        elif word == b"exit":
            self._end(os.waitstatus_to_exitcode(number))
        elif word == b"clean":
            self._is_clean = True

    def _end(self, returncode: int) -> None:
        if self.exit is not None:
            return
        if returncode < 0:
            is_foreign_kill = -returncode == signal.SIGKILL and not self._was_killed_by_us
            out_of_memory = is_foreign_kill and self.memory.happened()
            self.exit = KernelExit(signal=-returncode, out_of_memory=out_of_memory)
        else:
            self.exit = KernelExit(code=returncode)
        self._start.set()
        calls, self._on_exit = self._on_exit, []
        for call in calls:
            call()

    def _reap_keeper(self) -> None:
        returncode = self._keeper.poll()
        if returncode is None:  # its descriptors close a moment before it can be collected
            self._loop.call_later(_REAP_INTERVAL, self._reap_keeper)
            return
        # When it had to kill everything, or was killed itself, it told no exit of the command.
        self._end(-signal.SIGKILL if returncode == 0 else returncode)
        if self._is_clean:
            self._finish()
        else:
            self._sweep(Sweep(self.mark.__eq__), self._loop.time() + _SWEEP_WITHIN)

    def _sweep(self, sweep: Sweep, end: float) -> None:
        if sweep.round() and self._loop.time() < end:
            self._loop.call_later(_SWEEP_INTERVAL, self._sweep, sweep, end)
        else:
            self._finish()

    def _finish(self) -> None:
        self._start.set()
        self._gone.set()


def _abandon(channel: socket.socket, keeper: subprocess.Popen[bytes]) -> None:
    """Let go of a command that nobody shut down, and see its keeper out."""
    channel.close()
    try:
        keeper.wait(_ABANDON_WITHIN)
    except subprocess.TimeoutExpired:
        return
