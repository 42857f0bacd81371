"""The server: what each request of the protocol means here, and the workspace of each client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import sys
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import cellwright
from cellwright.app.workspaces import SharedWorkspaces, name_actor
from cellwright.errors import SystemRefused, explain_exception
from cellwright.mcp import resources
from cellwright.mcp.calls import PendingCalls, is_program, list_tools, to_result
from cellwright.mcp.resources import Subscriptions
from cellwright.tools.errors import describe_error
from cellwright.tools.fence import FENCE_NOTE
from cellwright.tools.tool import ToolCaller, ToolResult
from cellwright.tools.toolbox import Toolbox, reveal_result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from mcp.server.context import ServerRequestContext

    from cellwright.kernel.session import Ask
    from cellwright.tools.tool import Tool
    from cellwright.workspace.api.requests import Mode
    from cellwright.workspace.workspace import AsyncWorkspace

    Context = ServerRequestContext[Any, Any]


INSTRUCTIONS = f"""\
Cellwright reads, edits and runs Jupyter notebooks; a cell keeps its id, and every change can be
undone. Read before you edit and pass the revision as `base`. Send all edits of one thought as one
list, with run=stale to see what follows from them. To find what fails, read with only=errors.
A run that takes long answers with its id: follow it with notebook_run. {FENCE_NOTE}
"""
CLIENT_KEY = "cellwright/client"
"""The key of `_meta` under which a client says who it is."""
NOTEBOOK_KEY = "cellwright/notebook"
"""The key of `_meta` under which a client names the notebook that its person looks at."""
SELECTED_KEY = "cellwright/selected"
"""The key of `_meta` under which a client lists the cells that are selected there."""

CLIENT_HEADER = "cellwright-client"
"""The header that says the same over HTTP."""

_log = logging.getLogger(__name__)
_FOREVER = CacheHint(ttl_ms=3_600_000)  # what does not change while a server runs
_LOST = {"ENGINE_LOST", "ENGINE_DRAINING"}


class McpServer:
    """An MCP server for the notebooks below a root.

    Args:
        root: no path may lead out of it.
        tools: what clients may call.
        mode: what is allowed.
        engine: whether kernels live in the background engine.
        edit_mode_edits: whether mode `edit` may change notebooks.
        place: tells apart clients of one name that state no key; over HTTP the id of their
            session does.
        structured: whether all clients get the facts as `structuredContent`, not only programs.
        say: gets a sentence for the log.
    """

    def __init__(
        self,
        root: str,
        *,
        tools: Sequence[Tool],
        mode: Mode = "agent",
        engine: bool = True,
        edit_mode_edits: bool = False,
        place: str = "",
        structured: bool = False,
        say: Callable[[str], object] | None = None,
    ) -> None:
        self.toolbox = Toolbox(tools, mode, edit_mode_edits=edit_mode_edits)
        self.workspaces = ClientWorkspaces(root, mode, engine=engine, say=say or _to_stderr)
        self._place = place
        self._structured = structured
        self._calls = PendingCalls()
        self._subscriptions = Subscriptions(self._workspace, self.workspaces.reconnect)
        self._tools = list_tools(self.toolbox)
        self.server = self._build()

    def _build(self) -> Server[None]:
        schemas = {tool.name: tool.input_schema for tool in self._tools}
        return Server(
            "cellwright",
            version=cellwright.__version__,
            title="Cellwright",
            instructions=INSTRUCTIONS,
            cache_hints={
                "tools/list": _FOREVER,
                "prompts/list": _FOREVER,
                "resources/templates/list": _FOREVER,
            },
            lifespan=self._life,
            get_tool_input_schema=schemas.get,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._subscriptions.listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )

    @contextlib.asynccontextmanager
    async def _life(self, _: Server[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        """Close all connections; runs in the engine are not stopped."""
        await self._subscriptions.close()
        # Before the calls are cancelled: then their runs are not stopped with them.
        await self.workspaces.close()
        await self._calls.close()

    # -- the client --------------------------------------------------------------------------

    async def _workspace(self, ctx: Context) -> AsyncWorkspace:
        return await self.workspaces.get(actor_name(_client_name(ctx), self._identify(ctx)))

    def _identify(self, ctx: Context) -> str:
        """What tells a client from others of its name; empty if nothing does.

        A key that the client states comes first, so that it is known again after a reconnect. A
        session of HTTP has an id, and over stdio every server has one client.
        """
        stated = (ctx.meta or {}).get(CLIENT_KEY)
        if ctx.request is None:
            return str(stated or self._place)
        headers = ctx.request.headers
        stated = stated or headers.get(CLIENT_HEADER)
        return str(stated or headers.get("mcp-session-id", "")[:8])

    # -- tools ------------------------------------------------------------------------------

    async def _list_tools(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if not self.toolbox.has(params.name):
            raise MCPError(types.INVALID_PARAMS, self.toolbox.describe_unknown(params.name))
        workspace = await self._workspace(ctx)
        is_shared = workspace.actor == OTHERS or (
            ctx.request is not None and not self._identify(ctx)
        )

        async def work(
            progress: Callable[[dict[str, Any]], object] | None, ask: Ask | None
        ) -> ToolResult:
            caller = ToolCaller(
                workspace=workspace,
                progress=progress,
                ask=ask,
                is_shared=is_shared,
                **_find_place(ctx.meta or {}),
            )
            try:
                answer = await self.toolbox.call(params.name, params.arguments, caller)
            except Exception as error:  # noqa: BLE001  # a bug must not end the connection
                _log.exception("%s failed", params.name)
                return reveal_result(_describe_bug(params.name, error))
            if answer.data.get("code") in _LOST:
                await self.workspaces.drop(workspace)
            return answer

        answer = await self._calls.perform(ctx, params, work)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        return to_result(answer, structured=self._structured or is_program(_client_name(ctx)))

    # -- resources --------------------------------------------------------------------------

    async def _list_resources(
        self, ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        workspace = await self._workspace(ctx)
        return types.ListResourcesResult(resources=await resources.list_resources(workspace))

    async def _list_templates(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        workspace = await self._workspace(ctx)
        found = await resources.read_resource(workspace, str(params.uri), ctx.protocol_version)
        return types.ReadResourceResult(contents=found)

    async def _subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        await self._subscriptions.subscribe(ctx, str(params.uri))
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._subscriptions.unsubscribe(ctx, str(params.uri))
        return types.EmptyResult()

    # -- prompts and completion -------------------------------------------------------------

    async def _list_prompts(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=resources.list_prompts())

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await resources.build_prompt(
            await self._workspace(ctx), params.name, params.arguments
        )

    async def _complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        found = await resources.complete_argument(await self._workspace(ctx), params)
        return types.CompleteResult(completion=found)


def _find_place(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook and the cells that a client says its person looks at, if it says so."""
    notebook, selected = meta.get(NOTEBOOK_KEY), meta.get(SELECTED_KEY)
    if not isinstance(notebook, str) or not notebook:
        return {}
    cells = selected if isinstance(selected, list) else []
    return {"active": notebook, "selected": {str(cell): "selected" for cell in cells}}


def _describe_bug(tool: str, error: Exception) -> ToolResult:
    """The result of a call that hit a bug of ours, or was refused something by the system."""
    found = explain_exception(error)
    if isinstance(found, SystemRefused):
        return describe_error(found)
    text = f"error: INTERNAL_ERROR: {tool} met an unexpected {type(error).__name__}"
    hint = "hint: Read the notebook to see what holds now; the server's log has the details"
    return ToolResult(f"{text}\n{hint}", {"code": "INTERNAL_ERROR"}, is_error=True)


def _client_name(ctx: Context) -> str:
    params = ctx.session.client_params
    return params.client_info.name if params is not None else "client"


def _to_stderr(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"cellwright: {text}\n")
        sys.stderr.flush()


def stdio_place() -> str:
    """The `place` of a client over stdio, which has this server for itself."""
    return secrets.token_hex(4)


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
