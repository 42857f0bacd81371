"""The two commands work in a copy of the sources in which nothing has been set up yet."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.integration.project.test_house import our_files

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.all, pytest.mark.timeout(900)]

# Nothing of the environment that these tests run in; only what says where packages come from.
LEFT = ("PATH", "LANG", "LC_ALL", "PYENV_ROOT", "PYENV_VERSION", "SSL_CERT_FILE")
LEFT_PREFIXES = ("PIP_", "UV_")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the next commit, and nothing else."""
    folder = tmp_path / "copy"
    for path in our_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return folder


def dev(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = copy.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in LEFT or name.startswith(LEFT_PREFIXES)
    }
    # Whoever runs the tests does so from an environment of ours.
    folders = environment["PATH"].split(os.pathsep)
    environment["PATH"] = os.pathsep.join(f for f in folders if not f.startswith(str(ROOT)))
    return subprocess.run(
        [str(copy / "dev"), *arguments],
        cwd=home,
        env={**environment, "HOME": str(home), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_sets_itself_up(copy: Path) -> None:
    done = dev(copy, "demo")
    assert done.returncode == 0, done.stderr
    assert "setting up .dev/demo" in done.stderr
    assert "The file is what it was before, to the byte.\n" in done.stdout
    assert "\nThat was it: " in done.stdout
    assert not (copy / ".venv").exists()  # the demo does not need what the tests need

    again = dev(copy, "demo")
    assert (again.returncode, again.stderr) == (0, "")  # nothing changed, nothing is set up


def test_the_tests_set_themselves_up_and_end_with_a_table(copy: Path) -> None:
    done = dev(copy, "test", "tests/unit/test_errors.py", "tests/integration/test_fresh_copy.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "setting up .venv" in done.stderr
    table = done.stdout[done.stdout.index("what ran ") :]
    ran, left_out = table.split("only ./dev test --all runs")
    assert "tests/unit " in ran
    assert "test_the_demo_sets_itself_up" in left_out
    assert ", 0 failed, 0 skipped" in table.splitlines()[-1]
