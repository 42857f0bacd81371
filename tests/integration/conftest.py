"""An engine that the tests of a file share: starting one for each would cost more than they do."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines import Engine, engine_of_its_own, engine_to_share, move_to_places

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def engine_places() -> Iterator[Path]:
    """Places with an engine for all tests of a file."""
    folder = Path(tempfile.mkdtemp(prefix="cw"))
    with pytest.MonkeyPatch.context() as patch:
        move_to_places(patch, folder)
        patch.setenv("CELLWRIGHT_SPARE_KERNEL", "false")
        with engine_of_its_own(patch):
            yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def shared_engine(
    engine_places: Path,
    tmp_path: Path,  # noqa: ARG001  # kernels end before the folder that they are in
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Engine]:
    """Commands go through the engine of the file; it has no sessions and no clients afterwards."""
    with engine_to_share(engine_places, monkeypatch) as engine:
        yield engine


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest, _numbers: Iterator[int]) -> Path:
    """Give a folder by a name that no test had before: a shared engine remembers notebooks."""
    if "shared_engine" not in request.fixturenames:
        return tmp_path
    folder = tmp_path / str(next(_numbers))
    folder.mkdir()
    return folder
