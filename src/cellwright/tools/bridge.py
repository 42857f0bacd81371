"""The tool bridge: code in a kernel calls the tools of its session, by HTTP on this machine.

A kernel is given an address, a token of its session, and the session's name. Its calls have the mode
of the caller who started the kernel. Requests that a browser could make are refused: no other host
name, no `Origin`.

    POST /tools/NAME   {"path": "…"}  ->  {"ok", "text", "data", "images": [{"mime", "base64"}]}
    GET  /tools        ->  the tools and their schemas

A tool of any profile can be called; `?profile=NAME` lists that profile's, and decides where two
profiles have a name in common. Without it, the native ones are listed and come first.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cellwright.tools.tool import ToolResult
    from cellwright.workspace.hub import Hub
    from cellwright.workspace.workspace import AsyncWorkspace

    SessionKey = tuple[str, str, str | None, str | None]
    Response = tuple[HTTPStatus, dict[str, Any]]

MOST_BODY = 8 * 2**20
_MOST_HEADERS = 16 * 2**10
_MOST_CALLS = 256
_MOST_STRANGERS = 64
"""Connections that have not shown a token; the oldest makes room, so that they keep no kernel out."""
_REQUEST_TIMEOUT = 30.0  # seconds in which a request must have come
_TOKEN_BYTES = 32
_BACKLOG = 128
"""The loop accepts so many in one go, before any can make room: few, or descriptors run out."""
_DIGITS = frozenset("0123456789")


async def start_bridge(hub: Hub) -> Bridge:
    """Let the kernels of a hub call tools; to be awaited on the hub's loop, before it runs any.

    It ends with the hub's kernels.
    """
    from cellwright.workspace.api.local import AsyncLocalApi
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.workspace import AsyncWorkspace

    def make_workspace(
        session: str, mode: Any, root: str | None, cwd: str | None
    ) -> AsyncWorkspace:
        actor = f"kernel:{session}"
        caller = Caller(root, cwd=cwd, mode=mode, actor=actor, hub=hub)
        caller.owner = None  # a kernel keeps no other kernel alive
        return AsyncWorkspace(root, cwd=cwd, mode=mode, actor=actor, api=AsyncLocalApi(caller))

    bridge = Bridge(make_workspace)
    await bridge.start()
    hub.sessions.bridge = bridge
    hub.close_at_end(bridge.close)
    return bridge


@dataclass(frozen=True, slots=True)
class BridgeSession:
    """A session whose code may call tools, with the workspace that carries out its calls."""

    token: str
    workspace: AsyncWorkspace


class Bridge:
    """Serves tools to the kernels of one process.

    Args:
        make_workspace: makes the workspace of a session when it gets its token, from its name,
            mode, root and folder; closing it is up to the maker.
    """

    def __init__(
        self, make_workspace: Callable[[str, str, str | None, str | None], AsyncWorkspace]
    ) -> None:
        self._make_workspace = make_workspace
        self._sessions: dict[SessionKey, BridgeSession] = {}
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._strangers: dict[asyncio.Task[None], None] = {}  # the oldest first
        self.url = ""

    async def start(self) -> None:
        """Listen on a free port of the loopback interface; `url` says where."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=_BACKLOG)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    async def close(self) -> None:
        """Stop listening, and stop the calls under way."""
        if self._server is not None:
            self._server.close()
        for task in list(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._sessions.clear()

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
        """The token of a session, made if it has none; a session has one for each mode."""
        key = session, mode, root, cwd
        if key not in self._sessions:
            token = secrets.token_urlsafe(_TOKEN_BYTES)
            self._sessions[key] = BridgeSession(token, self._make_workspace(*key))
        return self._sessions[key].token

    def forget(self, session: str) -> None:
        """Make the tokens of a session that has ended worthless."""
        self._sessions = {key: each for key, each in self._sessions.items() if key[0] != session}

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a server's callbacks are tasks
        self._calls.add(task)
        self._strangers[task] = None
        if len(self._strangers) > _MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()
        try:
            try:
                await self._serve(reader, writer)
            except BadRequest as error:
                await _write_response(writer, error.status, _error(error.code, str(error)))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the caller is gone
        finally:
            self._calls.discard(task)
            self._strangers.pop(task, None)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # as above

        def admit(request: BridgeRequest) -> None:
            self._check(request)
            self._strangers.pop(task, None)
            if len(self._calls) - len(self._strangers) > _MOST_CALLS:
                raise BadRequest(HTTPStatus.SERVICE_UNAVAILABLE, "BUSY", "Too many calls at once")

        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                request = await _read_request(reader, admit)
        except TimeoutError:
            raise BadRequest(HTTPStatus.REQUEST_TIMEOUT, "TIMEOUT", "No request came") from None
        session = self._find_session(request.bearer)
        if session is None:  # it ended while the rest of the request came
            raise BadRequest(HTTPStatus.UNAUTHORIZED, "UNAUTHORIZED", "The session is over")
        call = asyncio.ensure_future(self._respond(request, session.workspace))
        hangup = asyncio.ensure_future(_wait_for_hangup(reader))
        try:
            # Code that is interrupted hangs up; then what it asked for is stopped, too.
            await asyncio.wait((call, hangup), return_when=asyncio.FIRST_COMPLETED)
        finally:
            hangup.cancel()
            if not call.done():
                call.cancel()
            await asyncio.wait((call, hangup))
        if not call.cancelled():
            await _write_response(writer, *_response_of(call))

    def _check(self, request: BridgeRequest) -> None:
        """Refuse whatever is not from a kernel of ours, before its body is read."""
        host = request.headers.get("host", "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost"):
            raise BadRequest(
                HTTPStatus.MISDIRECTED_REQUEST, "WRONG_HOST", "This is a bridge for kernels"
            )
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            raise BadRequest(HTTPStatus.FORBIDDEN, "BROWSER", "Browsers may not call tools")
        if self._find_session(request.bearer) is None:
            raise BadRequest(
                HTTPStatus.UNAUTHORIZED,
                "UNAUTHORIZED",
                "The token of the session is missing or wrong",
            )

    def _find_session(self, token: str) -> BridgeSession | None:
        """The session of a token; how long that takes does not tell how much of it is right."""
        found = None
        for session in list(self._sessions.values()):  # all of them, for the same reason
            if hmac.compare_digest(session.token.encode(), token.encode()):
                found = session
        return found

    async def _respond(self, request: BridgeRequest, workspace: AsyncWorkspace) -> Response:
        # Here and not above: many kernels never call, and what describes tools loads slowly.
        from cellwright.tools.profiles import PROFILES
        from cellwright.tools.tool import ToolCaller
        from cellwright.tools.toolbox import Toolbox

        target, profile = request.target, request.profile
        if profile is not None and profile not in PROFILES:
            names = ", ".join(PROFILES)
            return HTTPStatus.NOT_FOUND, _error("NOT_FOUND", f"The profiles are {names}")
        if target.rstrip("/") == "/tools" and request.method == "GET":
            box = Toolbox(PROFILES[profile or "native"], workspace.mode)
            return HTTPStatus.OK, {"ok": True, "mode": box.mode, "tools": box.table()}
        box = Toolbox(PROFILES[profile or "all"], workspace.mode)
        name = target.removeprefix("/tools/")
        if name == target or "/" in name:
            return HTTPStatus.NOT_FOUND, _error("NOT_FOUND", "POST /tools/NAME calls a tool")
        if request.method != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, _error("NOT_ALLOWED", "Tools are called by POST")
        try:
            arguments = json.loads(request.body or b"{}")
        except (ValueError, RecursionError):
            return HTTPStatus.BAD_REQUEST, _error("INVALID_JSON", "The body is not JSON")
        if not isinstance(arguments, dict):
            return HTTPStatus.BAD_REQUEST, _error("INVALID_JSON", "The body is not an object")
        result = await box.call(name, arguments, ToolCaller(workspace=workspace))
        return HTTPStatus.OK, _result_to_json(result)


async def _wait_for_hangup(reader: asyncio.StreamReader) -> None:
    while await reader.read(4096):
        pass  # what follows a request is ignored


def _response_of(call: asyncio.Future[Response]) -> Response:
    error = call.exception()
    if error is None:
        return call.result()
    body = _error("INTERNAL_ERROR", f"{type(error).__name__} in a tool; see the log")
    return HTTPStatus.INTERNAL_SERVER_ERROR, body


def _result_to_json(result: ToolResult) -> dict[str, Any]:
    from base64 import b64encode

    images = [
        {"mime": picture.mime, "base64": b64encode(picture.data).decode()}
        for picture in result.images
    ]
    return {"ok": not result.is_error, "text": result.text, "data": result.data, "images": images}


def _error(code: str, message: str) -> dict[str, Any]:
    return {"ok": False, "text": f"error: {code}: {message}", "data": {"code": code}, "images": []}


# -- As much of HTTP/1.1 as the bridge needs: one request, one response, a connection each --------


class BadRequest(Exception):
    """A request that is refused before anything is done."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class BridgeRequest:
    """A request; names of headers are in small letters."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    query: str = ""

    @property
    def profile(self) -> str | None:
        """The profile that it asks for, if it does."""
        name, sign, value = self.query.partition("=")
        return value if sign and name == "profile" else None

    @property
    def bearer(self) -> str:
        """The token that came with it; empty if there is none."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""


async def _read_request(
    reader: asyncio.StreamReader, check: Callable[[BridgeRequest], None]
) -> BridgeRequest:
    """Read a request; `check` sees it before its body is read, and may refuse it.

    Raises:
        BadRequest: it is not a request, is too long, or was refused.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        head = b""
    if not 0 < len(head) <= _MOST_HEADERS:
        raise BadRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "TOO_LONG", "The headers are too long"
        )
    request = _parse_head(head.decode("latin-1"))
    check(request)
    if "transfer-encoding" in request.headers:
        raise BadRequest(HTTPStatus.LENGTH_REQUIRED, "NO_LENGTH", "Give a Content-Length")
    length = request.headers.get("content-length", "0")
    if not length or not _DIGITS.issuperset(length):
        raise _bad_request("Content-Length is not a number")
    if len(length) > 12 or int(length) > MOST_BODY:
        raise BadRequest(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TOO_LONG", f"More than {MOST_BODY:,} bytes"
        )
    return replace(request, body=await reader.readexactly(int(length)))


def _parse_head(head: str) -> BridgeRequest:
    first, *lines = head[:-4].split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _bad_request("This is not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or name.lower() in headers:
            raise _bad_request("A header is broken, or there twice")
        headers[name.lower()] = value.strip()
    target, _, query = words[1].partition("?")
    return BridgeRequest(words[0], unquote(target), headers, query=unquote(query))


def _bad_request(message: str) -> BadRequest:
    return BadRequest(HTTPStatus.BAD_REQUEST, "BAD_REQUEST", message)


async def _write_response(
    writer: asyncio.StreamWriter, status: HTTPStatus, value: dict[str, Any]
) -> None:
    """Answer with JSON, and say that the connection ends with it."""
    body = json.dumps(value).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
