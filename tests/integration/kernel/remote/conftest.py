"""The servers that all tests of this folder share, and ways to their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.remote import RemoteKernel, RemoteServer, Timeouts
from tests.integration.kernel.remote.proxy import Proxy
from tests.integration.kernel.remote.servers import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.integration.kernel.remote.servers import RealServer

# A kernel's death is seen as quickly as the server looks: every 3 s, were it not for this.
QUICK = "--AsyncIOLoopKernelRestarter.time_to_dead=0.3"


@pytest.fixture(scope="session")
def jupyter_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with running("server", tmp_path_factory.mktemp("server"), QUICK) as server:
        yield server


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with running("gateway", tmp_path_factory.mktemp("gateway"), QUICK) as server:
        yield server


@pytest.fixture(scope="module")
async def proxy(jupyter_server: RealServer) -> AsyncIterator[Proxy]:
    """A way to the Jupyter server that can be broken."""
    async with Proxy(jupyter_server.port) as way:
        yield way


@pytest.fixture(scope="module")
def server(jupyter_server: RealServer, proxy: Proxy) -> RemoteServer:
    """The Jupyter server, by way of the proxy."""
    return RemoteServer(
        proxy.url(jupyter_server.url),
        jupyter_server.token,
        timeouts=Timeouts(connect=5, request=20, reconnect=20, quiet=10),
    )


@pytest.fixture(scope="module")
async def kernel(server: RemoteServer) -> AsyncIterator[RemoteKernel]:
    """A kernel on that server, for all tests of a module that leave it alive."""
    kernel = RemoteKernel(server)
    await kernel.start()
    yield kernel
    await kernel.shutdown()


@pytest.fixture
async def mortal(server: RemoteServer) -> AsyncIterator[RemoteKernel]:
    """A kernel for one test alone, which may do with it what it likes."""
    kernel = RemoteKernel(server)
    await kernel.start()
    yield kernel
    await kernel.shutdown()
