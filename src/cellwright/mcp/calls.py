"""Tool calls under way: their progress, their questions, and what ends them.

A call runs in a task of its own. The library cancels a request's handler both when the client
cancels it and when the client goes away; the first stops the kernel, the second leaves the run
alone. A call that waits for the answer of a person outlives its request where the protocol has the
client come back with the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cellwright.tools.fence import reveal
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    from cellwright.kernel.events import InputRequested
    from cellwright.kernel.session import Ask
    from cellwright.tools.tool import Tool, ToolResult
    from cellwright.tools.toolbox import Toolbox
    from cellwright.workspace.api.requests import Effect

    Context = ServerRequestContext[Any, Any]
    Listener = Callable[[dict[str, Any]], object]
    Work = Callable[[Listener | None, Ask | None], Awaitable[ToolResult]]


FACTS = "cellwright/facts"
"""The key of `_meta` that holds an result's facts for programs."""

# Clients for models, as far as is known, show the model `structuredContent` *instead of* the
# text when there is any. Facts alone would hide from it what the cells said, so only clients
# that are known to be programs get them there; all others find them in `_meta`.
_PROGRAMS = ("cellwright", "inspector", "mcp-inspector", "conformance")


def is_program(client: str) -> bool:
    """Whether a client reads facts rather than shows them to a model."""
    name = client.lower()
    return name in _PROGRAMS or name.startswith(("cellwright-", "inspector-", "mcp-conformance"))


def list_tools(toolbox: Toolbox) -> list[types.Tool]:
    """The tools of which something is allowed, with what may be known before they are called."""
    rows = {row["name"]: row for row in toolbox.table()}
    return [_describe_tool(tool, rows[tool.name], toolbox.allowed) for tool in toolbox.list_tools()]


def _describe_tool(tool: Tool, row: dict[str, Any], allowed: frozenset[Effect]) -> types.Tool:
    effects = tool.possible_effects(allowed)
    reads = effects <= {"read"}
    return types.Tool(
        name=tool.name,
        title=row["title"],
        description=row["description"],
        input_schema=row["inputSchema"],
        annotations=types.ToolAnnotations(
            title=row["title"],
            read_only_hint=reads,
            destructive_hint=not reads and ("destructive" in tool.tags or "run" in effects),
            idempotent_hint=reads,
            # Code reaches whatever the user reaches; our own verbs stay in the root.
            open_world_hint="run" in effects,
        ),
    )


def to_result(result: ToolResult, *, structured: bool) -> types.CallToolResult:
    """A tool's result, in which nothing is hidden, as text and images with its facts beside them."""
    content: list[Any] = [types.TextContent(text=_make_encodable(result.text))]
    content += [
        types.ImageContent(data=b64encode(image.data).decode("ascii"), mime_type=image.mime)
        for image in result.images
    ]
    facts = result.data
    return types.CallToolResult(
        content=content,
        structured_content=facts if structured and facts else None,
        is_error=result.is_error,
        _meta={FACTS: facts} if facts else None,
    )


def clean(text: str) -> str:
    """Text in which nothing is hidden, and that UTF-8 can carry."""
    return _make_encodable(reveal(text))


def _make_encodable(text: str) -> str:
    # Lone halves of surrogate pairs would end the connection.
    return text.encode("utf-8", "replace").decode()


_ANSWER_TIMEOUT = 600.0
_INPUT = "input"
_LONGEST_PROMPT = 500
_FIELD = "answer"
_AT_MOST_EVERY = 0.25
_AT_LEAST_EVERY = 10.0  # clients give up on calls that stay silent
_SMALL = 0.001
_LONGEST_MESSAGE = 200


class PendingCalls:
    """The calls of one server."""

    def __init__(self) -> None:
        self._parked: dict[str, PendingCall] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def perform(
        self, ctx: Context, params: types.CallToolRequestParams, work: Work
    ) -> ToolResult | types.InputRequiredResult:
        """Do the work, or resume a call that waited for an answer."""
        call = self._resume(params) if params.request_state is not None else None
        if call is None:
            call = PendingCall((params.name, params.arguments), can_ask=can_ask(ctx))
            ask = call.ask if call.can_ask else None
            progress = call.progress if _wants_progress(ctx) else None
            call.task = asyncio.ensure_future(work(progress, ask))
            self._tasks.add(call.task)
            call.task.add_done_callback(self._discard)
        try:
            async with _report_progress(ctx, call, params):
                return await self._wait(ctx, call)
        except asyncio.CancelledError:
            if _is_cancelled(ctx):
                call.task.cancel()
            raise

    async def close(self) -> None:
        """Cancel the calls under way."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _wait(
        self, ctx: Context, call: PendingCall
    ) -> ToolResult | types.InputRequiredResult:
        if not call.can_ask:  # nothing else can happen
            await asyncio.wait({call.task})
            return call.task.result()
        while True:
            news = asyncio.ensure_future(call.news.wait())
            try:
                await asyncio.wait({call.task, news}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            if call.task.done():
                return call.task.result()
            assert call.asked is not None  # noqa: S101  # that is the other thing to wait for
            form = build_question(call.asked)
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return self._park(call, form)
            await self._elicit(ctx, call, form)

    async def _elicit(
        self, ctx: Context, call: PendingCall, form: types.ElicitRequestFormParams
    ) -> None:
        """Ask while the call waits; it may end meanwhile, by its timeout for one."""
        asking = asyncio.ensure_future(
            ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
        )
        try:
            await asyncio.wait({call.task, asking}, return_when=asyncio.FIRST_COMPLETED)
            reply: str | None = None
            if asking.done():
                with contextlib.suppress(MCPError, ValueError):
                    reply = read_answer(asking.result())
            call.reply(reply)
        finally:
            asking.cancel()

    # -- calls whose client comes back ------------------------------------------------------

    def _park(
        self, call: PendingCall, form: types.ElicitRequestFormParams
    ) -> types.InputRequiredResult:
        state = secrets.token_urlsafe(24)
        self._parked[state] = call

        def give_up() -> None:
            if self._parked.pop(state, None) is not None:
                call.reply(None)

        asyncio.get_running_loop().call_later(_ANSWER_TIMEOUT, give_up)
        return types.InputRequiredResult(
            input_requests={_INPUT: types.ElicitRequest(params=form)}, request_state=state
        )

    def _resume(self, params: types.CallToolRequestParams) -> PendingCall:
        call = self._parked.get(params.request_state or "")
        if call is None or call.what != (params.name, params.arguments):
            raise MCPError(types.INVALID_PARAMS, "This call is not waiting for an answer")
        del self._parked[params.request_state or ""]
        call.reply(read_answer((params.input_responses or {}).get(_INPUT)))
        return call

    def _discard(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # taken, or else the event loop logs it


class PendingCall:
    """One call, from its beginning to its answer."""

    def __init__(self, what: object, *, can_ask: bool) -> None:
        self.what = what
        self.can_ask = can_ask
        self.listener: ProgressReporter | None = None
        self.asked: InputRequested | None = None
        self.news = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None
        self.task: asyncio.Task[ToolResult]

    def progress(self, event: dict[str, Any]) -> None:
        """Pass an event on to the request that waits for the call now."""
        if self.listener is not None:
            self.listener.take(event)

    async def ask(self, request: InputRequested) -> str | None:
        """Ask a person; the call waits for the answer."""
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


def can_ask(ctx: Context) -> bool:
    """Whether the client can put a question to a person."""
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    elicitation = capabilities.elicitation
    # An empty object, as clients of 2025 send it, means forms.
    return elicitation.form is not None or elicitation.url is None


def build_question(request: InputRequested) -> types.ElicitRequestFormParams:
    """The form for one line of input."""
    prompt = shorten(request.prompt)[:_LONGEST_PROMPT] or "A cell waits for a line of input."
    if request.password:
        # Forms must not ask for secrets; a person may still choose to answer.
        prompt += " (the cell asked for a password; what you type is not hidden)"
    field = {"type": "string", "title": "Answer", "description": prompt}
    return types.ElicitRequestFormParams(
        message=f"A cell asks: {prompt}",
        requested_schema={"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]},
    )


def read_answer(result: object) -> str | None:
    """What the person typed; None if they declined."""
    if not isinstance(result, types.ElicitResult) or result.action != "accept":
        return None
    value = (result.content or {}).get(_FIELD)
    return None if value is None else str(value)


def _wants_progress(ctx: Context) -> bool:
    if (ctx.meta or {}).get("progress_token") is not None:
        return True
    channel = ctx.session._request_outbound  # noqa: SLF001  # in one process there is no token
    return bool(channel.transport.kind == "direct")


def _is_cancelled(ctx: Context) -> bool:
    """Whether a handler was cancelled by its client, which is still there."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and ctx.request is not None:
        return True  # over HTTP a client of today cancels by closing the answer's stream
    channel = ctx.session._request_outbound  # noqa: SLF001  # there is no other way to ask
    return channel.cancel_requested.is_set()


@contextlib.asynccontextmanager
async def _report_progress(
    ctx: Context, call: PendingCall, params: types.CallToolRequestParams
) -> AsyncIterator[None]:
    """Report the progress of a call while it is waited for, if the client asked for that."""
    if not _wants_progress(ctx):
        yield
        return
    call.listener = ProgressReporter(ctx.session, _count_cells(params.arguments))
    reporting = asyncio.ensure_future(call.listener.report())
    try:
        yield
    finally:
        call.listener = None
        reporting.cancel()


def _count_cells(arguments: dict[str, Any] | None) -> int:
    """How many cells a call of `eval` brings along; a run reports its cells itself."""
    cells = (arguments or {}).get("cells")
    return len(cells) if isinstance(cells, list) and all(isinstance(c, dict) for c in cells) else 0


class ProgressReporter:
    """Reports the progress of one call: rising numbers, and not too many.

    `expected` is how many cells there will be, where the call itself says so.
    """

    def __init__(self, session: ServerSession, expected: int = 0) -> None:
        self._session = session
        self._expected = expected
        self._cells: dict[Any, str] = {}
        self._said = ""
        self._now = ""
        self._reported = -1.0
        self._news = asyncio.Event()

    def take(self, event: dict[str, Any]) -> None:
        """One event of a run."""
        if "run" in event and "cell" not in event:
            self._now = f"run {event['run']} has begun"
        elif "status" in event:
            name = event.get("handle", event.get("cell"))
            self._cells[name] = event["status"]
            if event["status"] == "pending":
                return
            place = list(self._cells).index(name) + 1
            total = max(self._expected, len(self._cells))
            self._now = f"cell {place} of {total} ({shorten(str(name))}): "
            self._now += str(event["status"])
        elif "text" in event:
            lines = shorten(str(event["text"])[-_LONGEST_MESSAGE:])
            self._said = lines or self._said
        self._news.set()

    async def report(self) -> None:
        """Send notifications until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AT_LEAST_EVERY):
                    await self._news.wait()
            self._news.clear()
            await self._send()
            await asyncio.sleep(_AT_MOST_EVERY)

    async def _send(self) -> None:
        over = sum(status not in ("pending", "running") for status in self._cells.values())
        self._reported = max(float(over), self._reported + _SMALL)  # it must rise every time
        known = max(self._expected, len(self._cells))
        total = float(known) if known > over else None
        message = " · ".join(part for part in (self._now, self._said) if part)
        await self._session.report_progress(
            self._reported, total, clean(message[: 2 * _LONGEST_MESSAGE])
        )
