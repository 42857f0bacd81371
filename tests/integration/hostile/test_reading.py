"""Reading runs nothing: every verb, tool and command that only reads, watched by `strace`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cellwright.workspace.api.requests import VERBS
from tests.conftest import ROOT, require_tool
from tests.engines import engine_of_its_own
from tests.integration.hostile import reader
from tests.integration.hostile.repository import Hostile

# The verbs that never only read, whatever their parameters.
OTHERS = {
    *("create", "eval", "cancel", "run", "edit", "write", "write_file", "upgrade"),
    *("undo", "redo", "restore", "forget"),
}


def watch(repo: Hostile, place: Path, *words: str) -> tuple[list[str], list[str]]:
    """Run the reader in the repository; returns the verbs it called and what was started."""
    trace = place / "trace"
    done = subprocess.run(
        [
            *(require_tool("strace"), "-f", "-qq", "-e", "trace=execve", "-e", "signal=none"),
            *("-o", str(trace), sys.executable, "-P", str(Path(reader.__file__)), *words),
        ],
        cwd=repo.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    started = re.findall(r'execve\("([^"]*)", \[(.*?)\]', trace.read_text())
    return done.stdout.split(), [f"{program} {words}" for program, words in started]


@pytest.fixture
def repo(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path).plant()


@pytest.mark.strace
def test_no_verb_tool_or_command_that_reads_starts_a_process(repo: Hostile, tmp_path: Path) -> None:
    called, started = watch(repo, tmp_path, str(repo.folder))

    assert set(called) == VERBS.keys() - OTHERS - set(reader.NOT_CALLED)
    assert len(started) == 1, started[1:]  # the reader itself
    assert repo.executed() == []
    assert repo.is_outside_untouched()


@pytest.mark.strace
@pytest.mark.all
def test_the_engine_starts_no_process_for_a_reader(
    repo: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of_its_own(monkeypatch, started=False):
        _, started = watch(repo, tmp_path, str(repo.folder), "engine")

    assert len(started) == 2, started
    assert "cellwright.app.engine" in started[1]
    assert repo.executed() == []


def test_the_doctor_runs_nothing_of_the_repository(repo: Hostile) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-m", "cellwright", "doctor", "--mcp"],
        cwd=repo.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "protocol" in done.stdout, done
    assert repo.executed() == []
