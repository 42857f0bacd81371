"""One HTTP call to a Jupyter server: the token in its header alone, and no redirect followed."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from cellwright.errors import KernelUnreachable
from cellwright.kernel.remote.address import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from typing import Any

    from cellwright.kernel.remote.address import Address, Token

_log = logging.getLogger("cellwright.kernel")
_LARGEST_ANSWER = 32 * 2**20
_PAUSE_BEFORE_RETRY = 0.2


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each step with a server may take, in seconds.

    `ready` is for a new kernel to answer. A lost connection is sought again for `reconnect`
    before the kernel is given up. After `quiet` seconds without a word on a connection it is
    tested, and lost if the test is not answered in as many again.
    """

    connect: float = 10.0
    request: float = 30.0
    ready: float = 60.0
    reconnect: float = 60.0
    quiet: float = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said: a status, and the JSON in the body, if there was any."""

    status: int
    body: Any = None
    reason: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the server did what it was asked to."""
        return 200 <= self.status < 300


class _Lost(Exception):
    """A call that broke on the way; nobody knows whether it arrived."""

    def __init__(self, error: KernelUnreachable, cause: OSError | None = None) -> None:
        super().__init__()
        error.__cause__ = cause
        self.error = error


class Rest:
    """Calls to one server.

    A call that can be repeated without harm is, once, when the server fails or hangs up.
    """

    def __init__(
        self, address: Address, token: Token, tls: ssl.SSLContext | None, timeouts: Timeouts
    ) -> None:
        self.address = address
        self.tls = tls
        self.timeouts = timeouts
        self._token = token

    def __repr__(self) -> str:
        return f"Rest({self.address.url!r})"

    def headers(self) -> dict[str, str]:
        """What shows the server that we may: the only place where the token leaves us."""
        if self._token:
            return {"Authorization": self._token.header()}
        # Without a token a server wants proof that no web page makes the call: the same word in
        # a cookie and in a header, which only somebody who is no browser can choose.
        word = secrets.token_hex(16)
        return {"Cookie": f"_xsrf={word}", "X-XSRFToken": word}

    async def call(
        self,
        method: str,
        *path: str,
        body: dict[str, Any] | None = None,
        within: float | None = None,
        repeatable: bool = False,
    ) -> Answer:
        """Make one call; a status of 4xx or 5xx is an answer too, but for 401 and 403.

        Raises:
            KernelUnreachable: no answer, a refusal, or one that only leads elsewhere.
        """
        for is_last in (not repeatable, True):
            try:
                answer = await self._once(method, path, body, within)
            except _Lost as lost:
                if is_last:
                    raise lost.error from lost.error.__cause__
            else:
                if answer.status < 500 or is_last:
                    return self._checked(answer)
            await asyncio.sleep(_PAUSE_BEFORE_RETRY)
        raise AssertionError("the last try returns or raises")

    def unreachable(self, reason: str, *, hint: str | None = None) -> KernelUnreachable:
        """The error for this server, with whatever it said made harmless."""
        return KernelUnreachable(self.address.url, one_line(reason, self._token), hint=hint)

    def refused(self, status: int, reason: str = "") -> KernelUnreachable:
        """The error for a call that the server would not serve."""
        said = f": {reason}" if reason else ""
        return self.unreachable(
            f"it refused us (HTTP {status}{said})",
            hint="The token is wrong or too old (`jupyter server list` shows it), "
            "or the server does not allow this"
            if self._token
            else "It wants a token: add ?token=… to the address, or give it apart",
        )

    def led_elsewhere(self, location: str) -> KernelUnreachable:
        """The error for a redirect: the token is for this server and goes to no other."""
        try:
            parts = urlsplit(location)
            where = f" to {parts.scheme}://{parts.netloc}" if parts.netloc else ""
        except ValueError:
            where = ""
        return self.unreachable(
            f"it leads elsewhere{where}, which is not followed",
            hint="Give the address it has now, if you trust that",
        )

    def _checked(self, answer: Answer) -> Answer:
        if answer.status in {401, 403}:
            raise self.refused(answer.status, answer.reason)
        if 300 <= answer.status < 400:
            raise self.led_elsewhere(answer.reason)
        return answer

    async def _once(
        self, method: str, path: tuple[str, ...], body: dict[str, Any] | None, within: float | None
    ) -> Answer:
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
        # One client a call: it belongs to a loop, while a server may be used from several.
        client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=_LARGEST_ANSWER)
        try:
            response = await client.fetch(request, raise_error=False)
            if response.code == 599:
                response.rethrow()
        except HTTPTimeoutError:
            raise self.unreachable("it took too long") from None
        except StreamClosedError:
            raise _Lost(self.unreachable("it hung up")) from None
        except OSError as error:  # with its number: out of files is for the pool to mend
            raise _Lost(self.unreachable(why(error)), error) from None
        except Exception as error:  # noqa: BLE001  # whatever a broken answer makes the client raise
            _log.debug("call failed", extra={"kind": type(error).__name__})
            raise _Lost(self.unreachable("it hung up, or does not speak HTTP")) from None
        finally:
            client.close()
        _log.debug("call", extra={"method": method, "path": path, "status": response.code})
        if 300 <= response.code < 400:
            return Answer(response.code, reason=response.headers.get("Location", ""))
        return self._answer(response.code, response.body)

    def _answer(self, status: int, raw: bytes) -> Answer:
        try:
            body = json.loads(raw) if raw else None
        except (ValueError, RecursionError):
            if 200 <= status < 300:
                raise self.unreachable(
                    "what it says is not JSON", hint="Is there a Jupyter server at that address?"
                ) from None
            return Answer(status)
        reason = body.get("message") or body.get("reason") if isinstance(body, dict) else ""
        return Answer(status, body, one_line(str(reason or ""), self._token))


def why(error: OSError) -> str:
    """Why a connection could not be made, in words."""
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "it does not speak TLS with us"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    return error.strerror or "the connection failed"
