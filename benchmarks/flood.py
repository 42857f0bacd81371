"""One client drowned in output, in a process of its own so that its memory can be told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from cellwright.config.settings import Settings
from cellwright.kernel.transport import Code, Launch


def _peak() -> float:
    """The most memory that this process ever had, in MB; `ru_maxrss` is inherited."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _raw(folder: str, code: str) -> dict[str, object]:
    from benchmarks.raw_client import RawClient

    client = RawClient(folder)
    client.run("1")
    base, began = _peak(), time.perf_counter()
    client.run(code)
    found: dict[str, object] = {
        "seconds": time.perf_counter() - began,
        "megabytes": _peak() - base,
    }
    client.close()
    return found


async def _ours(who: str, folder: str, code: str) -> dict[str, object]:
    from cellwright.kernel.local import LocalKernel
    from cellwright.kernel.runner import Runner
    from cellwright.kernel.session import Key, Session
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.workspace.runs.recorder import EvalRecorder

    settings = Settings()
    store = ArtifactStore(Path(folder) / "artifacts")

    async def start() -> LocalKernel | Runner:
        launch = Launch(folder, dict(os.environ), python=sys.executable)
        kernel = Runner(launch) if "runner" in who else LocalKernel(launch)
        await kernel.start()
        return kernel

    session = Session(Key("flood", folder), start, settings)
    # Everything that is loaded once is loaded before memory is looked at.
    warm = EvalRecorder(settings, store)
    ran = await session.run(Code("print('x' * 200_000)"), on_event=warm.feed)
    warm.finish(ran)
    recorder = EvalRecorder(settings, store)
    base, began = _peak(), time.perf_counter()
    ran = await session.run(Code(code), on_event=recorder.feed)
    execution = recorder.finish(ran)
    kept = None if execution.artifact is None else store.get(execution.artifact)
    found: dict[str, object] = {
        "seconds": time.perf_counter() - began,
        "megabytes": _peak() - base,
        "complete": kept is not None and not kept.truncated and kept.size == execution.total_bytes,
        "lines": execution.total_lines,
    }
    await session.close()
    return found


if __name__ == "__main__":
    name, place, source = sys.argv[1:]
    if name.startswith("raw"):
        print(json.dumps(_raw(place, source)))
    else:
        print(json.dumps(asyncio.run(_ours(name, place, source))))
