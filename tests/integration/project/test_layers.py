"""The house is easy to see: rooms on top of each other, and imports that go down only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_imports_go_down_only_and_every_room_has_its_place() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "Imports go down only KEPT" in done.stdout
