"""Where the journal is, whether that is a local disk, and signatures that show changed files."""

# Every edit runs this code, and pathlib is slow to import.
# ruff: noqa: PTH101, PTH103, PTH116, PTH118, PTH120, PTH123
from __future__ import annotations

import os
import re
import stat

from cellwright.config.directories import PRIVATE

NAME = "journal.sqlite3"

# SQLite's WAL needs memory that all its users share, and these file systems may have users on
# several machines. Folders that a virtual machine shares with its host count too.
_NETWORK = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fhgfs", "glusterfs", "gfs2"),
        *("gpfs", "lustre", "moosefs", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs"),
        *("pvfs2", "smb3", "smbfs", "sshfs", "vboxsf", "virtiofs", "vmhgfs", "weka"),
    }
)
_MORE_FUSE = frozenset({"gcsfuse", "juicefs", "mfs", "rclone", "s3fs", "vmhgfs-fuse"})

_octal = re.compile(r"\\([0-7]{3})")


def default_path() -> str:
    """The path of this user's journal on this host."""
    from cellwright.config.directories import state_folder

    return os.path.join(state_folder(), NAME)


def make_private(path: str) -> None:
    """Make sure that a file exists at `path` that only this user can read; raises `OSError`."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, PRIVATE)
    except FileExistsError:
        pass
    else:
        os.chmod(folder, PRIVATE)  # `makedirs` applies the umask
    try:
        status = os.stat(path)
    except FileNotFoundError:
        _create(path)
        return
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        os.chmod(path, 0o600)


def _create(path: str) -> None:
    # If possible without opening it: closing it again would release the locks of any other
    # connection of this process to the file.
    try:
        os.mknod(path, stat.S_IFREG | 0o600)
    except FileExistsError:
        pass
    except PermissionError:  # macOS lets only root do this
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def signature(path: str | os.PathLike[str]) -> str | None:
    """A short text that changes whenever the file does; None if there is no file.

    Take it before and after reading: if both are equal, it belongs to the bytes read. It misses
    only a write into the same file, of the same size, within one tick of the clock.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
    return ":".join(f"{fact:x}" for fact in facts)


def is_network(path: str, mounts: str | None = None) -> bool:
    """Whether `path`, absolute and without links, is on a network file system.

    `mounts` is the text of Linux's `/proc/self/mountinfo`; without that file, the answer is False.
    """
    if mounts is None:
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
                mounts = file.read()
        except OSError:
            return False
    best, kind = "", ""
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = _octal.sub(lambda found: chr(int(found[1], 8)), fields[4])
        # Of two mounts on one place, the later one is visible.
        if _is_within(path, point) and len(point) >= len(best):
            best, kind = point, after.split(" ")[0]
    return kind in _NETWORK or (
        kind.startswith("fuse.") and (kind[5:] in _NETWORK or kind[5:] in _MORE_FUSE)
    )


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
