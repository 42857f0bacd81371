"""Two clients of one program are two actors, on every transport; a stated key names one again."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cellwright import read
from tests.integration.mcp.process import parameters
from tests.unit.mcp.serving import ERAS, notebook, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.integration.mcp.process import Served

    Connect = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def transport(kind: str, server: Served) -> AsyncIterator[Connect]:
    """Connects clients of one program, with a key or without."""
    async with AsyncExitStack() as stack:
        if kind == "stdio":
            root = server.root

            async def connect(key: str = "") -> Any:
                words = ("--client", key) if key else ()
                return await stack.enter_async_context(Client(parameters(root, *words)))

        else:

            async def connect(key: str = "") -> Any:
                headers = {"Authorization": f"Bearer {server.token}"}
                headers |= {"Cellwright-Client": key} if key else {}
                http = httpx2.AsyncClient(headers=headers, timeout=60)
                await stack.enter_async_context(http)
                wire = streamable_http_client(server.url, http_client=http)
                return await stack.enter_async_context(Client(wire, mode=kind))

        yield connect


async def edit(client: Any, path: Path, source: str, cell: str = "a") -> str:
    """Edit the cell; returns the id of the change."""
    edits = [{"op": "replace", "cell": cell, "source": source}]
    done = await client.call_tool("notebook_edit", {"path": path.name, "edits": edits})
    assert not done.is_error, text_of(done)
    return str(done.meta["cellwright/facts"]["change"])


async def undo(client: Any, path: Path, **words: str) -> Any:
    arguments = {"path": path.name, "action": "undo", **words}
    return await client.call_tool("notebook_history", arguments)


@pytest.mark.parametrize("kind", ["stdio", *ERAS])
async def test_a_client_does_not_undo_what_another_of_its_program_did(
    kind: str, shared_server: Served
) -> None:
    path = notebook(shared_server.root / f"others-{kind}.ipynb", ("a", "0"))
    async with transport(kind, shared_server) as connect:
        first, second = await connect(), await connect()
        change = await edit(first, path, "1")
        refused = await undo(second, path)
        assert refused.is_error
        assert change in text_of(refused), "the change is named, and who made it"
        assert "mcp:" in text_of(refused)
        assert read(path).cells[0].source == "1"
        asked = await undo(second, path, change=change)
        assert not asked.is_error, text_of(asked)
        assert read(path).cells[0].source == "0"


@pytest.mark.parametrize("kind", ["stdio", *ERAS])
async def test_a_client_that_states_a_key_undoes_its_own_after_a_reconnect(
    kind: str, shared_server: Served
) -> None:
    path = notebook(shared_server.root / f"mine-{kind}.ipynb", ("a", "0"), ("b", "0"))
    async with transport(kind, shared_server) as connect:
        mine, other = await connect("ada"), await connect("bob")
        await edit(mine, path, "1")
        await edit(other, path, "9", "b")
        again = await connect("ada")
        done = await undo(again, path)
        assert not done.is_error, text_of(done)
        assert [cell.source for cell in read(path).cells] == ["0", "9"]
