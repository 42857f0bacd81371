"""One client drowned in output, as a process of its own so that its memory can be told.

python -m tests.kernels.drowning KIND FOLDER CODE [INTERRUPT_AFTER_SECONDS]
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from cellwright.config.settings import Settings
from cellwright.kernel.session import Key, Session
from cellwright.kernel.transport import Code
from cellwright.outputs.artifacts import ArtifactStore
from cellwright.workspace.runs.recorder import EvalRecorder
from tests.kernels.fleet import KINDS, launch


def peak() -> float:
    """The most memory this process ever had, in MB."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


async def main(name: str, folder: str, code: str, interrupt: float) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    settings = Settings()
    store = ArtifactStore(Path(folder) / "artifacts", max_artifact_bytes=300_000_000)

    async def start() -> object:
        kernel = kind.make(launch(kind, Path(folder)))
        await kernel.start()
        return kernel

    session = Session(Key("flood", folder), start, settings)  # type: ignore[arg-type]
    warm = EvalRecorder(settings, store)  # what is loaded once is loaded before
    ran = await session.run(Code("print('x' * 200_000)"), on_event=warm.feed)
    warm.finish(ran)
    recorder, base = EvalRecorder(settings, store), peak()
    if interrupt:
        asyncio.get_running_loop().call_later(interrupt, session.interrupt)
    ran = await session.run(Code(code), on_event=recorder.feed)
    done, output = recorder.finish(ran), recorder._sink.dump()
    grown = peak() - base
    after = await session.run(Code("1"))
    await session.close()
    digest = None
    if done.artifact is not None:
        digest = store.get(done.artifact).sha256
    found = {
        "status": done.status,
        "state_kept": done.state_kept,
        "seconds": done.seconds,
        "megabytes": grown,
        "lines": done.total_lines,
        "raw_bytes": output.raw_bytes,
        "artifact_bytes": output.artifact_bytes,
        "artifact_truncated": output.artifact_truncated,
        "sha256": digest,
        "kept_bytes": output.kept_bytes,
        "after": after.outcome.status,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    words = sys.argv[1:]
    asyncio.run(main(words[0], words[1], words[2], float(words[3]) if words[3:] else 0))
