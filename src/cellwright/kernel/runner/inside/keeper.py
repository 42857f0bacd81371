"""Keep one process: everything it starts dies with it, and all of it dies with its owner.

A Jupyter kernel is kept by a process that runs this file:

    python -I -S keeper.py FD OWNER [NAME=VALUE…] -- COMMAND…

A runner is kept by the process that it was forked from: one interpreter boots and forks, so that
being kept costs a fork and not a second start of Python (`fork_below`).

FD is one end of a socket pair whose other end only the owner holds, and OWNER is the owner's
process id. The variables are set for the command, and are not in the keeper's own environment.

From the owner, each byte is the number of a signal for the process group of the kept process; a
zero means to kill everything now. To the owner, lines:

    pid N       the kept process runs
    failed N    it could not be started, for the reason errno N
    exit N      it ended with wait status N; the processes it left behind are being killed
    clean 0     nothing is left below the keeper, which ends now

- The owner ends, even by SIGKILL: everything below is killed.
- The kept process ends: its descendants are killed, and the keeper ends in the same way.
- The keeper is killed: the kept process dies with it; the owner sweeps the rest.

As a child subreaper the keeper inherits every orphan below it, so that "no child is left" proves
that no descendant is. Elsewhere than on Linux only the process group is killed, and a runner
watches its parent itself.
"""

# Why not: see the package's docstring.
# ruff: noqa: FBT003, S606

from __future__ import annotations

# `signal` itself needs `enum`, which takes as long to load as all of this.
import _signal as signal  # type: ignore[import-not-found]
import os
import select
import sys
from time import sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LONGEST_PAUSE = 0.1


def main() -> NoReturn:
    """Start the command, and keep it."""
    split = sys.argv.index("--")
    channel, owner = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(channel, False)
    assignments, command = sys.argv[3:split], sys.argv[split + 1 :]
    set_process_attribute(PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    trouble, troubled = os.pipe()
    kept = os.fork()
    if kept == 0:
        _become(command, assignments, troubled, keeper)
    _ignore_keyboard_signals()
    os.close(troubled)
    failure = os.read(trouble, 16)  # empty, once the command has replaced the child
    os.close(trouble)
    if failure:
        os.write(channel, b"failed %b\n" % failure)
        os._exit(127)
    Keeper(channel, owner, kept).keep()


def fork_below(channel: int, owner: int, prepare: Callable[[], Callable[[], None]]) -> bool:
    """Fork; the parent stays behind as the keeper, and the child returns from here.

    `prepare` is called in the keeper; what it returns is called when the child has ended. Returns
    whether the system makes sure that the child does not outlive the keeper.
    """
    set_process_attribute(PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    child = os.fork()
    if child:
        os.sched_yield()  # the caller waits for the child
        _ignore_keyboard_signals()
        Keeper(channel, owner, child, prepare()).keep()
    is_kept = set_process_attribute(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setsid()  # a signal to its own process group must not hit the keeper
    return is_kept


def set_process_attribute(option: int, value: int) -> bool:
    """Call `prctl`, and return whether that worked; without `ctypes`, which is slow to load."""
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


def _ignore_keyboard_signals() -> None:
    """Ignore what is meant for the child; not before the fork, or the child would ignore it too."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def _become(command: list[str], assignments: list[str], trouble: int, keeper: int) -> NoReturn:
    """Turn into the command, or write down why not."""
    try:
        set_process_attribute(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:  # it ended before it could take us along
            os._exit(1)
        os.setsid()  # a signal to its own process group must not hit the keeper
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for assignment in assignments:
            name, _, value = assignment.partition("=")
            os.environ[name] = value
        # ipykernel watches its parent, too, and prints less when it knows it.
        os.environ["JPY_PARENT_PID"] = str(keeper)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(trouble, b"%d" % (error.errno or 0))
    finally:
        os._exit(127)


class Keeper:
    """Watches over one child until it or its owner ends; `on_exit` is called when it has ended."""

    def __init__(
        self, channel: int, owner: int, kept: int, on_exit: Callable[[], None] | None = None
    ) -> None:
        self._channel = channel
        self._owner = owner
        self._kept = kept
        self._on_exit = on_exit
        self._status: int | None = None
        self._has_to_leave = False

    def keep(self) -> NoReturn:
        """Wait until the child or the owner has ended, then leave nothing behind."""
        try:
            self._report(f"pid {self._kept}")
            self._watch()
            if self._status is not None:
                if self._on_exit is not None:
                    self._on_exit()
                self._report(f"exit {self._status}")
            self._kill_everything()
            self._report("clean 0")
        finally:
            self._end_alike()

    def _report(self, line: str) -> None:
        try:
            os.write(self._channel, line.encode() + b"\n")
        except OSError:  # the owner is gone
            pass

    def _watch(self) -> None:
        """Pass signals on until the child has ended or has to."""
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._leave_soon)
        signal.signal(signal.SIGCHLD, _ignore_signal)
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(woken, select.POLLIN)
        process = _open_process(self._owner)
        if process is not None:
            poll.register(process, select.POLLIN)
        if os.getppid() != self._owner:  # it ended before it was watched; its id may be reused
            return
        # Children first: one may have ended before its signal had a handler.
        while self._reap() and self._status is None and not self._has_to_leave:
            for number, _ in poll.poll():
                if number == woken:
                    os.read(woken, 4096)
                elif number == process or not self._obey():
                    return

    def _leave_soon(self, _number: int, _frame: object) -> None:
        self._has_to_leave = True

    def _obey(self) -> bool:
        """Send the signals that the owner wants; false when everything has to be killed."""
        try:
            numbers = os.read(self._channel, 4096)
        except OSError:
            return False
        for number in numbers:
            if number == 0:
                return False
            try:
                os.killpg(self._kept, number)
            except OSError:  # not yet a group, or gone already
                pass
        return bool(numbers)

    def _reap(self) -> bool:
        """Collect the children that ended, adopted orphans too; false when no child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._kept:
                    self._status = status
                if not pid:
                    return True
        except ChildProcessError:
            return False

    def _kill_everything(self) -> None:
        """Stop, then kill, until no child is left; a fork in between is caught in the next round."""
        pause = 0.001
        while self._reap():
            below = _find_descendants()
            refused = 0
            for number in (signal.SIGSTOP, signal.SIGKILL):
                refused = sum(not _kill(pid, number) for pid in below)
            if below and refused == len(below):
                return  # the rest became another user's, and we may not kill it
            if not below:
                _kill(-self._kept, signal.SIGKILL)
            sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _end_alike(self) -> NoReturn:
        """End as the child did: with its exit code, or by its signal."""
        status = self._status
        if status is None:
            os._exit(0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            try:
                import resource  # one core file, the child's, is enough

                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                signal.signal(number, signal.SIG_DFL)
            except (ImportError, OSError, ValueError):
                pass
            os.kill(os.getpid(), number)
            sleep(1)
        os._exit(os.WEXITSTATUS(status))


def _ignore_signal(_number: int, _frame: object) -> None:
    """Do nothing: the signal has woken the poll, which is enough."""


def _open_process(owner: int) -> int | None:
    """Watch the owner itself: a process that it forked may hold the channel open after it."""
    try:
        return os.pidfd_open(owner)
    except (AttributeError, OSError):
        return None


def _kill(pid: int, number: int) -> bool:
    """Send a signal; false if that is not allowed."""
    try:
        os.kill(pid, number)
    except PermissionError:
        return False
    except OSError:
        pass
    return True


def _find_descendants() -> list[int]:
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


if __name__ == "__main__":
    main()
