"""Keep one process: all that it starts dies with it, and all of it dies with its owner.

    python -I -S keeper.py FD OWNER [NAME=VALUE…] -- COMMAND…

FD is one end of a socket pair whose other end only the owner holds, and OWNER is the owner's
process id: the parent, and when it is not, the owner is gone already. The variables are set for
the command, and are not in the keeper's own environment.

From the owner, each byte is the number of a signal for the command's process group; a zero
means to kill everything now. To the owner, lines:

    pid N       the command runs
    failed N    it could not be started, for the reason errno N
    exit N      it ended with wait status N; what it left behind is being killed
    clean 0     nothing is left below the keeper, which ends now

- The owner goes, even by kill -9: everything below is killed.
- The command ends: its descendants are killed, and the keeper ends in the same way.
- The keeper is killed: the command dies with it; the rest is the owner's to sweep.

As a child subreaper the keeper inherits every orphan below it, so that "no child is left" proves
that no descendant is. Elsewhere than on Linux only the command's process group is killed.
"""

# The standard library of Python 3.9 and nothing else: it runs before, and without, our package.
# ruff: noqa: FBT003, PTH123, PTH208, S606, SIM105, UP037

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IS_LINUX = sys.platform.startswith("linux")
LONGEST_PAUSE = 0.1


def main() -> None:
    """Start the command, wait for whatever comes first, and leave nothing behind."""
    split = sys.argv.index("--")
    channel, owner = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(channel, False)
    assignments, command = sys.argv[3:split], sys.argv[split + 1 :]
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    me = os.getpid()
    trouble, troubled = os.pipe()
    kept = os.fork()
    if kept == 0:
        become(command, assignments, troubled, me)
    os.close(troubled)
    # For the command, not for us; and only now, because ignored signals stay ignored in a child.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    failure = os.read(trouble, 16)  # nothing, once the command has taken the child's place
    os.close(trouble)
    if failure:
        say(channel, f"failed {int(failure)}")
        os._exit(127)
    say(channel, f"pid {kept}")
    status = watch(channel, owner, kept)
    if status is not None:
        say(channel, f"exit {status}")
    status = kill_everything(kept, status)
    say(channel, "clean 0")
    end_like(status)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where there are such attributes."""
    if IS_LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def say(channel: int, line: str) -> None:
    """Tell the owner, who may be gone."""
    try:
        os.write(channel, line.encode() + b"\n")
    except OSError:
        pass


def become(command: "list[str]", assignments: "list[str]", trouble: int, keeper: int) -> None:
    """Turn into the command, or write down why not; never returns."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:  # it went before it could take us along
            os._exit(1)
        # A session of its own: what the command sends to its process group must not hit us.
        os.setsid()
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for assignment in assignments:
            name, _, value = assignment.partition("=")
            os.environ[name] = value
        # ipykernel looks after its parent, too, and prints less when it knows it.
        os.environ["JPY_PARENT_PID"] = str(keeper)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(trouble, b"%d" % (error.errno or 0))
    finally:
        os._exit(127)


def watch(channel: int, owner: int, kept: int) -> "int | None":
    """Pass signals on until the command ends (its wait status) or has to (None)."""
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    asked_to_leave = []
    signal.signal(signal.SIGTERM, lambda *_: asked_to_leave.append(True))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    for descriptor in (channel, wake):
        poll.register(descriptor, select.POLLIN)
    process = open_process(owner)
    if process is not None:
        poll.register(process, select.POLLIN)
    if os.getppid() != owner:  # it went before it was watched, or somebody else now has its id
        return None
    while not asked_to_leave:
        # Children first: one may have ended before its signal had a handler.
        _, statuses = reap()
        if kept in statuses:
            return statuses[kept]
        ready = [descriptor for descriptor, _ in poll.poll()]
        if process in ready:
            return None
        if wake in ready:
            drain(wake)
        if channel in ready and not obey(channel, kept):
            return None
    return None


def open_process(owner: int) -> "int | None":
    """Watch the owner itself: a process that it forked may hold the channel open after it."""
    try:
        return os.pidfd_open(owner)
    except (AttributeError, OSError):
        return None


def drain(descriptor: int) -> None:
    """Forget what a non-blocking pipe holds."""
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def obey(channel: int, kept: int) -> bool:
    """Do what the owner says; false when everything has to go."""
    try:
        numbers = os.read(channel, 4096)
    except OSError:
        return False
    for number in numbers:
        if number == 0:
            return False
        try:
            os.killpg(kept, number)
        except OSError:  # not yet a group, or gone already
            pass
    return bool(numbers)


def reap() -> "tuple[bool, dict[int, int]]":
    """Collect the children that ended; also tell whether any is left."""
    statuses: "dict[int, int]" = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, statuses
        if pid == 0:
            return True, statuses
        statuses[pid] = status


def descendants() -> "list[int]":
    """Every process below this one, from one pass over /proc."""
    children: "dict[int, list[int]]" = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def kill_everything(kept: int, status: "int | None") -> "int | None":
    """Stop, then kill, until no child is left; a fork in between is caught by the next round."""
    pause = 0.001
    while True:
        is_any_left, statuses = reap()
        status = statuses.get(kept, status)
        if not is_any_left:
            return status
        targets = descendants() if IS_LINUX else []
        for number in (signal.SIGSTOP, signal.SIGKILL):
            refusals = [pid for pid in targets if not kill(pid, number)]
        try:
            os.killpg(kept, signal.SIGKILL)
        except OSError:
            pass
        if targets and len(refusals) == len(targets):
            return status  # all that is left became another user, and is not ours to kill
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def kill(pid: int, number: int) -> bool:
    """Send a signal; false if that is not allowed."""
    try:
        os.kill(pid, number)
    except PermissionError:
        return False
    except OSError:
        pass
    return True


def end_like(status: "int | None") -> None:
    """End as the command did: with its exit code, or by its signal."""
    if status is None:
        os._exit(0)
    if os.WIFSIGNALED(status):
        import resource

        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(1)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
