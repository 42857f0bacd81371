"""Environments made of folders, for the tests of this folder."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeVenv = Callable[..., Path]


@pytest.fixture
def make_venv() -> MakeVenv:
    """Make the folders of a virtual environment at a path; no interpreter has to run for it."""

    def make_venv(folder: Path, *, has_ipykernel: bool = False) -> Path:
        version = ".".join(map(str, sys.version_info[:3]))
        packages = folder / f"lib/python3.{sys.version_info[1]}/site-packages"
        packages.mkdir(parents=True)
        (folder / "bin").mkdir()
        for name in ("python", "python3"):
            (folder / "bin" / name).symlink_to(sys.executable)
        (folder / "pyvenv.cfg").write_text(f"version = {version}\n")
        if has_ipykernel:
            (packages / "ipykernel_launcher.py").write_text("")
        return folder

    return make_venv


@pytest.fixture
def venv_with_ipykernel(make_venv: MakeVenv) -> MakeVenv:
    """Make a virtual environment that has an ipykernel."""
    return partial(make_venv, has_ipykernel=True)


def site_packages(venv: Path) -> Path:
    [folder] = venv.glob("lib/python3*/site-packages")
    return folder


def write_spec(folder: Path, name: str, **more: object) -> Path:
    """A kernelspec below `folder`, which is as Jupyter's data folders are."""
    place = folder / "kernels" / name
    place.mkdir(parents=True)
    content = {"argv": ["/bin/true"], "display_name": name.title(), "language": "x", **more}
    (place / "kernel.json").write_text(json.dumps(content))
    return place
