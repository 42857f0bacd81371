"""Who may pass: the first thing that every request meets, before a byte of its body is read.

A browser page can reach any port of this machine, under a name of its choice. So the Host must be
ours on every address we listen on, an Origin must be ours if there is one, and the token must be
right. Every refusal is as short as it can be: it tells nothing but its kind.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import TYPE_CHECKING, Any

from cellwright.mcp.http.limits import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/mcp"
MAX_BODY = 32 * 2**20
MAX_HEAD = 16 * 2**10
_BODY_WITHIN = 30.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_METHODS = frozenset({b"POST", b"GET", b"DELETE"})
# What a client may send more than once without ambiguity is of no interest here.
_ONCE = (b"host", b"origin", b"authorization", b"content-length", b"content-type")


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, said: str, **headers: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said
        self.headers = headers


class Guard:
    """An ASGI app in front of another.

    Args:
        app: what is guarded.
        token: what `Authorization: Bearer` must say.
        hosts: names by which we may be called, beside this machine's own loopback names and the
            very address that the client has connected to.
        origins: pages that may call us, as `https://name:port`, beside our own.
        rate, burst: requests of one address, a second and at once.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        rate: float = 50,
        burst: float = 200,
        max_body: int = MAX_BODY,
    ) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._max_body = max_body
        self._requests = Bucket(rate, burst)
        self._strangers = Bucket(1, 30)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # such as a websocket, which we do not speak
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check(scope)
            body = await self._body(scope, receive)
        except Refused as refused:
            await _refuse(refused, send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _check(self, scope: Scope) -> None:
        found: dict[bytes, list[bytes]] = {}
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD:
            raise Refused(431, "too large")
        for name, value in scope["headers"]:
            found.setdefault(name.lower(), []).append(value)
        for name in _ONCE:
            if len(found.get(name, ())) > 1:
                raise Refused(400, "ambiguous request")
        headers = {name: values[0] for name, values in found.items()}
        address = str((scope.get("client") or ("?", 0))[0])
        self._check_host(scope, headers.get(b"host"))
        self._check_origin(scope, headers)
        self._check_token(headers.get(b"authorization"), address)
        if not self._requests.takes(address):
            raise Refused(429, "too many requests", **{"retry-after": "1"})
        if scope.get("raw_path", scope["path"].encode()).split(b"?")[0] != PATH.encode():
            raise Refused(404, "not found")
        if scope.get("query_string"):
            raise Refused(400, "no query is understood")
        method = scope["method"].encode()
        if method not in _METHODS:
            raise Refused(405, "method not allowed", allow="POST, GET, DELETE")
        if method == b"POST":
            # What a form of a web page can send without asking is never this.
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise Refused(415, "the body must be application/json")

    def _check_host(self, scope: Scope, host: bytes | None) -> None:
        name, port = split_host((host or b"").decode("latin-1"))
        ours, our_port = scope.get("server") or ("", None)
        usual = 443 if scope.get("scheme") == "https" else 80
        known = name in _LOOPBACK or name == str(ours).lower() or name in self._hosts
        # A proxy that was named by the user may listen on another port.
        right_port = name in self._hosts or (port or usual) == our_port
        if not name or not known or not right_port:
            raise Refused(421, "wrong host")

    def _check_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        origin = headers.get(b"origin")
        if origin is not None:
            host = headers[b"host"].decode("latin-1").lower()
            said = origin.decode("latin-1").lower()
            if said not in self._origins and said != f"{scope.get('scheme', 'http')}://{host}":
                raise Refused(403, "wrong origin")
        site = headers.get(b"sec-fetch-site", b"none").lower()
        if site not in (b"none", b"same-origin") and origin is None:
            raise Refused(403, "wrong origin")

    def _check_token(self, said: bytes | None, address: str) -> None:
        scheme, _, token = (said or b"").partition(b" ")
        # Compared whatever was sent, so that no answer comes sooner than another.
        is_right = hmac.compare_digest(token.strip(), self._token)
        if is_right and scheme.lower() == b"bearer":
            return
        if not self._strangers.takes(address):
            raise Refused(429, "too many requests", **{"retry-after": "5"})
        raise Refused(401, "unauthorized", **{"www-authenticate": "Bearer"})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is not too long and does not take too long."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._max_body:
            raise Refused(413, "too large")
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_WITHIN):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Refused(400, "incomplete request")
                    body += message.get("body", b"")
                    if len(body) > self._max_body:
                        raise Refused(413, "too large")
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise Refused(408, "too slow") from None


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


def _replay(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(refused: Refused, send: Send) -> None:
    body = json.dumps({"error": refused.said}).encode()
    headers: list[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
        *((name.encode(), value.encode()) for name, value in refused.headers.items()),
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
