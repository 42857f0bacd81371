"""Which file systems are shared, and which files changed."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cellwright.config.directories import state_directory
from cellwright.journal import Journal, _database, signature
from cellwright.journal.place import is_network

if TYPE_CHECKING:
    from pathlib import Path

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 0:40 / /home rw,relatime shared:9 - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/local rw,relatime shared:9 - xfs /dev/vdb rw
32 22 0:42 / /mnt/with\\040space rw - cifs //server/share rw
33 22 0:43 / /mnt/ssh rw - fuse.sshfs user@host: rw
34 22 0:44 / /mnt/crypt rw - fuse.gocryptfs /x rw
35 22 0:45 / /mnt/over rw - nfs a:/b rw
36 22 0:46 / /mnt/over rw - tmpfs tmpfs rw
37 22 0:47 / /mnt/optional rw shared:1 master:2 propagate_from:3 unbindable - lustre x rw
38 22 0:48 / /mnt/plan rw - 9p share rw
39 22 0:49 / /mnt/drive rw - fuse.rclone remote: rw
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", False),
        ("/var/lib", False),
        ("/home", True),
        ("/home/me/.local/state/cellwright", True),
        ("/homestead", False),
        ("/home/local/me", False),
        ("/mnt/with space/x", True),
        ("/mnt/with", False),
        ("/mnt/ssh/x", True),
        ("/mnt/crypt/x", False),
        ("/mnt/over/x", False),
        ("/mnt/optional/x", True),
        ("/mnt/plan/x", True),
        ("/mnt/drive/x", True),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(path: str, expected: bool) -> None:
    assert is_network(path, MOUNTS) is expected


def test_lines_that_make_no_sense_are_passed_over() -> None:
    assert is_network("/x", "") is False
    assert is_network("/x", "nonsense\n1 2 3 - nfs\n - \n") is False


def test_the_folders_of_this_machine_can_be_asked_about(tmp_path: Path) -> None:
    assert isinstance(is_network(str(tmp_path)), bool)


def test_there_is_one_journal_per_user_in_wal_mode_and_in_rollback_mode_on_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = state_directory() / "journal.sqlite3"
    with Journal() as one, Journal() as two:
        assert one.path == two.path == str(place)
        assert "wal mode" in one.describe()
        assert (place.parent / "journal.sqlite3-wal").exists()
        assert place.read_bytes().startswith(b"SQLite format 3\0")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # of another user, or on another host
    mounts = f"1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / {tmp_path} rw - nfs4 server:/x rw\n"
    monkeypatch.setattr(_database, "is_network", partial(is_network, mounts=mounts))
    with Journal() as journal:
        assert journal.path.startswith(str(tmp_path))
        assert "delete mode" in journal.describe()
        assert [file.name for file in (tmp_path / "cellwright").iterdir()] == ["journal.sqlite3"]


def test_a_journal_that_was_moved_to_a_network_changes_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for network, mode in ((False, "wal"), (True, "delete"), (False, "wal")):
        monkeypatch.setattr(_database, "is_network", lambda _, answer=network: answer)
        with Journal(tmp_path / "j") as journal:
            assert f"{mode} mode" in journal.describe()


def test_a_signature_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    assert signature(path) is None
    path.write_bytes(b"one")
    seen = [signature(path)]
    assert signature(path) == seen[0]
    os.utime(path, ns=(1, 1))
    seen.append(signature(path))
    other = tmp_path / "b"
    other.write_bytes(b"two")
    os.utime(other, ns=(1, 1))
    other.replace(path)
    seen.append(signature(path))
    path.write_bytes(b"three")
    seen.append(signature(path))
    assert len(set(seen)) == 4
    assert signature("nul\0") is None
