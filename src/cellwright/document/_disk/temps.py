"""Temp files beside the notebook: each is locked by its writer, and removed when that has died."""

from __future__ import annotations

import errno
import fcntl
import os
import re

from cellwright.document._disk.load import close
from cellwright.errors import NotSaved, ReadOnlyNotebook

_is_temp = re.compile(r"\.cellwright-[0-9a-f]{16}\.tmp").fullmatch


def make_temp(folder: str, path: str, mode: int, flags: int = 0) -> tuple[str, int]:
    """A new empty file in the folder of `path`, locked: where it is and its descriptor."""
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
                path, "create a temp file", error.strerror or str(error), hint=hint_for(error)
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return temp, descriptor
        except BlockingIOError:
            pass  # a cleaner was faster than our lock, and is removing it
        except OSError as error:
            remove(temp)
            close(descriptor)
            raise NotSaved(path, "lock a temp file", error.strerror or str(error)) from None
        close(descriptor)


def remove(temp: str) -> None:
    """Remove a temp file of ours, if it can be."""
    try:
        os.unlink(temp)
    except OSError:
        pass  # the next open cleans up


def clean(folder: str) -> None:
    """Remove temp files whose writers have died; a living writer holds a lock on its own."""
    try:
        names = [name for name in os.listdir(folder or ".") if _is_temp(name)]
    except OSError:
        return
    for name in names:
        place = os.path.join(folder, name)
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(place)
        except OSError:
            pass  # alive, or not ours to remove
        finally:
            close(descriptor)


def hint_for(error: OSError) -> str | None:
    """What to do about an error of the system, where there is something to be done."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full: free some space, then save again"
    if error.errno == errno.ENOENT:
        return "Its folder does not exist: make it first"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "Too many open files: close some, then save again"
    return None
