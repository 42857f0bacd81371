"""Tool calls under way: their progress, their questions, and what ends them.

A call runs in a task of its own. The library cancels a request's handler both when the client
says so and when it goes away; the first stops the kernel, the second leaves the run alone. And a
call that waits for an answer of a person outlives its request where the protocol has the client
come back with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cellwright.mcp.asking import answered, can_ask, question
from cellwright.mcp.progress import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.server.context import ServerRequestContext

    from cellwright.kernel.events import InputRequested
    from cellwright.kernel.session import Ask
    from cellwright.tools.tool import Answer

    Context = ServerRequestContext[Any, Any]
    Listener = Callable[[dict[str, Any]], object]
    Work = Callable[[Listener | None, Ask | None], Awaitable[Answer]]

_ANSWER_WITHIN = 600.0
_INPUT = "input"


class Going:
    """One call, from its beginning to its answer."""

    def __init__(self, what: object, *, can_ask: bool) -> None:
        self.what = what
        self.can_ask = can_ask
        self.listener: Progress | None = None
        self.asked: InputRequested | None = None
        self.news = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None
        self.task: asyncio.Task[Answer]

    def progress(self, event: dict[str, Any]) -> None:
        """Pass an event on to whoever waits for the call now."""
        if self.listener is not None:
            self.listener.take(event)

    async def ask(self, request: InputRequested) -> str | None:
        """Have a person asked; the call waits for it."""
        self.asked = request
        self._answer = asyncio.get_running_loop().create_future()
        self.news.set()
        return await self._answer

    def reply(self, text: str | None) -> None:
        """Give the call what it asked for."""
        self.asked = None
        self.news.clear()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(text)


class Calls:
    """The calls of one server."""

    def __init__(self) -> None:
        self._parked: dict[str, Going] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def perform(
        self, ctx: Context, params: types.CallToolRequestParams, work: Work
    ) -> Answer | types.InputRequiredResult:
        """Do the work, or go on with a call that had asked for something."""
        going = self._resumed(params) if params.request_state is not None else None
        if going is None:
            going = Going((params.name, params.arguments), can_ask=can_ask(ctx))
            ask = going.ask if going.can_ask else None
            progress = going.progress if _wants_progress(ctx) else None
            going.task = asyncio.ensure_future(work(progress, ask))
            self._tasks.add(going.task)
            going.task.add_done_callback(self._ended)
        try:
            async with _reported(ctx, going, params):
                return await self._settled(ctx, going)
        except asyncio.CancelledError:
            if _is_cancelled(ctx):
                going.task.cancel()
            raise

    async def close(self) -> None:
        """Wait for no call any more."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _settled(self, ctx: Context, going: Going) -> Answer | types.InputRequiredResult:
        if not going.can_ask:  # nothing else can happen
            await asyncio.wait({going.task})
            return going.task.result()
        while True:
            news = asyncio.ensure_future(going.news.wait())
            try:
                await asyncio.wait({going.task, news}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            if going.task.done():
                return going.task.result()
            assert going.asked is not None  # noqa: S101  # that is the other thing to wait for
            form = question(going.asked)
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return self._park(going, form)
            await self._elicit(ctx, going, form)

    async def _elicit(
        self, ctx: Context, going: Going, form: types.ElicitRequestFormParams
    ) -> None:
        """Ask while the call waits; it may end meanwhile, by its timeout for one."""
        asking = asyncio.ensure_future(
            ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
        )
        try:
            await asyncio.wait({going.task, asking}, return_when=asyncio.FIRST_COMPLETED)
            reply: str | None = None
            if asking.done():
                with contextlib.suppress(MCPError, ValueError):
                    reply = answered(asking.result())
            going.reply(reply)
        finally:
            asking.cancel()

    # -- calls whose client comes back ------------------------------------------------------

    def _park(self, going: Going, form: types.ElicitRequestFormParams) -> types.InputRequiredResult:
        state = secrets.token_urlsafe(24)
        self._parked[state] = going

        def give_up() -> None:
            if self._parked.pop(state, None) is not None:
                going.reply(None)

        asyncio.get_running_loop().call_later(_ANSWER_WITHIN, give_up)
        return types.InputRequiredResult(
            input_requests={_INPUT: types.ElicitRequest(params=form)}, request_state=state
        )

    def _resumed(self, params: types.CallToolRequestParams) -> Going:
        going = self._parked.get(params.request_state or "")
        if going is None or going.what != (params.name, params.arguments):
            raise MCPError(types.INVALID_PARAMS, "This call is not waiting for an answer")
        del self._parked[params.request_state or ""]
        going.reply(answered((params.input_responses or {}).get(_INPUT)))
        return going

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it has been told, or nobody is left to be told


@contextlib.asynccontextmanager
async def _reported(
    ctx: Context, going: Going, params: types.CallToolRequestParams
) -> AsyncIterator[None]:
    """Tell the client how far a call is, if it asked for that."""
    if not _wants_progress(ctx):
        yield
        return
    going.listener = Progress(ctx.session, _cells_of(params.arguments))
    reporting = asyncio.ensure_future(going.listener.report())
    try:
        yield
    finally:
        going.listener = None
        reporting.cancel()


def _wants_progress(ctx: Context) -> bool:
    if (ctx.meta or {}).get("progress_token") is not None:
        return True
    channel = ctx.session._request_outbound  # noqa: SLF001  # in one process there is no token
    return bool(channel.transport.kind == "direct")


def _cells_of(arguments: dict[str, Any] | None) -> int:
    """How many cells a call brings along, as `eval` does; those of a run tell themselves."""
    cells = (arguments or {}).get("cells")
    return len(cells) if isinstance(cells, list) and all(isinstance(c, dict) for c in cells) else 0


def _is_cancelled(ctx: Context) -> bool:
    """Whether a handler that is cancelled was so by its client, who is still there."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and ctx.request is not None:
        return True  # over HTTP a client of today cancels by closing the answer's stream
    channel = ctx.session._request_outbound  # noqa: SLF001  # there is no other way to ask
    return channel.cancel_requested.is_set()
