"""Processes that never outlive us: a keeper for each, and a sweep for the rest.

A kept process runs under a keeper (`runner/inside/keeper.py`). Whatever ends us, `kill -9`
included, the keeper kills the process and everything it started. If the keeper itself is killed,
we find what is left by a mark in its environment. Guaranteed on Linux; on other systems only the
process group is killed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
import weakref
from pathlib import Path

from cellwright.kernel.environment import MARK_VARIABLE
from cellwright.kernel.events import KernelExit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_KEEPER = str(Path(__file__).with_name("runner") / "inside" / "keeper.py")
_REAP_INTERVAL = 0.002
_SWEEP_INTERVAL = 0.01
_SWEEP_WITHIN = 5.0
_ABANDON_WITHIN = 2.0
_KILL_GRACE = 2.0
_MARK_PREFIX = MARK_VARIABLE.encode() + b"="
_LONGEST_COUNTER = 2**16
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_DUMPABLE = 4
_adopts_orphans = False


async def start_kept_process(
    command: Sequence[str], *, cwd: str, env: Mapping[str, str], output: int | None = None
) -> KeptProcess:
    """Start `command` under a keeper; `output` is the descriptor for its stdout and stderr.

    Raises:
        OSError: it could not be started; nothing of it is left.
    """
    mark = make_mark()
    process, _ = spawn_keeper(
        # A bare interpreter: no site-packages, no variables that change what it imports.
        lambda channel: [
            *(sys.executable, "-I", "-S", _KEEPER, str(channel), str(os.getpid())),
            *(f"{MARK_VARIABLE}={mark}", "--", *command),
        ],
        mark,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if output is None else output,
        stderr=subprocess.DEVNULL if output is None else output,
    )
    try:
        await process.wait_started()
    except BaseException:
        process.kill()
        await process.wait_gone(_ABANDON_WITHIN)
        process.close()
        raise
    return process


def hide_memory() -> bool:
    """Let no other process of this user read the memory and the variables of this one, on Linux.

    Kernels run as the same user, and could read them in `/proc` or as a debugger. This affects the
    whole process, so that only an engine should call it. Returns whether it is possible here.
    """
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)


def spawn_keeper(
    command: Callable[[int], Sequence[str]], mark: str, **options: Any
) -> tuple[KeptProcess, subprocess.Popen[bytes]]:
    """Start a keeper; `command` gives its command line for a descriptor that leads to us.

    Raises:
        OSError: the system refused.
    """
    adopt_orphans()
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            ours.settimeout(0)
            channel = theirs.fileno()
            keeper = subprocess.Popen(  # noqa: S603 - the keeper, or an interpreter the caller chose
                command(channel), pass_fds=(channel,), start_new_session=True, **options
            )
    except BaseException:
        ours.close()
        raise
    return KeptProcess(mark, ours, keeper), keeper


class KeptProcess:
    """A process under a keeper: send it signals, kill it, learn how it ended.

    Everything arrives through one socket on the event loop: no thread, no polling. Our end of
    that socket keeps the process alive; when this object is dropped, the process is killed.
    """

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
        self._release = weakref.finalize(self, _abandon, channel, keeper, mark)

    async def wait_started(self) -> None:
        """Wait until the process runs.

        Raises:
            OSError: it could not be started.
        """
        await self._start.wait()
        if self._failure is not None:
            raise self._failure
        if self.pid is None:
            raise ChildProcessError(f"its keeper ended first: {self.exit}")

    def on_exit(self, call: Callable[[], None]) -> None:
        """Have `call` called once the process has ended; at once if it has."""
        if self.exit is not None:
            self._loop.call_soon(call)
        else:
            self._on_exit.append(call)

    def send_signal(self, number: int) -> None:
        """Send a signal to the process group, through the keeper."""
        if number == signal.SIGKILL:
            self._was_killed_by_us = True
        self._send(number)

    def kill(self) -> None:
        """Kill the process and everything it started, now."""
        self._was_killed_by_us = True
        self._send(0)
        self._loop.call_later(_KILL_GRACE, self._kill_keeper)

    async def wait_gone(self, within: float) -> bool:
        """Wait until nothing is left, neither descendants nor the keeper; false if that is late."""
        try:
            async with asyncio.timeout(within):
                await self._gone.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Let go: the keeper kills what still runs. May be called twice."""
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
            # A keeper that read none of thousands of signals is stopped; its end ends the rest.
            self._keeper.kill()
        except OSError:
            return  # it is gone, and with it the process

    def _kill_keeper(self) -> None:
        """Kill a keeper that did not obey, because it is stopped or stuck; the rest is swept."""
        if not self._gone.is_set():
            self._keeper.kill()

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
            out_of_memory = is_foreign_kill and self.memory.has_increased()
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
        # A keeper that had to kill everything, or was killed itself, did not report an exit.
        self._end(-signal.SIGKILL if returncode == 0 else returncode)
        if self._is_clean:
            self._finish()
        else:
            # Its child became ours, and so did what that one left.
            sweep = Sweep(self.mark.__eq__, heir_of=self.pid)
            self._sweep(sweep, self._loop.time() + _SWEEP_WITHIN)

    def _sweep(self, sweep: Sweep, end: float) -> None:
        if (sweep.kill_round() or sweep.has_more_to_reap) and self._loop.time() < end:
            self._loop.call_later(_SWEEP_INTERVAL, self._sweep, sweep, end)
        else:
            self._finish()

    def _finish(self) -> None:
        self._start.set()
        self._gone.set()


def _abandon(channel: socket.socket, keeper: subprocess.Popen[bytes], mark: str) -> None:
    """Let go of a process that was not shut down, and wait for its keeper to end."""
    channel.close()
    try:
        keeper.wait(_ABANDON_WITHIN)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()
        _sweep_all(Sweep(mark.__eq__), _ABANDON_WITHIN)


# --- Marks ---------------------------------------------------------------------------------------
#
# Every kept process has a mark in its environment, which its descendants inherit. A mark names its
# owner: PID namespace, process id and the time that process began, so that a mark whose owner is
# gone differs from one whose owner lives, also after the id was used again. Processes without
# a mark are never touched. One that gave itself a new environment has none.


def make_mark() -> str:
    """Make the mark of one more kept process of ours."""
    me = os.getpid()
    return f"{_namespace()}-{me}-{_start_time(me)}-{secrets.token_hex(8)}"


def is_stale(mark: str) -> bool:
    """Whether the owner of `mark` is surely gone.

    This does not judge a mark from another PID namespace: process ids mean other processes there.
    """
    try:
        namespace, pid, start, _ = mark.split("-")
        owner = int(pid)
    except ValueError:
        return False
    return namespace == _namespace() != "0" and str(_start_time(owner)) != start


def is_running(mark: str) -> bool:
    """Whether the owner of `mark` surely runs; a mark from another PID namespace tells nothing."""
    try:
        namespace, pid, start, _ = mark.split("-")
        return namespace == _namespace() and "0" != start == str(_start_time(int(pid)))
    except ValueError:
        return False


def find_marked_processes() -> dict[int, str]:
    """Find every living process of this user that carries a mark."""
    found: dict[int, str] = {}
    for pid in _list_processes():
        mark = _read_mark(pid)
        if mark is not None:
            found[pid] = mark
    return found


class Sweep:
    """Kills all processes whose mark is wanted, in rounds, since a process may fork meanwhile."""

    def __init__(self, is_wanted: Callable[[str], bool], *, heir_of: int | None = None) -> None:
        self._is_wanted = is_wanted
        self._heir_of = heir_of
        self._killed: set[int] = set()
        self._unreaped = set() if heir_of is None else {heir_of}

    def kill_round(self) -> int:
        """Kill what is there now; 0 once nothing is."""
        targets = [pid for pid, mark in find_marked_processes().items() if self._is_wanted(mark)]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in targets:
                # Process ids are used again: look once more, right before the signal.
                mark = _read_mark(pid)
                if mark is not None and self._is_wanted(mark):
                    _kill(pid, number)
        self._killed.update(targets)
        self._unreaped.update(targets)
        self._reap()
        return len(targets)

    @property
    def kill_count(self) -> int:
        """How many processes were killed."""
        return len(self._killed)

    @property
    def has_more_to_reap(self) -> bool:
        """Whether a child of ours was killed and has not ended yet."""
        return bool(self._unreaped)

    def _reap(self) -> None:
        if self._heir_of is not None:  # it led a session
            self._unreaped.update(_find_dead_children(self._heir_of))
        for pid in list(self._unreaped):
            try:
                is_over = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                is_over = True  # never our child, or collected already
            if is_over:
                self._unreaped.discard(pid)


def sweep_stale() -> int:
    """Kill what kept processes of dead owners have left behind; returns how many processes.

    An owner calls this when it starts: the one before may have died together with its keepers.
    """
    sweep = Sweep(is_stale)
    _sweep_all(sweep, _SWEEP_WITHIN)
    return sweep.kill_count


def _sweep_all(sweep: Sweep, within: float) -> None:
    import time

    end = time.monotonic() + within
    while (sweep.kill_round() or sweep.has_more_to_reap) and time.monotonic() < end:
        time.sleep(0.005)


def adopt_orphans() -> None:
    """Become a child subreaper: what a killed keeper leaves becomes a child of this process."""
    global _adopts_orphans  # noqa: PLW0603 - an attribute of the process, set once
    if _adopts_orphans or not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _adopts_orphans = True


def _list_processes() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:  # no /proc on this system
        return []


def measure_usage(pid: int) -> dict[str, float] | None:
    """Return what a process and its living descendants have used; None where that is not known.

    `cpu_seconds` counts descendants that ended, too. `peak_bytes` is the sum of what each of them
    had at its own peak.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for each in _list_processes():
        try:
            words = Path(f"/proc/{each}/stat").read_text("utf-8", "replace").rpartition(")")[2]
        except OSError:
            continue
        fields = words.split()
        parents[each] = int(fields[1])
        ticks[each] = sum(map(int, fields[11:15]))
    if pid not in ticks:
        return None
    family = [pid]
    for member in family:
        family += [each for each, parent in parents.items() if parent == member]
    peak = sum(map(_read_peak, family))
    used = sum(ticks[each] for each in family) / os.sysconf("SC_CLK_TCK")
    return {"cpu_seconds": round(used, 2), "peak_bytes": peak}


def _read_peak(pid: int) -> int:
    """The most memory that a process had at once, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _find_dead_children(session: int) -> list[int]:
    """Children of ours that ended in this session and were not collected."""
    found = []
    me = os.getpid()
    for pid in _list_processes():
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] == b"Z" and int(fields[1]) == me and int(fields[3]) == session:
                found.append(pid)
        except (OSError, ValueError, IndexError):
            continue
    return found


def _read_mark(pid: int) -> str | None:
    place = f"/proc/{pid}"
    try:
        if Path(place).stat().st_uid != os.geteuid():
            return None
        environment = Path(f"{place}/environ").read_bytes()
    except OSError:  # gone, or not readable for us
        return None
    for entry in environment.split(b"\0"):
        if entry.startswith(_MARK_PREFIX):
            return entry[len(_MARK_PREFIX) :].decode("ascii", "replace")
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


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal: it obeys nothing but a kill."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


# --- Out of memory -------------------------------------------------------------------------------


class MemoryKills:
    """Notices whether the system killed a process for memory since the last `note`.

    This reads the counter of our control group, or the whole machine's where there is none.
    """

    def __init__(self) -> None:
        self._files = _find_counters()
        self._before = self._count()

    def note(self) -> None:
        """Count from here on."""
        self._before = self._count()

    def has_increased(self) -> bool:
        """Whether there was such a kill since."""
        return self._count() > self._before

    def _count(self) -> int:
        return sum(_read_count(file) for file in self._files)


def _find_counters() -> list[Path]:
    found = [file for file in _find_group_counters() if file.exists()]
    return found or [Path("/proc/vmstat")]


def _find_group_counters() -> list[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        inner = path.lstrip("/")
        if not controllers:
            files.append(Path("/sys/fs/cgroup", inner, "memory.events"))
        elif "memory" in controllers.split(","):
            files.append(Path("/sys/fs/cgroup/memory", inner, "memory.oom_control"))
            # Inside a container the path may be the host's, and the mount our own group.
            files.append(Path("/sys/fs/cgroup/memory/memory.oom_control"))
    return files


def _read_count(file: Path) -> int:
    """Read a counter; without `pathlib`, because this happens before every execution."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(opened, _LONGEST_COUNTER)
        finally:
            os.close(opened)
        for line in text.splitlines():
            if line.startswith(b"oom_kill "):
                return int(line[9:])
    except (OSError, ValueError):
        pass
    return 0
