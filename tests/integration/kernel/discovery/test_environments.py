"""What is installed in an environment, told from its folders where they tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelMissing
from cellwright.kernel import discovery
from cellwright.kernel.discovery import (
    choose_kernel,
    choose_python,
    find_version,
    has_ipykernel,
    inspect_interpreter,
)
from tests.integration.kernel.discovery.conftest import site_packages

if TYPE_CHECKING:
    from tests.integration.kernel.discovery.conftest import MakeVenv


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The interpreters that had to be started."""
    started: list[Path] = []
    really = discovery._run_interpreter

    def note(python: Path) -> discovery.InterpreterFacts:
        started.append(python)
        return really(python)

    monkeypatch.setattr(discovery, "_run_interpreter", note)
    return started


def test_folders_tell_without_a_start(
    tmp_path: Path, make_venv: MakeVenv, asked: list[Path]
) -> None:
    without, with_one = make_venv(tmp_path / "a"), make_venv(tmp_path / "b")
    (site_packages(with_one) / "ipykernel_launcher.py").write_text("")

    assert not has_ipykernel(without / "bin" / "python")
    assert has_ipykernel(with_one / "bin" / "python")
    assert find_version(without / "bin" / "python") == sys.version_info[:2]
    assert asked == []


@pytest.mark.parametrize("is_there", [True, False])
def test_where_more_can_be_imported_the_interpreter_is_asked_once(
    tmp_path: Path, make_venv: MakeVenv, fake_ipykernel: Path, asked: list[Path], is_there: bool
) -> None:
    venv = make_venv(tmp_path / "a", path_to=fake_ipykernel)
    if not is_there:
        (fake_ipykernel / "ipykernel_launcher.py").unlink()
    python = venv / "bin" / "python"

    assert has_ipykernel(python) == has_ipykernel(python) == is_there
    assert asked == [python]


def test_it_is_asked_again_when_its_packages_change(
    tmp_path: Path, make_venv: MakeVenv, fake_ipykernel: Path, asked: list[Path]
) -> None:
    venv = make_venv(tmp_path / "a")
    python, packages = venv / "bin" / "python", site_packages(venv)
    (packages / "other.pth").write_text(str(tmp_path))
    assert not has_ipykernel(python)

    (packages / "more.pth").write_text(str(fake_ipykernel))
    os.utime(packages, ns=(1, 1))  # clocks of file systems are coarse

    assert has_ipykernel(python)
    assert len(asked) == 2


def test_an_environment_that_shares_the_systems_packages_is_asked(
    tmp_path: Path, make_venv: MakeVenv, asked: list[Path]
) -> None:
    venv = make_venv(tmp_path / "a")
    settings = (venv / "pyvenv.cfg").read_text()
    (venv / "pyvenv.cfg").write_text(settings.replace("packages = false", "packages = true"))

    has_ipykernel(venv / "bin" / "python")

    assert len(asked) == 1


def test_an_interpreter_outside_any_environment_is_asked(asked: list[Path]) -> None:
    python = Path(sys.executable).resolve()

    assert find_version(python) == sys.version_info[:2]
    has_ipykernel(python)
    assert asked in ([python], [])  # an earlier test may have asked


def test_neither_the_folder_nor_our_variables_decide_the_answer(
    tmp_path: Path, make_venv: MakeVenv, fake_ipykernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_venv(tmp_path / "a", path_to=tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(fake_ipykernel))
    monkeypatch.chdir(fake_ipykernel)

    assert not inspect_interpreter(venv / "bin" / "python").has_ipykernel


def test_looking_around_imports_nothing_of_jupyters() -> None:
    source = (
        "import os, sys\nfrom cellwright.kernel.discovery import choose_kernel, list_specs\n"
        "choose_kernel('/', env=dict(os.environ)); list_specs(dict(os.environ))\n"
        "print(sorted(m for m in ('asyncio', 'jupyter_client', 'jupyter_core', 'traitlets', 'zmq')"
        " if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, check=True, text=True
    )

    assert done.stdout == "[]\n"


def test_a_real_ipykernel_in_a_projects_environment_is_chosen_and_can_be_started(
    tmp_path: Path, make_venv: MakeVenv
) -> None:
    ours = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages")
    venv = make_venv(tmp_path / ".venv", path_to=ours)

    choice = choose_kernel(str(tmp_path), env={"HOME": str(tmp_path.parent)})

    assert choice.python == str(venv / "bin" / "python")
    done = subprocess.run([choice.python, "-c", "import ipykernel_launcher"], check=False)
    assert done.returncode == 0


def test_something_that_is_no_interpreter_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    fake.chmod(0o755)

    with pytest.raises(KernelMissing) as caught:
        choose_python(str(tmp_path), env={"HOME": str(tmp_path)}, asked=str(fake))
    assert "no" in caught.value.message
