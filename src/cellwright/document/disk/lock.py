"""A lock that lets one Cellwright process at a time write a file.

The lock is an flock on a file in the runtime directory, named after the real path. So it leaves
no file beside the notebook, and it is released when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from hashlib import blake2b

from cellwright.config.directories import runtime_directory
from cellwright.document.disk.load import close
from cellwright.errors import Locked, NotSaved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class FileLock:
    """A lock on a file, held inside its `with` block; it also separates threads of one process."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self._descriptor = -1

    def __enter__(self) -> Self:
        name = blake2b(os.fsencode(self.path), digest_size=16).hexdigest()
        place = f"{runtime_directory()}/{name}.lock"
        deadline = time.monotonic() + self.timeout
        wait = 0.001
        while True:
            try:
                self._descriptor = _try_lock(place)
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
        close(self._descriptor)
        self._descriptor = -1


def _try_lock(place: str) -> int:
    """Take the lock: a descriptor that holds it, or -1 if another writer has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(place, flags, 0o600)
    locked = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A cleaner of temp folders may have removed the file meanwhile. Then the lock is
        # useless, because the next writer makes another file.
        locked = os.path.samestat(os.fstat(descriptor), os.stat(place))
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if not locked:
            close(descriptor)
    return descriptor if locked else -1
