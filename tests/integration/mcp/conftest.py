from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.engines import move_to_places
from tests.integration.mcp.process import LOOPBACK, Served, make_root, served

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Served]:
    """A server over HTTP for all tests that leave it as it was, each with notebooks of its own."""
    with (
        TemporaryDirectory(prefix="cw", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        move_to_places(patch, Path(folder))
        patch.setenv("CELLWRIGHT_ENGINE", "never")
        patch.setenv("CELLWRIGHT_SPARE_KERNEL", "false")
        with served(make_root(Path(folder)), f"{LOOPBACK}:0") as server:
            yield server
