"""Replace a file so that a crash at any moment leaves the old bytes or the new ones.

Unique temp file beside the target, fsync, rename, fsync of the folder, read back. Before the
rename every failure leaves the file as it was; after it, the new bytes are there and a failure
means only that their durability is unconfirmed.

Each temp file is locked by its writer; the files of writers that died are removed later.

Mode, owner, extended attributes and symbolic links are kept. A file with several names (hard
links) is refused by default, because the rename gives this name a file of its own.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from _thread import allocate_lock, start_new_thread

from cellwright.config.directories import lock_file
from cellwright.document.disk.load import close, file_holds
from cellwright.document.disk.lock import remove_unlocked
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
_RELEASE_AFTER = 0.02  # seconds
_CLEARED_BY_WRITING = stat.S_ISUID | stat.S_ISGID
_is_temp = re.compile(r"\.cellwright-[0-9a-f]{16}\.tmp").fullmatch


def replace_file(
    path: str,
    parts: Parts,
    expected: Parts | None,
    *,
    break_hard_links: bool = False,
    large: bool = False,
    meanwhile: Sequence[Callable[[], object]] = (),
) -> None:
    """Make `path`, which is a real path and locked, hold exactly these parts.

    Args:
        path: the file to replace; not a symbolic link.
        parts: the new bytes, encoded before any file is touched.
        expected: what the file must still hold right before it is replaced; None for anything.
        break_hard_links: give this name a file of its own if it has other names.
        large: writing takes so long that the file is compared meanwhile.
        meanwhile: what to do before the file is replaced, while the disk is busy; it must not touch
            the file.

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
    remove_abandoned_temps(folder)
    # While other work runs, a single call must write and wait for the disk: between two calls,
    # the thread would have to wait for its turn. Of a small file only the wait is long.
    flags = os.O_SYNC if large else 0
    temp, descriptor = _make_temp(folder, path, 0o600 if old else 0o666, flags)
    renamed = False
    step = "write"
    seen: tuple[int, ...] | None = None
    old_file = -1

    def write() -> None:
        nonlocal step
        step = "write"
        _write(descriptor, parts)
        if old is not None and old.st_mode & _CLEARED_BY_WRITING:
            step = "keep mode and owner"
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
        step = "fsync"

    def put() -> None:
        if large:
            write()
        os.fsync(descriptor)

    def work() -> None:
        nonlocal seen
        if large and expected is not None:
            seen = _compare_early(path, expected, descriptor)
        for each in meanwhile:
            each()

    try:
        try:
            if old is not None:
                step = "keep mode and owner"
                _keep_attributes(descriptor, path, old)
            if not large:
                write()
            if large or meanwhile:
                run_side_by_side(put, work)
            else:
                put()
            step = "compare"
            if expected is not None and (seen is None or not _is_unchanged_since(path, seen)):
                _check_unchanged(path, expected)
            elif old is None and os.path.lexists(path):
                raise Conflict(f"{path} was created by another program")
            step = "rename"
            old_file = _hold(path) if large else -1
            _rename(temp, path, descriptor)
            renamed = True
        finally:
            if not renamed:
                _remove_temp(temp)
        step = "fsync of the folder"
        _sync_folder(folder)
        step = "read back"
        if not file_holds(path, parts):
            held = "it holds something else"
            raise DurabilityUnconfirmed(path, step, held, replaced=True)  # noqa: TRY301  # as is
    except Exception as error:
        if isinstance(error, (DurabilityUnconfirmed, OwnerWouldChange)):
            raise
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        if renamed:  # whatever it is, such as no memory
            raise DurabilityUnconfirmed(path, step, reason or type(error).__name__) from None
        if not isinstance(error, OSError):
            raise
        raise NotSaved(path, step, reason, hint=_hint_for_error(error)) from None
    finally:
        close(descriptor)
        # Not before: the fsync of the folder would wait until the file system has freed it.
        _release_later(old_file)


def _examine(path: str, *, break_hard_links: bool) -> os.stat_result | None:
    """The status of the file that is there now; raises if it must not be replaced."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotSaved(path, "stat", reason or str(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise NotSaved(path, "stat", "it is not a regular file", hint="Choose another path")
    # Root can write anything, but a file without any write permission is meant to stay.
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
            # The system sets security labels itself; everything else must be copied.
            if not (name.startswith(("security.", "trusted.")) or error.errno == errno.ENODATA):
                raise
    # After the owner, because a change of owner clears some bits; before the bytes, so that the
    # fsync has only those to write.
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
        same = file_holds(path, expected)
        after = os.lstat(path)
    except FileNotFoundError:
        raise Conflict(f"{path} was deleted since it was read") from None
    # Comparing a large file takes a while; the second look narrows the gap before the rename.
    if not same or _signature(before) != _signature(after):
        raise Conflict(f"{path} was changed by another program since it was read")


def _compare_early(path: str, expected: Parts, temp: int) -> tuple[int, ...] | None:
    """Compare while the disk is busy; returns what to recognise the file by, if that proves anything.

    It does if the file was last changed at an earlier time than our temp file, by the clock of
    their file system: every change from now on has another time, which no program can set back.
    """
    try:
        status = os.lstat(path)
        is_older = status.st_ctime_ns < os.fstat(temp).st_ctime_ns
        return _signature(status) if is_older and file_holds(path, expected) else None
    except OSError:
        return None  # it is compared again, and then the error says what is wrong


def _is_unchanged_since(path: str, signature: tuple[int, ...]) -> bool:
    try:
        # On a network file system, opening it asks the server, and `lstat` alone may not.
        close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        return _signature(os.lstat(path)) == signature
    except OSError:
        return False


def _signature(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _rename(temp: str, path: str, descriptor: int) -> None:
    while True:
        try:
            os.rename(temp, path)
        except InterruptedError:
            continue
        except OSError:
            # On network file systems, a rename can fail and still have happened.
            if _is_there(path, descriptor):
                return
            raise
        return


def _hold(path: str) -> int:
    """Open a file that is about to be replaced, so that the rename does not have to free it; or -1."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return -1


def _release_later(descriptor: int) -> None:
    """Close a file without waiting until the file system has freed it, which takes milliseconds."""
    if descriptor < 0:
        return
    try:
        start_new_thread(_release, (descriptor,))  # without waiting until it has begun
    except Exception:  # noqa: BLE001  # no thread, no memory: the save is over, and went well
        close(descriptor)


def _release(descriptor: int) -> None:
    # The locks of this save are removed right now; meanwhile freeing blocks would make that slow.
    time.sleep(_RELEASE_AFTER)
    close(descriptor)


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


def _make_temp(folder: str, path: str, mode: int, flags: int = 0) -> tuple[str, int]:
    """Make a new empty file in the folder of `path`, and lock it: its path and descriptor."""
    flags |= os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        temp = os.path.join(folder, f".cellwright-{os.urandom(8).hex()}.tmp")
        try:
            descriptor = os.open(temp, flags, mode)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise ReadOnlyNotebook(path, "is in a read-only folder") from None
            raise NotSaved(
                path,
                "create a temp file",
                error.strerror or str(error),
                hint=_hint_for_error(error),
            ) from None
        try:
            # If not, a cleaner took the lock first, and is removing the file.
            if lock_file(descriptor) and os.fstat(descriptor).st_nlink:
                return temp, descriptor
        except OSError as error:
            _remove_temp(temp)
            close(descriptor)
            raise NotSaved(path, "lock a temp file", error.strerror or str(error)) from None
        close(descriptor)


def _remove_temp(temp: str) -> None:
    """Remove one of our temp files, if possible."""
    try:
        os.unlink(temp)
    except OSError:
        pass  # the next reader or writer removes it


def remove_abandoned_temps(folder: str) -> None:
    """Remove the temp files of writers that died; a living writer holds a lock on its file."""
    try:
        names = [name for name in os.listdir(folder or ".") if _is_temp(name)]
    except OSError:
        return
    for name in names:
        remove_unlocked(os.path.join(folder, name))


def _hint_for_error(error: OSError) -> str | None:
    """What the user can do about a system error, if anything."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full: free some space, then save again"
    if error.errno == errno.ENOENT:
        return "Its folder does not exist: create it first"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "Too many open files: close some, then save again"
    return None


def run_side_by_side(wait: Callable[[], object], work: Callable[[], object]) -> None:
    """Run `wait`, which waits for the disk, and at the same time `work`, in a thread.

    `wait` runs here: a thread would get to the disk only when `work` first pauses. Even if one of
    them raises, both have ended when this returns or raises.
    """
    over: list[bool] = []
    errors: list[BaseException] = []
    working = allocate_lock()
    working.acquire()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised below, where the caller is
            errors.append(error)
        finally:
            over.append(True)
            working.release()

    try:
        start_new_thread(run, ())
    except RuntimeError:  # no thread is available
        wait()
        work()
        return
    try:
        wait()
    except BaseException as error:  # noqa: BLE001  # raised below, when both are over
        errors.insert(0, error)
    while not over:
        try:
            working.acquire()
        except BaseException as error:  # noqa: BLE001  # Ctrl-C
            errors.append(error)
    if errors:
        raise errors[0]
