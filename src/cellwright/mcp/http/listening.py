"""Listen: on which address, with which limits, and with what is said about it."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellwright.errors import ConfigError
from cellwright.mcp.http.guard import MAX_BODY, MAX_HEAD, PATH, Guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.lowlevel import Server

MAX_SESSIONS = 200
_IDLE = 1800.0
_HEAD_WITHIN = 10.0
_CONNECTIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where and how to listen.

    `insecure` is the user's word that a wire without encryption may be used beyond this machine.
    """

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    insecure: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, **options: Any) -> Listening:
        """From `HOST:PORT`, `[::1]:PORT` or `:PORT`.

        Raises:
            ConfigError: it is neither.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise ConfigError(f"{text!r} is no address", hint="Such as 127.0.0.1:8765")
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
        """Raise `ConfigError` for what would send the token over a wire in the clear."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError(
                "TLS needs both a certificate and a key", hint="--tls-cert, --tls-key"
            )
        if not self.is_local and self.certificate is None and not self.insecure:
            raise ConfigError(
                f"{self.host} can be reached from other machines, and would be without TLS",
                hint="Give --tls-cert and --tls-key, or say --insecure; or listen on 127.0.0.1",
            )


def app_of(server: Server[Any], token: str, listening: Listening) -> Any:
    """The ASGI app: the guard, and behind it the protocol."""
    from mcp.server.transport_security import TransportSecuritySettings

    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=_IDLE,
        max_sessions=MAX_SESSIONS,
        max_request_body_size=MAX_BODY,
        # The guard has looked at Host and Origin, on every address; the library would not.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        host=listening.host,
    )
    return Guard(inner, token, hosts=listening.hosts, origins=listening.origins)


async def serve(
    server: Server[Any], token: str, listening: Listening, ready: Callable[[str], object]
) -> None:
    """Serve until the process is told to end.

    Args:
        server: what is served.
        token: what clients must know.
        listening: where.
        ready: gets the address as soon as clients can connect.

    Raises:
        ConfigError: it would not be safe, or the address cannot be had.
    """
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    listening.check()
    listener = _bound(listening)

    class Impatient(H11Protocol):
        """Hangs up on who does not say what he wants."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)

            def give_up() -> None:
                cycle: Any = self.cycle  # None until a request has begun, whatever its type says
                if cycle is None and not transport.is_closing():
                    transport.close()

            self.loop.call_later(_HEAD_WITHIN, give_up)

    config = uvicorn.Config(
        app_of(server, token, listening),
        http=Impatient,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
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
    scheme = "https" if listening.certificate else "http"
    host = f"[{listening.host}]" if ":" in listening.host else listening.host

    class Announced(uvicorn.Server):
        """Says where it listens, when it does."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready(f"{scheme}://{host}:{listener.getsockname()[1]}{PATH}")

    running = Announced(config)
    try:
        await running.serve(sockets=[listener])
    finally:
        listener.close()


def _bound(listening: Listening) -> socket.socket:
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
