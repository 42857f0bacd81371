"""The workspaces of a server's clients, in the engine or in this process."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING

from cellwright.errors import EngineError
from cellwright.workspace.local import AsyncLocalApi
from cellwright.workspace.workspace import AsyncWorkspace, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.workspace.requests import Mode

_MOST_CLIENTS = 64  # clients of one server that are told apart
_TRIES, _PAUSE = 10, 0.5


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
        self.root = root
        self.mode = mode
        self._engine = engine
        self._say = say
        self._open: dict[str, AsyncWorkspace] = {}
        self._here: Workspace | None = None
        self._was_connected = False
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
                    actor = "mcp:others"
                found = self._open.get(actor) or await self._connect(actor)
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
        if self._here is not None:
            await asyncio.to_thread(self._here.close)
            self._here = None

    async def _connect(self, actor: str) -> AsyncWorkspace:
        if self._engine and self._here is None:
            found = await self._connect_to_engine(actor)
            if found is not None:
                return found
        if self._here is None:
            self._here = Workspace(self.root, cwd=self.root, mode=self.mode, actor=actor)
        guest = Workspace(self.root, cwd=self.root, mode=self.mode, actor=actor, hub=self._here.hub)
        return AsyncWorkspace(
            self.root, cwd=self.root, mode=self.mode, actor=actor, api=AsyncLocalApi(guest)
        )

    async def _connect_to_engine(self, actor: str) -> AsyncWorkspace | None:
        from cellwright.engine.aio import connect

        # An engine that has just left makes room for the next. A client that gives up too soon
        # would have kernels of its own beside those of the others.
        patience = _TRIES if self._was_connected else 1
        while True:
            try:
                found = await connect(self.root, cwd=self.root, mode=self.mode, actor=actor)
            except (EngineError, OSError) as error:
                patience -= 1
                if not patience:
                    self._say(f"{error}; working in this process alone")
                    return None
                await asyncio.sleep(_PAUSE)
            else:
                self._was_connected = True
                return found


def wants_engine() -> bool:
    """Whether the settings let a server use the engine; where `CI` is set, only `always` does."""
    from cellwright.config.loading import load

    setting = load().engine
    if setting == "auto":
        return os.environ.get("CI", "").lower() in {"", "0", "false"}
    return setting == "always"


def actor_name(client: str, place: str) -> str:
    """The actor of a client in the history: `mcp:name-place`."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", client).strip("-")[:40] or "client"
    return f"mcp:{name}-{place}" if place else f"mcp:{name}"
