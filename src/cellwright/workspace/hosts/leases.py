"""Who may run or write a notebook: at most one process owns it at a time.

A lease is an flock on a file in the runtime directory, named after the notebook's real path, so
it is free again when its holder dies. The last holder removes the file, as for locks. Whoever runs
a notebook owns it, exclusively, for as long as it has a kernel. Whoever only writes to it shares
the lease for that moment: such writers are kept apart by the lock of the file itself.
"""

# pathlib is slow to import, and every save passes here.
# ruff: noqa: PTH116
from __future__ import annotations

import contextlib
import errno
import os
import time
from _thread import allocate_lock  # `threading` would cost every command its import

from cellwright.config.directories import lock_file, runtime_directory
from cellwright.document.disk.load import close
from cellwright.document.disk.lock import (
    name_lock,
    open_lock,
    remove_locked,
    take_lock,
)
from cellwright.errors import NotSaved, OwnedElsewhere, UnsafeDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

# A writer shares the lease for milliseconds; an owner-to-be waits for it that long.
_PATIENCE = 2.0
_DOUBT = 0.05
# What is missing for a moment says nothing about the folder.
_SHORT = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO})
_ATTEMPTS = 100


# What any hub of this process owns: its other workspaces may write there, since they see the same
# file under the same lock; only a second kernel is refused to them.
_owned_here: set[str] = set()


class Leases:
    """The leases of one hub; `holder` is how others are told about it."""

    def __init__(self, holder: str) -> None:
        self._holder = f"{holder} (process {os.getpid()})"
        self._owned: dict[str, int] = {}
        self._guard = allocate_lock()

    def own(self, real: str) -> None:
        """Own a notebook from now on, unless another process does.

        Raises:
            OwnedElsewhere: another process runs it, or an outside writer does not end.
        """
        if real in self._owned:
            return
        began = time.monotonic()
        while (descriptor := _lock(real)) < 0:
            if real in self._owned:  # by another thread, in the meantime
                return
            holder = _holder(real)
            waited = time.monotonic() - began
            # A name may be that of an owner who died, until the writer of now removes it.
            if waited > (_PATIENCE if holder is None else _DOUBT):
                raise OwnedElsewhere(real, holder or "another process")
            time.sleep(0.005)
        self._sign(descriptor)
        with self._guard:
            self._owned[real] = descriptor
            _owned_here.add(real)

    def _sign(self, descriptor: int) -> None:
        with contextlib.suppress(OSError):  # a full disk: the lease holds without our name
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, self._holder.encode(), 0)

    def owns(self, real: str) -> bool:
        """Whether this process owns a notebook."""
        return real in self._owned

    def is_held(self, real: str) -> bool:
        """Whether another hub runs a notebook now; an owner that died holds nothing."""
        if real in self._owned:
            return False
        if real in _owned_here:
            return True
        try:
            descriptor = os.open(_place(real), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # who knows
        try:
            return not lock_file(descriptor, shared=True)
        except OSError:
            return True
        finally:
            close(descriptor)

    def share(self, real: str) -> SharedLease:
        """Write to a notebook inside the `with` block of what this returns.

        Raises:
            OwnedElsewhere: another process runs it; the edit has to go through that one.
        """
        return SharedLease(real)

    def release(self, real: str) -> None:
        """Own a notebook no more."""
        with self._guard:
            descriptor = self._owned.pop(real, None)
            if descriptor is not None:
                _owned_here.discard(real)
                with contextlib.suppress(OSError, UnsafeDirectory):
                    os.truncate(descriptor, 0)
                    remove_locked(_place(real), descriptor)
                close(descriptor)

    def renew(self) -> list[str]:
        """Take leases again whose files were deleted; returns those that others have by now."""
        lost = []
        with self._guard:
            for real, old in self._owned.items():
                try:
                    if os.path.samestat(os.fstat(old), os.stat(_place(real))):
                        continue
                except FileNotFoundError:
                    pass
                descriptor = _lock(real)
                if descriptor < 0:
                    lost.append(real)
                    continue
                self._owned[real] = descriptor
                self._sign(descriptor)
                close(old)
        return lost

    def touch(self) -> None:
        """Keep the files of what is owned from looking old: cleaners of temp folders take those."""
        with self._guard:
            for descriptor in self._owned.values():
                with contextlib.suppress(OSError):
                    os.utime(descriptor)

    def close(self) -> None:
        """Own nothing any more."""
        for real in list(self._owned):
            self.release(real)


class SharedLease:
    """The lease of a notebook that is only written to, held inside its `with` block.

    With `is_optional`, it begins also on a system that cannot keep leases.
    """

    __slots__ = ("_descriptor", "_is_optional", "_place", "_real")

    def __init__(self, real: str, *, is_optional: bool = False) -> None:
        self._real = real
        self._is_optional = is_optional
        self._place = ""
        self._descriptor = -1

    def __enter__(self) -> None:
        if self._real in _owned_here:
            return
        try:
            self._place = _place(self._real)
            self._wait()
        except UnsafeDirectory:
            if not self._is_optional:
                raise

    def _wait(self) -> None:
        began = time.monotonic()
        while (descriptor := _lock(self._real, self._place, shared=True)) < 0:
            # An owner writes its name as soon as it has the lock. Who only removes the file writes
            # none, but the name of an owner who died may still be there.
            holder = _holder(self._real)
            if time.monotonic() - began > (_PATIENCE if holder is None else _DOUBT):
                raise OwnedElsewhere(self._real, holder or "another process")
            time.sleep(0.005)
        self._descriptor = descriptor
        with contextlib.suppress(OSError):
            if os.fstat(descriptor).st_size:
                os.truncate(descriptor, 0)  # the name of an owner that died

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        # The last one who shares it can have it alone, and removes the file.
        with contextlib.suppress(OSError, MemoryError):
            if lock_file(descriptor):
                remove_locked(self._place, descriptor)
        close(descriptor)


def _place(real: str) -> str:
    return f"{runtime_directory()}/{name_lock(real)}.lease"


def _lock(real: str, place: str | None = None, *, shared: bool = False) -> int:
    """Return a descriptor that holds the lease, or -1 if another holds it, or did a moment ago.

    Raises:
        UnsafeDirectory: the runtime directory cannot be written to.
        NotSaved: the system cannot lock a file there.
    """
    place = place or _place(real)
    for _ in range(_ATTEMPTS):
        try:
            descriptor = open_lock(place)
        except OSError as error:
            if error.errno in _SHORT:
                raise NotSaved(real, "lock", error.strerror or str(error)) from None
            raise UnsafeDirectory(runtime_directory(), error.strerror or str(error)) from None
        try:
            is_held = take_lock(descriptor, place, shared=shared)
        except OSError as error:
            raise NotSaved(real, "lock", error.strerror or str(error)) from None
        if is_held is not None:
            return descriptor if is_held else -1
    return -1


def _holder(real: str) -> str | None:
    """What the owner of a lease calls itself; None if it has not said."""
    try:
        with open(_place(real), encoding="utf-8") as file:  # noqa: PTH123
            return file.read(200) or None
    except OSError:
        return None
