"""A Jupyter server for the kernels that run on one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.kernel.remote.servers import running
from tests.kernels import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.kernel.remote.servers import RealServer

# It looks for dead kernels every three seconds unless told otherwise.
QUICK = "--AsyncIOLoopKernelRestarter.time_to_dead=0.3"


@pytest.fixture(scope="session")
def jupyter_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with running("server", tmp_path_factory.mktemp("server"), QUICK) as server:
        yield server


@pytest.fixture(autouse=True)
def _server_if_needed(request: pytest.FixtureRequest) -> None:
    """Start the server with the first test that needs it."""
    kind = getattr(request.node, "callspec", None) and request.node.callspec.params.get("kind")
    if isinstance(kind, fleet.Kind) and kind.is_remote:
        fleet.server[:] = [request.getfixturevalue("jupyter_server")]
