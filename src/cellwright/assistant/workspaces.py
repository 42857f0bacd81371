"""One workspace for each mode, over the same kernels. A workspace refuses what its mode forbids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cellwright.workspace.local import AsyncLocalApi
from cellwright.workspace.workspace import AsyncWorkspace, Workspace

if TYPE_CHECKING:
    import os

    from cellwright.workspace.requests import Mode


Connect = Callable[["Mode"], Awaitable[AsyncWorkspace]]


class ChatWorkspaces:
    """The workspaces of one chat.

    Args:
        root: no path may lead out of it.
        cwd: relative paths begin there; by default at the root.
        actor: who the changes are by, as `chat:name`.
        connect: makes the workspace of a mode, such as one in the engine; by default kernels
            live and die in this process.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        cwd: str | None = None,
        actor: str = "chat:assistant",
        connect: Connect | None = None,
    ) -> None:
        self.root = root
        self.cwd = cwd or str(root)
        self.actor = actor
        self._connect = connect or self._make_guest
        self._here: Workspace | None = None
        self._open: dict[Mode, AsyncWorkspace] = {}
        self._turn = asyncio.Lock()

    async def get(self, mode: Mode) -> AsyncWorkspace:
        """The workspace of a mode, made when it is first asked for."""
        async with self._turn:
            if mode not in self._open:
                self._open[mode] = await self._connect(mode)
            return self._open[mode]

    async def close(self) -> None:
        """Disconnect; kernels of this process end."""
        for workspace in self._open.values():
            await workspace.close()
        self._open.clear()
        if self._here is not None:
            await asyncio.to_thread(self._here.close)
            self._here = None

    async def _make_guest(self, mode: Mode) -> AsyncWorkspace:
        if self._here is None:
            self._here = Workspace(self.root, cwd=self.cwd, actor=self.actor)
        guest = Workspace(self.root, cwd=self.cwd, mode=mode, actor=self.actor, hub=self._here.hub)
        return AsyncWorkspace(
            self.root, cwd=self.cwd, mode=mode, actor=self.actor, api=AsyncLocalApi(guest)
        )
