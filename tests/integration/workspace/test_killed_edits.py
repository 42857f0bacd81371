"""`kill -9` at random moments of edits: the notebook is old or new, and its history is whole.

After every kill the file holds exactly what it held before the edit that was under way, or exactly
what that edit makes of it; the journal opens, its entries are the edits that are in the file and no
others, and the newest of them can be undone and made again, to the byte.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from tests.integration.workspace import killable
from tests.unit.cli import samples
from tests.unit.cli.calling import command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNTS = [pytest.param(15, id="15"), pytest.param(200, id="200", marks=pytest.mark.all)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "nb.ipynb"
    file.write_bytes(samples.SALES)
    return file


class Check:
    """Looks at the notebook after every kill, with the eyes of a new process of its editor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = 0  # in the log
        self.old_or_new = {"old": 0, "new": 0}

    def survived(self, done: int, old: str, new: str) -> None:
        """`done` edits before the one under way, if any, are known to be in the file."""
        data = self.path.read_bytes()
        held = killable.digest(data)
        assert held in (old, new), "neither what it was nor what it was to become"
        is_new = held == new
        self.old_or_new["new" if is_new else "old"] += 1
        self.entries += done + is_new

        with Workspace(actor=killable.ACTOR) as workspace:
            book = workspace.open(str(self.path))
            log = book.log()
            assert book.warnings() == []
            assert len(log) == self.entries, "every edit that is in the file, and no other"
            assert log[0].after == book.read().revision if log else True
            for newer, older in pairwise(log):
                assert newer.before == older.after
                assert newer.number == older.number + 1
            assert {entry.kind for entry in log} <= {"edit", "undo", "redo"}
            if is_new:
                # The edit that was cut short is on record, and what it replaced can be had back.
                self._undo_and_redo(book, data, old)
            elif log:
                self._undo_and_redo(book, data, None)
        leftovers = [item.name for item in self.path.parent.iterdir() if item != self.path]
        assert leftovers == [], "the next edit cleans up"

    def _undo_and_redo(self, book: Any, data: bytes, before: str | None) -> None:
        book.undo()
        undone = self.path.read_bytes()
        assert undone != data
        if before is not None:
            assert killable.digest(undone) == before
        book.redo()
        assert self.path.read_bytes() == data
        self.entries += 2


class Editors:
    """The process that starts editors, and what they tell."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, killable.__file__, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdin
        assert self.process.stdout
        self.told: list[dict[str, Any]] = []
        self._rest = b""

    def start(self, number: int) -> int:
        assert self.process.stdin
        self.told.clear()
        self.process.stdin.write(b"%d\n" % number)
        self.process.stdin.flush()
        self.until("pid")
        pid: int = next(told["pid"] for told in self.told if "pid" in told)
        return pid

    def listen(self, seconds: float) -> bool:
        """Take what is told within that time; False if nothing was."""
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return False
        data = os.read(self.process.stdout.fileno(), 65536)
        assert data, "the process that starts editors has ended"
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.told += map(json.loads, lines)
        return True

    def until(self, key: str) -> None:
        while not any(key in told for told in self.told):
            assert self.listen(50), f"no {key}"

    @property
    def announced(self) -> list[dict[str, str]]:
        return [told for told in self.told if "old" in told]

    @property
    def has_ended(self) -> bool:
        return any("ended" in told for told in self.told)

    def status(self) -> int:
        """How the editor ended; its id means nothing from now on."""
        assert self.process.stdin
        self.until("ended")
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.until("status")
        status: int = next(told["status"] for told in self.told if "status" in told)
        return status


@pytest.fixture
def editors(path: Path) -> Iterator[Editors]:
    editors = Editors(path)
    with editors.process:
        yield editors
        assert editors.process.stdin
        editors.process.stdin.close()
        assert editors.process.wait(50) == 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", COUNTS)
def test_a_killed_edit_leaves_the_notebook_old_or_new_and_its_history_whole(
    kills: int, path: Path, editors: Editors, record_property: pytest.RecordProperty
) -> None:
    rng = random.Random(20261115)
    check = Check(path)
    pace = 0.02  # how long an edit takes; found out on the way
    killed = 0
    for number in range(4 * kills):
        pid = editors.start(number)
        # Some edits are let through, and the next one is hit somewhere.
        wanted = rng.randint(1, killable.EDITS - 1)
        moment = rng.random() * 1.1
        began = time.monotonic()
        while len(editors.announced) < wanted and not editors.has_ended:
            assert editors.listen(50)
        if wanted > 1:
            pace = 0.7 * pace + 0.3 * (time.monotonic() - began) / (wanted - 1)
        hit = time.monotonic() + moment * min(pace, 1)
        while (left := hit - time.monotonic()) > 0 and not editors.has_ended:
            editors.listen(left)
        os.kill(pid, signal.SIGKILL)
        status = editors.status()
        assert status in (0, -signal.SIGKILL), "an editor failed"
        killed += status != 0
        under_way = editors.announced[-1]
        done = len(editors.announced) - 1
        check.survived(done, under_way["old"], under_way["new"])
        if killed == kills:
            break
    assert killed == kills
    # The kills must have hit edits on both sides of the moment that counts.
    record_property("old", check.old_or_new["old"])
    record_property("new", check.old_or_new["new"])
    assert min(check.old_or_new.values()) >= kills // 20


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kills", [pytest.param(8, id="8"), pytest.param(40, id="40", marks=pytest.mark.all)]
)
def test_a_killed_command_leaves_the_notebook_old_or_new_and_its_history_whole(
    kills: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with `cellwright edit` as a process, at any moment from its start to its end."""
    user = killable.ACTOR.partition(":")[2]
    monkeypatch.setenv("LOGNAME", user)
    monkeypatch.setattr(killable, "ACTOR", f"cli:{user}")
    rng = random.Random(1115)
    check = Check(path)
    pace = 0.0  # the first is let through, to see how long it takes
    for number in range(kills + 1):
        data = path.read_bytes()
        edits = killable.edits_for(rng, len(json.loads(data)["cells"]), f"n{number}")
        words = command("edit", path, "apply", "-", "--quiet")
        began = time.monotonic()
        with subprocess.Popen(words, stdin=subprocess.PIPE) as running:
            assert running.stdin
            running.stdin.write(json.dumps(edits).encode())
            running.stdin.close()
            try:
                running.wait(rng.uniform(0.3, 1.1) * pace if number else 50)
                pace = time.monotonic() - began
            except subprocess.TimeoutExpired:
                running.kill()
                pace *= 1.05
            assert running.wait(50) in (0, -signal.SIGKILL)
        check.survived(0, killable.digest(data), killable.digest(killable.after(data, edits)))
