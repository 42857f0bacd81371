"""The workspaces of a server's clients, in the engine or in this process."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from cellwright.app.workspaces import SharedWorkspaces, name_actor

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.workspace.api.requests import Mode
    from cellwright.workspace.workspace import AsyncWorkspace

_MOST_CLIENTS = 64  # clients of one server that are told apart
OTHERS = "mcp:others"
"""The actor of all clients beyond those."""


class ClientWorkspaces:
    """One workspace for each client, so that each undoes its own changes.

    Args:
        root: no path may lead out of it; relative ones begin there.
        mode: what is allowed.
        engine: whether the background engine is used; otherwise kernels live and die here.
        say: gets a sentence for the log.
    """

    def __init__(
        self, root: str, mode: Mode, *, engine: bool, say: Callable[[str], object]
    ) -> None:
        self.mode = mode
        self._shared = SharedWorkspaces(root, engine=engine, warn=say)
        self._open: dict[str, AsyncWorkspace] = {}
        self._turn = asyncio.Lock()

    async def get(self, actor: str) -> AsyncWorkspace:
        """The workspace of a client, connected when it is first asked for."""
        found = self._open.get(actor)
        if found is not None:
            return found
        async with self._turn:
            found = self._open.get(actor)
            if found is None:
                if len(self._open) >= _MOST_CLIENTS:
                    actor = OTHERS
                found = self._open.get(actor) or await self._shared.connect(actor, self.mode)
                self._open[actor] = found
        return found

    async def drop(self, lost: AsyncWorkspace) -> None:
        """Drop a workspace whose engine went away; the next call connects again."""
        for actor, workspace in list(self._open.items()):
            if workspace is lost:
                del self._open[actor]
                await lost.close()

    async def reconnect(self, lost: AsyncWorkspace) -> AsyncWorkspace:
        """The workspace of the same client, connected again."""
        await self.drop(lost)
        return await self.get(lost.actor)

    async def close(self) -> None:
        """Disconnect: runs in the engine are not stopped, kernels of this process end."""
        while self._open:  # a call that is cut off meanwhile may add one
            _, workspace = self._open.popitem()
            await workspace.close()
        await self._shared.close()


def actor_name(client: str, place: str) -> str:
    """The actor of a client in the history: `mcp:name-place`."""
    name, place = (
        re.sub(r"[^A-Za-z0-9._]+", "-", each).strip("-")[:40] for each in (client, place)
    )
    name = name or "client"
    return name_actor("mcp", f"{name}-{place}" if place else name)
