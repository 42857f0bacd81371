"""The threads in which the engine calls what blocks.

An executor of Python's has a future of its own beside that of the loop, with locks: with caches
that are cold, as they are after a cell, handing a call over takes twice as long.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Call = tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]

_FILLED_WITHIN = 5.0


class FileThreads:
    """A fixed number of threads, for calls from one event loop."""

    def __init__(self, size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
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


def make_full_pool(size: int, name: str) -> ThreadPoolExecutor:
    """Return an executor that has all its threads from the start.

    Left to itself it starts another one whenever the last is not quite back, for hours.
    """
    pool = ThreadPoolExecutor(size, name)
    all_there = threading.Barrier(size)
    with contextlib.suppress(RuntimeError):  # no more threads to be had: then those there are
        for _ in range(size):
            pool.submit(all_there.wait, _FILLED_WITHIN)
    return pool
