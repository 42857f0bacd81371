"""Where an engine is found: its socket, the lock that makes it the only one, its log."""

# Every command looks here first, so it costs no pathlib.
# ruff: noqa: PTH118
from __future__ import annotations

import os

from cellwright.config.directories import runtime_directory, state_folder
from cellwright.document.costs import blake2b

# A socket's path may have 107 bytes.
_LONGEST = 100


def name_engine() -> str:
    """What tells engines apart: where their history is. A user has one place for it."""
    return blake2b(os.fsencode(state_folder()), digest_size=6).hexdigest()


def socket_path() -> str:
    """The path of the engine's socket, whether there is one or not."""
    return os.path.join(runtime_directory(), f"engine-{name_engine()}.sock")


def lock_path() -> str:
    """The file that a living engine keeps locked."""
    return os.path.join(runtime_directory(), f"engine-{name_engine()}.lock")


def history_lock_path() -> str:
    """A second file that a living engine keeps locked, where no cleaner of temp folders comes.

    It belongs to one runtime directory of one running system: the state folder may be shared by
    several machines or containers, and each has an engine of its own.
    """
    facts = [runtime_directory()]
    for place in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            if place.endswith("pid"):
                facts.append(os.readlink(place))  # noqa: PTH115
            else:
                with open(place, encoding="ascii") as file:  # noqa: PTH123
                    facts.append(file.read())
        except OSError:
            facts.append("")
    name = blake2b("\0".join(facts).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return os.path.join(state_folder(), f"engine-{name}.lock")


def starting_path() -> str:
    """The file that is locked while an engine is being started."""
    return os.path.join(runtime_directory(), f"engine-{name_engine()}.starting")


def draining_path(pid: int) -> str:
    """The socket of an engine that has made room for another."""
    return os.path.join(runtime_directory(), f"engine-{name_engine()}-{pid}.sock")


def draining_paths() -> list[str]:
    """The sockets of engines that have made room for others, also of those that died since."""
    folder, start = runtime_directory(), f"engine-{name_engine()}-"
    found = (each for each in os.listdir(folder) if each.startswith(start))  # noqa: PTH208
    return sorted(os.path.join(folder, each) for each in found if each.endswith(".sock"))


def lock_place(path: str) -> int:
    """Lock a file that others find at `path`; returns its descriptor, or -1 if another has it."""
    from cellwright.document.disk.lock import open_lock, take_lock

    while True:
        descriptor = open_lock(path)
        is_held = take_lock(descriptor, path)
        if is_held is not None:
            return descriptor if is_held else -1


def is_same_file(descriptor: int, path: str) -> bool:
    """Whether what we have open is what others will find."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116
    except OSError:
        return False


def find_pid() -> int | None:
    """The process of the engine that runs, as its lock says; None if none runs."""
    try:
        descriptor = lock_place(lock_path())
        if descriptor >= 0:
            os.close(descriptor)
            return None
        with open(lock_path(), encoding="ascii") as file:  # noqa: PTH123
            return int(file.read(20))
    except (OSError, ValueError):
        return None


def log_path() -> str:
    """The file that an engine writes its log to."""
    return os.path.join(state_folder(), "engine.log")


class SocketAddress:
    """A path that fits into a socket address, inside the `with` block."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= _LONGEST or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
            return self._path
        folder, file = os.path.split(self._path)
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{file}"

    def __exit__(self, *_: object) -> None:
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1
