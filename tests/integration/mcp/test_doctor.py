from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.unit.mcp.serving import notebook

if TYPE_CHECKING:
    from pathlib import Path


def test_the_doctor_makes_a_real_call_and_says_what_it_saw(tmp_path: Path) -> None:
    notebook(tmp_path / "a.ipynb", ("one", "1"))
    done = subprocess.run(
        [sys.executable, "-m", "cellwright", "doctor", "--mcp", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    found = json.loads(done.stdout)["data"]
    assert done.returncode == 0, found
    assert found["mcp"]["tools"] == 8
    assert found["mcp"]["notebooks"] == 1
    assert found["mcp"]["protocol"] == "2026-07-28"
    assert found["mcp"]["listed in"].endswith(" s")
