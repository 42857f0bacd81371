"""Start a kernel with ever more descriptors left, until it comes up; print what happened."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource

from cellwright.errors import KernelStartFailed
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.processes import find_marked_processes
from cellwright.kernel.transport import Code, Launch

LIMIT = 256


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208


async def main() -> None:
    launch = Launch(cwd="/", env=dict(os.environ), kernel_name="python3")
    warm = LocalKernel(launch)  # everything is imported
    await warm.start()
    await warm.shutdown(now=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    before = open_descriptors()
    failed: list[str] = []
    kernel = LocalKernel(launch)
    for spare in range(0, 80, 3):
        # The limit stays as it is, because the kernel inherits it: we use ours up instead.
        taken = [
            os.open(os.devnull, os.O_RDONLY) for _ in range(LIMIT - open_descriptors() - spare)
        ]
        try:
            await kernel.start()
        except KernelStartFailed as error:
            cause = error.__cause__
            assert isinstance(cause, OSError)
            failed.append(errno.errorcode[cause.errno or 0])
        else:
            break
        finally:
            for descriptor in taken:
                os.close(descriptor)
    events = [event async for event in kernel.execute(Code("1"))]
    await kernel.shutdown(now=True)
    left = [mark for mark in find_marked_processes().values() if f"-{os.getpid()}-" in mark]
    result = {
        "failed": failed,
        "leaked": open_descriptors() - before,
        "processes": len(left),
        "after": getattr(events[-1], "status", None),
    }
    print(json.dumps(result))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
