"""Read a regular file whole, or compare it, in bounded time and memory."""

from __future__ import annotations

import os
import stat

from cellwright.document.disk.paths import PinnedPath
from cellwright.errors import NotebookNotFound, NotebookTooLarge, UnreadableFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Parts = Sequence[bytes | memoryview]

_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a named pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)
_ATTEMPTS = 5
_BLOCK = 1 << 16  # larger ones are new memory every time


def load_file(path: str, limit: int) -> bytes:
    """Read the bytes of a file; never blocks on a pipe or a device.

    Raises:
        NotebookNotFound: nothing exists at that path.
        UnreadableFile: it is not a regular file, or cannot be read.
        NotebookTooLarge: it has more than `limit` bytes.
    """
    follow = os.O_NOFOLLOW if isinstance(path, PinnedPath) else 0
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | follow
        )
    except FileNotFoundError:
        raise NotebookNotFound(path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UnreadableFile(path, _describe_error(error)) from None
    try:
        for _ in range(_ATTEMPTS):
            before = os.fstat(descriptor)
            for test, reason in _KINDS:
                if test(before.st_mode):
                    raise UnreadableFile(path, reason)
            if before.st_size > limit:
                raise NotebookTooLarge(path, before.st_size, limit)
            data = _read_all(descriptor, before.st_size, limit)
            if len(data) > limit:
                raise NotebookTooLarge(path, len(data), limit)
            after = os.fstat(descriptor)
            # Another program may be writing it in place right now: half of it is useless.
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                return data
        raise UnreadableFile(path, "it is being rewritten all the time")
    except OSError as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(path, _describe_error(error)) from None
    finally:
        close(descriptor)


def _read_all(descriptor: int, size: int, limit: int) -> bytes:
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


def _describe_error(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or str(error)


def close(descriptor: int) -> None:
    """Close a descriptor and ignore errors, because its data was checked before."""
    try:
        os.close(descriptor)
    except OSError:
        pass


def file_holds(path: str, parts: Parts) -> bool:
    """Whether a file has exactly these bytes, compared block by block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return _holds(descriptor, parts)
    finally:
        os.close(descriptor)


def is_still(path: str, parts: Parts) -> bool:
    """Whether a file that is read has these bytes, and was not changed meanwhile; never raises.

    It costs less than to load the file and compare it: no new memory is needed.
    """
    follow = os.O_NOFOLLOW if isinstance(path, PinnedPath) else 0
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | follow)
    except (OSError, ValueError):
        return False
    try:
        before = os.fstat(descriptor)
        same = stat.S_ISREG(before.st_mode) and _holds(descriptor, parts)
        after = os.fstat(descriptor)
    except OSError:
        return False
    else:
        times = (before.st_mtime_ns, after.st_mtime_ns)
        return same and before.st_size == after.st_size and times[0] == times[1]
    finally:
        close(descriptor)


def _holds(descriptor: int, parts: Parts) -> bool:
    size = sum(map(len, parts))
    if os.fstat(descriptor).st_size != size:
        return False
    if size <= _BLOCK:
        data = os.read(descriptor, size + 1)
        if len(data) == size:  # a short read may come at any time
            return data == b"".join(parts)
        os.lseek(descriptor, 0, os.SEEK_SET)
    block = bytearray(_BLOCK)
    for part in parts:
        view = memoryview(part)
        for at in range(0, len(view), _BLOCK):
            piece = view[at : at + _BLOCK]
            if len(piece) != len(block):
                block = bytearray(len(piece))
            # bytearray on the left: it compares memory, a memoryview element by element.
            if not _fill_block(descriptor, block) or block != piece:
                return False
    return not os.read(descriptor, 1)


def _fill_block(descriptor: int, block: bytearray) -> bool:
    view = memoryview(block)
    while view:
        count = os.readv(descriptor, [view])
        if not count:
            return False
        view = view[count:]
    return True


def is_stored(path: str, parts: Parts) -> bool:
    """Whether a save has come as far as its rename, when it was interrupted."""
    try:
        return file_holds(path, parts)
    except Exception:  # noqa: BLE001  # the interruption is what the caller hears of
        return False


def sync_file(path: str) -> None:
    """Make sure that the content of a file is on the disk, although we did not write it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
