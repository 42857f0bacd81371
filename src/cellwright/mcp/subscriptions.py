"""Notebooks that clients want to hear of: one watch for each, however many subscribed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from cellwright.errors import CellwrightError, EngineError
from cellwright.mcp.resources import NOTEBOOK, notebook_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import mcp_types as types
    from mcp.server.context import ServerRequestContext

    from cellwright.workspace.workspace import AsyncWorkspace

    Context = ServerRequestContext[Any, Any]

_MOST = 32  # a watch costs a thread where there is no engine
_GATHER = 0.2
_RETRY = 1.0


class Subscriptions:
    """Who wants to hear of which notebook, for clients of both kinds."""

    def __init__(
        self,
        workspace: Callable[[Context], Awaitable[AsyncWorkspace]],
        again: Callable[[AsyncWorkspace], Awaitable[AsyncWorkspace]],
    ) -> None:
        self._workspace = workspace
        self._again = again
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, int] = {}
        self._ends: dict[tuple[int, str], Callable[[], None]] = {}

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """A stream of changes, for as long as the client reads it."""
        uris = set(params.notifications.resource_subscriptions or ())
        begun = [uri for uri in uris if await self._want(ctx, uri)]
        try:
            return await self._listen(ctx, params)
        finally:
            for uri in begun:
                self._leave(uri)

    async def subscribe(self, ctx: Context, uri: str) -> None:
        """Tell this client of a notebook until it goes away."""
        connection = ctx.session._connection  # noqa: SLF001  # nothing else outlives the request
        key = (id(connection), uri)
        if key in self._ends or not await self._want(ctx, uri):
            return
        waiting: set[asyncio.Task[None]] = set()

        def tell(event: object) -> None:
            if event == ResourceUpdated(uri):
                task = asyncio.ensure_future(connection.send_resource_updated(uri))
                waiting.add(task)
                task.add_done_callback(waiting.discard)

        unsubscribe = self._bus.subscribe(tell)

        def end() -> None:
            if self._ends.pop(key, None) is not None:
                unsubscribe()
                self._leave(uri)

        self._ends[key] = end
        connection.exit_stack.callback(end)

    def unsubscribe(self, ctx: Context, uri: str) -> None:
        """Tell this client no more."""
        end = self._ends.get((id(ctx.session._connection), uri))  # noqa: SLF001
        if end is not None:
            end()

    async def close(self) -> None:
        """End all watches."""
        self._listen.close()
        for watch in self._watches.values():
            watch.cancel()
        await asyncio.gather(*self._watches.values(), return_exceptions=True)

    async def _want(self, ctx: Context, uri: str) -> bool:
        """Watch a notebook; anything else is never heard of, and neither is one too many."""
        if not uri.startswith(NOTEBOOK) or (
            uri not in self._watches and len(self._watches) >= _MOST
        ):
            return False
        self._wanted[uri] = self._wanted.get(uri, 0) + 1
        if uri not in self._watches:
            workspace = await self._workspace(ctx)
            self._watches[uri] = asyncio.ensure_future(self._watch(workspace, uri))
        return True

    def _leave(self, uri: str) -> None:
        self._wanted[uri] -= 1
        if not self._wanted[uri]:
            del self._wanted[uri]
            watch = self._watches.pop(uri, None)
            if watch is not None:
                watch.cancel()

    async def _watch(self, workspace: AsyncWorkspace, uri: str) -> None:
        news = asyncio.Event()

        def happened(event: dict[str, Any]) -> None:
            if event.get("event") in ("changed", "outside", "cell", "run_ended"):
                news.set()

        async def publish() -> None:
            while True:
                await news.wait()
                await asyncio.sleep(_GATHER)  # a run tells many things at once
                news.clear()
                await self._bus.publish(ResourceUpdated(uri))

        publishing = asyncio.ensure_future(publish())
        try:
            with contextlib.suppress(CellwrightError, ValueError, OSError):
                while True:
                    try:
                        await workspace.watch(notebook_path(uri)[0], progress=happened)
                    except EngineError:  # it left, or was stopped; the next one has the notebook
                        await asyncio.sleep(_RETRY)
                        workspace = await self._again(workspace)
                        news.set()  # whatever happened meanwhile
        finally:
            publishing.cancel()
