"""Environments made of folders, for the tests of this folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeVenv = Callable[..., Path]


@pytest.fixture(scope="session")
def bare_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real virtual environment with nothing in it; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def make_venv(bare_venv: Path) -> MakeVenv:
    """Make a virtual environment at a path; `path_to` adds folders to what it can import."""

    def make_venv(folder: Path, *, path_to: Path | None = None) -> Path:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(bare_venv, folder, symlinks=True)
        if path_to is not None:
            (site_packages(folder) / "more.pth").write_text(str(path_to))
        return folder

    return make_venv


@pytest.fixture
def fake_ipykernel(tmp_path: Path) -> Path:
    """A folder that holds something by the name of ipykernel."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "ipykernel_launcher.py").write_text("")
    return folder


def site_packages(venv: Path) -> Path:
    [folder] = venv.glob("lib/python3*/site-packages")
    return folder
