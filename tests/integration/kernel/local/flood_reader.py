"""Read the output of one cell, given as the argument, as an engine does, and keep none of it.

Prints JSON: the characters that came, a hash of them, the status, and the megabytes that this
process needed on top of what it had before.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path

from cellwright.kernel.local import LocalKernel, return_large_blocks
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import StreamEvent


def peak() -> float:
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) / 1024


async def main(source: str) -> None:
    assert return_large_blocks()
    kernel = LocalKernel(Launch(cwd="/", env=dict(os.environ), kernel_name="python3"))
    await kernel.start()
    async for _ in kernel.execute(Code("print('warm')")):
        pass
    _forget_peak()
    before = peak()
    count, digest, status = 0, hashlib.sha256(), None
    async for event in kernel.execute(Code(source)):
        if isinstance(event, StreamEvent):
            count += len(event.text)
            digest.update(event.text.encode())
        status = getattr(event, "status", None)
    added = peak() - before
    await kernel.shutdown(now=True)
    facts = {"count": count, "hash": digest.hexdigest(), "status": status, "added": added}
    print(json.dumps(facts))  # noqa: T201


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
