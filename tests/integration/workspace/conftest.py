"""A folder with a notebook in it, and a workspace there with real kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder we are in, with the sample notebook `nb.ipynb`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


@pytest.fixture
def workspace(folder: Path) -> Iterator[Workspace]:
    with Workspace(folder, actor="test:ada") as workspace:
        yield workspace
