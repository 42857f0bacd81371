"""A process that prints a flood into a sink, and tells by how much its memory has grown.

Usage: flood.py KIND MEGABYTES FOLDER; the answer is kilobytes, seconds, lines and bytes.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cellwright.outputs.artifacts import ArtifactStore
from cellwright.outputs.sink import OutputSink

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 8192


def pieces(kind: str, size: int) -> Iterator[str]:
    if kind == "one piece":
        yield ("x" * 79 + "\n") * (size // 80)
        return
    piece = {
        "lines": ("The quick brown fox jumps over the lazy dog 0123456789 abcdefgh\n" * 128),
        "one line": "x" * PIECE,
        "open title": "\x1b]0;" + "x" * PIECE,
        "progress": "\r 50%|#####     | 5/10 [00:01<00:01]" * 230,
        "tiny": "ab\n",
    }[kind]
    for _ in range(size // len(piece)):
        yield piece


def high_water() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def main() -> None:
    kind, megabytes, folder = sys.argv[1:4]
    store = ArtifactStore(folder)
    warm = OutputSink(kept_bytes=100, spill=store.create)
    warm.feed("x" * 1000)
    warm.dump()
    flood = pieces(kind, int(megabytes) * 10**6)
    first = next(flood)
    before = high_water()
    started = time.perf_counter()
    sink = OutputSink(spill=store.create)
    sink.feed(first)
    for piece in flood:
        sink.feed(piece)
    summary = sink.dump()
    seconds = time.perf_counter() - started
    grown = high_water() - before
    print(grown, f"{seconds:.3f}", summary.total_lines, summary.raw_bytes)  # noqa: T201


if __name__ == "__main__":
    main()
