"""Serve over HTTP: the address, the guard in front of every request, and the token.

A browser page can reach any port of this machine, under a name of its choice. So the Host must be
ours on every address we listen on, an Origin must be ours if there is one, and the token must be
right. A refusal is as short as it can be: it gives away nothing but its kind.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
import socket
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellwright.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/mcp"
MAX_BODY = 32 * 2**20
MAX_HEAD = 16 * 2**10
_MAX_SESSIONS = 200
_IDLE_TIMEOUT = 1800.0
_HEAD_TIMEOUT = 10.0
_BODY_TIMEOUT = 30.0
_CONNECTIONS = 256
_MOST_STRANGERS = 64
"""Connections without a whole request; the oldest makes room, so that they keep no client out."""
_BACKLOG = 128
"""The loop accepts so many in one go, before any can make room: few, or descriptors run out."""
_LOOK_EVERY = 2.0  # seconds until an open stream notices that its token has ended
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_METHODS = frozenset({b"POST", b"GET", b"DELETE"})
# What a client may send more than once without ambiguity is of no interest here.
_ONCE = (b"host", b"origin", b"authorization", b"content-length", b"content-type")
_MOST_KNOWN = 4096
_TOKEN_BYTES = 32
_TOKEN_SHAPE = re.compile(r"[A-Za-z0-9_-]{32,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Where and how to listen.

    `insecure` allows to serve other machines without encryption.
    """

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    insecure: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, **options: Any) -> HttpAddress:
        """From `HOST:PORT`, `[::1]:PORT` or `:PORT`.

        Raises:
            ConfigError: it is none of these.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise ConfigError(f"{text!r} is not an address", hint="Such as 127.0.0.1:8765")
        return cls(host=host.strip("[]") or "127.0.0.1", port=int(port), **options)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Raise `ConfigError` if the token would be sent over a network without encryption."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError(
                "TLS needs both a certificate and a key", hint="--tls-cert, --tls-key"
            )
        if not self.is_local and self.certificate is None and not self.insecure:
            raise ConfigError(
                f"{self.host} can be reached from other machines, and would be without TLS",
                hint="Give --tls-cert and --tls-key, or say --insecure; or listen on 127.0.0.1",
            )


async def serve_http(
    server: Server[Any],
    token: Callable[[], str],
    listening: HttpAddress,
    ready: Callable[[str], object],
) -> None:
    """Serve until the process is terminated.

    Args:
        server: what is served.
        token: what clients must send now; it may change.
        listening: where.
        ready: gets the address as soon as clients can connect.

    Raises:
        ConfigError: it would not be safe, or the address is not free.
    """
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    listening.check()
    listener = _bind(listening)

    strangers: dict[H11Protocol, asyncio.BaseTransport] = {}  # the oldest first
    handshakes: set[asyncio.Task[None]] = set()
    context: ssl.SSLContext | None = None

    class ImpatientProtocol(H11Protocol):
        """Hangs up on a client that sends no request; at once, if there are many of them.

        TLS begins here and not in the listener, which would let any number of handshakes wait.
        """

        is_open = False
        early = b""  # what came before the end of the handshake was noticed

        def data_received(self, data: bytes) -> None:
            if not self.is_open:
                self.early += data
                return
            super().data_received(data)
            cycle: Any = self.cycle  # None until a request has begun, whatever its type says
            if cycle is not None:
                strangers.pop(self, None)

        def connection_lost(self, exc: Exception | None) -> None:
            strangers.pop(self, None)
            if self.is_open:
                super().connection_lost(exc)

        def connection_made(self, transport: Any) -> None:
            strangers[self] = transport
            if len(strangers) > _MOST_STRANGERS:
                strangers.pop(next(iter(strangers))).abort()  # type: ignore[attr-defined]

            def give_up() -> None:
                cycle: Any = self.cycle if self.is_open else None
                if cycle is None and not transport.is_closing():
                    transport.abort()

            self.loop.call_later(_HEAD_TIMEOUT, give_up)
            if context is None:
                self.open(transport)
                return
            task = self.loop.create_task(self.secure(transport, context))
            handshakes.add(task)
            task.add_done_callback(handshakes.discard)

        async def secure(self, transport: Any, context: ssl.SSLContext) -> None:
            try:
                secured = await self.loop.start_tls(transport, self, context, server_side=True)
            except OSError:  # it spoke no TLS, or left
                strangers.pop(self, None)
                return
            if secured is not None and not secured.is_closing():
                self.open(secured)

        def open(self, transport: Any) -> None:
            self.is_open = True
            super().connection_made(transport)
            if self.early:
                early, self.early = self.early, b""
                self.data_received(early)

    config = uvicorn.Config(
        build_app(server, token, listening),
        http=ImpatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS + _MOST_STRANGERS,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=MAX_HEAD,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    try:
        config.load()
    except (OSError, ValueError) as error:
        listener.close()
        raise ConfigError(f"The certificate or its key cannot be used: {error}") from None
    context, config.ssl = config.ssl, None
    scheme = "https" if listening.certificate else "http"
    host = f"[{listening.host}]" if ":" in listening.host else listening.host

    class AnnouncingServer(uvicorn.Server):
        """Reports the address when it listens, and waits for no stranger when it ends."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready(f"{scheme}://{host}:{listener.getsockname()[1]}{PATH}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for transport in [*strangers.values()]:
                transport.abort()  # type: ignore[attr-defined]  # it would be waited for
            await super().shutdown(sockets)

    try:
        await AnnouncingServer(config).serve(sockets=[listener])
    finally:
        listener.close()


def _bind(listening: HttpAddress) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        where = f"{listening.host}:{listening.port}"
        raise ConfigError(f"Cannot listen on {where}: {error.strerror or error}") from None
    return listener


def build_app(server: Server[Any], token: Callable[[], str], listening: HttpAddress) -> Any:
    """The ASGI app: the guard, and behind it the protocol."""
    from mcp.server.transport_security import TransportSecuritySettings

    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=_IDLE_TIMEOUT,
        max_sessions=_MAX_SESSIONS,
        max_request_body_size=MAX_BODY,
        # The guard has looked at Host and Origin, on every address; the library would not.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        host=listening.host,
    )
    return HttpGuard(inner, token, hosts=listening.hosts, origins=listening.origins)


class HttpGuard:
    """An ASGI app in front of another.

    Args:
        app: what is guarded.
        token: what `Authorization: Bearer` must say, or what says so now; empty lets no one in.
        hosts: names by which we may be called, beside this machine's own loopback names and the
            very address that the client has connected to.
        origins: pages that may call us, as `https://name:port`, beside our own.
        rate, burst: requests of one address, a second and at once.
        max_sessions: beyond these, the one that was idle for longest makes room for a new one.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str | Callable[[], str],
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        rate: float = 50,
        burst: float = 200,
        max_body: int = MAX_BODY,
        max_sessions: int = _MAX_SESSIONS,
    ) -> None:
        self._app = app
        self._token = token if callable(token) else lambda: token
        self._sessions = HttpSessions(app, max_sessions)
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._max_body = max_body
        self._requests = RateLimit(rate, burst)
        self._failures = RateLimit(1, 30)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # such as a websocket, which we do not speak
            await send({"type": "websocket.close", "code": 1008})
            return
        token = self._token()
        try:
            self._check(scope, token)
            body = await self._body(scope, receive)
        except RefusedRequest as refused:
            await _refuse(refused, send)
            return
        await self._serve(scope, _replay_body(body, receive), send, token)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, token: str) -> None:
        """Let the app answer, for as long as the token is the right one."""
        has_begun = False

        async def note_and_send(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        serving = asyncio.ensure_future(self._sessions.serve(scope, receive, note_and_send))
        try:
            while not serving.done():
                await asyncio.wait({serving}, timeout=_LOOK_EVERY)
                if not serving.done() and self._token() != token:
                    break
        finally:
            was_ended = serving.cancel()
            await asyncio.wait({serving})
        if not was_ended:
            serving.result()
        elif has_begun:
            await send({"type": "http.response.body", "body": b""})
        else:
            await _refuse(RefusedRequest(401, "unauthorized"), send)

    def _check(self, scope: Scope, token: str) -> None:
        found: dict[bytes, list[bytes]] = {}
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD:
            raise RefusedRequest(431, "too large")
        for name, value in scope["headers"]:
            found.setdefault(name.lower(), []).append(value)
        for name in _ONCE:
            if len(found.get(name, ())) > 1:
                raise RefusedRequest(400, "ambiguous request")
        headers = {name: values[0] for name, values in found.items()}
        address = str((scope.get("client") or ("?", 0))[0])
        self._check_host(scope, headers.get(b"host"))
        self._check_origin(scope, headers)
        self._check_token(headers.get(b"authorization"), address, token)
        if not self._requests.allows(address):
            raise RefusedRequest(429, "too many requests", **{"retry-after": "1"})
        if scope.get("raw_path", scope["path"].encode()).split(b"?")[0] != PATH.encode():
            raise RefusedRequest(404, "not found")
        if scope.get("query_string"):
            raise RefusedRequest(400, "no query is understood")
        method = scope["method"].encode()
        if method not in _METHODS:
            raise RefusedRequest(405, "method not allowed", allow="POST, GET, DELETE")
        if method == b"POST":
            # A form of a web page cannot send this without asking.
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise RefusedRequest(415, "the body must be application/json")

    def _check_host(self, scope: Scope, host: bytes | None) -> None:
        name, port = split_host((host or b"").decode("latin-1"))
        ours, our_port = scope.get("server") or ("", None)
        usual = 443 if scope.get("scheme") == "https" else 80
        known = name in _LOOPBACK or name == str(ours).lower() or name in self._hosts
        # A proxy named by the user may listen on another port.
        right_port = name in self._hosts or (port or usual) == our_port
        if not name or not known or not right_port:
            raise RefusedRequest(421, "wrong host")

    def _check_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        origin = headers.get(b"origin")
        if origin is not None:
            host = headers[b"host"].decode("latin-1").lower()
            said = origin.decode("latin-1").lower()
            if said not in self._origins and said != f"{scope.get('scheme', 'http')}://{host}":
                raise RefusedRequest(403, "wrong origin")
        site = headers.get(b"sec-fetch-site", b"none").lower()
        if site not in (b"none", b"same-origin") and origin is None:
            raise RefusedRequest(403, "wrong origin")

    def _check_token(self, said: bytes | None, address: str, token: str) -> None:
        scheme, _, given = (said or b"").partition(b" ")
        # Compared whatever was sent, so that every answer takes the same time.
        is_right = hmac.compare_digest(given.strip(), token.encode()) and bool(token)
        if is_right and scheme.lower() == b"bearer":
            return
        if not self._failures.allows(address):
            raise RefusedRequest(429, "too many requests", **{"retry-after": "5"})
        raise RefusedRequest(401, "unauthorized", **{"www-authenticate": "Bearer"})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is not too long and does not take too long."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._max_body:
            raise RefusedRequest(413, "too large")
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_TIMEOUT):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RefusedRequest(400, "incomplete request")
                    body += message.get("body", b"")
                    if len(body) > self._max_body:
                        raise RefusedRequest(413, "too large")
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise RefusedRequest(408, "too slow") from None


class HttpSessions:
    """The sessions of the app behind the guard; the one idle for longest makes room for a new one.

    The app ends idle sessions after a while, and refuses new ones if it has too many.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._known: dict[bytes, None] = {}  # the one that was used longest ago first
        self._busy: list[tuple[bytes, str]] = []

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer a request, and note which session it is of."""
        session = dict(scope["headers"]).get(b"mcp-session-id")
        use = (session or b"", scope["method"])
        if session is None and scope["method"] == "POST":
            await self._make_room(scope)
        self._note_use(session)
        self._busy.append(use)

        async def note_session(message: Message) -> None:
            if message["type"] == "http.response.start":
                opened = dict(message.get("headers", ())).get(b"mcp-session-id")
                if message["status"] < 400 and session is None and opened is not None:
                    self._known[opened] = None
                elif session is not None and message["status"] == 404:
                    self._known.pop(session, None)
            await send(message)

        try:
            await self._app(scope, receive, note_session)
        finally:
            self._busy.remove(use)
            self._note_use(session)
            if scope["method"] == "DELETE":
                self._known.pop(session or b"", None)

    def _note_use(self, session: bytes | None) -> None:
        if session in self._known:
            del self._known[session]
            self._known[session] = None

    async def _make_room(self, scope: Scope) -> None:
        while len(self._known) >= self._most:
            calling = {session for session, method in self._busy if method != "GET"}
            idle = [session for session in self._known if session not in calling]
            listening = {session for session, _ in self._busy}
            # One whose client listens is ended only if there is no other.
            idle.sort(key=listening.__contains__)
            if not idle:
                return
            del self._known[idle[0]]
            await self._end(idle[0], scope)

    async def _end(self, session: bytes, scope: Scope) -> None:
        """End a session, as its client would."""
        kept = [pair for pair in scope["headers"] if pair[0] in (b"host", b"accept")]

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            pass

        headers = [*kept, (b"mcp-session-id", session)]
        await self._app({**scope, "method": "DELETE", "headers": headers}, receive, send)


class RefusedRequest(Exception):
    """A request that is refused; `message` is all that the client gets to know."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers


def split_host(value: str) -> tuple[str, int | None]:
    """The name and the port of a Host header; no name if it is not one."""
    value = value.lower()
    if value.startswith("["):
        name, bracket, rest = value[1:].partition("]")
        if not bracket or ":" not in name:
            return "", None
    else:
        name, colon, port = value.partition(":")
        rest = colon + port
    if not rest:
        return name, None
    port = rest[1:]
    if rest[0] != ":" or not (port.isascii() and port.isdigit() and len(port) <= 5):
        return "", None
    return name, int(port)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    is_sent = False

    async def receive_again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _refuse(refused: RefusedRequest, send: Send) -> None:
    body = json.dumps({"error": refused.message}).encode()
    headers: list[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
        *((name.encode(), value.encode()) for name, value in refused.headers.items()),
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class RateLimit:
    """Lets each key through `burst` times at once, and then `rate` times a second."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._known: dict[str, tuple[float, float]] = {}

    def allows(self, key: str) -> bool:
        """Count one more request of a key; returns whether it is allowed."""
        now = self._clock()
        left, then = self._known.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        while len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        allowed = left >= 1
        self._known[key] = (left - 1 if allowed else left, now)
        return allowed


class TokenFile:
    """The token of this user's HTTP servers for one root and mode, in a file.

    Running servers follow the file: a token that was replaced or deleted opens nothing any more.
    """

    def __init__(self, root: str, mode: str) -> None:
        from cellwright.config.directories import state_directory

        place = f"{os.path.realpath(root)}\0{mode}".encode("utf-8", "surrogateescape")
        name = hashlib.blake2b(place, digest_size=6).hexdigest()
        self.path = state_directory() / f"mcp-token-{name}"
        self._seen: tuple[int, ...] | None = None
        self._token = ""

    def load(self, *, renew: bool = False) -> tuple[str, bool]:
        """The token, and whether it was made by this call.

        Raises:
            ConfigError: the file cannot be made, others can read it, or it holds something else.
        """
        path = self.path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if renew:
                path.unlink(missing_ok=True)
            try:
                return _make_token(path), True
            except FileExistsError:
                return _read_token(path), False
        except OSError as error:
            raise ConfigError(
                f"The token in {path} cannot be used: {error.strerror}", hint="Is the folder yours?"
            ) from None

    def current(self) -> str:
        """The token as it is now; empty, which opens nothing, if there is none."""
        try:
            status = self.path.lstat()
            seen = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
            if seen != self._seen:
                self._token = _read_token(self.path)
                self._seen = seen
        except (OSError, ConfigError):
            self._seen, self._token = None, ""
        return self._token


def _make_token(path: Path) -> str:
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123  # of the descriptor
        file.write(token + "\n")
    return token


def _read_token(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="ascii", errors="replace") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not is_ours or status.st_mode & 0o077:
            raise ConfigError(
                f"The token in {path} could be read by others", hint="Make a new one: --new-token"
            )
        token = file.read(256).strip()
    if not _TOKEN_SHAPE.fullmatch(token):
        raise ConfigError(f"{path} holds no token", hint="Make a new one: --new-token")
    return token
