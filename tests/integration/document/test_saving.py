"""Saving to real files: what is kept, what is refused, and what a failure leaves behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import struct
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright.document.disk.lock import FileLock
from cellwright.errors import CellwrightError
from cellwright.workspace.hosts.leases import Leases
from tests.conftest import require_root, require_tool
from tests.integration.document import actors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EDIT = {"op": "replace", "cell": 0, "source": "changed = 1"}


def sample(padding: int = 0) -> bytes:
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{i}",
            "metadata": {},
            "outputs": [],
            "source": [f"x = {i}\n", "#" * padding],
        }
        for i in range(2)
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1).encode()


OLD = sample()


def changed(data: bytes = OLD) -> bytes:
    """What `EDIT` makes of a notebook."""
    notebook = cellwright.Notebook(data)
    notebook.apply([EDIT])
    return notebook.to_bytes()


NEW = changed()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "notebook.ipynb"
    file.write_bytes(OLD)
    return file


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def temps(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.startswith(".cellwright-")]


def refused(code: str, call: Callable[[], Any], path: Path) -> CellwrightError:
    """The call fails with that code and leaves the file and its folder as they were."""
    before = path.read_bytes(), names(path.parent)
    with pytest.raises(CellwrightError) as caught:
        call()
    assert caught.value.code == code, caught.value
    assert (path.read_bytes(), names(path.parent)) == before
    return caught.value


# --- Means that run out --------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, limit: str) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    command = [require_tool("mount"), "-t", "tmpfs", "-o", limit, "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.root
def test_a_full_disk_leaves_the_file_as_it_was_until_there_is_room_again(tmp_path: Path) -> None:
    with small_disk(tmp_path, "size=64k") as folder:
        path = folder / "notebook.ipynb"
        old = sample(padding=12_000)
        path.write_bytes(old)
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(34_000))
        error = refused("NOT_SAVED", lambda: cellwright.edit(path, EDIT), path)
        assert "No space left on device" in str(error)
        assert "full" in str(error.hint)
        assert error.retryable
        ballast.unlink()
        cellwright.edit(path, EDIT)
        assert path.read_bytes() == changed(old)


@pytest.mark.root
def test_a_disk_that_was_made_read_only_is_refused(tmp_path: Path) -> None:
    with small_disk(tmp_path, "size=64k") as folder:
        path = folder / "notebook.ipynb"
        path.write_bytes(OLD)
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        refused("READ_ONLY", lambda: cellwright.edit(path, EDIT), path)


@pytest.mark.root
def test_a_disk_without_a_free_inode_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    with small_disk(tmp_path, "nr_inodes=3") as folder:  # one is the folder's
        path = folder / "notebook.ipynb"
        path.write_bytes(OLD)
        ballast = folder / "ballast"
        ballast.touch()
        refused("NOT_SAVED", lambda: cellwright.edit(path, EDIT), path)
        ballast.unlink()
        cellwright.edit(path, EDIT)
        assert path.read_bytes() == NEW


def test_a_limit_on_the_size_of_files_leaves_the_file_as_it_was(path: Path) -> None:
    """The system first writes as much as it may (a short write), then refuses the rest."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(OLD) // 2}, resource.RLIM_INFINITY))
print(replace(path))
"""
    assert actors.run(code, path) == "NOT_SAVED"
    assert path.read_bytes() == OLD
    assert names(path.parent) == [path.name]


def test_any_number_of_free_descriptors_gives_a_save_or_a_named_error(path: Path) -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
taken = []
while True:
    try:
        taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        break
said = []
for n in range(8):
    said.append(replace(path, f"changed = {n}"))
    os.close(taken.pop())
    with open(path) as file:
        if (f"changed = {n}" in file.read()) != (said[-1] in ("ok", "DURABILITY_UNCONFIRMED")):
            said.append("UNTRUE")
print(*said)
"""
    said = actors.run(code, path).split()
    assert set(said[:-3]) <= {"ok", "NOT_SAVED", "UNREADABLE_FILE", "DURABILITY_UNCONFIRMED"}, said
    assert said[0] != "ok"
    assert said[-3:] == ["ok", "ok", "ok"]
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("most", [1, 7])
def test_short_writes_are_carried_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    writev = os.writev
    calls = []

    def short(descriptor: int, buffers: Any) -> int:
        calls.append(descriptor)
        return writev(descriptor, [memoryview(buffers[0])[:most]])

    monkeypatch.setattr(os, "writev", short)
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW
    assert len(calls) >= len(NEW) / most


def test_short_reads_are_carried_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, readv = os.read, os.readv
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 5)))
    monkeypatch.setattr(
        os, "readv", lambda descriptor, views: readv(descriptor, [memoryview(views[0])[:5]])
    )
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW


def test_an_interrupt_in_the_middle_of_a_save_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cellwright.edit(path, EDIT)
    assert path.read_bytes() == OLD
    assert names(path.parent) == [path.name]
    cellwright.edit(path, EDIT, lock_timeout=1)
    assert path.read_bytes() == NEW


# --- What may not be written ---------------------------------------------------------------------


def test_a_read_only_file_is_refused_even_to_root(path: Path) -> None:
    path.chmod(0o444)
    refused("READ_ONLY", lambda: cellwright.edit(path, EDIT), path)
    path.chmod(0o644)
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user can reach, with a runtime directory of theirs beside it."""
    require_root()
    with tempfile.TemporaryDirectory(prefix="cw") as name:
        Path(name).chmod(0o755)
        runtime = Path(name, "runtime")
        runtime.mkdir(mode=0o700)
        os.chown(runtime, actors.NOBODY, actors.NOBODY)
        folder = Path(name, "folder")
        folder.mkdir(mode=0o755)
        yield folder


def as_nobody(code: str, path: Path) -> str:
    runtime = path.parent.parent / "runtime"
    return actors.run(code, path, nobody=True, env={"CELLWRIGHT_RUNTIME_DIR": str(runtime)})


def place(path: Path, *, uid: int, gid: int, mode: int) -> Path:
    path.write_bytes(OLD)
    os.chown(path, uid, gid)
    path.chmod(mode)
    return path


NOBODY = actors.NOBODY


@pytest.mark.root
def test_a_read_only_file_is_refused_to_its_owner(shared: Path) -> None:
    """A rename needs no right to write the file, so that nothing but our check is in the way."""
    os.chown(shared, NOBODY, NOBODY)
    path = place(shared / "a.ipynb", uid=NOBODY, gid=NOBODY, mode=0o444)
    assert as_nobody("print(replace(path))", path) == "READ_ONLY"
    assert path.read_bytes() == OLD


@pytest.mark.root
def test_a_read_only_folder_is_refused(shared: Path) -> None:
    path = place(shared / "a.ipynb", uid=NOBODY, gid=NOBODY, mode=0o644)
    assert as_nobody("print(replace(path))", path) == "READ_ONLY"
    assert path.read_bytes() == OLD
    assert names(shared) == ["a.ipynb"]


@pytest.mark.root
def test_a_file_that_may_not_be_read_is_refused_by_name(shared: Path) -> None:
    path = place(shared / "a.ipynb", uid=0, gid=0, mode=0o600)
    assert as_nobody("print(attempt(read, path))", path) == "UNREADABLE_FILE"
    assert as_nobody("print(replace(path))", path) == "UNREADABLE_FILE"


@pytest.mark.root
@pytest.mark.parametrize(
    ("uid", "gid"), [(0, 0), (0, NOBODY), (NOBODY, 0)], ids=["both", "user", "group"]
)
def test_a_file_whose_owner_would_change_is_refused(shared: Path, uid: int, gid: int) -> None:
    shared.chmod(0o777)
    path = place(shared / "a.ipynb", uid=uid, gid=gid, mode=0o666)
    assert as_nobody("print(replace(path))", path) == "OWNER_WOULD_CHANGE"
    assert path.read_bytes() == OLD
    status = path.stat()
    assert (status.st_uid, status.st_gid) == (uid, gid)
    assert names(shared) == ["a.ipynb"]


@contextmanager
def attribute(flag: str, path: Path) -> Iterator[None]:
    """Set a flag with chattr, and take it back at the end."""
    require_root()
    chattr = require_tool("chattr")
    done = subprocess.run([chattr, f"+{flag}", path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"chattr does not work here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run([chattr, f"-{flag}", path], check=True)


@pytest.mark.root
def test_an_immutable_file_is_refused(path: Path) -> None:
    with attribute("i", path):
        refused("READ_ONLY", lambda: cellwright.edit(path, EDIT), path)


@pytest.mark.root
def test_an_immutable_folder_is_refused(path: Path) -> None:
    with attribute("i", path.parent):
        refused("READ_ONLY", lambda: cellwright.edit(path, EDIT), path)


@pytest.mark.root
def test_a_file_that_may_only_grow_is_refused(path: Path) -> None:
    with attribute("a", path):
        error = refused("NOT_SAVED", lambda: cellwright.edit(path, EDIT), path)
        assert "Operation not permitted" in str(error)


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    notebook = cellwright.Notebook(OLD)
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(notebook, tmp_path)
    assert caught.value.code == "NOT_SAVED"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(cellwright.Notebook(OLD), tmp_path / "no" / "such.ipynb")
    assert caught.value.code == "NOT_SAVED"
    assert "No such file or directory" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# --- Links ---------------------------------------------------------------------------------------


def chain(path: Path, length: int) -> list[Path]:
    """Links, each to the one before and the first to the file, by relative and absolute names."""
    links = [path]
    for i in range(length):
        folder = path.parent / f"folder{i}"
        folder.mkdir()
        link = folder / f"link{i}.ipynb"
        link.symlink_to(links[-1] if i % 2 else Path("..", links[-1].relative_to(path.parent)))
        links.append(link)
    return links[1:]


@pytest.mark.parametrize("length", [1, 2, 9])
def test_a_save_goes_through_links_and_they_stay_links(path: Path, length: int) -> None:
    links = chain(path, length)
    aims = [link.readlink() for link in links]
    cellwright.edit(links[-1], EDIT)
    assert path.read_bytes() == NEW
    assert not path.is_symlink()
    assert [link.readlink() for link in links] == aims
    for link in links:
        assert temps(link.parent) == []


def test_a_save_goes_through_a_linked_folder(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "folder"
    link.symlink_to(tmp_path, target_is_directory=True)
    notebook = cellwright.read(link / path.name)
    notebook.apply([EDIT])
    cellwright.write(notebook)
    assert path.read_bytes() == NEW


def test_names_of_one_file_share_one_lock(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.ipynb"
    link.symlink_to(path)
    with FileLock(str(path), 0):
        refused("LOCKED", lambda: cellwright.edit(link, EDIT, lock_timeout=0.05), path)


def test_a_link_to_nothing_is_not_found(tmp_path: Path) -> None:
    link = tmp_path / "link.ipynb"
    link.symlink_to("nothing.ipynb")
    for call in (cellwright.read, lambda path: cellwright.edit(path, EDIT)):
        with pytest.raises(CellwrightError) as caught:
            call(link)
        assert caught.value.code == "NOTEBOOK_NOT_FOUND"
    assert names(tmp_path) == ["link.ipynb"]


def test_creating_through_a_link_to_nothing_makes_what_it_points_to(tmp_path: Path) -> None:
    link = tmp_path / "link.ipynb"
    link.symlink_to("nothing.ipynb")
    cellwright.edit(link, {"op": "insert", "source": "x"}, create=True)
    assert link.is_symlink()
    assert cellwright.read(tmp_path / "nothing.ipynb").cells[0].source == "x"


def test_links_in_a_circle_are_refused_by_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    first.symlink_to(second)
    second.symlink_to(first)
    calls: list[Callable[[], Any]] = [
        lambda: cellwright.read(first),
        lambda: cellwright.edit(first, EDIT),
        lambda: cellwright.edit(first, EDIT, create=True),
    ]
    for call in calls:
        with pytest.raises(CellwrightError) as caught:
            call()
        assert caught.value.code == "UNREADABLE_FILE"
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(cellwright.Notebook(OLD), first)
    assert caught.value.code == "NOT_SAVED"
    assert names(tmp_path) == ["a.ipynb", "b.ipynb"]


def test_a_file_with_another_name_is_refused_unless_told_to_part_them(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.ipynb"
    other.hardlink_to(path)
    error = refused("HARD_LINKED", lambda: cellwright.edit(path, EDIT), path)
    assert "copy it" in str(error.hint)
    assert other.samefile(path)
    cellwright.edit(path, EDIT, break_hard_links=True)
    assert path.read_bytes() == NEW
    assert other.read_bytes() == OLD
    assert path.stat().st_nlink == other.stat().st_nlink == 1


def test_a_linked_file_that_nobody_edited_is_no_trouble(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other.ipynb").hardlink_to(path)
    assert not cellwright.write(cellwright.read(path)).changed


# --- What a save keeps ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o755, 0o200 | 0o444, 0o2664, 0o4755, 0o1666])
def test_the_mode_is_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    kept = stat.S_IMODE(path.stat().st_mode)
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == kept


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o640, 0o2664, 0o6755])
def test_owner_and_mode_are_kept_together(path: Path, mode: int) -> None:
    os.chown(path, 12345, 54321)
    path.chmod(mode)  # after the owner, whose change clears the bits
    cellwright.edit(path, EDIT)
    status = path.stat()
    assert path.read_bytes() == NEW
    assert (status.st_uid, status.st_gid) == (12345, 54321)
    assert stat.S_IMODE(status.st_mode) == mode


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "new.ipynb"
    before = os.umask(umask)
    try:
        cellwright.write(cellwright.Notebook(OLD), path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(
            f"this file system has no {name.partition('.')[0]} attributes: {error.strerror}"
        )


def test_extended_attributes_are_kept(path: Path) -> None:
    values = {"user.origin": b"somewhere", "user.empty": b"", "user.bytes": bytes(range(256))}
    for name, value in values.items():
        set_attribute(path, name, value)
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW
    names = [name for name in os.listxattr(path) if name.startswith("user.")]
    assert {name: os.getxattr(path, name) for name in names} == values


def test_an_access_control_list_is_kept(path: Path) -> None:
    entries = [(1, 6, -1), (2, 6, 12345), (4, 4, -1), (16, 6, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2)
    acl += b"".join(struct.pack("<HHI", tag, bits, who & 0xFFFFFFFF) for tag, bits, who in entries)
    set_attribute(path, "system.posix_acl_access", acl)
    mode = stat.S_IMODE(path.stat().st_mode)
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW
    assert os.getxattr(path, "system.posix_acl_access") == acl
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_save_without_a_change_touches_nothing(path: Path) -> None:
    before = path.stat()
    saved = cellwright.write(cellwright.read(path))
    assert not saved.changed
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_an_edit_that_changes_nothing_touches_nothing(path: Path) -> None:
    before = path.stat()
    notebook = cellwright.read(path)
    notebook.apply([{"op": "replace", "cell": 0, "source": notebook.cells[0].source}])
    cellwright.write(notebook)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_old_notebook_that_nobody_upgraded_is_not_written(path: Path) -> None:
    path.write_bytes(b'{"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": []}')
    before = path.stat()
    assert not cellwright.write(cellwright.read(path)).changed
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


# --- Others who write ----------------------------------------------------------------------------


def test_an_outside_change_of_the_same_size_and_time_is_a_conflict(path: Path) -> None:
    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    before = path.stat()
    theirs = OLD.replace(b"x = 1", b"y = 1")
    path.write_bytes(theirs)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    refused("CONFLICT", lambda: cellwright.write(notebook), path)
    assert path.read_bytes() == theirs


def test_an_outside_change_is_a_conflict_also_if_we_changed_nothing(path: Path) -> None:
    notebook = cellwright.read(path)
    path.write_bytes(NEW)
    refused("CONFLICT", lambda: cellwright.write(notebook), path)


def test_a_file_that_was_deleted_meanwhile_is_a_conflict_and_stays_deleted(path: Path) -> None:
    for edits in ([], [EDIT]):
        path.write_bytes(OLD)
        notebook = cellwright.read(path)
        notebook.apply(edits)
        path.unlink()
        with pytest.raises(CellwrightError) as caught:
            cellwright.write(notebook)
        assert caught.value.code == "CONFLICT"
        assert names(path.parent) == []


def test_a_file_that_became_a_link_meanwhile_is_not_written_by_mistake(path: Path) -> None:
    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    other = path.with_name("other.ipynb")
    other.write_bytes(sample(padding=5))
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(notebook)
    assert caught.value.code == "CONFLICT"
    assert other.read_bytes() == sample(padding=5)


def test_a_link_that_was_turned_meanwhile_is_a_conflict(path: Path, tmp_path: Path) -> None:
    """What was read from one file must not replace another that nobody looked at."""
    link, other = tmp_path / "current.ipynb", tmp_path / "other.ipynb"
    link.symlink_to(path)
    other.write_bytes(sample(padding=5))
    for target in (None, link):
        link.unlink()
        link.symlink_to(path)
        notebook = cellwright.read(link)
        notebook.apply([EDIT])
        link.unlink()
        link.symlink_to(other)
        with pytest.raises(CellwrightError) as caught:
            cellwright.write(notebook, target)
        assert caught.value.code == "CONFLICT"
        assert other.read_bytes() == sample(padding=5)
        assert path.read_bytes() == OLD


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], times: int = 1) -> None:
    """Let somebody act while a save is under way: after the new bytes, before the comparison."""
    fsync = os.fsync
    left = [times]

    def sync(descriptor: int) -> None:
        fsync(descriptor)
        if left[0]:
            left[0] -= 1
            act()

    monkeypatch.setattr(os, "fsync", sync)


def test_an_outside_change_during_the_save_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    theirs = sample(padding=3)
    meanwhile(monkeypatch, lambda: path.write_bytes(theirs))
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(notebook)
    assert caught.value.code == "CONFLICT"
    assert path.read_bytes() == theirs
    assert temps(path.parent) == []


def test_a_file_that_is_deleted_during_the_save_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    meanwhile(monkeypatch, path.unlink)
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(notebook)
    assert caught.value.code == "CONFLICT"
    assert names(path.parent) == []


def test_an_edit_is_made_again_on_what_an_outside_editor_wrote(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = OLD.replace(b"x = 1", b"theirs = 1")
    meanwhile(monkeypatch, lambda: path.write_bytes(theirs))
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == changed(theirs)


def test_an_edit_that_can_never_be_saved_ends_with_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    padding = iter(range(1, 1000))
    meanwhile(monkeypatch, lambda: path.write_bytes(sample(padding=next(padding))), times=1000)
    with pytest.raises(CellwrightError) as caught:
        cellwright.edit(path, EDIT)
    assert caught.value.code == "CONFLICT"
    assert b"changed" not in path.read_bytes()
    assert temps(path.parent) == []


def test_a_file_that_somebody_else_creates_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.ipynb"
    meanwhile(monkeypatch, lambda: path.write_bytes(OLD))
    cellwright.edit(path, {"op": "insert", "source": "mine", "id": "mine"}, create=True)
    assert [cell.id for cell in cellwright.read(path).cells] == ["c0", "c1", "mine"]


def test_a_file_that_is_rewritten_while_it_is_read_is_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.read
    versions = [sample(padding=n) for n in (1, 2)]
    rest = versions.copy()

    def disturbed(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        if rest:
            path.write_bytes(rest.pop(0))
        return data

    monkeypatch.setattr(os, "read", disturbed)
    assert cellwright.read(path).to_bytes() == versions[-1]


def test_a_file_that_is_rewritten_all_the_time_is_refused_by_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.read

    def disturbed(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        with path.open("ab") as file:
            file.write(b" ")
        return data

    monkeypatch.setattr(os, "read", disturbed)
    with pytest.raises(CellwrightError) as caught:
        cellwright.read(path)
    assert caught.value.code == "UNREADABLE_FILE"


@pytest.mark.parametrize("moment", [0, 10**9, 2**32])
def test_the_clock_of_the_file_is_of_no_concern(path: Path, moment: int) -> None:
    os.utime(path, (moment, moment))
    notebook = cellwright.read(path)
    os.utime(path, (moment + 5, moment + 5))
    notebook.apply([EDIT])
    cellwright.write(notebook)
    assert path.read_bytes() == NEW


def test_a_wait_for_the_lock_does_not_follow_the_wall_clock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: pytest.fail("asked the wall clock"))
    with FileLock(str(path), 0):
        refused("LOCKED", lambda: cellwright.edit(path, EDIT, lock_timeout=0.05), path)


# --- Temp files of others ------------------------------------------------------------------------


def test_what_dead_writers_left_is_removed_by_the_next_read(path: Path) -> None:
    for i in range(3):
        path.with_name(f".cellwright-{i:016x}.tmp").write_bytes(b"torn")
    others = [".cellwright-notes", "x.cellwright-0.tmp", ".cellwright-0.tmp.ipynb"]
    others += [".cellwright-notes.tmp", ".cellwright-0.tmp"]  # ours have 16 digits
    for name in others:
        path.with_name(name).write_bytes(b"not ours")
    cellwright.read(path)
    assert names(path.parent) == sorted([path.name, *others])


def test_what_a_living_writer_has_in_hand_stays(path: Path) -> None:
    code = """
from cellwright.document.disk.save import _make_temp
temp, descriptor = _make_temp(os.path.dirname(path), path, 0o600)
os.write(descriptor, b"half")
"""
    with actors.waiting(code, path) as writer:
        (temp,) = temps(path.parent)
        cellwright.read(path)
        cellwright.edit(path, EDIT)
        assert temps(path.parent) == [temp]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    cellwright.read(path)
    assert temps(path.parent) == []


def test_what_only_looks_like_a_temp_file_does_no_harm(path: Path) -> None:
    target = path.with_name("precious")
    target.write_bytes(b"precious")
    path.with_name(".cellwright-0123456789abcdef.tmp").symlink_to(target)
    folder = path.with_name(".cellwright-fedcba9876543210.tmp")
    folder.mkdir()
    (folder / "file").write_bytes(b"kept")
    os.mkfifo(path.with_name(".cellwright-00112233445566ff.tmp"))  # must not be waited for
    cellwright.read(path)
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW
    assert target.read_bytes() == b"precious"
    assert (folder / "file").read_bytes() == b"kept"


# --- The lock ------------------------------------------------------------------------------------

HOLD = """
from cellwright.document.disk.lock import FileLock
lock = FileLock(os.path.realpath(path), 5)
lock.__enter__()
"""


def test_who_waits_too_long_for_the_lock_is_told_so(path: Path) -> None:
    with actors.waiting(HOLD, path):
        start = time.monotonic()
        error = refused("LOCKED", lambda: cellwright.edit(path, EDIT, lock_timeout=0.2), path)
        assert 0.2 <= time.monotonic() - start < 60
    assert error.retryable
    assert "0.2 s" in str(error)


def test_reading_needs_no_lock(path: Path) -> None:
    with actors.waiting(HOLD, path):
        assert cellwright.read(path).to_bytes() == OLD


def test_the_lock_of_a_killed_writer_is_free(path: Path) -> None:
    with actors.waiting(HOLD, path) as holder:
        refused("LOCKED", lambda: cellwright.edit(path, EDIT, lock_timeout=0), path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        cellwright.edit(path, EDIT, lock_timeout=5)
    assert path.read_bytes() == NEW


def test_who_waits_for_the_lock_gets_it_when_it_is_free(path: Path) -> None:
    with actors.waiting(HOLD, path) as holder:
        timer = threading.Timer(0.1, holder.kill)
        timer.start()
        cellwright.edit(path, EDIT, lock_timeout=20)
        timer.join()
    assert path.read_bytes() == NEW


def test_a_lock_file_that_was_swept_away_is_no_trouble(path: Path, places: Path) -> None:
    """Cleaners of temp folders remove what looks old, also under a writer who holds it."""
    cellwright.edit(path, EDIT)
    with Leases("me").share(str(path)), FileLock(str(path), 1):
        locks = list((places / "run" / "cellwright").iterdir())
        assert len(locks) == 2  # the lock of the file, and the lease of who runs it
        for lock in locks:
            lock.unlink()
        cellwright.edit(path, {"op": "replace", "cell": 1, "source": "more"})
    assert b'"more"' in path.read_bytes()
    assert list((places / "run" / "cellwright").iterdir()) == []


def test_the_notebooks_folder_holds_no_lock(path: Path) -> None:
    cellwright.edit(path, EDIT)
    assert names(path.parent) == [path.name]


def test_threads_of_one_process_lose_nothing(path: Path) -> None:
    def work(number: int) -> None:
        for i in range(15):
            edit = {"op": "insert", "source": "x", "id": f"t{number}-{i}"}
            cellwright.edit(path, edit)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {"c0", "c1"} | {f"t{number}-{i}" for number in range(8) for i in range(15)}
    found = [cell.id for cell in cellwright.read(path).cells]
    assert len(found) == len(wanted)
    assert set(found) == wanted


# --- The runtime directory -----------------------------------------------------------------------


def spoil_mode(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def spoil_link(folder: Path) -> None:
    target = folder.with_name("target")
    target.mkdir(mode=0o700)
    folder.symlink_to(target)


def spoil_file(folder: Path) -> None:
    folder.write_bytes(b"")


def spoil_parent(_folder: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (spoil_mode, "runtime"),
        (spoil_link, "runtime"),
        (spoil_file, "runtime"),
        (spoil_parent, "no/such/runtime"),
    ],
    ids=["open to all", "a link", "a file", "cannot be made"],
)
def test_an_unusable_runtime_directory_is_named_and_the_file_untouched(
    path: Path,
    places: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path], None],
    place: str,
) -> None:
    runtime = places / place
    spoil(runtime)
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(runtime))
    error = refused("UNSAFE_DIRECTORY", lambda: cellwright.edit(path, EDIT), path)
    assert str(runtime) in str(error)
    assert cellwright.read(path).to_bytes() == OLD


@pytest.mark.root
def test_a_runtime_directory_of_somebody_else_is_named(
    path: Path, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = places / "runtime"
    runtime.mkdir(mode=0o700)
    os.chown(runtime, NOBODY, NOBODY)
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(runtime))
    refused("UNSAFE_DIRECTORY", lambda: cellwright.edit(path, EDIT), path)


@pytest.mark.root
def test_a_runtime_directory_where_no_lock_can_be_made_is_a_named_error(
    path: Path, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = places / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(runtime))
    with attribute("i", runtime):
        refused("NOT_SAVED", lambda: cellwright.edit(path, EDIT), path)


# --- Large notebooks -----------------------------------------------------------------------------

LARGE = sample(padding=1_500_000)


@pytest.fixture
def large(path: Path) -> Path:
    """A notebook so large that it is saved in a thread."""
    path.write_bytes(LARGE)
    return path


EDIT_OF_LARGE = {"op": "insert", "source": "more", "id": "more"}


def test_a_large_notebook_is_saved_and_its_conflicts_are_seen(large: Path) -> None:
    notebook = cellwright.read(large)
    notebook.apply([EDIT_OF_LARGE])
    cellwright.write(notebook)
    assert large.read_bytes() == notebook.to_bytes()
    notebook.apply([{"op": "delete", "cell": "more"}])
    large.write_bytes(LARGE)
    refused("CONFLICT", lambda: cellwright.write(notebook), large)


def test_a_large_notebook_is_saved_also_where_no_thread_can_be_started(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", cannot)
    cellwright.edit(large, EDIT_OF_LARGE)
    assert b'"more"' in large.read_bytes()


def test_a_large_notebook_is_saved_also_while_python_shuts_down(large: Path) -> None:
    code = """
import atexit, concurrent.futures.thread
atexit.register(lambda: print(attempt(edit, path, {"op": "insert", "source": "more"})))
"""
    assert actors.run(code, large) == "ok"
    assert b'"more"' in large.read_bytes()


def test_an_interrupt_does_not_leave_the_save_of_a_large_notebook_running(large: Path) -> None:
    """The lock is let go when the call ends; by then nothing may be written any more."""
    code = """
import signal, threading
fsync, begun = os.fsync, []
def slow(descriptor):
    if not begun:
        begun.append(descriptor)
        threading.Event().wait(0.3)  # the main thread has nothing left to do but wait for us
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.5)  # long enough for it to be interrupted
    fsync(descriptor)
os.fsync = slow
try:
    said = attempt(edit, path, {"op": "insert", "source": "more"})
except KeyboardInterrupt:
    said = "interrupted"
print(said, threading.active_count())
"""
    assert actors.run(code, large) == "interrupted 1"
    assert names(large.parent) == [large.name]


def test_a_failure_to_save_a_large_notebook_is_told_by_its_name(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _parts: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    refused("NOT_SAVED", lambda: cellwright.edit(large, EDIT_OF_LARGE), large)


# --- Contents and names --------------------------------------------------------------------------


def test_a_lone_surrogate_is_saved_as_an_escape(path: Path) -> None:
    """nbformat's own writer empties the file here."""
    source = "a = '\ud800'\nb = '\udfff\U0001f600é'"
    cellwright.edit(path, {"op": "replace", "cell": 0, "source": source})
    data = path.read_bytes()
    assert b"\\ud800" in data
    assert b"\\udfff" in data
    assert data.decode()
    assert cellwright.read(path).cells[0].source == source


def test_text_that_cannot_be_written_leaves_the_file_as_it_was(path: Path) -> None:
    edits: list[dict[str, Any]] = [
        {"op": "set_metadata", "metadata": {"x": float("nan")}},
        {"op": "set_metadata", "metadata": {"x": object()}},
        {"op": "set_metadata", "metadata": {"x": {1, 2}}},
    ]
    for edit in edits:
        refused("INVALID_METADATA", lambda edit=edit: cellwright.edit(path, edit), path)  # type: ignore[misc]


def test_a_notebook_goes_to_another_path_and_is_at_home_there(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ipynb"
    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    saved = cellwright.write(notebook, other)
    assert (saved.path, saved.size, saved.changed) == (str(other), len(NEW), True)
    assert (path.read_bytes(), other.read_bytes()) == (OLD, NEW)
    notebook.apply([{"op": "delete", "cell": 0}])
    cellwright.write(notebook)
    assert path.read_bytes() == OLD
    assert len(cellwright.read(other).cells) == 1
    other.write_bytes(OLD)
    notebook.apply([{"op": "insert", "source": "x"}])
    refused("CONFLICT", lambda: cellwright.write(notebook), other)


def test_a_notebook_with_a_relative_path_stays_where_it_is_when_the_process_moves(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    notebook = cellwright.read(path.name)
    notebook.apply([EDIT])
    monkeypatch.chdir(elsewhere)
    cellwright.write(notebook)
    assert names(elsewhere) == []
    assert path.read_bytes() == NEW


def test_another_file_is_replaced_whatever_it_holds(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ipynb"
    other.write_bytes(b"no notebook at all")
    other.chmod(0o600)
    cellwright.write(cellwright.read(path), other)
    assert other.read_bytes() == OLD
    assert stat.S_IMODE(other.stat().st_mode) == 0o600


def test_a_notebook_without_a_path_asks_for_one() -> None:
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(cellwright.Notebook(OLD))
    assert caught.value.code == "NOT_SAVED"


NAMES = {
    "255 bytes": b"n" * 249 + b".ipynb",
    "not UTF-8": b"caf\xe9\xff.ipynb",
    "spaces": b" a  b .ipynb ",
    "newlines": b"a\nb\r\nc.ipynb",
    "quotes": b"'\"`$(x)\\.ipynb",
    "dash": b"-rf.ipynb",
    "no suffix": b"notebook",
    "hidden": b".ipynb",
    "wide": "数据📓.ipynb".encode(),
    "like a temp file": b".cellwright-notes.ipynb",
}


@pytest.mark.parametrize("raw", NAMES.values(), ids=NAMES)
def test_any_file_name_works(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / os.fsdecode(raw)
    path.write_bytes(OLD)
    cellwright.edit(path, EDIT)
    assert path.read_bytes() == NEW
    path.unlink()
    cellwright.edit(str(path), {"op": "insert", "source": "x"}, create=True)
    assert [os.fsencode(name) for name in names(tmp_path)] == [raw]


@pytest.mark.parametrize("raw", NAMES.values(), ids=NAMES)
def test_an_error_about_any_file_name_is_one_line_that_can_be_printed(
    tmp_path: Path, raw: bytes
) -> None:
    path = tmp_path / os.fsdecode(raw)
    errors = []
    for is_folder in (False, True):
        if is_folder:
            path.mkdir()
        with pytest.raises(CellwrightError) as caught:
            cellwright.read(path)
        errors.append(str(caught.value))
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(cellwright.Notebook(OLD), path)
    errors.append(str(caught.value))
    for message in errors:
        assert len(message.splitlines()) == 1
        assert message.encode()


def test_a_name_that_is_too_long_is_refused_by_name(tmp_path: Path) -> None:
    path = str(tmp_path / ("n" * 256))
    for call in (cellwright.read, lambda path: cellwright.edit(path, EDIT, create=True)):
        with pytest.raises(CellwrightError) as caught:
            call(path)
        assert caught.value.code == "UNREADABLE_FILE"
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(cellwright.Notebook(OLD), path)
    assert caught.value.code == "NOT_SAVED"
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["a\0b.ipynb", "\0"])
def test_a_name_with_a_nul_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    for call in (cellwright.read, lambda path: cellwright.edit(path, EDIT, create=True)):
        with pytest.raises(CellwrightError) as caught:
            call(path)
        assert caught.value.code == "UNREADABLE_FILE"
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(cellwright.Notebook(OLD), path)
    assert caught.value.code == "NOT_SAVED"
    assert names(tmp_path) == []
