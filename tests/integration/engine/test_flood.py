"""A client that stops reading while a cell floods it: nobody else suffers, and it hears of it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import wire
from cellwright.engine.client import EngineConnection
from cellwright.engine.launch import try_connect
from tests.engines import Engine, engine_of_its_own, greeting, wait_for
from tests.unit.cli import samples
from tests.unit.cli.calling import process

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Engine]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(samples.write(samples.code("a", "1 + 1")))
    with engine_of_its_own(monkeypatch) as engine:
        yield engine


def memory(pid: int) -> int:
    """Megabytes that a process has, and had at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise AssertionError


@pytest.mark.parametrize("lines", [100_000, pytest.param(1_000_000, marks=pytest.mark.all)])
def test_who_does_not_read_is_told_what_was_missed_and_others_do_not_notice(
    lines: int, engine: Engine
) -> None:
    flood = f"line = 'x' * 99\nfor i in range({lines}): print(line)\nprint('the end')"
    assert process("eval", "-s", "flood", "1").code == 0
    assert process("run", "nb.ipynb").code == 0
    pid = engine.pid
    before = memory(pid)
    connected = try_connect()
    assert connected is not None
    deaf = EngineConnection(connected, greeting)
    params = {"cells": [flood], "session": "flood", "timeout": 0}
    deaf._send("eval", wire.encode(wire.make_call(99, "eval", params)))

    def runs() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = engine.status()["runs"]
        return [run for run in found if run["kind"] == "eval"]

    wait_for(lambda: runs()[0]["state"] == "running", "the flood")
    slowest = 0.0
    while runs()[0]["ended"] is None:  # others work meanwhile
        began = time.monotonic()
        answer = process("run", "nb.ipynb", "--json").data
        assert answer["executions"][0]["status"] == "ok"
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 20
    grown = memory(pid) - before
    assert grown < 64, f"{grown} MB more, of {lines // 10_000} MB that nobody read"

    told = missed = 0
    while True:
        message = deaf._receive("eval", 60)
        if isinstance(message, wire.Answered):
            break
        told += message.facts.get("text", "").count("\n")
        missed += message.facts.get("missed", 0)
    deaf.close()
    assert missed > 0
    assert told < lines
    row = message.result["cells"][0]
    assert (row["status"], row["total_lines"]) == ("ok", lines + 1)
    assert row["text"].endswith("the end\n")
    # Nothing is lost: the whole is an artifact.
    part = process("artifact", row["artifact"], "--offset", str(lines * 100), "--limit", "99").text
    assert part == "the end\n"


def test_a_pipe_gets_all_of_a_flood_at_its_readers_pace(engine: Engine) -> None:
    flood = "line = 'x' * 99\nfor i in range(200_000): print(line)\nprint('the end')"
    command = [sys.executable, "-m", "cellwright", "eval", "--timeout", "0", flood]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as piped:
        assert piped.stdout is not None
        # It reads nothing until the cell has ended, long after the engine's memory for it is full.
        wait_for(lambda: any(run["ended"] for run in engine.status()["runs"]), "its end", 60)
        got = piped.stdout.read()
        assert piped.wait() == 0
    assert len(got) == 200_000 * 100 + len("the end\n")
    assert got.endswith(b"x\nthe end\n")
