"""A Jupyter Server or Kernel Gateway: its address, one HTTP call to it, its kernels."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit
from uuid import uuid4

from cellwright.errors import KernelMissing, KernelStartFailed, KernelUnreachable
from cellwright.kernel.jupyter import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from typing import Any

_log = logging.getLogger("cellwright.kernel")
_WEBSOCKET = {"http": "ws", "https": "wss"}
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
# Servers print the address of their start page; the one of their API is one step above it.
_START_PAGE = re.compile(r"/(lab|tree)/*$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_ADDRESS_HINT = "It looks like http://localhost:8888, with the token after ?token= or apart"
_TEXT_KEPT = 300
_SHORTEST_SECRET = 4  # a shorter one occurs in every text
_LARGEST_ANSWER = 32 * 2**20
_PAUSE_BEFORE_RETRY = 0.2


# --- The address ---------------------------------------------------------------------------------


class Token:
    """A secret that only `header` gives away: never a repr, a message or a log."""

    __slots__ = ("_value",)

    def __init__(self, value: str | None) -> None:
        self._value = value or ""

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Token(…)" if self else "Token()"

    def __reduce__(self) -> str:
        raise TypeError("a token is not to be stored")

    @property
    def is_sendable(self) -> bool:
        """Whether a header can hold it unchanged."""
        return self._value.isascii() and self._value.isprintable() and " " not in self._value

    def header(self) -> str:
        """The value of the `Authorization` header, as servers and gateways both read it."""
        return f"token {self._value}"

    def hide_in(self, text: str) -> str:
        """Replace the token in a text."""
        if len(self._value) < _SHORTEST_SECRET:
            return text
        for spelling in {self._value, quote(self._value), quote(self._value, safe="")}:
            text = text.replace(spelling, "…")
        return text


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The root of a server's API: no token, no query, no slash at the end."""

    url: str

    def __str__(self) -> str:
        return self.url

    def join(self, *parts: str, query: dict[str, str] | None = None) -> str:
        """The address of something below `api`; parts are quoted, so that they cannot climb."""
        path = "/".join(quote(part, safe="") for part in parts)
        return f"{self.url}/api/{path}" + (f"?{urlencode(query)}" if query else "")

    def websocket(self, *parts: str, query: dict[str, str] | None = None) -> str:
        """The same for a WebSocket."""
        scheme, rest = self.join(*parts, query=query).split(":", 1)
        return f"{_WEBSOCKET[scheme]}:{rest}"

    @property
    def is_private(self) -> bool:
        """Whether the connection is encrypted, or never leaves this machine."""
        parts = urlsplit(self.url)
        return parts.scheme == "https" or bool(_LOOPBACK.fullmatch(parts.hostname or ""))


def parse_address(url: str, token: str | None = None) -> tuple[ServerAddress, Token]:
    """Parse an address as people copy it: with or without slashes, a token, a start page.

    Raises:
        KernelUnreachable: it is not the address of a server, or the token cannot be sent.
    """
    bare = url.strip()
    if "://" not in bare:
        bare = f"http://{bare}"
    try:
        parts = urlsplit(bare)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme.lower() not in _WEBSOCKET or _CONTROL.search(host):
        raise KernelUnreachable("the server", "its address is not valid", hint=_ADDRESS_HINT)
    shown_host = f"[{host}]" if ":" in host else host
    netloc = shown_host if port is None else f"{shown_host}:{port}"
    path = _START_PAGE.sub("", re.sub(r"/{2,}", "/", parts.path)).rstrip("/")
    path = quote(path, safe="/%~@:!$&'()*+,;=")
    address = ServerAddress(urlunsplit((parts.scheme.lower(), netloc, path, "", "")))
    if parts.username is not None or parts.password is not None:
        raise KernelUnreachable(
            address.url,
            "a user name or password in the address is not supported",
            hint="Leave it out, and give a token",
        )
    found = Token(token or dict(parse_qsl(parts.query)).get("token"))
    if found and not found.is_sendable:
        raise KernelUnreachable(
            address.url, "the token has characters that no token has", hint="Copy it once more"
        )
    return address, found


def flatten_text(text: str, token: Token) -> str:
    """Make a server's text safe for our messages: short, one line, no token."""
    line = token.hide_in(_CONTROL.sub(" ", text).strip())
    return line if len(line) <= _TEXT_KEPT else f"{line[:_TEXT_KEPT]}…"


# --- One call ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each step with a server may take, in seconds.

    `ready` is for a new kernel to answer. After a lost connection, reconnecting is tried for
    `reconnect` seconds before the kernel is given up. A connection that is silent for `quiet`
    seconds is tested, and lost if the test is not answered in as many again.
    """

    connect: float = 10.0
    request: float = 30.0
    ready: float = 60.0
    reconnect: float = 60.0
    quiet: float = 20.0


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """A server's answer: a status, and the JSON in the body, if there was any."""

    status: int
    body: Any = None
    reason: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the server did what it was asked to do."""
        return 200 <= self.status < 300


class _Lost(Exception):
    """A call that broke on the way; it is unknown whether it arrived."""

    def __init__(self, error: KernelUnreachable, cause: OSError | None = None) -> None:
        super().__init__()
        error.__cause__ = cause
        self.error = error


class RestClient:
    """HTTP calls to one server: the token only in the header, and no redirect followed.

    A call that can be repeated without harm is repeated once when the server fails or hangs up.
    """

    def __init__(self, address: ServerAddress, token: Token, timeouts: Timeouts) -> None:
        self.address = address
        self.tls = _make_tls_context(address.url)
        self.timeouts = timeouts
        self._token = token

    def __repr__(self) -> str:
        return f"RestClient({self.address.url!r})"

    def headers(self) -> dict[str, str]:
        """The headers that authorize us; the token is used nowhere else."""
        if self._token:
            return {"Authorization": self._token.header()}
        # Without a token a server wants proof that the call does not come from a web page: the same
        # word in a cookie and in a header, which a page of another site cannot choose.
        word = secrets.token_hex(16)
        return {"Cookie": f"_xsrf={word}", "X-XSRFToken": word}

    async def call(
        self,
        method: str,
        *path: str,
        body: dict[str, Any] | None = None,
        within: float | None = None,
        repeatable: bool = False,
    ) -> RestAnswer:
        """Make one call; a status of 4xx or 5xx is an answer too, except 401 and 403.

        Raises:
            KernelUnreachable: no answer, a refusal, or a redirect.
        """
        for is_last in (not repeatable, True):
            try:
                answer = await self._call_once(method, path, body, within)
            except _Lost as lost:
                if is_last:
                    raise lost.error from lost.error.__cause__
            else:
                if answer.status < 500 or is_last:
                    return self._check(answer)
            await asyncio.sleep(_PAUSE_BEFORE_RETRY)
        raise AssertionError("the last try returns or raises")

    def unreachable(self, reason: str, *, hint: str | None = None) -> KernelUnreachable:
        """The error for this server, without control characters or the token."""
        return KernelUnreachable(self.address.url, flatten_text(reason, self._token), hint=hint)

    def refusal(self, status: int, reason: str = "") -> KernelUnreachable:
        """The error for a call that the server refused."""
        said = f": {reason}" if reason else ""
        return self.unreachable(
            f"it refused us (HTTP {status}{said})",
            hint="The token is wrong or too old (`jupyter server list` shows it), "
            "or the server does not allow this"
            if self._token
            else "It wants a token: add ?token=… to the address, or give it apart",
        )

    def redirect(self, location: str) -> KernelUnreachable:
        """The error for a redirect: the token must not be sent to another server."""
        try:
            parts = urlsplit(location)
            where = f" to {parts.scheme}://{parts.netloc}" if parts.netloc else ""
        except ValueError:
            where = ""
        return self.unreachable(
            f"it redirects elsewhere{where}, which is not followed",
            hint="Give the new address, if you trust it",
        )

    def _check(self, answer: RestAnswer) -> RestAnswer:
        if answer.status in {401, 403}:
            raise self.refusal(answer.status, answer.reason)
        if 300 <= answer.status < 400:
            raise self.redirect(answer.reason)
        return answer

    async def _call_once(
        self, method: str, path: tuple[str, ...], body: dict[str, Any] | None, within: float | None
    ) -> RestAnswer:
        from tornado.httpclient import HTTPRequest
        from tornado.iostream import StreamClosedError
        from tornado.simple_httpclient import HTTPTimeoutError, SimpleAsyncHTTPClient

        request = HTTPRequest(
            self.address.join(*path),
            method,
            headers={**self.headers(), "Accept": "application/json"},
            body=json.dumps(body or {}).encode() if method == "POST" else None,
            connect_timeout=self.timeouts.connect,
            request_timeout=within or self.timeouts.request,
            follow_redirects=False,
            ssl_options=self.tls,
        )
        request.headers["Content-Type"] = "application/json"
        # One client for each call: it belongs to one loop, and a server may be used from several.
        client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=_LARGEST_ANSWER)
        try:
            response = await client.fetch(request, raise_error=False)
            if response.code == 599:
                response.rethrow()
        except HTTPTimeoutError:
            raise self.unreachable("it took too long") from None
        except StreamClosedError:
            raise _Lost(self.unreachable("it hung up")) from None
        except OSError as error:  # with its number: the pool handles a lack of descriptors
            raise _Lost(self.unreachable(describe_connection_error(error)), error) from None
        except Exception as error:  # noqa: BLE001  # whatever a broken answer makes the client raise
            _log.debug("call failed", extra={"kind": type(error).__name__})
            raise _Lost(self.unreachable("it hung up, or does not speak HTTP")) from None
        finally:
            client.close()
        _log.debug("call", extra={"method": method, "path": path, "status": response.code})
        if 300 <= response.code < 400:
            return RestAnswer(response.code, reason=response.headers.get("Location", ""))
        return self._read_answer(response.code, response.body)

    def _read_answer(self, status: int, raw: bytes) -> RestAnswer:
        try:
            body = json.loads(raw) if raw else None
        except (ValueError, RecursionError):
            if 200 <= status < 300:
                raise self.unreachable(
                    "its answer is not JSON", hint="Is there a Jupyter server at that address?"
                ) from None
            return RestAnswer(status)
        reason = body.get("message") or body.get("reason") if isinstance(body, dict) else ""
        return RestAnswer(status, body, flatten_text(str(reason or ""), self._token))


def describe_connection_error(error: OSError) -> str:
    """Say why a connection could not be made."""
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "it does not speak TLS with us"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    return error.strerror or "the connection failed"


def _make_tls_context(url: str) -> ssl.SSLContext | None:
    if not url.startswith("https:"):
        return None
    import ssl

    return ssl.create_default_context()


# --- The server ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunningKernel:
    """A kernel on a server, as the server sees it."""

    id: str
    name: str = ""
    state: str = "unknown"


@dataclass(frozen=True, slots=True)
class KernelSpecs:
    """The kernels that a server can start: the language of each by name, and its default."""

    default: str | None = None
    languages: Mapping[str, str] = field(default_factory=dict)


class RemoteServer:
    """The kernels of a server, over REST.

    Args:
        url: its address; a token in it (`?token=…`) is taken out and used.
        token: sent in the header of each call, and nowhere else.
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeouts: Timeouts | None = None
    ) -> None:
        self.address, secret = parse_address(url, token)
        self.rest = RestClient(self.address, secret, timeouts or Timeouts())
        if secret and not self.address.is_private:
            _log.warning("token goes unencrypted", extra={"server": self.address.url})

    def __repr__(self) -> str:
        return f"RemoteServer({self.address.url!r})"

    @property
    def timeouts(self) -> Timeouts:
        """How long each step may take."""
        return self.rest.timeouts

    async def kernels(self) -> list[RunningKernel]:
        """List the running kernels; a gateway answers only if it is set up to."""
        answer = await self.rest.call("GET", "kernels", repeatable=True)
        body = self._require_ok(answer, "list its kernels")
        items = body if isinstance(body, list) else []
        return [_read_kernel(item) for item in items if isinstance(item, dict)]

    async def specs(self) -> KernelSpecs:
        """List the kernels that can be started."""
        answer = await self.rest.call("GET", "kernelspecs", repeatable=True)
        body = as_object(self._require_ok(answer, "list its kernelspecs"))
        return KernelSpecs(
            default=_text(body.get("default")) or None,
            languages={
                name: _text(as_object(as_object(spec).get("spec")).get("language"))
                for name, spec in sorted(as_object(body.get("kernelspecs")).items())
            },
        )

    async def start_kernel(
        self, name: str | None = None, *, kernel_id: str | None = None
    ) -> RunningKernel:
        """Start a kernel; a server that fails with 5xx is asked once more.

        Args:
            name: which; the server's default if None.
            kernel_id: the id it should get; one is made up if None. Thanks to it asking twice
                does not start two, except on servers that are too old to use it.

        Raises:
            KernelMissing: the server has no kernel of that name.
            KernelStartFailed: it has, and could not start it.
        """
        answer = await self.rest.call(
            "POST",
            "kernels",
            body={"kernel_id": kernel_id or str(uuid4()), **({"name": name} if name else {})},
            within=self.timeouts.ready,
            repeatable=True,
        )
        if answer.is_ok:
            started = _read_kernel(as_object(answer.body))
            if not started.id:
                raise KernelStartFailed(name or "default", "the server gave no id for it")
            return started
        await self._require_spec(name)
        said = answer.reason or "no reason given"
        raise KernelStartFailed(name or "default", f"the server answered {answer.status}: {said}")

    async def kernel(self, kernel_id: str) -> RunningKernel | None:
        """Look a kernel up; None when the server has no such kernel."""
        answer = await self.rest.call("GET", "kernels", kernel_id, repeatable=True)
        if answer.status == 404:
            return None
        return _read_kernel(as_object(self._require_ok(answer, "describe the kernel")))

    async def interrupt(self, kernel_id: str, *, within: float | None = None) -> None:
        """Interrupt a kernel."""
        answer = await self.rest.call("POST", "kernels", kernel_id, "interrupt", within=within)
        self._require_ok(answer, "interrupt the kernel")

    async def restart(self, kernel_id: str) -> bool:
        """Restart a kernel, which keeps its id; false when there is no such kernel any more."""
        answer = await self.rest.call(
            "POST", "kernels", kernel_id, "restart", within=self.timeouts.ready
        )
        # A server that has none says 500, as for everything that goes wrong with a restart.
        if answer.status == 404 or (answer.status >= 500 and await self.kernel(kernel_id) is None):
            return False
        self._require_ok(answer, "restart the kernel")
        return True

    async def delete(self, kernel_id: str) -> None:
        """End a kernel; it is not an error if it is gone already."""
        answer = await self.rest.call("DELETE", "kernels", kernel_id, repeatable=True)
        if answer.status != 404:
            self._require_ok(answer, "end the kernel")

    async def _require_spec(self, name: str | None) -> None:
        if name is None:
            return
        known = list((await self.specs()).languages)
        if name not in known:
            raise KernelMissing(
                f"{self.address} has no kernel `{name}`",
                hint=f"It has {', '.join(known)}" if known else "It has none at all",
            )

    def _require_ok(self, answer: RestAnswer, what: str) -> Any:
        if not answer.is_ok:
            said = f": {answer.reason}" if answer.reason else ""
            raise self.rest.unreachable(
                f"it could not {what} (HTTP {answer.status}{said})",
                hint="Is there a Jupyter server at that address?"
                if answer.status == 404
                else "Try again; the server's own log says more",
            )
        return answer.body


def _read_kernel(item: Mapping[str, Any]) -> RunningKernel:
    identity = item.get("id")
    # It becomes a part of addresses: anything that could lead elsewhere is not an id.
    is_safe = isinstance(identity, str) and _ID.fullmatch(identity)
    return RunningKernel(
        id=str(identity) if is_safe else "",
        name=_text(item.get("name")),
        state=_text(item.get("execution_state")) or "unknown",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
