"""Faults around a save: the journal cannot be read, the answer cannot be given, a disk is full.

Every command runs as a process. Some have one system call made to fail by strace, once for each
time that it is made; others meet an engine that is lost or frozen, a kernel that is stopped, or
another program that saves. Counted are runs in which the history was put aside, in which the
command said anything else than what holds, in which it did not answer in time, and processes that
were left.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cellwright.document import files
from cellwright.engine.client import LONG_PATIENCE, PATIENCE
from tests.engines import is_alive
from tests.integration.engine.live_editor import LiveEditor
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WITHIN = 30.0
BEYOND = 5.0
"""How much longer than its own time limit a command may take, in seconds."""
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
PROMISED = (
    "false successes",
    "lost acknowledged edits",
    "histories put aside",
    "processes left",
    "without an answer",
)
"""The kinds of problems that the report counts by name; there are others."""
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

    def __init__(self, folder: Path, *, engine: str = "never") -> None:
        self.folder = folder
        self._engine = engine
        self.state = folder / "state"
        self.notebook = folder / "nb.ipynb"
        self.notebook.write_bytes(samples.SALES)
        (folder / "run").mkdir(mode=0o700)
        assert self.run("edit", "nb.ipynb", "replace", "later", "print(0)").returncode == 0
        self._old = self.notebook.read_bytes()
        shutil.copytree(self.state, folder / "state.kept")

    def reset(self) -> None:
        """Make everything as it was."""
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(self.folder / "state.kept", self.state)
        self.notebook.write_bytes(self._old)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of processes here."""
        return {
            "CELLWRIGHT_ENGINE": self._engine,
            "CELLWRIGHT_RUNTIME_DIR": str(self.folder / "run"),
            "XDG_STATE_HOME": str(self.state),
            "HOME": str(self.folder),
        }

    @property
    def has_new_bytes(self) -> bool:
        return b"changed = True" in self.notebook.read_bytes()

    @property
    def lost_history(self) -> bool:
        return any(self.state.rglob("*.broken-*"))

    def run(
        self, *words: str, strace: tuple[str, ...] = (), within: float = WITHIN
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, perhaps under strace."""
        return subprocess.run(
            [*strace, sys.executable, "-B", "-m", "cellwright", *words],
            cwd=self.folder,
            env={**os.environ, **self.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=within,
            check=False,
        )

    def find_engine(self) -> int:
        """The process of the engine."""
        answer = json.loads(self.run("engine", "status", "--json").stdout)
        return int(answer["data"]["pid"])

    def list_processes(self) -> list[int]:
        """The processes that were started here, by the folder in their environment."""
        mark = os.fsencode(f"CELLWRIGHT_RUNTIME_DIR={self.folder}/")
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = mark in (place / "environ").read_bytes()
            except OSError:
                continue
            if is_ours and is_alive(int(place.name)):
                found.append(int(place.name))
        return found

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
def make_place(engine: str = "never") -> Iterator[Place]:
    """Make a place that is removed afterwards, with all processes that were left there."""
    with tempfile.TemporaryDirectory(prefix="cw", ignore_cleanup_errors=True) as name:
        place = Place(Path(name).resolve(), engine=engine)
        try:
            yield place
        finally:
            for pid in place.list_processes():
                with suppress(ProcessLookupError):  # it has ended since
                    os.kill(pid, signal.SIGKILL)


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
                if (done.returncode == 0) != place.has_new_bytes:
                    problems["false failures" if done.returncode else "false successes"] += 1
                problems.update(["histories put aside"] if place.lost_history else [])
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


# --- The engine and its kernels ------------------------------------------------------------------


def _delete_socket(place: Place, _: int) -> None:
    for path in (place.folder / "run").rglob("*"):
        if path.is_socket() and path.name.startswith("engine"):
            path.unlink()


def _delete_folder(place: Place, _: int) -> None:
    shutil.rmtree(place.folder / "run")
    (place.folder / "run").mkdir(mode=0o700)


def _freeze(_: Place, pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def _saturate(place: Place, pid: int) -> list[socket.socket]:
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))
    (path,) = (p for p in (place.folder / "run").rglob("engine*") if p.is_socket())
    idle = [socket.socket(socket.AF_UNIX) for _ in range(80)]
    for each in idle:
        each.setblocking(False)
        try:
            each.connect(str(path))
        except BlockingIOError:
            break
    return idle


def _kill(_: Place, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def lose_engine(every: int = 1) -> Surrounding:
    """The engine is lost, frozen or saturated while commands come (row 13)."""
    # Patience of the client, and once more because it then tries without the engine.
    commands: dict[tuple[str, ...], float] = {
        ("read", "nb.ipynb"): 2 * PATIENCE,
        ("log", "nb.ipynb"): 2 * PATIENCE,
        _EDIT: 2 * PATIENCE,
        ("eval", "1 + 1"): LONG_PATIENCE + PATIENCE,
        ("engine", "status"): 2 * PATIENCE,
    }
    faults = (_delete_socket, _delete_folder, _freeze, _saturate, _kill)[::every]
    problems: Counter[str] = Counter()
    points = 0
    for fault in faults:
        with make_place("always") as place:
            kernel = int(place.run("eval", "import os; os.getpid()").stdout)
            pid = place.find_engine()
            held = fault(place, pid)
            for words, own in commands.items():
                points += 1
                problems.update(_answer(place, words, own))
            points += 1
            problems.update(_answer(place, ("engine", "stop"), 2 * PATIENCE))
            left = {pid, kernel, *place.list_processes()}
            problems["processes left"] += _count_left(left)
            for each in held or ():
                each.close()
    return Surrounding("the engine lost, frozen or saturated", points, +problems)


def stop_processes(every: int = 1) -> Surrounding:
    """A kernel, or a process that keeps one, is stopped; then the engine is ended (row 14)."""
    problems: Counter[str] = Counter()
    points = 0
    with make_place("always") as place:
        place.run("eval", "1")
        number = len(place.list_processes())
    for which in range(0, number, every):
        with make_place("always") as place:
            place.run("eval", "1")
            pids = sorted(place.list_processes())
            engine = place.find_engine()
            for pid in pids[which : which + 1]:
                if pid != engine:
                    os.kill(pid, signal.SIGSTOP)
            points += 1
            problems.update(_answer(place, ("engine", "stop"), 2 * PATIENCE))
            problems["processes left"] += _count_left({*pids, *place.list_processes()})
    return Surrounding("a stopped process, and the engine is ended", points, +problems)


def _answer(place: Place, words: tuple[str, ...], own: float) -> Iterator[str]:
    """Run a command beside a fault; yields what is wrong with its answer."""
    place.reset()
    try:
        done = place.run(*words, within=own + BEYOND)
    except subprocess.TimeoutExpired:
        yield "without an answer"
        return
    yield from _judge_words(done)
    if place.lost_history:
        yield "histories put aside"
    if words == _EDIT and done.returncode == 0 and not place.has_new_bytes:
        yield "false successes"
    if words == _EDIT and done.returncode and place.has_new_bytes:
        yield "false failures"


def _judge_words(done: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    """What is wrong with any answer of a command."""
    said = (done.stdout + done.stderr).decode(errors="replace")
    if "bug" in said or "Traceback" in said:
        yield "called a bug"
    if done.returncode and not said.strip():
        yield "failures without a word"


def _count_left(pids: set[int]) -> int:
    """How many of them live five seconds later."""
    until = time.monotonic() + BEYOND
    while (left := sum(map(is_alive, pids))) and time.monotonic() < until:
        time.sleep(0.05)
    return left


# --- Another program, and outputs that cannot be saved --------------------------------------------


def save_in_place(every: int = 1) -> Surrounding:
    """Another program empties, halves or removes the file, and writes it a moment later (row 16)."""
    problems: Counter[str] = Counter()
    points = 0
    with make_place() as place:
        whole = place.notebook.read_bytes()
        for written in (b"", whole[: len(whole) // 2], None)[::every]:
            for words in (("read", "nb.ipynb"), _EDIT, ("log", "nb.ipynb")):
                place.reset()
                # It begins in the middle of the command, after Python's own start.
                ends, gaps = threading.Event(), [0.0]
                arguments = (place, whole, written, ends, gaps)
                saver = threading.Thread(target=_save_often, args=arguments)
                saver.start()
                done = place.run(*words)
                ends.set()
                saver.join()
                points += 1
                said = (done.stdout + done.stderr).decode(errors="replace")
                # On a busy machine, the other program may take longer than is waited for, or write
                # over what has just been saved.
                words_for_it = ("may be saving", "CONFLICT", "replaced it right after")
                is_told = any(word in said for word in words_for_it) or max(gaps) > files._SAVING
                if done.returncode and not is_told:
                    problems["false failures"] += 1
                if "bug" in said or "Traceback" in said:
                    problems["called a bug"] += 1
    return Surrounding("another program saves in place", points, +problems)


def _save_often(
    place: Place, whole: bytes, half: bytes | None, ends: threading.Event, gaps: list[float]
) -> None:
    """Save as many programs do, again and again, so that every moment of a command is met.

    `gaps` are the seconds for which the file was not whole.
    """
    while not ends.wait(0.05):
        began = time.monotonic()
        if half is None:
            place.notebook.unlink(missing_ok=True)
        else:
            place.notebook.write_bytes(half)
        ends.wait(0.02)
        place.notebook.write_bytes(whole)
        gaps.append(time.monotonic() - began)


def fail_outputs(every: int = 1) -> Surrounding:
    """What a cell printed cannot be saved (row 17)."""
    problems: Counter[str] = Counter()
    ways = [
        (call, error)
        for call in ("rename,renameat,renameat2", "fsync")
        for error in ("ENOSPC", "EIO", "EDQUOT", "EROFS")
    ][::every]
    with make_place() as place:
        for call, error in ways:
            place.reset()
            trace = ("strace", "-f", "-o", os.devnull, "-e", f"trace={call}")
            inject = ("-e", f"inject={call}:error={error}")
            words = ("run", "nb.ipynb", "later", "--json")
            try:
                done = place.run(*words, strace=(*trace, *inject), within=2 * WITHIN)
            except subprocess.TimeoutExpired:
                problems["without an answer"] += 1
                continue
            problems.update(_judge_outputs(place, done))
    return Surrounding("outputs that cannot be saved", len(ways), +problems)


def _judge_outputs(place: Place, done: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    said = (done.stdout + done.stderr).decode(errors="replace")
    if "bug" in said or "Traceback" in said:
        yield "called a bug"
    cells: list[dict[str, Any]] = json.loads(place.notebook.read_bytes())["cells"]
    count = next(cell["execution_count"] for cell in cells if cell["id"] == "later")
    is_saved = count is not None
    if done.returncode == 0 and not is_saved:
        yield "false successes"
    has_run = '"status": "ok"' in said  # a kernel that could not start has nothing to save
    is_told = done.returncode == 3 and "only in this answer" in said
    if not is_saved and not is_told and (has_run or not done.returncode):
        yield f"not told as unsaved (exit {done.returncode}, {said[-300:]!r})"


# --- The outputs of a run, while the engine saves them --------------------------------------------

_RENAME = "rename,renameat,renameat2"
_LANDING = {
    "openat": ("EMFILE", "EIO", "EINTR"),
    "writev": ("ENOSPC", "EIO", "EINTR"),
    "write": ("ENOSPC", "EIO"),
    "fsync": ("ENOSPC", "EIO", "EINTR"),
    _RENAME: ("ENOSPC", "EIO", "EROFS"),
    "pwrite64": ("ENOSPC", "EIO"),
    "fdatasync": ("ENOSPC", "EIO"),
    "flock": ("ENOLCK", "EIO", "EINTR"),
    "close": ("EIO", "EINTR"),
    "fstat": ("EIO",),
    "unlink": ("EIO",),
}
_CELLS = ("later", "last")  # short ones, which may land together
_KILLED_AT = ("openat", "writev", "fsync", _RENAME, "pwrite64", "fdatasync", "flock", "close")
# The first or second of a thread, the first one and all after it: strace counts by thread.
_WHEN = ("1", "2", "1+")


def fail_landing(every: int = 1) -> Surrounding:
    """Calls of the engine fail, or it is killed, while it saves what a cell printed (11, 15, 17)."""
    name = "the engine, while outputs of a run land"
    if os.geteuid() != 0:
        return Surrounding(name, 0, Counter(), skipped="strace needs root to attach to it")
    ways = [
        (call, f"error={error}", when)
        for call, errors in _LANDING.items()
        for error in errors
        for when in (_WHEN if error != "EINTR" else _WHEN[:2])  # a call is tried again after it
    ]
    ways += [(call, "signal=KILL", when) for call in _KILLED_AT for when in _WHEN[:2]]
    problems: Counter[str] = Counter()
    points = 0
    with make_place("always") as place:
        place.run("edit", "nb.ipynb", "insert", "print(1)", "--id", _CELLS[1])
        for number, way in enumerate(ways[::every]):
            is_hit, found = _land(place, number, *way)
            points += is_hit
            problems.update({f"{each} ({' '.join(way)})" for each in found})
        if place.lost_history:
            problems["histories put aside"] += 1
        pids = {*place.list_processes()}
        problems.update(_judge_words(place.run("engine", "stop", within=2 * PATIENCE + BEYOND)))
        problems["processes left"] += _count_left(pids)
    return Surrounding(name, points, +problems)


def fail_landing_in_page(every: int = 1) -> Surrounding:
    """The same while a page has the notebook open, which then saves the outputs."""
    name = "… while they land in an open page"
    if os.geteuid() != 0:
        return Surrounding(name, 0, Counter(), skipped="strace needs root to attach to it")
    ways = [
        (call, f"error={_LANDING[call][0]}", when)
        for call in ("openat", "pwrite64", "fdatasync", "flock", "close", "fstat", "unlink")
        for when in _WHEN
    ]
    ways += [(call, "signal=KILL", "1") for call in ("openat", "pwrite64", "fdatasync", "close")]
    problems: Counter[str] = Counter()
    points = 0
    with make_place("always") as place, pytest.MonkeyPatch.context() as patch:
        for variable, value in place.environ.items():
            patch.setenv(variable, value)
        patch.chdir(place.folder)
        place.run("edit", "nb.ipynb", "insert", "print(1)", "--id", _CELLS[1])
        for number, way in enumerate(ways[::every]):
            page = LiveEditor(place.notebook)
            try:
                is_hit, found = _land(place, number, *way)
            finally:
                page.close()
            points += is_hit
            problems.update({f"{each} ({' '.join(way)})" for each in found})
        if place.lost_history:
            problems["histories put aside"] += 1
        pids = {*place.list_processes()}
        problems.update(_judge_words(place.run("engine", "stop", within=2 * PATIENCE + BEYOND)))
        problems["processes left"] += _count_left(pids)
    return Surrounding(name, points, +problems)


def _land(place: Place, number: int, call: str, action: str, when: str) -> tuple[bool, list[str]]:
    """Edit two cells, and run them with a fault; whether it was met, and what is wrong afterwards."""
    token = f"token-{number}"
    place.run("run", "nb.ipynb", *_CELLS)  # the engine and the kernel run
    for cell in _CELLS:
        edit = place.run("edit", "nb.ipynb", "replace", cell, f"print('{token}')", "--json")
        if edit.returncode:
            return True, ["no recovery: the next edit fails"]
    engine = place.find_engine()
    before = {*place.list_processes()}
    log = place.folder / "strace"
    how = ("-e", f"trace={call}", "-e", f"inject={call}:{action}:when={when}")
    words = ["strace", "-f", "-qq", "-o", str(log), *how, "-p", str(engine)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as strace:
        try:
            _wait_until_traced(engine)
            try:
                done = place.run("run", "nb.ipynb", *_CELLS, "--json", within=2 * WITHIN)
            except subprocess.TimeoutExpired:
                return True, ["without an answer"]
        finally:
            _stop_tracing(strace)
    traced = log.read_text(errors="replace")
    is_killed = not is_alive(engine)
    return "(INJECTED)" in traced or is_killed, list(
        _judge_landing(place, done, token, before if is_killed else set())
    )


def _stop_tracing(strace: subprocess.Popen[bytes]) -> None:
    """Let strace detach; one that waits for ever for a thread that has ended lets go if killed."""
    strace.terminate()
    try:
        strace.wait(WITHIN)
    except subprocess.TimeoutExpired:
        strace.kill()


def _wait_until_traced(pid: int) -> None:
    until = time.monotonic() + WITHIN
    while time.monotonic() < until:
        threads = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/status")]
        if all("TracerPid:\t0" not in each for each in threads):
            return
        time.sleep(0.01)
    raise TimeoutError("strace does not attach")


def _judge_landing(
    place: Place, done: subprocess.CompletedProcess[bytes], token: str, lost: set[int]
) -> Iterator[str]:
    yield from _judge_words(done)
    said = (done.stdout + done.stderr).decode(errors="replace")
    cells = {each["id"]: each for each in json.loads(place.notebook.read_bytes())["cells"]}
    answer = json.loads(done.stdout or "{}").get("data") or {}
    told = {each["cell"]: each for each in answer.get("executions", ())}
    for name in _CELLS:
        cell, execution = cells[name], told.get(name, {})
        if token not in "".join(cell["source"]):
            yield "lost acknowledged edits"
        is_saved = any(token in "".join(each.get("text", "")) for each in cell["outputs"])
        if not is_saved and (done.returncode == 0 or execution.get("saved")):
            yield "false successes"
        if execution.get("status") == "ok" and not is_saved:
            is_told = execution.get("save_error") and "only in this answer" in said
            if not is_told or done.returncode != 3:
                yield f"not told as unsaved (exit {done.returncode})"
        if is_saved and execution.get("save_error"):
            yield "told as unsaved, but saved"
    if lost and _count_left(lost):
        yield "processes left"


SURROUNDINGS: tuple[Callable[..., Surrounding], ...] = (
    fail_journal,
    fail_after_rename,
    lose_engine,
    stop_processes,
    save_in_place,
    fail_outputs,
    fail_landing,
    fail_landing_in_page,
    fill_disks,
)
