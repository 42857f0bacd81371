"""`python -m cellwright.engine [READY]`: be the engine, until told to stop or idle for long.

READY is a descriptor that gets `ready`, or why not, and is then closed. Commands start it through
`cellwright.app.engine`, which adds what only the rooms above know.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
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
from cellwright.engine.launch import find_peer, find_peer_process, is_reachable
from cellwright.engine.service import Service
from cellwright.errors import UnsafeDirectory
from cellwright.kernel.processes import hide_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from cellwright.config.settings import Settings

log = logging.getLogger("cellwright.engine")

_LOG_BYTES = 2**20
_WAIT_FOR_ANOTHER = 20.0
_TURN = 0.001  # seconds of a busy thread until the loop has its turn
# A notebook is thousands of objects that last: looking at all of them after every 700 new ones
# takes as long as the work on it.
_COLLECT_AFTER = (20_000, 20, 20)


def main() -> int:
    """Run the engine; returns the exit code."""
    ready = _Ready(int(sys.argv[1]) if len(sys.argv) > 1 else -1)
    if ready.is_awaited and os.fork():
        return 0  # the process that started us need not wait for our end
    code = 0
    hide_memory()
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        locks = _EngineLocks.take()
        if locks is not None:
            _keep_log()
            from cellwright.config.loading import load

            # The user's settings, and no project's: it serves all of them.
            _run(_serve(load("/"), locks, ready))
        ready.tell("ready")  # at the latest now: another was faster, and will be found
    except Exception as error:
        log.exception("the engine failed")
        ready.tell(f"{type(error).__name__}: {error}")
        code = 1
    # Not the usual way out, which waits for threads.
    logging.shutdown()
    os._exit(code)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run the loop, and wait for no thread at its end, as `asyncio.run` would."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(work)


class _EngineLocks:
    """The locks of the only engine: beside its socket, and beside its history.

    Who deletes the runtime folder deletes the first, but not the second, which keeps another
    engine from starting until this one has bound its socket again.
    """

    def __init__(self, history: int, runtime: int) -> None:
        self._history = history
        self._runtime = runtime
        self._sign()

    @classmethod
    def take(cls) -> _EngineLocks | None:
        """Take both; None if another engine has them and can be used."""
        deadline = time.monotonic() + _WAIT_FOR_ANOTHER
        while True:
            history = _lock_history()
            if history is not None:
                runtime = location.lock_place(location.lock_path())
                if runtime >= 0:
                    return cls(history, runtime)
                _close(history)
            # It listens, or is about to; or it does not listen any more, and is about to leave.
            if is_reachable() or time.monotonic() > deadline:
                return None
            time.sleep(0.02)

    def renew(self) -> bool:
        """Lock the file beside the socket again, if it was deleted; false if another has it."""
        path = location.lock_path()
        if location.is_same_file(self._runtime, path):
            return True
        fresh = location.lock_place(path)
        if fresh < 0:
            return False
        _close(self._runtime)
        self._runtime = fresh
        self._sign()
        return True

    def release(self) -> None:
        """Make room for another engine."""
        _close(self._runtime)
        _close(self._history)
        self._runtime = self._history = -1

    def _sign(self) -> None:
        """Write down who we are, for those who get no answer from us."""
        with contextlib.suppress(OSError):  # a full disk
            os.truncate(self._runtime, 0)
            os.pwrite(self._runtime, str(os.getpid()).encode(), 0)


def _lock_history() -> int | None:
    """The lock beside the history; -1 if there can be none, None if another engine has it."""
    path = location.history_lock_path()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        descriptor = location.lock_place(path)
    except OSError:
        return -1
    return descriptor if descriptor >= 0 else None


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        with contextlib.suppress(OSError):
            os.close(descriptor)


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


async def _serve(settings: Settings, locks: _EngineLocks, ready: _Ready) -> None:
    from cellwright.kernel.local import return_large_blocks

    return_large_blocks()
    sys.setswitchinterval(_TURN)
    path = location.socket_path()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108  # of an engine that died: we have its lock
    listener = _bind(path)
    service = Service(settings, path)

    async def listen(listener: socket.socket) -> asyncio.Server:
        return await asyncio.start_unix_server(
            lambda reader, writer: _client(service, reader, writer), sock=listener, limit=2**18
        )

    server = await listen(listener)

    async def restore() -> bool:
        """Be found again after the socket was deleted or replaced, or the whole runtime folder."""
        nonlocal server
        if not locks.renew():
            return False  # another engine is there
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  # whatever it is, no engine listens there: we have the lock
        fresh = await listen(_bind(path))
        server.close()
        server = fresh
        return True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, service.leaving.set)
    log.info("listening on %s", path)
    ready.tell("ready")
    draining = asyncio.ensure_future(_make_room(service, locks, listen))
    try:
        await asyncio.to_thread(_sweep)
        await service.watch(restore)
    finally:
        # New clients do not find us from now on, but those connected hear how it ends.
        draining.cancel()
        if service.has_socket:
            os.unlink(service.socket)  # noqa: PTH108
        server.close()
        await service.close()
        log.info("gone")


def _bind(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        with location.SocketAddress(path) as address:
            listener.bind(address)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


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


async def _make_room(
    service: Service, locks: _EngineLocks, listen: Callable[[socket.socket], Awaitable[object]]
) -> None:
    """Once it drains, give up name and lock, so that the next engine can have them.

    It can still be told to stop, under the name of one that is on its way out.
    """
    await service.is_draining.wait()
    with contextlib.suppress(OSError, UnsafeDirectory):  # a folder that cannot be used
        aside = location.draining_path(os.getpid())
        if service.has_socket:
            os.rename(service.socket, aside)  # noqa: PTH104
        else:  # it was removed, or it is another engine's
            await listen(_bind(aside))
        service.move(aside)
    locks.release()


async def _client(
    service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    connected: socket.socket = writer.get_extra_info("socket")
    if find_peer(connected) != os.geteuid():
        log.warning("refused a client of another user")
        writer.close()
        return
    process = find_peer_process(connected)
    await service.serve(Connection(reader, writer, service.handle, process=process))


if __name__ == "__main__":
    sys.exit(main())
