"""When a process runs out of descriptors, idle sessions make room and the call works."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.kernels.fleet import KINDS, Kind

if TYPE_CHECKING:
    from pathlib import Path

SESSIONS = 8
REAL = [kind for kind in KINDS if kind.name in ("runner", "ipykernel 7")]


@pytest.mark.parametrize("kind", REAL, ids=str)
@pytest.mark.timeout(180)
def test_idle_sessions_make_room_when_files_run_out(kind: Kind, tmp_path: Path) -> None:
    limit = {"runner": 40, "ipykernel 7": 70}[kind.name]
    words = [sys.executable, "-m", "tests.kernels.crowding", kind.name, str(tmp_path)]
    done = subprocess.run(
        [*words, str(limit), str(SESSIONS)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["statuses"] == ["ok"] * SESSIONS
    assert found["dropped"] >= 1  # it did come to that
    assert found["kept"] < SESSIONS
