"""The extension of JupyterLab by itself: its own tests, its linter and its format."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.browser.conftest import LAB
from tests.conftest import ROOT

pytestmark = [pytest.mark.timeout(300), pytest.mark.all]


@pytest.mark.parametrize(
    "command",
    [
        ("vitest", "run", "--dir", "test"),
        ("eslint", "src", "test"),
        ("prettier", "--check", "src", "test"),
        ("tsc", "--noEmit"),
    ],
    ids=lambda command: command[0],
)
def test_the_extension_passes_its_own_checks(command: tuple[str, ...]) -> None:
    tool = ROOT / "lab" / "node_modules" / ".bin" / command[0]
    environ = {**os.environ, "PATH": f"{LAB}{os.pathsep}{os.environ['PATH']}", "CI": "1"}
    done = subprocess.run(
        [tool, *command[1:]],
        cwd=ROOT / "lab",
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
