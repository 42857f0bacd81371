"""A folder with a notebook in it, for every test of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli import samples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder we are in, with the sample notebook `nb.ipynb`; our name is ada."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "ada")
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path
