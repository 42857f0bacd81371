"""`python -m cellwright.engine [READY]`: be the engine, until told to stop or idle for long.

READY is a descriptor that gets `ready`, or why not, and is then closed. Commands start it through
`cellwright.app.engine`, which adds what only the rooms above know.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import sys
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

from cellwright.engine import location
from cellwright.engine.connection import Connection
from cellwright.engine.launch import find_peer, is_reachable
from cellwright.engine.service import Service
from cellwright.kernel.processes import hide_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.config.settings import Settings

log = logging.getLogger("cellwright.engine")

_LOG_BYTES = 2**20
_WAIT_FOR_ANOTHER = 20.0


def main() -> int:
    """Run the engine; returns the exit code."""
    ready = _Ready(int(sys.argv[1]) if len(sys.argv) > 1 else -1)
    if ready.is_awaited and os.fork():
        return 0  # the process that started us need not wait for our end
    code = 0
    hide_memory()
    try:
        lock = _only_one()
        if lock >= 0:
            _keep_log()
            from cellwright.config.loading import load

            # The user's settings, and no project's: it serves all of them.
            asyncio.run(_serve(load("/"), lock, ready))
        ready.tell("ready")  # at the latest now: another was faster, and will be found
    except Exception as error:
        log.exception("the engine failed")
        ready.tell(f"{type(error).__name__}: {error}")
        code = 1
    # Not the usual way out, which waits for threads.
    logging.shutdown()
    os._exit(code)


def _only_one() -> int:
    """The lock of the only engine, or -1 if another one is there to be used."""
    descriptor = os.open(location.lock_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _WAIT_FOR_ANOTHER
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # It listens, or is about to; or it does not listen any more, and is about to leave.
            if is_reachable() or time.monotonic() > deadline:
                os.close(descriptor)
                return -1
            time.sleep(0.02)
            continue
        if location.is_current(descriptor):
            return descriptor
        os.close(descriptor)
        descriptor = os.open(location.lock_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class _Log(RotatingFileHandler):
    """Two files of bounded size, to which also goes what Python itself complains about."""

    def doRollover(self) -> None:  # noqa: N802  # its name is logging's
        """Begin a new file."""
        super().doRollover()
        if self.stream is not None:
            os.dup2(self.stream.fileno(), 2)


def _keep_log() -> None:
    path = Path(location.log_path())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = _Log(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8", errors="replace")
    os.chmod(path, 0o600)  # noqa: PTH101
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)  # asyncio's complaints too
    log.setLevel(logging.INFO)


class _Ready:
    """Whoever started us, until they know how that went."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def is_awaited(self) -> bool:
        return self._descriptor >= 0

    def tell(self, what: str) -> None:
        """Say it, once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.write(descriptor, what.encode()[:4000])
                os.close(descriptor)


async def _serve(settings: Settings, lock: int, ready: _Ready) -> None:
    from cellwright.kernel.local import return_large_blocks

    return_large_blocks()
    path = location.socket_path()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108  # of an engine that died: we have its lock
    with location.SocketAddress(path) as address:
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(address)
        finally:
            os.umask(before)
    service = Service(settings, path)
    server = await asyncio.start_unix_server(
        lambda reader, writer: _client(service, reader, writer), sock=listener, limit=2**18
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, service.leaving.set)
    log.info("listening on %s", path)
    ready.tell("ready")
    draining = asyncio.ensure_future(_make_room(service, lock))
    try:
        await asyncio.to_thread(_sweep)
        await service.watch()
    finally:
        # New clients do not find us from now on, but those connected hear how it ends.
        draining.cancel()
        if service.has_socket:
            os.unlink(service.socket)  # noqa: PTH108
        server.close()
        await service.close()
        log.info("gone")


def _sweep() -> None:
    """End what an engine that was killed left behind: kernels, as far as they hid from their keeper."""
    from cellwright.kernel.local import sweep_leftovers

    try:
        swept = sweep_leftovers()
    except Exception:
        log.exception("the sweep failed")
    else:
        if swept:
            log.info("ended %d processes that an engine left behind", swept)


async def _make_room(service: Service, lock: int) -> None:
    """Once it drains, give up name and lock, so that the next engine can have them.

    It can still be told to stop, under the name of one that is on its way out.
    """
    await service.is_draining.wait()
    aside = location.draining_path(os.getpid())
    if service.has_socket:  # else it was removed, or it is another engine's
        os.rename(service.socket, aside)  # noqa: PTH104
    service.socket = aside
    os.close(lock)


async def _client(
    service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    connected: socket.socket = writer.get_extra_info("socket")
    if find_peer(connected) != os.geteuid():
        log.warning("refused a client of another user")
        writer.close()
        return
    await service.serve(Connection(reader, writer, service.handle))


if __name__ == "__main__":
    sys.exit(main())
