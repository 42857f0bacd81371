"""What the engine does for its clients: verbs in, answers out, and when to leave."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import os
import threading
import time
from bisect import bisect
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

from cellwright import __version__
from cellwright.engine import wire
from cellwright.engine.editors import Editors
from cellwright.errors import (
    CellwrightError,
    EngineDraining,
    ExecutionCancelled,
    InvalidCall,
    RunNotFound,
    UnsafeDirectory,
)
from cellwright.workspace.activity import act_for, is_abandoned
from cellwright.workspace.api.requests import parse_request
from cellwright.workspace.caller import Caller
from cellwright.workspace.hub import Hub
from cellwright.workspace.paths import real_path
from cellwright.workspace.runs.run import Turns
from cellwright.workspace.verbs import perform_on_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from cellwright.config.settings import Settings
    from cellwright.engine.connection import Connection
    from cellwright.kernel.events import InputRequested
    from cellwright.workspace.api.requests import Request

    _Call = tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]
    _Kind = tuple[int, bool]  # how large the notebook is, and whether it is analysed

log = logging.getLogger("cellwright.engine")

_LAST_WORDS = 2.0
_LOOK_EVERY = 0.5
_THREADS_WITHIN = 5.0
_TOUCH_EVERY = 3600.0  # cleaners of temp folders take what is old
_FILE_THREADS = 16
_OTHER_THREADS = 8
_FILLED_WITHIN = 5.0
_CALLS_AT_ONCE = 4  # of one process
_LARGE_FILES = (128 * 2**10, 4 * 2**20)  # the huge do not keep the large waiting
_LARGE_AT_ONCE = 2
_COLLECT_AFTER = 20  # sessions that have ended


class _Share(dict["_Kind", asyncio.Semaphore]):
    """How many calls of one process are worked on at once, by kind."""

    def __missing__(self, kind: _Kind) -> asyncio.Semaphore:
        self[kind] = made = asyncio.Semaphore(1 if kind[0] else _CALLS_AT_ONCE)
        return made


class Service:
    """All clients, their workspaces, and the one hub behind them."""

    def __init__(self, settings: Settings, socket: str) -> None:
        self.settings = settings
        # Calls that wait for a kernel must not keep others from their files.
        self._files = FileThreads(_FILE_THREADS)
        self.hub = Hub(
            settings,
            loop=asyncio.get_running_loop(),
            holder="the engine",
            call_in_thread=self._files.submit,
            extend=Caller.extend_hub,
        )
        self._editors = Editors(self.hub)
        self.leaving = asyncio.Event()
        self.is_draining = asyncio.Event()
        self.draining = ""
        self.move(socket)
        self._began = time.time()
        self._busy = time.monotonic()
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._clients: dict[Connection, Caller] = {}
        self._numbers = itertools.count(1)
        self._writes = Turns()
        self._large_files: dict[_Kind, asyncio.Semaphore] = defaultdict(
            partial(asyncio.Semaphore, _LARGE_AT_ONCE)
        )
        self._shares: dict[Connection, _Share] = {}
        asyncio.get_running_loop().set_default_executor(_make_full_pool(_OTHER_THREADS, "other"))

    # -- clients ----------------------------------------------------------------------------

    async def serve(self, client: Connection) -> None:
        """Serve a client until it is gone."""
        serving = self._connections[client] = asyncio.ensure_future(client.serve())
        try:
            await serving
        finally:
            del self._connections[client]
            await self._editors.forget(client)
            self._forget(client)

    async def handle(
        self, client: Connection, number: int | str, method: str, params: dict[str, Any]
    ) -> Any:
        """Answer one call of a client."""
        # These two before any greeting: a client of another version needs them to get rid of us.
        caller = self._clients.get(client)
        if method == "status":
            return self.status(caller)
        if method == "stop":
            if caller is not None:
                caller.require("run", "stop the engine")
            log.info("leaving: %s said so", client.name or "a client")
            self.leaving.set()
            return self.status(caller)
        if self.leaving.is_set():
            raise EngineDraining("it is about to leave")
        self._busy = time.monotonic()
        if method == "hello":
            return self._hello(client, params)
        if caller is None:
            raise InvalidCall("say `hello` first")
        try:
            if method.startswith("editor."):
                return await self._editors.handle(client, caller, method, params)
            return await self._perform(client, caller, number, method, params)
        except RuntimeError:
            if self.leaving.is_set():  # the threads that look at files have ended
                raise EngineDraining("it is about to leave") from None
            raise
        finally:
            self._busy = time.monotonic()

    def _forget(self, client: Connection) -> None:
        """Forget a client that has disconnected; what it started continues."""
        caller = self._clients.pop(client, None)
        if caller is None:
            return
        del self._shares[client]
        self._busy = time.monotonic()
        caller.owner = None  # a run that begins later keeps no kernel alive in its name
        self.hub.warnings.forget(client.name)
        if self.hub.has_kernels:
            self.hub.sessions.pool.detach(client.name)
        log.info("%s is gone", client.name)

    def _hello(self, client: Connection, params: dict[str, Any]) -> dict[str, Any]:
        wire.check_hello(params)
        if client in self._clients:
            raise InvalidCall("`hello` was said already")
        self._check_version(params["wire"])
        if self.draining:
            raise EngineDraining(self.draining)
        wire.check_same_files(params)
        client.name = f"{params['actor']}#{next(self._numbers)}"
        self._clients[client] = Caller(
            params["root"],
            cwd=params["cwd"],
            mode=params["mode"],
            actor=params["actor"],
            environ=params["environ"],
            withheld=params.get("withheld"),
            server_token=params.get("server_token"),
            hub=self.hub,
            owner=client.name,
        )
        # A process whose threads call at the same time has a connection for each of them.
        same = (self._shares[each] for each in self._shares if each.process == client.process)
        self._shares[client] = next(same, _Share())
        log.info("%s is here, mode %s", client.name, params["mode"])
        return {"wire": wire.VERSION, "version": __version__, "pid": os.getpid()}

    def _check_version(self, theirs: int) -> None:
        if theirs > wire.VERSION:
            # Newer clients need a newer engine, which can start once this one lets go.
            self.drain(f"it speaks version {wire.VERSION}, not {theirs}")
            raise EngineDraining(self.draining)
        if theirs < wire.VERSION:  # an old client does not end a new engine
            raise EngineDraining(f"it speaks version {wire.VERSION}, and you {theirs}")

    async def _perform(
        self,
        client: Connection,
        caller: Caller,
        number: int | str,
        verb: str,
        params: dict[str, Any],
    ) -> Any:
        can_ask = params.pop("can_ask", False) is True
        listens = params.pop("silent", False) is not True
        whole = params.pop("whole", False) is True
        callbacks = self._make_callbacks(
            client, number, can_ask=can_ask, listens=listens, whole=whole
        )
        request = parse_request(verb, params, **callbacks)
        if request.runs_cells and self.draining and not self._has_session(caller, request):
            raise EngineDraining(self.draining)
        try:
            with act_for(client.name, callbacks["until"]):
                work: Awaitable[Any] = self._take_turn(client, caller, request)
                # A call that only looks on ends when it is stopped; one that runs cells stops its
                # run, and one that asks `until` answers by itself.
                if request.waits and request.effect == "read" and "until" not in request.FIELDS:
                    work = task = asyncio.ensure_future(work)
                    client.on_stop(number, task.cancel)
                return request.encode_answer(await work)
        except asyncio.CancelledError:
            if not client.is_stopped(number):
                raise
            return None  # no one reads it

    async def _take_turn(self, client: Connection, caller: Caller, request: Request[Any]) -> Any:
        """Carry a request out when it is its turn.

        Threads of Python share one processor, and there are few of them. So a few calls of a
        process are worked on at once, of large notebooks one, and few of those at all: whoever
        asks for much waits for itself. Who holds what others wait for waits for no own call.
        """
        if request.waits:
            return await perform_on_loop(caller, request)
        path = getattr(request, "path", None)
        real = None if path is None else _find_real(caller, path)
        size = 0 if real is None else bisect(_LARGE_FILES, _measure(real))
        kind = size, request.VERB == "stale" or bool(getattr(request, "stale", False))
        async with contextlib.AsyncExitStack() as turns:
            await turns.enter_async_context(self._shares[client][kind])
            if real is not None and request.effect == "edit":
                # Writers of one notebook take turns here, and not by polling its lock in threads.
                await turns.enter_async_context(self._writes.take(real))
            if size:
                await turns.enter_async_context(self._large_files[kind])
            if request.effect == "read" and is_abandoned():
                raise ExecutionCancelled  # its client went while it waited
            return await perform_on_loop(caller, request)

    def _has_session(self, caller: Caller, request: Request[Any]) -> bool:
        """Whether the session that a call would run in is there already."""
        name = caller.name_session(getattr(request, "session", "default"))
        if "path" in request.FIELDS:
            name = _find_real(caller, request.path)  # type: ignore[attr-defined]
        pool = self.hub.sessions.pool if self.hub.has_kernels else ()
        return any(session.key.session == name for session in pool)

    def _make_callbacks(
        self, client: Connection, number: int | str, *, can_ask: bool, listens: bool, whole: bool
    ) -> dict[str, Any]:
        """Return what a verb may call while it works."""

        def progress(event: dict[str, Any]) -> None:
            if event.keys() == {"run"}:  # stopping the call means stopping what it has started
                client.on_stop(number, partial(self._cancel, event["run"]))
            if listens:
                client.tell(number, event, whole=whole)

        async def ask(request: InputRequested) -> str | None:
            question = {"prompt": request.prompt, "password": request.password}
            found = await client.call("ask", {"call": number, **question})
            return found if isinstance(found, str) else None

        def is_over() -> bool:
            return client.is_stopped(number) or self.leaving.is_set()

        return {"progress": progress, "until": is_over, **({"ask": ask} if can_ask else {})}

    def _cancel(self, run: str) -> None:
        with contextlib.suppress(RunNotFound):
            self.hub.runs.get(run).cancel()

    # -- the engine itself ------------------------------------------------------------------

    def status(self, caller: Caller | None = None) -> dict[str, Any]:
        """Who it is, and what it has to do, as far as that exists for a caller."""
        pool = list(self.hub.sessions.pool) if self.hub.has_kernels else []
        runs = self.hub.runs.list() if self.hub.has_runs else []
        if caller is not None:
            pool = [session for session in pool if caller.knows(session.key.origin)]
            runs = [run for run in runs if caller.knows(self.hub.runs.get(run.run).origin)]
        return {
            "pid": os.getpid(),
            "socket": self.socket,
            "version": __version__,
            "wire": wire.VERSION,
            "seconds": round(time.time() - self._began, 3),
            "draining": self.draining or None,
            "clients": [client.name for client in self._clients],
            "sessions": [session.to_json() for session in pool],
            "runs": [run.to_json() for run in runs],
        }

    def drain(self, reason: str) -> None:
        """Take no new clients and no new sessions, and leave when there is nothing left to do."""
        if not self.draining:
            log.info("draining: %s", reason)
            self.draining = reason
            self.is_draining.set()

    @property
    def is_empty(self) -> bool:
        """Whether it has no client, no run and no session."""
        if self._clients or (self.hub.has_runs and self.hub.runs.has_active):
            return False
        return not self.hub.has_kernels or not len(self.hub.sessions.pool)

    @property
    def has_socket(self) -> bool:
        """Whether what is at the path of its socket is its socket, and not another engine's."""
        return self._place is not None and wire.identify_file(self.socket) == self._place

    def move(self, socket: str) -> None:
        """Be found at this path from now on."""
        self.socket = socket
        self._place = wire.identify_file(socket)

    async def watch(self, restore: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Return when it is time to leave: told to, or idle and empty for long.

        If its socket was deleted, `restore` makes it reachable again; where that fails, it drains.
        """
        touched, collected = time.monotonic(), 0
        await self._sweep_locks()
        while not self.leaving.is_set():
            ended = self.hub.sessions.pool.ended if self.hub.has_kernels else 0
            if ended - collected >= _COLLECT_AFTER:
                collected = ended
                gc.collect()  # what a session leaves refers to itself; elsewhere that is seldom so
            if not self.draining and not self.has_socket and not await self._restore(restore):
                self.drain("its socket is gone, so it cannot be reached")
            if time.monotonic() - touched > _TOUCH_EVERY:
                touched = time.monotonic()
                self.hub.leases.touch()
                await self._sweep_locks()
                with contextlib.suppress(OSError):
                    os.utime(self.socket)
            idle = time.monotonic() - self._busy
            patience = _LOOK_EVERY if self.draining else self.settings.engine_idle_timeout
            if self.is_empty and idle >= patience:
                log.info("leaving: idle for %.0f s", idle)
                self.leaving.set()
                return
            try:
                await asyncio.wait_for(self.leaving.wait(), timeout=min(_LOOK_EVERY, patience))
            except TimeoutError:
                continue

    async def _restore(self, restore: Callable[[], Awaitable[bool]] | None) -> bool:
        try:
            if restore is None or not await restore():
                return False
        except (OSError, UnsafeDirectory) as error:
            log.warning("it cannot listen again: %s", error)
            return False
        self.move(self.socket)
        log.info("listening again on %s, which was deleted", self.socket)
        for real in self.hub.leases.renew():
            log.warning("another process has taken the lease of %s", real)
        return True

    async def _sweep_locks(self) -> None:
        """Remove what killed processes left in the runtime folder."""
        from cellwright.config.directories import runtime_directory
        from cellwright.document.disk.lock import sweep

        with contextlib.suppress(OSError, CellwrightError):
            await asyncio.to_thread(sweep, runtime_directory())

    async def close(self) -> None:
        """End all kernels, and let go of everything; wait for no thread that is stuck."""
        self.leaving.set()
        await self.hub.end_kernels()
        # Not here, but in a thread: what still works there may need this loop.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_THREADS_WITHIN):
                await self._files.end()
        clients = dict(self._connections)
        if clients:
            await asyncio.gather(*(client.finish(_LAST_WORDS) for client in clients))
            await asyncio.wait(clients.values(), timeout=_LAST_WORDS)
        self.hub.release_resources()


class FileThreads:
    """A fixed number of threads in which what blocks is called from one event loop.

    An executor of Python's has a future of its own beside that of the loop, with locks: with caches
    that are cold, as they are after a cell, handing a call over takes twice as long.
    """

    def __init__(self, size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._ended = asyncio.Event()
        self._is_ending = False
        self._lock = threading.Lock()
        self._left = 0
        for number in range(size):
            thread = threading.Thread(target=self._serve, name=f"file-{number}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads to be had: then those there are
                if not number:
                    raise
                break
            self._left += 1

    def submit(self, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Have a thread call something, and return the future of what it returns.

        Raises:
            RuntimeError: the threads are ending.
        """
        if self._is_ending:
            raise RuntimeError("the threads are ending")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._calls.put((future, work, args))
        return future

    async def end(self) -> None:
        """Take no more calls, and wait for those there are; cancelled, leave them alone."""
        self._is_ending = True
        for _ in range(self._left):
            self._calls.put(None)
        await self._ended.wait()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, work, args = call
            if not future.cancelled():
                result, error = None, None
                try:
                    result = work(*args)
                except BaseException as raised:  # noqa: BLE001  # raised where it is waited for
                    error = raised
                with contextlib.suppress(RuntimeError):  # the loop has ended first
                    self._loop.call_soon_threadsafe(_settle, future, result, error)
                del result, error
            del call, future, work, args
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if is_last:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._ended.set)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _make_full_pool(size: int, name: str) -> ThreadPoolExecutor:
    """Return an executor that has all its threads from the start.

    Left to itself it starts another one whenever the last is not quite back, for hours.
    """
    pool = ThreadPoolExecutor(size, name)
    all_there = threading.Barrier(size)
    with contextlib.suppress(RuntimeError):  # no more threads to be had: then those there are
        for _ in range(size):
            pool.submit(all_there.wait, _FILLED_WITHIN)
    return pool


def _find_real(caller: Caller, path: str) -> str:
    return real_path(os.path.join(caller.cwd, path))  # noqa: PTH118


def _measure(path: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.stat(path).st_size  # noqa: PTH116
    return 0
