"""Sessions in a process that may open few files, as `ulimit -n` would have it.

python -m tests.kernels.crowding KIND FOLDER LIMIT SESSIONS
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from functools import partial
from pathlib import Path

from cellwright.config.settings import Settings
from cellwright.kernel.pool import SessionPool
from cellwright.kernel.session import Key
from cellwright.kernel.transport import Code
from tests.kernels.fleet import KINDS, launch


async def main(name: str, folder: str, limit: int, wanted: int) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    dropped = 0

    async def start() -> object:
        kernel = kind.make(launch(kind, Path(folder)))
        await kernel.start()
        return kernel

    async def release() -> None:
        nonlocal dropped
        dropped += 1

    statuses = []
    async with SessionPool(Settings(eval_sessions_kept=wanted), release_spare=release) as pool:
        # What is opened once, loop and libraries, is open before the limit is set.
        await (await pool.get(Key("first", folder), partial(start))).run(Code("1"))  # type: ignore[arg-type]
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        most = 0
        for number in range(wanted):
            session = await pool.get(Key(str(number), folder), partial(start))  # type: ignore[arg-type]
            ran = await session.run(Code(str(number)), timeout=60)
            statuses.append(ran.outcome.status)
            most = max(most, len(pool))
        kept = len(pool)
    sys.stdout.write(
        json.dumps({"statuses": statuses, "kept": kept, "most": most, "dropped": dropped})
    )


if __name__ == "__main__":
    words = sys.argv[1:]
    asyncio.run(main(words[0], words[1], int(words[2]), int(words[3])))
