"""Kill or fail a save at each of its system calls, and look at what is left.

One clean run under strace lists the system calls of an edit. Then, for every one of them, the
same edit runs again in a fresh folder and is killed there, or that call is made to fail. After
each run:

- the file holds exactly the old bytes or exactly the new ones, with its mode, owner and
  attributes;
- who was told `ok` has the new bytes, and the log shows that they were made durable: fsync of the
  temp file, rename, fsync of the folder;
- who was told of an error has the old bytes, unless it is `DURABILITY_UNCONFIRMED`; then the new
  ones. The error has a code and names its cause;
- the next ordinary edit works, and leaves no temp file behind.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cellwright
from cellwright.config.directories import runtime_directory
from tests.faults import worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STALE = ".cellwright-00000000deadbeef.tmp"  # left by a writer that died earlier
NAME = "notebook.ipynb"
MODE = 0o640
NOBODY = 65534
ATTRIBUTE = ("user.cellwright.test", b"kept")

# Memory and threads are no files; how often they are asked for differs from run to run.
IGNORED = {
    *("brk", "madvise", "mmap", "mprotect", "mremap", "munmap"),
    *("futex", "gettid", "prctl", "rseq", "rt_sigprocmask", "sched_yield", "set_robust_list"),
}
_WRITES = ("ENOSPC", "EIO", "EDQUOT", "EINTR")
ERRORS = {
    "access": ("EACCES", "EROFS"),
    "clone": ("EAGAIN",),
    "clone3": ("EAGAIN",),
    "close": ("EIO", "EDQUOT", "EINTR"),
    "faccessat": ("EACCES", "EROFS"),
    "faccessat2": ("EACCES", "EROFS"),
    "fchmod": ("EIO", "EROFS"),
    "fchown": ("EIO", "EDQUOT"),
    "fdatasync": _WRITES,
    "flock": ("EINTR", "ENOLCK", "EIO"),
    "fsetxattr": ("ENOSPC", "EDQUOT", "EIO"),
    "fstat": ("EIO",),
    "fsync": _WRITES,
    "getdents64": ("EIO",),
    "getxattr": ("EIO",),
    "listxattr": ("EIO",),
    "lseek": ("EIO",),
    "lstat": ("EIO",),
    "mkdir": ("ENOSPC", "EDQUOT", "EIO"),
    "newfstatat": ("EIO",),
    "openat": (*_WRITES, "EMFILE"),
    "pread64": ("EIO", "EINTR"),
    "pwrite64": _WRITES,
    "read": ("EIO", "EINTR"),
    "readlink": ("EIO",),
    "readv": ("EIO", "EINTR"),
    "rename": _WRITES,
    "renameat": _WRITES,
    "renameat2": _WRITES,
    "stat": ("EIO",),
    "statx": ("EIO",),
    "unlink": ("EIO", "EROFS"),
    "unlinkat": ("EIO", "EROFS"),
    "write": _WRITES,
    "writev": _WRITES,
}
# What does not go away by itself: the same error from that call on.
LASTING = {
    "ENOSPC": ("openat", "write", "writev", "pwrite64", "fsync"),
    "EIO": ("openat", "read", "readv", "write", "writev", "fsync", "close", "unlink"),
    "EMFILE": ("openat",),
}
SMALLEST = next(iter(worker.SIZES))
ONLY_SMALLEST = ("close", "fstat", "lseek", "lstat", "newfstatat", "stat", "statx")
# After one of these calls failed, the save cleans up; that may fail too, or be the last it does.
_SAVING = ("writev", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2")
_SYNCED = ("fsync", "fdatasync", "rename", "renameat", "renameat2")
_CALL = re.compile(r"^(\d+) +([a-z_0-9]+)\(")


@dataclass(frozen=True)
class Fault:
    """What shall happen at the `number`-th call of `call` since the process started."""

    call: str
    number: int
    action: str  # in strace's words: `signal=KILL` or `error=EIO`
    lasting: bool = False
    then: Fault | None = None

    @property
    def kills(self) -> bool:
        """Whether the process shall not live to tell."""
        return self.action == "signal=KILL" or (self.then is not None and self.then.kills)

    @property
    def calls(self) -> set[str]:
        """The calls concerned."""
        return {self.call} | (self.then.calls if self.then else set())

    @property
    def options(self) -> list[str]:
        """What to tell strace."""
        when = f"{self.number}+" if self.lasting else str(self.number)
        first = ["-e", f"inject={self.call}:{self.action}:when={when}"]
        return first + (self.then.options if self.then else [])

    def __str__(self) -> str:
        lasting = " and ever after" if self.lasting else ""
        then = f", then {self.then}" if self.then else ""
        return f"{self.call} #{self.number} {self.action}{lasting}{then}"


class Problem(NamedTuple):
    """Something that must not be; `kind` is one of `KINDS`."""

    kind: str
    text: str


TORN, FALSE_SUCCESS, UNTRUE, NO_RECOVERY, STRAY, LOST = KINDS = (
    "torn",  # neither the old bytes nor the new ones
    "false success",  # said ok, but was not written or not made durable
    "untrue",  # the error does not say what is, or has no name
    "no recovery",  # the next edit fails
    "stray",  # a temp file is left after the next edit
    "lost",  # mode, owner, attribute or link
)


@dataclass
class Outcome:
    """What one run with a fault left behind."""

    fault: Fault
    hit: bool  # the fault came during the edit, and not before or after
    said: str
    holds: str
    problems: list[Problem]

    @property
    def code(self) -> str:
        """`ok`, `killed` or the code of the error."""
        return self.said.partition(" ")[0]


@dataclass(frozen=True)
class Scenario:
    """An operation on a notebook of some size."""

    operation: str
    size: str

    def __str__(self) -> str:
        return f"{self.operation}, {self.size}"

    @property
    def creates(self) -> bool:
        return self.operation == "create"

    @cached_property
    def old(self) -> bytes | None:
        """What the file holds before; None if there is none."""
        return None if self.creates else make_notebook(worker.SIZES[self.size])

    @cached_property
    def new(self) -> bytes:
        """What the file holds after."""
        notebook = cellwright.Notebook() if self.old is None else cellwright.Notebook(self.old)
        notebook.apply([worker.edit_of(self.operation, worker.SIZES[self.size])])
        return notebook.to_bytes()

    # -- running ----------------------------------------------------------------------------

    def trace(self) -> list[tuple[str, int, str]]:
        """The calls of a clean run, in order: name, number since the start, line of the log."""
        _warm_up()
        runtime_directory()
        with _folder() as folder:
            path = self._prepare(folder)
            said, lines = self._run(folder, path, [])
            if said != "ok":
                raise RuntimeError(f"{self} fails without any fault: {said}")
            if self._holds(folder) != "new":
                raise RuntimeError(f"{self} does not give the bytes that it should")
        counts: Counter[tuple[str, str]] = Counter()  # by thread and name
        calls = []
        inside = False
        for line in lines:
            found = _CALL.match(line)
            if not found:
                continue
            thread, name = found.groups()
            counts[thread, name] += 1
            inside = (inside or worker.START in line) and worker.END not in line
            if inside and worker.START not in line and name not in IGNORED:
                calls.append((thread, name, counts[thread, name], line))

        def is_the_only_one(thread: str, name: str, number: int) -> bool:
            """Whether no other thread comes that far, so that strace can tell which is meant."""
            return not any(
                count >= number and other == name and owner != thread
                for (owner, other), count in counts.items()
            )

        return [
            (name, number, line)
            for thread, name, number, line in calls
            if is_the_only_one(thread, name, number)
        ]

    def faults(self) -> tuple[list[Fault], list[Fault]]:
        """Every place to kill at, and every error to inject."""
        calls = self.trace()
        kills = [Fault(name, number, "signal=KILL") for name, number, _ in calls]
        errors = []
        removed = Counter(name for name, _, _ in calls if name.startswith("unlink"))
        cleaning = [Fault(name, count + 1, "signal=KILL") for name, count in removed.items()]
        if self.operation == "in a thread":
            cleaning = []  # which counts its calls from 1
        renamed = False
        for name, number, _ in calls:
            for error in self._errors(name):
                errors.append(Fault(name, number, f"error={error}"))
                if name in LASTING.get(error, ()) and self.size == SMALLEST:
                    errors.append(Fault(name, number, f"error={error}", lasting=True))
            if name in _SAVING and not renamed:
                for last in cleaning:
                    kills.append(Fault(name, number, "error=EIO", then=last))
                    fails = replace(last, action="error=EIO", lasting=True)
                    errors.append(Fault(name, number, "error=EIO", then=fails))
            renamed = renamed or name.startswith("rename")
        return kills, errors

    def _errors(self, name: str) -> tuple[str, ...]:
        errors = ERRORS.get(name, ())
        # How large the file is makes no difference for a look at it or for the end of it.
        return errors if self.size == SMALLEST or name not in ONLY_SMALLEST else ()

    def run(self, fault: Fault) -> Outcome:
        """Run with a fault and look at what it left; again if the fault came too early or late."""
        for _ in range(3):
            outcome = self._run_once(fault)
            if outcome.hit or outcome.problems:
                break
        return outcome

    def _run_once(self, fault: Fault) -> Outcome:
        with _folder() as folder:
            path = self._prepare(folder)
            said, lines = self._run(folder, path, fault.options, {*fault.calls, *_SYNCED})
            outcome = Outcome(fault, _was_hit(fault, lines), said, self._holds(folder), [])
            outcome.problems += self._judge(outcome, folder, lines)
            outcome.problems += self._recover(folder, path)
            return outcome

    def _prepare(self, folder: Path) -> Path:
        """Put the notebook in place, with attributes to keep and an old temp file to remove."""
        path = folder / "here" / NAME
        path.parent.mkdir()
        (path.parent / STALE).write_bytes(b"torn")
        if self.old is not None:
            path.write_bytes(self.old)
            if os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
            path.chmod(MODE)
            if _keeps_attributes(folder):
                os.setxattr(path, *ATTRIBUTE)
        if self.operation == "through a link":
            link = folder / "link.ipynb"
            link.symlink_to(path)
            return link
        return path

    def _run(
        self, folder: Path, path: Path, inject: Iterable[str], only: Iterable[str] = ()
    ) -> tuple[str, list[str]]:
        log = folder / "log"
        strace = ["strace", "-f", "-y", "-o", str(log), *inject]
        if only:
            # With the question mark, a call that this machine does not have is no error.
            names = ",".join(f"?{name}" for name in sorted({*only, worker.MARKER}))
            strace += ["-e", f"trace={names}"]
            if not any("signal=" in word for word in strace):
                strace.append("--seccomp-bpf")  # three times as fast, but loses the signals
        ran = subprocess.run(
            [*strace, *self._command(path)],
            env=_environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
        said = ran.stdout.splitlines()[-1] if ran.stdout else "killed"
        if said == "killed" and ran.returncode != -signal.SIGKILL:
            said = f"UNNAMED exit {ran.returncode}: {ran.stderr.strip()[-300:]}"
        return said, _whole_lines(log.read_text("utf-8", "replace"))

    def _command(self, path: Path) -> list[str]:
        # At the end of the search path, so that finding the standard library takes few calls.
        program = (
            f"import sys; sys.path += {_search_path()!r}; import {worker.__name__} as w; w.main()"
        )
        python = [sys.executable, "-B", "-P", "-S", "-c", program]
        return [*python, self.operation, str(worker.SIZES[self.size]), str(path)]

    def warm_up(self) -> None:
        """Run once without strace, to leave the bytecode that all other runs use."""
        with _folder() as folder:
            command = [word for word in self._command(self._prepare(folder)) if word != "-B"]
            subprocess.run(command, env=_environment(), stdout=subprocess.DEVNULL, check=True)

    # -- judging ----------------------------------------------------------------------------

    def _holds(self, folder: Path) -> str:
        path = folder / "here" / NAME
        if path.is_symlink() or not path.is_file():
            return "old" if self.old is None else "missing"
        data = path.read_bytes()
        if data == self.old:
            return "old"
        return "new" if data == self.new else "torn" if data else "empty"

    def _judge(self, outcome: Outcome, folder: Path, lines: list[str]) -> Iterator[Problem]:
        code, holds = outcome.code, outcome.holds
        if holds not in ("old", "new"):
            yield Problem(TORN, f"the file is {holds}")
        elif self.old is not None:
            yield from _lost_attributes(folder / "here" / NAME, folder)
        if self.operation == "through a link" and not (folder / "link.ipynb").is_symlink():
            yield Problem(LOST, "the link is a link no more")
        if code == "killed":
            if not outcome.fault.kills:
                yield Problem(UNTRUE, "the process died")
        elif code == "ok":
            if holds != "new":
                yield Problem(FALSE_SUCCESS, f"said ok, but the file holds the {holds} bytes")
            if not is_durable(lines):
                yield Problem(FALSE_SUCCESS, "said ok without fsync, rename, fsync of the folder")
        else:
            if holds != ("new" if code == "DURABILITY_UNCONFIRMED" else "old"):
                yield Problem(UNTRUE, f"said {code}, but the file holds the {holds} bytes")
            if code == "UNNAMED":
                yield Problem(UNTRUE, f"an error without a code: {outcome.said}")
            elif not _names_cause(outcome):
                yield Problem(UNTRUE, f"the error does not name its cause: {outcome.said}")

    def _recover(self, folder: Path, path: Path) -> Iterator[Problem]:
        """The next edit of anybody works and cleans up."""
        edit = {"op": "insert", "source": "recovered = True", "at": 0}
        try:
            cellwright.edit(path, edit, create=self.creates, lock_timeout=5)
        except cellwright.CellwrightError as error:
            yield Problem(NO_RECOVERY, f"the next edit fails: {error.code} {error}")
            return
        here = folder / "here"
        if b"recovered = True" not in (here / NAME).read_bytes():
            yield Problem(NO_RECOVERY, "the next edit is not in the file")
        strays = sorted(other.name for other in here.iterdir() if other.name != NAME)
        if strays:
            yield Problem(STRAY, f"{', '.join(strays)} after the next edit")


def make_notebook(size: int) -> bytes:
    """Three cells, the first with as much output as it takes."""
    line = "0123456789" * 8 + "\n"
    stream = {"name": "stdout", "output_type": "stream", "text": [line] * (size // 85)}
    cells = [
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": f"cell{i}",
            "metadata": {},
            "outputs": [stream] if size and i == 0 else [],
            "source": [f"a = {i}\n", "print(a)"],
        }
        for i in range(3)
    ]
    notebook: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(notebook, indent=1) + "\n").encode()


def is_durable(lines: list[str]) -> bool:
    """Whether the log of a save shows fsync of the temp file, rename, fsync of its folder."""
    wanted = [
        re.compile(r"f(?:data)?sync\(\d+<(?P<folder>.*)/\.cellwright-\w+\.tmp>\) += 0"),
        re.compile(r"rename(?:at2?)?\(.*\.cellwright-\w+\.tmp.*\) += 0"),
        re.compile(r"fsync\(\d+<(?P<folder>.*)>\) += 0"),
    ]
    folder = None
    for line in lines:
        found = wanted[0].search(line)
        if not found:
            continue
        if "folder" in found.groupdict():
            if folder not in (None, found["folder"]):
                continue
            folder = found["folder"]
        del wanted[0]
        if not wanted:
            return True
    return False


def _whole_lines(log: str) -> list[str]:
    """The lines of a log, each call in one piece, where it ended if another thread came between."""
    begun: dict[str, str] = {}
    lines = []
    for line in log.splitlines():
        thread = line.partition(" ")[0]
        if line.endswith("<unfinished ...>"):
            begun[thread] = line.removesuffix("<unfinished ...>").rstrip()
        elif " resumed>" in line:
            lines.append(begun.pop(thread, "") + line.partition(" resumed>")[2])
        else:
            lines.append(line)
    return lines + list(begun.values())


def _was_hit(fault: Fault, lines: list[str]) -> bool:
    """Whether the fault came between the markers, and not before or after."""
    start = next((i for i, line in enumerate(lines) if worker.START in line), len(lines))
    end = next((i for i, line in enumerate(lines) if worker.END in line), len(lines))
    if fault.kills:
        return start < end == len(lines) and any("killed by SIGKILL" in line for line in lines)
    injected = [i for i, line in enumerate(lines) if "(INJECTED)" in line]
    return bool(injected) and start < injected[0] < end


def _names_cause(outcome: Outcome) -> bool:
    name = outcome.fault.action.removeprefix("error=")
    if outcome.code == "READ_ONLY":
        return name in ("EACCES", "EROFS")
    return outcome.fault.kills or os.strerror(getattr(errno, name)) in outcome.said


def _lost_attributes(path: Path, folder: Path) -> Iterator[Problem]:
    status = path.stat()
    if stat.S_IMODE(status.st_mode) != MODE:
        yield Problem(LOST, f"the mode is {stat.S_IMODE(status.st_mode):o}")
    if os.geteuid() == 0 and (status.st_uid, status.st_gid) != (NOBODY, NOBODY):
        yield Problem(LOST, f"the owner is {status.st_uid}:{status.st_gid}")
    if _keeps_attributes(folder) and ATTRIBUTE[0] not in os.listxattr(path):
        yield Problem(LOST, "the extended attribute is gone")


def _keeps_attributes(folder: Path) -> bool:
    try:
        os.setxattr(folder, *ATTRIBUTE)
    except OSError:
        return False  # tmpfs of an older kernel
    return True


def _environment() -> dict[str, str]:
    ours = ("CELLWRIGHT_RUNTIME_DIR", "HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR")
    kept = {name: os.environ[name] for name in ours if name in os.environ}
    return {**kept, "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": _bytecode().name}


@cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    """A folder for compiled modules, that all runs share and that is removed at the end."""
    return tempfile.TemporaryDirectory(prefix="cellwright-faults-")


@cache
def _warm_up() -> None:
    """Make what the first run would make, so that all runs make the same calls."""
    Scenario("replace", "3 MB").warm_up()


def _search_path() -> list[str]:
    own = sysconfig.get_path("stdlib")
    return [place for place in sys.path if place and place != own and "/lib-dynload" not in place]


class _folder(tempfile.TemporaryDirectory[str]):  # noqa: N801  # used as a function
    """A new folder for one run."""

    def __init__(self) -> None:
        super().__init__(prefix="cellwright-faults-", ignore_cleanup_errors=True)

    def __enter__(self) -> Path:  # type: ignore[override]
        return Path(super().__enter__()).resolve()
