"""The event loop of the kernels, for callers elsewhere: a loop in a thread, or one that runs."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    T = TypeVar("T")

_DRAIN_WITHIN = 30


class Portal:
    """Runs coroutines on the kernels' loop for callers in other threads or on other loops.

    A caller that is interrupted (Ctrl-C) or cancelled cancels what it waits for, and waits until
    that has ended: kernels are given time to obey.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._thread: threading.Thread | None = None
        self._loop = loop or asyncio.new_event_loop()
        if loop is None:
            self._thread = threading.Thread(target=self._run, name="cellwright", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result; not from the loop itself."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            # The future ends at once, its coroutine when it has cleaned up.
            self._drain()
            raise

    async def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result, from another loop or the same one."""
        if asyncio.get_running_loop() is self._loop:
            return await work
        ended = asyncio.Event()
        here = asyncio.get_running_loop()

        async def run() -> T:
            try:
                return await work
            finally:
                with contextlib.suppress(RuntimeError):  # the other loop may be closed by now
                    here.call_soon_threadsafe(ended.set)

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.cancel()
            await ended.wait()
            raise

    def _drain(self) -> None:
        async def wait_for_cancelled() -> None:
            me = asyncio.current_task()
            tasks = [task for task in asyncio.all_tasks() if task is not me and task.cancelling()]
            if tasks:
                await asyncio.wait(tasks)

        with contextlib.suppress(concurrent.futures.TimeoutError):
            waiting = asyncio.run_coroutine_threadsafe(wait_for_cancelled(), self._loop)
            waiting.result(timeout=_DRAIN_WITHIN)

    def close(self) -> None:
        """End the loop and its thread, if they are its own; nothing may be running."""
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
