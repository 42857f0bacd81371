"""Top-level await: one event loop for all cells, so that tasks live on between them."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CO_COROUTINE = 0x80
CANCEL_SECONDS = 2.0  # what an interrupted cell may take to clean up


class Loop:
    """The event loop of the cells."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def run(self, codes: list[Any], names: dict[str, Any]) -> Any:
        """Run a cell to its end, all parts inside the loop; other tasks get on meanwhile.

        A cell without an await does not come here, so that `asyncio.run` works in it.
        """
        task = self._loop.create_task(_run(codes, names))
        try:
            return self._loop.run_until_complete(task)
        except KeyboardInterrupt:
            if not task.done():
                task.cancel()
                self._loop.run_until_complete(asyncio.wait({task}, timeout=CANCEL_SECONDS))
            raise

    def run_until_readable(self, number: int) -> None:
        """Let the tasks that are left get on until there is something to read."""
        if not asyncio.all_tasks(self._loop):
            return
        self._loop.add_reader(number, self._loop.stop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.remove_reader(number)


async def _run(codes: list[Any], names: dict[str, Any]) -> Any:
    value = None
    for code in codes:
        value = eval(code, names)  # noqa: S307 (what a runner is for)
        if code.co_flags & CO_COROUTINE:
            value = await value
    return value
