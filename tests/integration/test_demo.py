"""The demo is the first thing that anybody runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.all  # `./dev demo` shows it; half a minute
@pytest.mark.timeout(300)
def test_the_demo_plays_to_its_end() -> None:
    done = subprocess.run(
        [sys.executable, "examples/demo.py"],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "The file is what it was before, to the byte.\n" in done.stdout
    commands = (
        "show",
        "read",
        "edit",
        "write",
        "run",
        "stale",
        "eval",
        "artifact",
        "log",
        "backup",
        "chat",
    )
    for command in commands:
        assert f"$ cellwright {command} " in done.stdout
    assert "markdown # The wettest day" in done.stdout.replace("## ", "# ")
    assert "4 calls" in done.stdout
    assert "I cannot run cells in Ask mode" in done.stdout
