"""Run a coroutine to its end where an event loop is running already."""

from __future__ import annotations

import asyncio
import atexit
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

_own: list[asyncio.AbstractEventLoop] = []


def run_through(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for nothing; the loop that runs stays the current one."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a cell that was to run at once waits for something")


def _free_loop() -> asyncio.AbstractEventLoop:
    """A loop for cells that await something while the kernel's own loop is held up.

    It is one for all of them, so that what one cell makes with it is of use to the next; another
    only if it is held up itself.
    """
    for loop in _own:
        if not loop.is_running():
            return loop
    _own.append(asyncio.new_event_loop())
    atexit.register(_own[-1].close)
    return _own[-1]


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a loop of its own, in this thread, inside a task of another loop."""
    loop = _free_loop()
    outer = asyncio._get_running_loop()  # noqa: SLF001  # public would refuse to nest
    task = asyncio.current_task(outer) if outer is not None else None
    if task is not None and outer is not None:
        asyncio.tasks._leave_task(outer, task)  # noqa: SLF001
    asyncio._set_running_loop(None)  # noqa: SLF001
    try:
        loop.run_until_complete(work)
    finally:
        asyncio._set_running_loop(outer)  # noqa: SLF001
        if task is not None and outer is not None:
            asyncio.tasks._enter_task(outer, task)  # noqa: SLF001
