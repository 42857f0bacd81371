"""Connect to the engine that runs, or start one."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time

from cellwright.config.directories import lock_file
from cellwright.engine import location
from cellwright.errors import EngineDraining, EngineLost, EngineUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

_CONNECT_WITHIN = 5.0
_START_WITHIN = 30.0
_ATTEMPTS = 3


def try_connect(path: str | None = None) -> socket.socket | None:
    """Return a connection to the engine that runs, or None."""
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.settimeout(_CONNECT_WITHIN)
        with location.SocketAddress(path or location.socket_path()) as address:
            connected.connect(address)
        if find_peer(connected) == os.geteuid():
            connected.settimeout(None)
            return connected
    except OSError:
        pass
    connected.close()
    return None


def is_reachable() -> bool:
    """Whether an engine listens."""
    connected = try_connect()
    if connected is None:
        return False
    connected.close()
    return True


def find_peer(connected: socket.socket) -> int:
    """Return the user id at the other end."""
    if not hasattr(socket, "SO_PEERCRED"):  # macOS: the folder, which is ours alone, has to do
        return os.geteuid()
    return _read_credentials(connected)[1]


def find_peer_process(connected: socket.socket) -> int | None:
    """Return the process that listens at the other end, whether it answers or not."""
    return _read_credentials(connected)[0] if hasattr(socket, "SO_PEERCRED") else None


def _read_credentials(connected: socket.socket) -> tuple[int, int]:
    found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, user, _ = struct.unpack("3i", found)
    return int(pid), int(user)


def greet_engine(greet: Callable[[socket.socket], T], *, start: bool) -> T | None:
    """Return what `greet` makes of a connection to the engine; None if there is none to be had.

    If the engine is just leaving, or makes room for one of our own version, the next one is tried.

    Raises:
        EngineUnavailable: it could not be started, and why.
        EngineDraining: the one that runs takes no new work.
    """
    for attempt in range(_ATTEMPTS):
        connected = connect_or_start() if start else try_connect()
        if connected is None:
            return None
        try:
            return greet(connected)
        except (EngineDraining, EngineLost):
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.1)
    return None  # not reached


def connect_or_start() -> socket.socket:
    """Return a connection to the engine, which is started if needed.

    Raises:
        EngineUnavailable: it could not be started, and why.
    """
    deadline = time.monotonic() + _START_WITHIN
    while True:
        connected = try_connect()
        if connected is not None:
            return connected
        # An engine may have left between our start of it and our call, but not for ever.
        if time.monotonic() >= deadline:
            raise EngineUnavailable(f"it did not answer within {_START_WITHIN:g} s")
        problem = start_engine()
        if problem is not None:
            raise EngineUnavailable(problem)


def start_engine() -> str | None:
    """Start an engine that outlives us, unless there is one; returns why that failed, or None."""
    try:
        lock = os.open(location.starting_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return f"{location.starting_path()}: {error.strerror}"
    try:
        # Of many that find none at the same time one starts it, and the others wait for that.
        lock_file(lock, waits=True)
        connected = try_connect()
        if connected is not None:
            connected.close()
            return None
        return _launch()
    except OSError as error:
        return f"it cannot be started, {error.strerror}"
    finally:
        os.close(lock)


def _launch() -> str | None:
    import subprocess

    from cellwright.kernel.environment import build_kernel_environment

    reading, writing = os.pipe()
    try:
        log = _open_log()
        try:
            # Nothing of ours goes along: who waits for the end of our pipes must not wait for it.
            process = subprocess.Popen(  # noqa: S603  # our own interpreter
                [sys.executable, "-P", "-m", "cellwright.app.engine", str(writing)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[writing],
                start_new_session=True,
                cwd="/",
                env=build_kernel_environment(os.environ)[0],  # it serves clients without our keys
            )
        finally:
            os.close(log)
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    with open(reading, "rb") as said:  # noqa: PTH123
        answer = said.read().decode("utf-8", "replace")
    process.wait()  # it has left the engine to itself
    return None if answer == "ready" else answer or "it ended before it was ready"


def _open_log() -> int:
    """Open the log, for an engine that cannot even begin."""
    path = location.log_path()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
