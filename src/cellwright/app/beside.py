"""A workspace of this process beside an engine: what the engine holds is asked of the engine.

A notebook has one owner. If that is the engine, a call that would be refused here is carried out
there, by the same actor; nothing has happened to the notebook before.
"""

from __future__ import annotations

import os

from cellwright.errors import OwnedElsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from cellwright.engine.aio import AsyncEngineApi
    from cellwright.engine.client import EngineApi
    from cellwright.workspace.api.requests import Request
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.workspace import AsyncWorkspaceApi, WorkspaceApi

    A = TypeVar("A")


class BesideEngine:
    """Carries requests out in this process, and in the engine if that owns the notebook."""

    def __init__(self, local: WorkspaceApi, caller: Caller) -> None:
        self._local = local
        self._caller = caller
        self._engine: EngineApi | None = None

    def call(self, request: Request[A]) -> A:
        """Carry a request out."""
        try:
            return self._local.call(request)
        except OwnedElsewhere:
            if not _is_engine_running(self._caller):
                raise
        if self._engine is None:
            from cellwright.engine.client import EngineApi

            self._engine = EngineApi(self._caller, start=False)
        return self._engine.call(request)

    def close(self) -> None:
        """End what was started here, and hang up."""
        self._local.close()
        if self._engine is not None:
            self._engine.close()


class AsyncBesideEngine:
    """As `BesideEngine`, for callers that await."""

    def __init__(self, local: AsyncWorkspaceApi, caller: Caller) -> None:
        self._local = local
        self._caller = caller
        self._engine: AsyncEngineApi | None = None

    async def call(self, request: Request[A]) -> A:
        """Carry a request out."""
        try:
            return await self._local.call(request)
        except OwnedElsewhere:
            if not _is_engine_running(self._caller):
                raise
        if self._engine is None:
            from cellwright.engine.aio import AsyncEngineApi

            self._engine = AsyncEngineApi(self._caller)
        return await self._engine.call(request)

    async def close(self) -> None:
        """End what was started here, and hang up."""
        await self._local.close()
        if self._engine is not None:
            await self._engine.close()


def _is_engine_running(caller: Caller) -> bool:
    from cellwright.engine import location

    if caller.settings.engine == "never":
        return False
    return os.path.exists(location.socket_path())  # noqa: PTH110
