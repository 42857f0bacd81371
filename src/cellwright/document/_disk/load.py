"""Read a regular file whole, in bounded time and memory."""

from __future__ import annotations

import os
import stat

from cellwright.document.reached import Reached
from cellwright.errors import NotebookNotFound, NotebookTooLarge, UnreadableFile

_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a named pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)
_ATTEMPTS = 5


def load(path: str, limit: int) -> bytes:
    """The bytes of a file; never blocks on a pipe or a device.

    Raises:
        NotebookNotFound: there is nothing at that path.
        UnreadableFile: it is no regular file, or may not be read.
        NotebookTooLarge: it has more than `limit` bytes.
    """
    follow = os.O_NOFOLLOW if isinstance(path, Reached) else 0
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | follow
        )
    except FileNotFoundError:
        raise NotebookNotFound(path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UnreadableFile(path, _reason(error)) from None
    try:
        for _ in range(_ATTEMPTS):
            before = os.fstat(descriptor)
            for test, reason in _KINDS:
                if test(before.st_mode):
                    raise UnreadableFile(path, reason)
            if before.st_size > limit:
                raise NotebookTooLarge(path, before.st_size, limit)
            data = _read(descriptor, before.st_size, limit)
            if len(data) > limit:
                raise NotebookTooLarge(path, len(data), limit)
            after = os.fstat(descriptor)
            # Somebody may be writing it in place right now: half of it is of no use.
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                return data
        raise UnreadableFile(path, "it is being rewritten all the time")
    except OSError as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(path, _reason(error)) from None
    finally:
        close(descriptor)


def close(descriptor: int) -> None:
    """Close a descriptor; what mattered about it has been settled before."""
    try:
        os.close(descriptor)
    except OSError:
        pass


def _read(descriptor: int, size: int, limit: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    # A short read, or a file that grows (or lies about its size, as those of /proc do).
    pieces = [data]
    total = len(data)
    while data and total <= limit:
        data = os.read(descriptor, 1 << 20)
        pieces.append(data)
        total += len(data)
    return b"".join(pieces)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or str(error)
