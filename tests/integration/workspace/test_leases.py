"""Leases: at most one owner of a notebook, and writers only where nobody owns it."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.config.directories import runtime_directory
from cellwright.document.disk.lock import FileLock, sweep
from cellwright.errors import NotSaved, OwnedElsewhere, UnsafeDirectory
from cellwright.workspace.hosts import leases as module
from cellwright.workspace.hosts.leases import Leases

if TYPE_CHECKING:
    from cellwright import Workspace

REAL = "/somewhere/nb.ipynb"


@pytest.fixture(autouse=True)
def _nothing_owned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests of this process own: their files are in places of their own."""
    monkeypatch.setattr(module, "_owned_here", set())


OTHER = """
import sys
from cellwright.workspace.hosts.leases import Leases
leases = Leases("another")
{}
print("here", flush=True)
sys.stdin.read()
"""


def elsewhere(what: str) -> subprocess.Popen[bytes]:
    """Another process that has done something, until its stdin ends."""
    words = [sys.executable, "-c", OTHER.format(what)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    return process


def leave(process: subprocess.Popen[bytes]) -> None:
    process.communicate(b"", timeout=20)


def test_an_owner_keeps_others_from_running_and_writing_and_is_named() -> None:
    process = elsewhere(f"leases.own({REAL!r})")
    mine = Leases("me")
    with pytest.raises(OwnedElsewhere) as caught:
        mine.own(REAL)
    assert f"another (process {process.pid})" in caught.value.message
    with pytest.raises(OwnedElsewhere), mine.share(REAL):
        pass
    mine.own("/somewhere/else.ipynb")
    leave(process)
    mine.own(REAL)
    mine.own(REAL)  # ours already
    assert mine.owns(REAL)
    mine.close()
    assert not mine.owns(REAL)


def test_an_owner_that_was_killed_owns_nothing() -> None:
    process = elsewhere(f"leases.own({REAL!r})")
    process.kill()
    leave(process)
    mine = Leases("me")
    with mine.share(REAL):
        pass
    mine.own(REAL)
    mine.close()


def test_writers_share_and_an_owner_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Leases("me")
    process = elsewhere(f"lease = leases.share({REAL!r}); lease.__enter__()")
    with mine.share(REAL):
        pass
    ended: list[float] = []
    waits, sleep = threading.Event(), time.sleep
    monkeypatch.setattr(module.time, "sleep", lambda seconds: (waits.set(), sleep(seconds)))

    def end() -> None:
        assert waits.wait(20)
        ended.append(time.monotonic())
        leave(process)

    thread = threading.Thread(target=end)
    thread.start()
    mine.own(REAL)
    assert ended
    assert time.monotonic() > ended[0]
    thread.join()
    mine.close()


def test_a_writer_that_does_not_end_is_not_waited_for_forever() -> None:
    process = elsewhere(f"lease = leases.share({REAL!r}); lease.__enter__()")
    mine = Leases("me")
    began = time.monotonic()
    with pytest.raises(OwnedElsewhere):
        mine.own(REAL)
    assert time.monotonic() - began > 1
    leave(process)


def test_a_second_hub_of_this_process_may_write_but_not_own() -> None:
    first, second = Leases("one"), Leases("two")
    first.own(REAL)
    with second.share(REAL):
        pass
    with pytest.raises(OwnedElsewhere):
        second.own(REAL)
    first.release(REAL)
    second.own(REAL)
    second.close()


def test_asking_for_one_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(module.time, "sleep", lambda _seconds: (waits.set(), go_on.wait(20)))
    process = elsewhere(f"lease = leases.share({REAL!r}); lease.__enter__()")
    mine = Leases("me")
    refused: list[Exception] = []

    def ask() -> None:
        try:
            mine.own(REAL)
        except OwnedElsewhere as error:
            refused.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert waits.wait(20)
    mine.own("/other.ipynb")
    mine.release("/other.ipynb")
    assert not refused
    monkeypatch.undo()
    go_on.set()
    thread.join()
    assert refused
    leave(process)


def test_a_cleaner_of_temp_folders_does_not_make_two_owners_of_new_files() -> None:
    mine = Leases("me")
    for file in Path(runtime_directory()).glob("*.lease"):
        file.unlink()
    mine.own(REAL)
    mine.release(REAL)
    with mine.share(REAL):
        for file in Path(runtime_directory()).glob("*.lease"):
            file.unlink()
    mine.own(REAL)
    mine.close()


def test_a_lease_that_is_held_for_days_does_not_look_old() -> None:
    mine = Leases("me")
    mine.own(REAL)
    (file,) = Path(runtime_directory()).glob("*.lease")
    os.utime(file, (0, 0))
    mine.touch()
    assert file.stat().st_mtime > 1e9
    mine.close()


def test_a_folder_that_cannot_be_written_to_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    mine = Leases("me")
    monkeypatch.setattr(module.os, "open", refuse)
    with pytest.raises(UnsafeDirectory, match="Read-only"):
        mine.own(REAL)
    with pytest.raises(UnsafeDirectory), mine.share(REAL):
        pass


def test_a_full_folder_is_called_that_and_leaks_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Leases("mine")

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "open", refuse)
        with pytest.raises(NotSaved, match="No space left"):
            mine.own(REAL)
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "truncate", refuse)
        patch.setattr(module.os, "pwrite", refuse)
        mine.own(REAL)  # without a name
        mine.release(REAL)
    Leases("another").own(REAL)


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES, errno.ENOLCK])
@pytest.mark.parametrize("call", ["fstat", "stat", "flock"])
def test_a_call_that_fails_at_a_lease_is_said_and_leaks_no_lock(
    call: str, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = Leases("mine"), Leases("other")
    where: Any = fcntl if call == "flock" else module.os
    plain = getattr(where, call)

    def refuse(place: Any, *more: Any) -> Any:
        if call == "stat" and not str(place).endswith(".lease"):
            return plain(place, *more)
        raise OSError(error, os.strerror(error))

    def share(real: str) -> None:
        with mine.share(real):
            pass

    before = sorted(Path("/proc/self/fd").iterdir())
    for act in (mine.own, share):
        with monkeypatch.context() as patch:
            patch.setattr(where, call, refuse)
            with pytest.raises(NotSaved, match=os.strerror(error)):
                act(REAL)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    assert not mine.is_held(REAL)
    other.own(REAL)
    other.close()


def test_leases_whose_files_were_deleted_are_taken_again() -> None:
    mine, other = Leases("mine"), Leases("other")
    mine.own(REAL)
    for path in Path(runtime_directory()).glob("*.lease"):
        path.unlink()
    assert mine.renew() == []
    with pytest.raises(OwnedElsewhere):
        other.own(REAL)
    for path in Path(runtime_directory()).glob("*.lease"):
        path.unlink()
    other.own(REAL)
    assert mine.renew() == [REAL]


def test_leases_are_private_files_in_the_runtime_directory() -> None:
    mine = Leases("me")
    mine.own(REAL)
    (file,) = Path(runtime_directory()).glob("*.lease")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == f"me (process {os.getpid()})"
    mine.close()
    assert not file.exists()


def test_an_edit_of_a_notebook_that_runs_elsewhere_is_refused_and_changes_nothing(
    workspace: Workspace, folder: Path
) -> None:
    book = workspace.open("nb.ipynb")
    process = elsewhere(f"leases.own({book.real!r})")
    before = (folder / "nb.ipynb").read_bytes()
    edits = [{"op": "replace", "cell": "sum", "source": "x"}]
    for refused in (
        lambda: book.edit(edits),
        lambda: book.write("# %% [code]\nx"),
        book.upgrade,
        lambda: book.run(["sum"]),
    ):
        with pytest.raises(OwnedElsewhere):
            refused()
    assert (folder / "nb.ipynb").read_bytes() == before
    assert book.edit(edits, dry_run=True).changed
    assert book.read().cells
    leave(process)
    assert book.edit(edits).changed


def list_lock_files() -> list[str]:
    found = Path(runtime_directory()).iterdir()
    return [each.name for each in found if each.suffix in (".lock", ".lease")]


def test_locks_and_leases_leave_no_files(tmp_path: Path) -> None:
    mine = Leases("me")
    for number in range(5):
        with mine.share(f"{tmp_path}/{number}.ipynb"), FileLock(f"{tmp_path}/{number}.ipynb", 1):
            assert len(list_lock_files()) == 2
        mine.own(f"{tmp_path}/{number}.ipynb")
        mine.release(f"{tmp_path}/{number}.ipynb")
    assert list_lock_files() == []


def test_what_killed_processes_leave_is_swept_and_what_is_held_is_not(tmp_path: Path) -> None:
    process = elsewhere(f"leases.own({REAL!r})")
    process.kill()
    leave(process)
    held = Leases("me")
    held.own(str(tmp_path / "held.ipynb"))
    assert len(list_lock_files()) == 2
    engine = Path(runtime_directory()) / "engine-0123456789ab.lock"
    engine.touch()  # of an engine, which has its own rules

    sweep(runtime_directory())

    lease = Path(module._place(str(tmp_path / "held.ipynb"))).name
    assert sorted(list_lock_files()) == sorted([lease, engine.name])
    with pytest.raises(OwnedElsewhere):
        Leases("other").own(str(tmp_path / "held.ipynb"))
    held.close()


COUNTER = """
import sys
from pathlib import Path
from cellwright.config.directories import runtime_directory
from cellwright.document.disk.lock import FileLock, sweep
from cellwright.workspace.hosts.leases import Leases
leases, path = Leases("another"), Path(sys.argv[1])
for _ in range(150):
    with leases.share(str(path)), FileLock(str(path), 30):
        path.write_text(str(int(path.read_text()) + 1))
    sweep(runtime_directory())
"""


def test_removing_the_files_never_lets_two_in_at_once(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")
    words = [sys.executable, "-c", COUNTER, str(path)]
    for process in [subprocess.Popen(words) for _ in range(4)]:
        assert process.wait(60) == 0
    assert path.read_text() == "600"
    assert list_lock_files() == []
