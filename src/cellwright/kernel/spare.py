"""One kernel started ahead of need, so that a first cell does not wait for an interpreter."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from cellwright.kernel.environment import MANAGED
from cellwright.kernel.transport import Code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.kernel.transport import Launch, Transport


class Spare:
    """At most one kernel that has run nothing yet.

    It stands in for a kernel of the same interpreter, kernelspec and variables alone: what a
    program reads when it starts, such as `PYTHONPATH`, cannot be changed later. The folder and
    the variables of a session can, and are.
    """

    def __init__(self, make: Callable[[Launch], Transport], *, enabled: bool = True) -> None:
        self._make = make
        self._enabled = enabled
        self._wanted: Launch | None = None
        self._starting: asyncio.Task[Transport] | None = None
        self._ending: asyncio.Future[None] | None = None  # kept, or nobody would finish it

    def prepare(self, launch: Launch) -> None:
        """Start a kernel like that one in the background, unless there is one."""
        wanted = _without_place(launch)
        if not self._enabled or (self._starting is not None and self._wanted == wanted):
            return
        old, self._starting = self._starting, None
        self._wanted = wanted
        self._starting = asyncio.create_task(self._start(launch, old))

    async def _start(self, launch: Launch, old: asyncio.Task[Transport] | None) -> Transport:
        await _end(old)
        kernel = self._make(launch)
        await kernel.start()
        return kernel

    async def take(self, launch: Launch) -> Transport | None:
        """The spare, in the right folder, if it can stand in for that kernel; it is then gone."""
        if self._starting is None or self._wanted != _without_place(launch):
            return None
        starting, self._starting = self._starting, None
        try:
            kernel = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._forget(starting)
            raise
        except Exception:  # noqa: BLE001  # whoever starts one in its place gets its own error
            return None
        if not kernel.is_alive:
            await kernel.shutdown(now=True)
            return None
        managed = {name: launch.env.get(name) for name in MANAGED}
        move = Code("", cwd=launch.cwd, env=managed, silent=True, store_history=False)
        async for _ in kernel.execute(move):
            pass
        return kernel

    def _forget(self, starting: asyncio.Task[Transport]) -> None:
        self._ending = asyncio.ensure_future(_end(starting))

    async def release(self) -> None:
        """End the spare."""
        starting, self._starting = self._starting, None
        await _end(starting)


async def _end(starting: asyncio.Task[Transport] | None) -> None:
    if starting is None:
        return
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        kernel = await starting
        await kernel.shutdown(now=True)


def _without_place(launch: Launch) -> Launch:
    env = {
        name: value for name, value in launch.env.items() if name not in {*MANAGED, "PWD", "OLDPWD"}
    }
    return replace(launch, cwd="", env=env)
