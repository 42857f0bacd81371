"""Replace a file so that a crash at any moment leaves the old bytes or the new ones.

Unique temp file beside the target, fsync, rename, fsync of the folder, read back. Before the
rename every failure leaves the file as it was; after it, the new bytes are there and a failure
means only that their durability is unconfirmed.

Mode, owner, extended attributes and symbolic links are kept. A file with several names (hard
links) is refused unless told otherwise, because the rename gives this name a file of its own.
"""

from __future__ import annotations

import errno
import os
import stat

from cellwright.document._disk.compare import holds
from cellwright.document._disk.load import close
from cellwright.document._disk.temps import clean, hint_for, remove
from cellwright.document._disk.temps import make_temp as _make_temp
from cellwright.errors import (
    Conflict,
    DurabilityUnconfirmed,
    HardLinked,
    NotSaved,
    OwnerWouldChange,
    ReadOnlyNotebook,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Parts = Sequence[bytes | memoryview]

_MOST_PARTS = 1024  # IOV_MAX on Linux
_CLEARED_BY_WRITING = stat.S_ISUID | stat.S_ISGID


def replace_file(
    path: str,
    parts: Parts,
    expected: Parts | None,
    *,
    break_hard_links: bool = False,
    meanwhile: Callable[[], object] | None = None,
) -> None:
    """Make `path`, which is a real path and locked, hold exactly these parts.

    Args:
        path: where; no symbolic link.
        parts: the new bytes, encoded before any file is touched.
        expected: what the file must still hold right before it is replaced; None to take what
            comes.
        break_hard_links: give this name a file of its own if it has other names.
        meanwhile: work to be done while the disk is busy; it must not touch the file.

    Raises:
        Conflict: the file does not hold `expected`.
        NotSaved: the system refused; the file is untouched. Also `ReadOnlyNotebook`,
            `HardLinked`, `OwnerWouldChange`.
        DurabilityUnconfirmed: the new bytes are in place, but may not survive a power cut.
    """
    folder = os.path.dirname(path)
    old = _examine(path, break_hard_links=break_hard_links)
    if old is None and expected is not None:
        raise Conflict(f"{path} was deleted since it was read")
    clean(folder)
    # Beside other work, one call has to write and wait for the disk: between two calls, a thread
    # waits until it is its turn again.
    flags = os.O_SYNC if meanwhile else 0
    temp, descriptor = _make_temp(folder, path, 0o600 if old else 0o666, flags)
    renamed = False
    step = "write"

    def put() -> None:
        nonlocal step
        step = "write"
        _write(descriptor, parts)
        if old is not None and old.st_mode & _CLEARED_BY_WRITING:
            step = "keep mode and owner"
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
        step = "fsync"
        os.fsync(descriptor)

    try:
        try:
            if old is not None:
                step = "keep mode and owner"
                _keep_attributes(descriptor, path, old)
            if meanwhile is None:
                put()
            else:
                from cellwright.document._disk.beside import side_by_side

                side_by_side(put, meanwhile)
            step = "compare"
            if expected is not None:
                _check_unchanged(path, expected)
            elif old is None and os.path.lexists(path):
                raise Conflict(f"{path} was created by somebody else")
            step = "rename"
            _rename(temp, path, descriptor)
            renamed = True
        finally:
            if not renamed:
                remove(temp)
        step = "fsync of the folder"
        _sync_folder(folder)
        step = "read back"
        if not holds(path, parts):
            raise DurabilityUnconfirmed(path, step, "it holds something else", replaced=True)
    except OSError as error:
        if isinstance(error, (DurabilityUnconfirmed, OwnerWouldChange)):
            raise
        reason = error.strerror or str(error)
        if renamed:
            raise DurabilityUnconfirmed(path, step, reason) from None
        raise NotSaved(path, step, reason, hint=hint_for(error)) from None
    finally:
        close(descriptor)


def _examine(path: str, *, break_hard_links: bool) -> os.stat_result | None:
    """What is there now; refuses what must not be replaced."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotSaved(path, "stat", reason or str(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise NotSaved(path, "stat", "it is not a regular file", hint="Choose another path")
    # Root may write anything; a file without any write permission says that nobody should.
    if not status.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise ReadOnlyNotebook(path)
    if status.st_nlink > 1 and not break_hard_links:
        raise HardLinked(path, status.st_nlink)
    return status


def _keep_attributes(descriptor: int, path: str, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            raise OwnerWouldChange(path, f"user {old.st_uid}, group {old.st_gid}") from None
    for name in _attributes(path):
        try:
            os.setxattr(descriptor, name, os.getxattr(path, name))
        except OSError as error:
            # Security labels are the system's to give; everything else must come along.
            if not (name.startswith(("security.", "trusted.")) or error.errno == errno.ENODATA):
                raise
    # After the owner, a change of which clears some bits; before the bytes, so that nothing is
    # left for the fsync but them.
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _attributes(path: str) -> list[str]:
    if not hasattr(os, "listxattr"):  # macOS
        return []
    try:
        return os.listxattr(path)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EPERM, errno.EACCES):
            return []
        raise


def _write(descriptor: int, parts: Iterable[bytes | memoryview]) -> None:
    views = [memoryview(part) for part in parts if len(part)]
    while views:
        written = os.writev(descriptor, views[:_MOST_PARTS])
        while written:
            if written < len(views[0]):
                views[0] = views[0][written:]
                break
            written -= len(views[0])
            del views[0]


def _check_unchanged(path: str, expected: Parts) -> None:
    try:
        before = os.lstat(path)
        same = holds(path, expected)
        after = os.lstat(path)
    except FileNotFoundError:
        raise Conflict(f"{path} was deleted since it was read") from None
    if not same:
        raise Conflict(f"{path} was changed by somebody else since it was read")
    # The comparison takes a while in a large file; this narrows the gap before the rename.
    if _signature(before) != _signature(after):
        raise Conflict(f"{path} was changed by somebody else since it was read")


def _signature(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _rename(temp: str, path: str, descriptor: int) -> None:
    while True:
        try:
            os.rename(temp, path)
        except InterruptedError:
            continue
        except OSError:
            # An error does not always mean that it did not happen (network file systems).
            if _is_there(path, descriptor):
                return
            raise
        return


def _is_there(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        close(descriptor)
