"""Where a Jupyter server is, and the token it wants, kept apart from each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from cellwright.errors import KernelUnreachable

_WEBSOCKET = {"http": "ws", "https": "wss"}
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
# Servers print the address of their start page; the one of their API is a step above it.
_START_PAGE = re.compile(r"/(lab|tree)/*$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TEXT_KEPT = 300
_SHORTEST_SECRET = 4  # what is shorter is in every text, and no secret


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
        """Whether it can stand in a header without becoming something else."""
        return self._value.isascii() and self._value.isprintable() and " " not in self._value

    def header(self) -> str:
        """The value of the `Authorization` header, as servers and gateways both read it."""
        return f"token {self._value}"

    def hidden_in(self, text: str) -> str:
        """The text, with the token made unreadable should somebody have put it there."""
        if len(self._value) < _SHORTEST_SECRET:
            return text
        for spelling in {self._value, quote(self._value), quote(self._value, safe="")}:
            text = text.replace(spelling, "…")
        return text


@dataclass(frozen=True, slots=True)
class Address:
    """The root of a server's API: no token, no query, no slash at the end."""

    url: str

    def __str__(self) -> str:
        return self.url

    def join(self, *parts: str, query: dict[str, str] | None = None) -> str:
        """The address of something below `api`; parts are quoted, so they cannot climb."""
        path = "/".join(quote(part, safe="") for part in parts)
        return f"{self.url}/api/{path}" + (f"?{urlencode(query)}" if query else "")

    def websocket(self, *parts: str, query: dict[str, str] | None = None) -> str:
        """The same for a WebSocket."""
        scheme, rest = self.join(*parts, query=query).split(":", 1)
        return f"{_WEBSOCKET[scheme]}:{rest}"

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way can read along: encrypted, or never leaves this machine."""
        parts = urlsplit(self.url)
        return parts.scheme == "https" or bool(_LOOPBACK.fullmatch(parts.hostname or ""))


def parse(url: str, token: str | None = None) -> tuple[Address, Token]:
    """Take an address as people copy it: with or without slashes, a token, a start page.

    Raises:
        KernelUnreachable: it is no address of a server, or the token cannot be sent.
    """
    bare = url.strip()
    if "://" not in bare:
        bare = f"http://{bare}"
    try:
        parts = urlsplit(bare)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise KernelUnreachable("the server", "its address is not valid", hint=_HINT) from None
    if parts.scheme.lower() not in _WEBSOCKET or not host or _CONTROL.search(host):
        raise KernelUnreachable("the server", "its address is not valid", hint=_HINT)
    shown_host = f"[{host}]" if ":" in host else host
    netloc = shown_host if port is None else f"{shown_host}:{port}"
    path = _START_PAGE.sub("", re.sub(r"/{2,}", "/", parts.path)).rstrip("/")
    path = quote(path, safe="/%~@:!$&'()*+,;=")
    address = Address(urlunsplit((parts.scheme.lower(), netloc, path, "", "")))
    if parts.username is not None or parts.password is not None:
        raise KernelUnreachable(
            address.url,
            "a user name or password in the address is not supported",
            hint="Leave it out, and give a token",
        )
    found = Token(token or dict(parse_qsl(parts.query)).get("token"))
    if found and not found.is_sendable:
        raise KernelUnreachable(
            address.url, "the token holds characters that no token has", hint="Copy it once more"
        )
    return address, found


def one_line(text: str, token: Token) -> str:
    """Somebody else's words, made fit for a message of ours: short, one line, no token."""
    line = token.hidden_in(_CONTROL.sub(" ", text).strip())
    return line if len(line) <= _TEXT_KEPT else f"{line[:_TEXT_KEPT]}…"


_HINT = "It looks like http://localhost:8888, with the token after ?token= or apart"
