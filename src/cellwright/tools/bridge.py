"""The tool bridge: code in a kernel calls the tools of its session, by HTTP on this machine.

A kernel is given an address, a token that is its session's alone, and the session's name. The
mode of whoever started the kernel holds for what it calls. Requests that a browser could make are
refused: no other host name, no `Origin`.

    POST /tools/NAME   {"path": "…"}  ->  {"ok", "text", "data", "images": [{"mime", "base64"}]}
    GET  /tools        ->  the tools and their schemas
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from cellwright.tools.bridge_sessions import BridgeSession, BridgeSessions
from cellwright.tools.http import BadRequest, Request, read_request, write_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cellwright.tools.tool import Answer, Tool
    from cellwright.workspace.hub import Hub
    from cellwright.workspace.workspace import AsyncWorkspace

_MOST_AT_ONCE = 256
_PATIENCE = 30.0  # seconds in which a request must have come


class Bridge:
    """Serves tools to the kernels of one process.

    Args:
        workspace: makes the workspace of a session, when it is first asked for: of its name,
            mode, root and folder.
        tools: what there is to call; the native ones by default.
    """

    def __init__(
        self,
        workspace: Callable[[str, str, str | None, str | None], AsyncWorkspace],
        tools: Sequence[Tool] | None = None,
    ) -> None:
        self._tools = tools
        self._sessions = BridgeSessions(workspace)
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self.url = ""

    async def start(self) -> None:
        """Listen on a free port of the loopback interface; `url` says where."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def variables(
        self, session: str, *, mode: str = "agent", root: str | None = None, cwd: str | None = None
    ) -> dict[str, str]:
        """What the environment of a session's kernel must hold, as `for_session` takes it."""
        return {
            "bridge_url": self.url,
            "bridge_token": self.token(session, mode=mode, root=root, cwd=cwd),
            "bridge_session": session,
        }

    def token(
        self, session: str, *, mode: str = "agent", root: str | None = None, cwd: str | None = None
    ) -> str:
        """The token of a session, which is made if it has none; another mode makes another."""
        return self._sessions.token(session, mode, root, cwd)

    def forget(self, session: str) -> None:
        """The session is over: its tokens open nothing any more."""
        self._sessions.forget(session)

    async def close(self) -> None:
        """Stop listening, and stop the calls that go on."""
        if self._server is not None:
            self._server.close()
        for task in list(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._sessions.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a server's callbacks are tasks
        self._calls.add(task)
        try:
            if len(self._calls) > _MOST_AT_ONCE:
                await write_answer(
                    writer, HTTPStatus.SERVICE_UNAVAILABLE, _error("BUSY", "Too many calls at once")
                )
                return
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # whoever asked is gone
        finally:
            self._calls.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                request = await read_request(reader, self._check)
        except TimeoutError:
            await write_answer(
                writer, HTTPStatus.REQUEST_TIMEOUT, _error("TIMEOUT", "No request came")
            )
            return
        except BadRequest as error:
            await write_answer(writer, error.status, _error(error.code, str(error)))
            return
        session = self._sessions.find(request.bearer)
        if session is None:  # it ended while the rest of the request came
            over = _error("UNAUTHORIZED", "The session is over")
            await write_answer(writer, HTTPStatus.UNAUTHORIZED, over)
            return
        call = asyncio.ensure_future(self._answer(request, session))
        gone = asyncio.ensure_future(_until_gone(reader))
        try:
            # Code that is interrupted hangs up; then what it asked for is stopped, too.
            await asyncio.wait((call, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not call.done():
                call.cancel()
            await asyncio.wait((call, gone))
        if not call.cancelled():
            await write_answer(writer, *_status(call))

    def _check(self, request: Request) -> None:
        """Refuse whatever is not from a kernel of ours, before its body is read."""
        host = request.headers.get("host", "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost"):
            raise BadRequest(
                HTTPStatus.MISDIRECTED_REQUEST, "WRONG_HOST", "This is a bridge for kernels"
            )
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            raise BadRequest(HTTPStatus.FORBIDDEN, "BROWSER", "Browsers have no business here")
        if self._sessions.find(request.bearer) is None:
            raise BadRequest(
                HTTPStatus.UNAUTHORIZED,
                "UNAUTHORIZED",
                "The token of the session is missing or wrong",
            )

    async def _answer(
        self, request: Request, session: BridgeSession
    ) -> tuple[HTTPStatus, dict[str, Any]]:
        # Here and not above: many kernels never call, and what describes tools loads slowly.
        from cellwright.tools.native import NATIVE
        from cellwright.tools.tool import Caller
        from cellwright.tools.toolbox import Toolbox

        workspace = session.workspace
        box = Toolbox(self._tools or NATIVE, workspace.mode)
        if request.target.rstrip("/") == "/tools" and request.method == "GET":
            return HTTPStatus.OK, {"ok": True, "mode": box.mode, "tools": box.table()}
        name = request.target.removeprefix("/tools/")
        if name == request.target or "/" in name:
            return HTTPStatus.NOT_FOUND, _error("NOT_FOUND", "POST /tools/NAME calls a tool")
        if request.method != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, _error("NOT_ALLOWED", "Tools are called by POST")
        try:
            arguments = json.loads(request.body or b"{}")
        except (ValueError, RecursionError):
            return HTTPStatus.BAD_REQUEST, _error("INVALID_JSON", "The body is no JSON")
        if not isinstance(arguments, dict):
            return HTTPStatus.BAD_REQUEST, _error("INVALID_JSON", "The body is no object")
        answer = await box.call(name, arguments, Caller(workspace=workspace))
        return HTTPStatus.OK, to_json(answer)


async def start_bridge(hub: Hub) -> Bridge:
    """Let the kernels of a hub call tools; to be awaited on the hub's loop, before it runs any.

    It ends with the hub's kernels.
    """
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.local import AsyncLocalApi
    from cellwright.workspace.workspace import AsyncWorkspace

    def workspace(session: str, mode: Any, root: str | None, cwd: str | None) -> AsyncWorkspace:
        actor = f"kernel:{session}"
        caller = Caller(root, cwd=cwd, mode=mode, actor=actor, hub=hub)
        caller.owner = None  # a kernel keeps no other kernel alive
        return AsyncWorkspace(root, cwd=cwd, mode=mode, actor=actor, api=AsyncLocalApi(caller))

    bridge = Bridge(workspace)
    await bridge.start()
    hub.sessions.bridge = bridge
    hub.close_at_end(bridge.close)
    return bridge


async def _until_gone(reader: asyncio.StreamReader) -> None:
    while await reader.read(4096):
        pass  # whatever comes behind a request is not ours


def _status(
    call: asyncio.Future[tuple[HTTPStatus, dict[str, Any]]],
) -> tuple[HTTPStatus, dict[str, Any]]:
    error = call.exception()
    if error is None:
        return call.result()
    told = _error("INTERNAL_ERROR", f"{type(error).__name__} in a tool; see the log")
    return HTTPStatus.INTERNAL_SERVER_ERROR, told


def to_json(answer: Answer) -> dict[str, Any]:
    """An answer as code gets it; pictures stand beside the text."""
    from base64 import b64encode

    images = [
        {"mime": picture.mime, "base64": b64encode(picture.data).decode()}
        for picture in answer.images
    ]
    return {"ok": not answer.is_error, "text": answer.text, "data": answer.data, "images": images}


def _error(code: str, message: str) -> dict[str, Any]:
    return {"ok": False, "text": f"error: {code}: {message}", "data": {"code": code}, "images": []}
