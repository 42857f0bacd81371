"""A lock that lets one Cellwright process at a time write a file.

The lock is an flock on a file in the runtime directory, named after the real path. So it leaves
no file beside the notebook, and it is released when its holder dies. The holder removes the file
when it is done; one that was killed leaves it, and `sweep` removes it later.

Only a process that has locked the file exclusively may remove it. Another one that has opened it
before sees, once it has the lock, that the path leads to no or another file, and begins again.
"""

from __future__ import annotations

import fcntl  # noqa: F401  # now: a save that began opens no module
import os
import time

from cellwright.config.directories import lock_file, runtime_directory
from cellwright.document.costs import blake2b
from cellwright.document.disk.load import close
from cellwright.errors import Locked, NotSaved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


_DIGEST = 16


def name_lock(path: str) -> str:
    """The name of the lock or lease of a file, without its suffix."""
    return blake2b(os.fsencode(path), digest_size=_DIGEST).hexdigest()


class FileLock:
    """A lock on a file, held inside its `with` block; it also separates threads of one process."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self._place = ""
        self._descriptor = -1

    def __enter__(self) -> Self:
        place = self._place = f"{runtime_directory()}/{name_lock(self.path)}.lock"
        deadline = time.monotonic() + self.timeout
        wait = 0.001
        while True:
            try:
                self._descriptor = _open_locked(place)
            except OSError as error:
                raise NotSaved(self.path, "lock", error.strerror or str(error)) from None
            if self._descriptor >= 0:
                return self
            if time.monotonic() >= deadline:
                raise Locked(self.path, self.timeout)
            time.sleep(wait)
            wait = min(wait * 2, 0.02)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        remove_locked(self._place, self._descriptor)
        close(self._descriptor)
        self._descriptor = -1


def remove_locked(place: str, descriptor: int) -> None:
    """Remove the file at `place` if it is the one that this descriptor has locked exclusively."""
    try:
        if os.path.samestat(os.fstat(descriptor), os.stat(place)):
            os.unlink(place)
    except (OSError, MemoryError):
        pass  # it only takes room


def sweep(folder: str) -> None:
    """Remove the locks and leases in a folder that no process holds."""
    for name in os.listdir(folder):
        if not (name.endswith((".lock", ".lease")) and len(name.partition(".")[0]) == 2 * _DIGEST):
            continue
        remove_unlocked(f"{folder}/{name}")


def remove_unlocked(place: str) -> None:
    """Remove a file that no process has locked, if possible."""
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        if lock_file(descriptor):
            remove_locked(place, descriptor)
    except OSError:
        pass  # it only takes room
    finally:
        close(descriptor)


def open_lock(place: str) -> int:
    """Open the file of a lock; it is made if there is none."""
    return os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def take_lock(descriptor: int, place: str, *, shared: bool = False) -> bool | None:
    """Lock the file of `open_lock`; the descriptor is closed if that fails.

    Returns False if another holds it, and None if the path leads to no or another file by now: its
    last holder or a cleaner of temp folders may have removed it, and others will lock a new one.
    """
    is_held: bool | None = None
    try:
        if not lock_file(descriptor, shared=shared):
            return False
        is_held = os.path.samestat(os.fstat(descriptor), os.stat(place)) or None
    except FileNotFoundError:
        pass
    finally:
        if not is_held:
            close(descriptor)
    return is_held


def _open_locked(place: str) -> int:
    """Take the lock: a descriptor that holds it, or -1 if another writer has it."""
    descriptor = open_lock(place)
    return descriptor if take_lock(descriptor, place) else -1
