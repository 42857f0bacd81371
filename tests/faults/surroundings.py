"""Faults around a save: the journal cannot be read, the answer cannot be given, a disk is full.

Every command runs as a process, with one system call made to fail by strace, once for each time
that it is made. Counted are runs in which the history was put aside, in which the command said
anything else than what holds, or in which it did not answer in time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WITHIN = 30.0
_ERRORS = {
    "close": ("EIO",),
    "fdatasync": ("EIO", "ENOSPC"),
    "fsync": ("EIO",),
    "openat": ("EMFILE", "EIO"),
    "pread64": ("EIO", "ENOMEM"),
    "pwrite64": ("EIO", "ENOSPC"),
    "read": ("EIO",),
    "readv": ("EIO",),
    "write": ("ENOSPC", "EIO"),
}
_EDIT = ("edit", "nb.ipynb", "replace", "load", "changed = True", "--json")


class Surrounding(NamedTuple):
    """One kind of fault: how many points were tried, and what was found, by kind of problem."""

    name: str
    points: int
    problems: Counter[str]
    skipped: str = ""

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.name:44} skipped: {self.skipped}"
        found = ", ".join(f"{count} {kind}" for kind, count in self.problems.items())
        return f"{self.name:44} {self.points:5} points   {found or 'no problem'}"


class Place:
    """A folder with a notebook and a history, and commands that run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.notebook = folder / "nb.ipynb"
        self.notebook.write_bytes(samples.SALES)
        (folder / "run").mkdir(mode=0o700)
        assert self.run("edit", "nb.ipynb", "replace", "load", "x = 0").returncode == 0
        self._old = self.notebook.read_bytes()
        shutil.copytree(self.state, folder / "state.kept")

    def reset(self) -> None:
        """Make everything as it was."""
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(self.folder / "state.kept", self.state)
        self.notebook.write_bytes(self._old)

    @property
    def has_new_bytes(self) -> bool:
        return b"changed = True" in self.notebook.read_bytes()

    @property
    def lost_history(self) -> bool:
        return any(self.state.rglob("*.broken-*"))

    def run(self, *words: str, strace: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, perhaps under strace."""
        return subprocess.run(
            [*strace, sys.executable, "-B", "-m", "cellwright", *words],
            cwd=self.folder,
            env={
                **os.environ,
                "CELLWRIGHT_ENGINE": "never",
                "CELLWRIGHT_RUNTIME_DIR": str(self.folder / "run"),
                "XDG_STATE_HOME": str(self.state),
                "HOME": str(self.folder),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WITHIN,
            check=False,
        )

    def fail(self, call: str, error: str, number: int, *words: str) -> Iterator[str]:
        """Let one call fail; yields what is wrong with the outcome."""
        self.reset()
        log = self.folder / "strace"
        how = ("-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}")
        try:
            done = self.run(*words, strace=("strace", "-f", "-o", str(log), *how))
        except subprocess.TimeoutExpired:
            yield "without an answer"
            return
        said = (done.stdout + done.stderr).decode(errors="replace")
        if self.lost_history:
            yield "histories put aside"
        if "bug" in said or "Traceback" in said:
            yield "called a bug"
        if words == _EDIT:
            is_unconfirmed = "DURABILITY_UNCONFIRMED" in said
            if done.returncode == 0 and not self.has_new_bytes:
                yield "false successes"
            # An answer that could not be printed says so, and that the work is done.
            unprinted = "standard output" in said
            if done.returncode and self.has_new_bytes and not (is_unconfirmed or unprinted):
                yield "false failures"

    def list_calls(self, *words: str, after: str = "") -> list[tuple[str, int]]:
        """The calls that a command makes on the journal, or after a certain line of its trace."""
        self.reset()
        log = self.folder / "strace"
        wanted = ",".join((*_ERRORS, "rename"))
        self.run(*words, strace=("strace", "-f", "-y", "-o", str(log), "-e", f"trace={wanted}"))
        counts: Counter[str] = Counter()
        found, is_after = [], not after
        for line in log.read_text(errors="replace").splitlines():
            match = re.match(r"\d+ +(\w+)\(", line)
            if match is None:
                continue
            counts[match[1]] += 1
            if after and match[1] == "rename" and after in line:
                is_after = True
            elif is_after and match[1] in _ERRORS and (after or "journal.sqlite3" in line):
                found.append((match[1], counts[match[1]]))
        return found


@contextmanager
def make_place() -> Iterator[Place]:
    """Make a place that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="cellwright-faults-") as name:
        yield Place(Path(name).resolve())


def fail_journal(every: int = 1) -> Surrounding:
    """Each call on the journal fails once, while the log is read (row 12)."""
    words = ("log", "nb.ipynb", "--json")
    with make_place() as place:
        return _sweep(
            "the journal, while it is read", place, place.list_calls(*words), words, every
        )


def fail_after_rename(every: int = 1) -> Surrounding:
    """Each call between the rename and the answer fails once (row 15)."""
    with make_place() as place:
        calls = place.list_calls(*_EDIT, after="nb.ipynb")
        return _sweep("between the rename and the answer", place, calls, _EDIT, every)


def _sweep(
    name: str, place: Place, calls: list[tuple[str, int]], words: tuple[str, ...], every: int
) -> Surrounding:
    points = [(call, error, number) for call, number in calls for error in _ERRORS[call]][::every]
    problems: Counter[str] = Counter()
    for call, error, number in points:
        problems.update(set(place.fail(call, error, number, *words)))
    return Surrounding(name, len(points), problems)


def fill_disks() -> Surrounding:
    """The runtime folder and the state folder are full, and then have room again (11, 12)."""
    name = "full disks (small tmpfs mounts)"
    if os.geteuid() != 0:
        return Surrounding(name, 0, Counter(), skipped="mounting needs root")
    problems: Counter[str] = Counter()
    points = 0
    for which in ("run", "state"):
        with make_place() as place:
            target = place.folder / which
            shutil.rmtree(target)
            target.mkdir(mode=0o700)
            mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(target)]
            if subprocess.run(mount, check=False, capture_output=True).returncode:
                return Surrounding(name, 0, Counter(), skipped="tmpfs cannot be mounted here")
            try:
                (target / "filler").write_bytes(b"")
                with (target / "filler").open("ab", buffering=0) as filler:
                    _fill(filler.write)
                done = place.run(*_EDIT)
                said = (done.stdout + done.stderr).decode(errors="replace")
                points += 1
                problems.update(["called a bug"] if "bug" in said else [])
                is_wrong = (done.returncode == 0) != place.has_new_bytes
                problems.update(["false answers"] if is_wrong else [])
                (target / "filler").unlink()
                points += 1
                if place.run("edit", "nb.ipynb", "insert", "y").returncode:
                    problems["no recovery"] += 1
            finally:
                subprocess.run(["umount", str(target)], check=False)
    return Surrounding(name, points, problems)


def _fill(write: Callable[[bytes], object]) -> None:
    try:
        while True:
            write(b"x" * 4096)
    except OSError:
        return


SURROUNDINGS = (fail_journal, fail_after_rename, fill_disks)
