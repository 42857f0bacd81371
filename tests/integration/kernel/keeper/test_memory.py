"""Whether a kill was the system's, for want of memory."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from cellwright.kernel import processes
from cellwright.kernel.processes import MemoryKills

LIMIT = 64 * 2**20

OWNER = """
import asyncio, json, os, sys
from cellwright.kernel.processes import start_kept_process

async def main():
    hungry = "x = []\\nwhile True: x.append(bytearray(2**20))"
    for command in ([sys.executable, "-S", "-c", hungry], ["sh", "-c", "kill -9 $$"]):
        process = await start_kept_process(command, cwd="/", env=dict(os.environ))
        await process.wait_gone(20)
        print(json.dumps([process.exit.signal, process.exit.out_of_memory]))
        process.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("text", ["low 0\noom 1\noom_kill {}\n", "under_oom 0\noom_kill {}\n"])
def test_a_counter_that_grew_is_noticed_until_the_next_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "counter"
    file.write_text(text.format(3))
    monkeypatch.setattr(processes, "_find_group_counters", lambda: [file, tmp_path / "missing"])
    kills = MemoryKills()
    assert not kills.has_increased()

    file.write_text(text.format(4))

    assert kills.has_increased()
    kills.note()
    assert not kills.has_increased()


def test_a_file_that_tells_nothing_is_no_kill(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "counter"
    file.write_text("oom_kill many\n")
    monkeypatch.setattr(processes, "_find_group_counters", lambda: [file])
    kills = MemoryKills()
    file.unlink()

    assert not kills.has_increased()


@pytest.mark.root
def test_a_kernel_that_ate_its_memory_is_told_from_one_that_was_killed() -> None:
    group = _limited_group()
    try:
        done = subprocess.run(
            [
                *("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)),
                *(sys.executable, "-c", OWNER),
            ],
            capture_output=True,
            check=True,
            text=True,
            timeout=100,
        )
    finally:
        group.rmdir()

    assert [json.loads(line) for line in done.stdout.splitlines()] == [[9, True], [9, False]]


def _limited_group() -> Path:
    """A control group with little memory; swap would only make it slow to fill."""
    name = f"cellwright-test-{uuid.uuid4().hex[:8]}"
    old, new = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    try:
        if old.is_dir():
            group = old / name
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text(str(LIMIT))
        else:
            group = new / name
            group.mkdir()
            (group / "memory.max").write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"needs control groups with a limit of memory: {error.strerror}")
    return group
