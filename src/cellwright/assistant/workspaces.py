"""One workspace for each mode, over the same kernels. A workspace refuses what its mode forbids."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cellwright.workspace.api.requests import Mode
    from cellwright.workspace.workspace import AsyncWorkspace

    Connect = Callable[[Mode], Awaitable[AsyncWorkspace]]
    Close = Callable[[], Awaitable[object]]


class ChatWorkspaces:
    """The workspaces of one chat; `cellwright.app.workspaces.open_chat_workspaces` makes them.

    Args:
        connect: makes the workspace of a mode.
        close: ends what these workspaces share.
    """

    def __init__(self, connect: Connect, close: Close | None = None) -> None:
        self._connect = connect
        self._close = close
        self._open: dict[Mode, AsyncWorkspace] = {}
        self._turn = asyncio.Lock()

    async def get(self, mode: Mode) -> AsyncWorkspace:
        """The workspace of a mode, made when it is first asked for."""
        async with self._turn:
            if mode not in self._open:
                self._open[mode] = await self._connect(mode)
            return self._open[mode]

    async def close(self) -> None:
        """Close the workspaces; kernels of this process end."""
        for workspace in self._open.values():
            await workspace.close()
        self._open.clear()
        if self._close is not None:
            await self._close()
