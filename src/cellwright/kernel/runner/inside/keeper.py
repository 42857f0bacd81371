"""Keep the runner: what it starts dies with it, and all of it dies with the owner.

One interpreter boots and forks. The parent stays behind as the keeper, the child goes on as the
runner, so that being kept costs a fork and not a second start of Python.

The owner holds the other end of a socket pair. From it, each byte is the number of a signal for
the runner's process group; a zero means to kill everything now. To it, lines: `pid N`, the
runner; `exit N`, it ended with wait status N; `clean 0`, nothing is left below the keeper.

- The owner goes, even by SIGKILL: everything below is killed, the keeper leaves.
- The runner goes: what it left in its pipes is passed on, its descendants are killed, and the
  keeper ends as the runner did, by the same exit code or signal.
- The keeper is killed: the runner gets SIGKILL from the system.

A keeper is a child subreaper: it inherits every orphan below it, however it was detached, so
that "no child left" proves that nothing is left. Elsewhere than on Linux only the runner's
process group is killed, and the runner looks after its parent itself.
"""

# Why not: see the package's docstring.

from __future__ import annotations

# `signal` itself needs `enum`, which costs as much as all of this.
import _signal as signal  # type: ignore[import-not-found]
import os
import select
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LONGEST_PAUSE = 0.1
LEFTOVER_LIMIT = 2.0  # seconds to pass on what a dead runner has left
PIPE_BYTES = 1 << 20  # more than a pipe holds


def prctl(option: int, value: int) -> bool:
    """Set an attribute of this process, and say whether that worked.

    Without `ctypes`, which is dear, if possible.
    """
    try:
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        result = _ctypes.call_function(address, (option, value, 0, 0, 0))
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        try:
            import ctypes

            result = ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
        except (ImportError, AttributeError, OSError):
            return False
    return bool(result == 0)


def go_below(channel: int, owner: int, control: int, frames: int, pipes: Sequence[int]) -> bool:
    """Fork, leave the parent behind as the keeper and go on in the child.

    Returns whether the system sees to it that the child does not outlive the keeper.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    runner = os.fork()
    if runner:
        os.sched_yield()  # the runner is what somebody waits for
        os.close(control)
        Keeper(channel, owner, runner, frames, pipes).keep()
    is_kept = prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setsid()  # what a cell sends to its process group must not hit the keeper
    return is_kept


class Keeper:
    """The process that stays behind."""

    def __init__(
        self, channel: int, owner: int, runner: int, frames: int, pipes: Sequence[int]
    ) -> None:
        self._channel = channel
        self._owner = owner
        self._runner = runner
        self._frames = frames
        self._pipes = pipes
        self._status: int | None = None
        self._is_asked_to_leave = False

    def keep(self) -> NoReturn:
        """Wait until the runner or the owner is gone, then clear away and leave."""
        try:
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):  # the pipes are the runner's alone
                os.dup2(null, number)
            self._say(f"pid {self._runner}")
            self._watch()
            if self._status is not None:
                self._pass_leftovers_on()
                self._say(f"exit {self._status}")
            self._kill_everything()
            self._say("clean 0")
        finally:
            self._end_alike()

    def _say(self, line: str) -> None:
        try:
            os.write(self._channel, line.encode() + b"\n")
        except OSError:  # the owner is gone
            pass

    def _watch(self) -> None:
        """Pass signals on until the runner has ended or has to."""
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._leave_soon)
        signal.signal(signal.SIGCHLD, _wake_up)
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(woken, select.POLLIN)
        process = _open(self._owner)
        if process is not None:
            poll.register(process, select.POLLIN)
        if os.getppid() != self._owner:  # it went before it was watched; its id may be another's
            return
        # Children first: one may have ended before its signal had a handler.
        while self._reap() and self._status is None and not self._is_asked_to_leave:
            for number, _ in poll.poll():
                if number == woken:
                    os.read(woken, 4096)
                elif number == process or not self._obey():
                    return

    def _leave_soon(self, _number: int, _frame: object) -> None:
        self._is_asked_to_leave = True

    def _obey(self) -> bool:
        """Do what the owner says; False when everything has to go."""
        try:
            numbers = os.read(self._channel, 4096)
        except OSError:
            return False
        for number in numbers:
            if number == 0:
                return False
            try:
                os.killpg(self._runner, number)
            except OSError:  # not yet a group, or gone already
                pass
        return bool(numbers)

    def _reap(self) -> bool:
        """Collect whoever ended, adopted orphans too; False when no child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._runner:
                    self._status = status
                if not pid:
                    return True
        except ChildProcessError:
            return False

    def _pass_leftovers_on(self) -> None:
        """What was written before the runner died is still output, and nobody else has it."""
        from .wire import stream_frame

        os.set_blocking(self._frames, False)
        room = select.poll()
        room.register(self._frames, select.POLLOUT)
        end = monotonic() + LEFTOVER_LIMIT
        for name, pipe in (("stdout", self._pipes[0]), ("stderr", self._pipes[1])):
            try:
                text = os.read(pipe, PIPE_BYTES).decode("utf-8", "replace")
            except OSError:
                continue
            # The line break ends a frame that the runner could not finish.
            data = b"\n" + stream_frame(name, "", text) if text else b""
            while data and monotonic() < end:
                try:
                    if room.poll(100):
                        data = data[os.write(self._frames, data) :]
                except BlockingIOError:
                    continue
                except OSError:
                    return

    def _kill_everything(self) -> None:
        """Stop, then kill, until no child is left; what forks in between is met in the next round."""
        pause = 0.001
        while self._reap():
            below = descendants()
            refused = 0
            for number in (signal.SIGSTOP, signal.SIGKILL):
                refused = sum(not _kill(pid, number) for pid in below)
            if below and refused == len(below):
                return  # all that is left became another user, and is not ours to kill
            if not below:
                _kill(-self._runner, signal.SIGKILL)
            sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _end_alike(self) -> NoReturn:
        status = self._status
        if status is None:
            os._exit(0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            try:
                import resource  # one core file, the runner's, is enough

                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                signal.signal(number, signal.SIG_DFL)
            except (ImportError, OSError, ValueError):
                pass
            os.kill(os.getpid(), number)
            sleep(1)
        os._exit(os.WEXITSTATUS(status))


def _wake_up(_number: int, _frame: object) -> None:
    """Do nothing; that a signal came is what matters."""


def _open(owner: int) -> int | None:
    """Watch the owner itself: a process that it forked may hold the channel open after it."""
    try:
        return os.pidfd_open(owner)
    except (AttributeError, OSError):
        return None


def _kill(pid: int, number: int) -> bool:
    """Send a signal; False if that is not allowed."""
    try:
        os.kill(pid, number)
    except PermissionError:
        return False
    except OSError:
        pass
    return True


def descendants() -> list[int]:
    """Every process below this one, from one pass over /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:  # another system
        names = []
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found
