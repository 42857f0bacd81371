"""An owner of a kernel for tests: starts one with a nasty family, then leaves it in one way.

Prints a line of JSON when the kernel runs. The argument says what comes then: `wait` for whoever
kills us, `shutdown`, `raise`, `restart` (and wait), or `close` the loop (and wait).
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time

from cellwright.kernel.local import LocalKernel
from cellwright.kernel.transport import Code, Launch
from tests.integration.kernel.processes import FAMILY, STUCK, start_again


async def main(route: str) -> None:
    name = os.environ.get("OWNER_KERNEL", "python3")
    kernel = LocalKernel(Launch(cwd="/", env=dict(os.environ), kernel_name=name))
    await kernel.start()
    async for event in kernel.execute(Code(FAMILY)):
        status = getattr(event, "status", None)
    assert status == "ok"
    # Once stuck, it could not even say that it is busy.
    stuck = asyncio.create_task(_run(kernel, f"time.sleep(0.1)\n{STUCK}"))
    process = kernel._process
    assert process is not None
    assert process.kept is not None
    assert process.conversation is not None
    while not process.conversation._busy_with:
        await asyncio.sleep(0.005)
    keeper, mark = process.kept.keeper_pid, process.kept.mark
    _tell(owner=os.getpid(), keeper=keeper, kernel=kernel.info.pid, mark=mark)
    if route == "wait":
        await asyncio.sleep(1000)
    elif route == "shutdown":
        await kernel.shutdown()
        await stuck
    elif route == "raise":
        raise RuntimeError("on purpose")
    elif route == "restart":
        await start_again(kernel)
        await stuck
        _tell(restarted=True)
        await asyncio.sleep(1000)
    elif route == "close":
        stuck.cancel()


async def _run(kernel: LocalKernel, source: str) -> None:
    async for _ in kernel.execute(Code(source)):
        pass


def _tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
    if sys.argv[1] == "close":
        gc.collect()
        time.sleep(1000)
