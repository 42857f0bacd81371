"""The server over HTTP, and everybody who has no business there."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import socket
import ssl
import stat
import subprocess
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.integration.mcp.process import (
    HELLO,
    LOOPBACK,
    SECRET,
    Served,
    make_root,
    served,
    words,
)
from tests.unit.mcp.serving import ERAS, notebook, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERYWHERE = "0.0.0.0"  # noqa: S104


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def raw(
    port: int, request: bytes, *, wait: float = 15, wrap: ssl.SSLContext | None = None
) -> tuple[int, bytes]:
    """Send bytes as they are; returns the status, 0 if it hangs up without one."""
    with socket.create_connection((LOOPBACK, port), timeout=wait) as plain:
        answer = b""
        with (
            wrap.wrap_socket(plain, server_hostname="localhost")
            if wrap
            else contextlib.nullcontext(plain) as connection,
            contextlib.suppress(OSError),
        ):
            connection.sendall(request)
            while chunk := connection.recv(65536):
                answer += chunk
    found = re.match(rb"HTTP/1\.1 (\d+)", answer)
    return (int(found[1]) if found else 0), answer


def request(
    headers: dict[str, str] | list[tuple[str, str]],
    body: bytes = b"",
    *,
    method: str = "POST",
    path: str = "/mcp",
) -> bytes:
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in pairs):
        pairs = [*pairs, ("Content-Length", str(len(body)))]
    head = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


def call(method: str, params: dict[str, Any], number: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def attacks(server: Served) -> Iterator[tuple[str, bytes, set[int]]]:
    """Requests that must be refused: what they try, what they send, and how they may end."""
    hello = call("initialize", HELLO)
    right, port, token = server.headers, server.port, server.token

    tokens = {
        "no token": None,
        "an empty token": "Bearer ",
        "a wrong token": "Bearer " + "A" * 43,
        "a token cut short": f"Bearer {token[:-1]}",
        "a token with more": f"Bearer {token}A",
        "a token in capitals": f"Bearer {token.swapcase()}",
        "a token for another scheme": f"Basic {token}",
        "a token without scheme": token,
        "two tokens": f"Bearer {token} {token}",
        "a null token": "Bearer null",
        "a huge token": "Bearer " + "A" * 9000,
        "bytes for a token": "Bearer \xff\xfe",
    }
    for what, said in tokens.items():
        yield what, request(right(Authorization=said), hello), {401, 429}
    for name in ("token", "access_token", "api_key"):
        plain = request(right(Authorization=None), hello, path=f"/mcp?{name}={token}")
        yield f"a token in the query as {name}", plain, {401, 429}
    cookie = right(Authorization=None, Cookie=f"token={token}; Authorization=Bearer {token}")
    yield "a token in a cookie", request(cookie, hello), {401, 429}

    for host in (
        "evil.com",
        f"evil.com:{port}",
        f"localhost.evil.com:{port}",
        f"127.0.0.1.evil.com:{port}",
        f"127.0.0.1:{port}@evil.com",
        f"localhost.:{port}",
        f"0.0.0.0:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1 if port < 65535 else 1}",
        f"[::ffff:7f00:1]:{port}",
        f"2130706433:{port}",
        "",
    ):
        yield f"host {host!r}", request(right(Host=host), hello), {400, 421}
    yield "no host", request(right(Host=None), hello), {400, 421}
    hosts = [("Host", server.host), *right(Host="evil.com").items()]
    yield "two hosts", request(hosts, hello), {400, 421}
    forwarded = right(
        Host="evil.com", X_Forwarded_Host=server.host, Forwarded=f"host={server.host}"
    )
    yield "a host by proxy", request(forwarded, hello), {421}

    for origin in (
        "null",
        "http://evil.com",
        f"http://evil.com:{port}",
        f"http://localhost.evil.com:{port}",
        f"http://127.0.0.1:{port}.evil.com",
        f"https://127.0.0.1:{port}",
        "http://127.0.0.1:1",
        "http://localhost",
        "file://",
        "chrome-extension://abcdef",
    ):
        yield f"origin {origin}", request(right(Origin=origin), hello), {403}
    yield "another site", request(right(Sec_Fetch_Site="cross-site"), hello), {403}
    both = [*right(Origin="http://evil.com").items(), ("Origin", f"http://{server.host}")]
    yield "two origins", request(both, hello), {400, 403}

    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        headers = right(Content_Type=kind)
        yield f"a form with the token, as {kind}", request(headers, hello), {415}
        headers = right(Content_Type=kind, Authorization=None, Origin="http://evil.com")
        yield f"a form of a page, as {kind}", request(headers, hello), {403}
    preflight = right(
        Authorization=None,
        Origin="http://evil.com",
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="authorization",
    )
    yield "a preflight", request(preflight, method="OPTIONS"), {403}
    yield "a preflight without origin", request(right(), method="OPTIONS"), {405}
    upgrade = right(Connection="close, Upgrade", Upgrade="websocket", Sec_WebSocket_Version="13")
    yield "a websocket", request(upgrade, method="GET"), {400, 404, 405, 406, 426}
    yield (
        "a websocket of a page",
        request({**upgrade, "Origin": "http://evil.com"}, method="GET"),
        {403},
    )

    for path in (
        "/",
        "/mcp/",
        "//mcp",
        "/mcp/../mcp",
        "/../../etc/passwd",
        "/mcp/..%2f..%2fsecret.ipynb",
        "/%2e%2e/secret.ipynb",
        "/a.ipynb",
        "/files/a.ipynb",
        "/docs",
        "/.well-known/oauth-authorization-server",
    ):
        yield f"path {path}", request(right(), hello, path=path), {404}
        without = request(right(Authorization=None), hello, path=path)
        yield f"path {path} without token", without, {401, 429}

    yield "a huge body, declared", request(right(Content_Length="99999999999"), b"{}"), {413}
    yield "a negative length", request(right(Content_Length="-5"), b"{}"), {400, 413}
    two = [*right().items(), ("Content-Length", "2"), ("Content-Length", "5")]
    yield "two lengths", request(two, b"{}xxx"), {400}
    smuggled = right(Content_Length="4", Transfer_Encoding="chunked")
    yield "length and chunks", request(smuggled, b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"), {400}
    yield "a huge header", request(right(X_Long="A" * 100_000), hello), {0, 400, 431}
    yield (
        "no HTTP at all",
        b"\x16\x03\x01\x02\x00\x01\xfc\x03\x03" + b"A" * 200 + b"\r\n\r\n",
        {0, 400},
    )

    session = "0" * 32
    for method in ("POST", "GET", "DELETE"):
        guess = request(right(Mcp_Session_Id=session), call("tools/list", {}), method=method)
        yield f"a guessed session, {method}", guess, {404, 400}
    yield "a session of nobody", request(right(), call("tools/list", {})), {400}
    yield "a session that is a path", request(right(Mcp_Session_Id="../../x"), hello), {404, 400}
    yield "no JSON", request(right(), b"{"), {400}
    yield "a batch", request(right(), b"[" + hello + b"," + hello + b"]"), {400}
    yield "deep JSON", request(right(), b"[" * 200_000), {400}


@pytest.mark.parametrize("address", [LOOPBACK, EVERYWHERE])
def test_who_has_no_business_here_is_refused(
    root: Path, address: str, shared_server: Served
) -> None:
    with contextlib.ExitStack() as stack:
        server = shared_server
        if address == EVERYWHERE:
            server = stack.enter_context(served(root, f"{address}:0", "--insecure"))
        tried = 0
        for what, sent, expected in attacks(server):
            status, answer = raw(server.port, sent)
            assert status in expected, (what, answer[:400])
            assert server.token.encode() not in answer, what
            assert SECRET.encode() not in answer, what
            assert b"Traceback" not in answer, what
            assert b"notebook_edit" not in answer, f"{what}: the tools were listed"
            tried += 1
        assert tried >= 60

        status, answer = raw(server.port, request(server.headers(), call("initialize", HELLO)))
        assert status == 200, "and who has, is let in all the same"
        assert b"cellwright" in answer
        said = server.said()

    assert said.count(server.token) == 1, "the token is told once, and never again"
    assert "Traceback" not in said


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_with_the_token_works_over_http(shared_server: Served, era: str) -> None:
    async with _client(shared_server, era) as client:
        listed = await client.list_tools()
        ran = await client.call_tool("notebook_run", {"path": "a.ipynb"})
        read = await client.call_tool("notebook_read", {"path": "a.ipynb"})
        for path in ("../secret.ipynb", "/etc/passwd", "a.ipynb/../../secret.ipynb"):
            out = await client.call_tool("notebook_read", {"path": path})
            assert out.is_error
            assert SECRET not in text_of(out)
        for handle in ("artifact://aaaaaaaaaaaa", "../../secret", "%2e%2e"):
            out = await client.call_tool("notebook_outputs", {"artifact": handle, "path": ""})
            assert out.is_error

    assert len(listed.tools) == 8
    assert not ran.is_error, text_of(ran)
    assert "x = 1" in text_of(read)


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_is_cancelled_over_http_stops_the_kernel(
    shared_server: Served, tmp_path: Path, era: str
) -> None:
    begun = tmp_path / "begun"
    source = f"import time\nopen({str(begun)!r}, 'w')\nfor _ in range(600): time.sleep(0.1)"
    path = notebook(shared_server.root / f"slow-{era}.ipynb", ("slow", source)).name
    async with _client(shared_server, era) as client:
        run = client.call_tool("notebook_run", {"path": path, "wait": 50})
        calling = asyncio.ensure_future(run)
        async with asyncio.timeout(50):
            while not begun.exists():
                await asyncio.sleep(0.05)
        calling.cancel()
        async with asyncio.timeout(50):
            while True:
                read = await client.call_tool("notebook_read", {"path": path})
                (cell,) = read.meta["cellwright/facts"]["cells"]
                if cell["status"] == "cancelled":
                    break
                await asyncio.sleep(0.05)


async def test_a_client_without_the_token_gets_nothing(shared_server: Served) -> None:
    server = dataclasses.replace(shared_server, token="A" * 43)
    with pytest.raises(BaseException) as refused:  # noqa: PT011
        async with _client(server, "legacy"):
            raise AssertionError("it was let in")

    assert "let in" not in str(refused.value)


def test_the_token_is_kept_for_the_user_alone_and_told_once(root: Path, places: Path) -> None:
    with served(root, f"{LOOPBACK}:0") as server:
        token = server.token
    (path,) = (places / "state" / "cellwright").glob("mcp-token-*")
    assert path.read_text().strip() == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    with served(root, f"{LOOPBACK}:0") as again:
        status, _ = raw(
            again.port, request(server.headers(Host=again.host), call("initialize", HELLO))
        )
        said = again.said()
    assert status == 200
    assert token not in said
    assert str(path) in said


@contextlib.contextmanager
def silent_callers(port: int, number: int) -> Iterator[list[socket.socket]]:
    """Connections of clients who say nothing, or half a line."""
    silent = [socket.create_connection((LOOPBACK, port)) for _ in range(number)]
    try:
        for connection in silent[::2]:
            connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
        yield silent
    finally:
        for connection in silent:
            connection.close()


def test_who_says_nothing_does_not_keep_others_out(shared_server: Served) -> None:
    server = shared_server
    with silent_callers(server.port, 400):
        status, _ = raw(server.port, request(server.headers(), call("initialize", HELLO)))

    assert status == 200


def test_a_new_token_ends_the_old_one_at_running_servers_of_that_root_and_mode(
    root: Path,
) -> None:
    def ask(server: Served, token: str) -> int:
        headers = server.headers(Authorization=f"Bearer {token}")
        return raw(server.port, request(headers, call("initialize", HELLO)))[0]

    with (
        served(root, f"{LOOPBACK}:0") as first,
        served(root, f"{LOOPBACK}:0", "--mode", "ask") as asking,
    ):
        assert ask(first, first.token) == 200
        assert ask(asking, first.token) == 401
        with served(root, f"{LOOPBACK}:0", "--new-token") as second:
            assert second.token != first.token
            assert [ask(first, token) for token in (first.token, second.token)] == [401, 200]
            assert ask(asking, asking.token) == 200


@pytest.mark.all
def test_who_says_nothing_is_hung_up_on(root: Path) -> None:
    with served(root, f"{LOOPBACK}:0") as server, silent_callers(server.port, 2) as silent:
        for connection in silent:
            connection.settimeout(30)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""


def test_tls_is_served_with_a_certificate(root: Path, tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with served(root, f"{EVERYWHERE}:0", *options, scheme="https") as server:
        context = ssl.create_default_context(cafile=str(certificate))
        headers = server.headers(Host=f"localhost:{server.port}")
        sent = request(headers, call("initialize", HELLO))
        assert raw(server.port, sent, wrap=context)[0] == 200
        assert raw(server.port, sent)[0] in (0, 400)
        foreign = request(server.headers(Host=f"evil.com:{server.port}"), call("initialize", HELLO))
        assert raw(server.port, foreign, wrap=context)[0] == 421


def test_it_does_not_listen_beyond_this_machine_in_the_clear(root: Path) -> None:
    done = subprocess.run(
        words(root, "--http", f"{EVERYWHERE}:0"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=dict(os.environ),
    )

    assert done.returncode == 2
    assert "--tls-cert" in done.stderr
    assert done.stdout == ""


@contextlib.asynccontextmanager
async def _client(server: Served, era: str) -> Any:
    headers = {"Authorization": f"Bearer {server.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(server.url, http_client=http), mode=era) as client,
    ):
        yield client


def _certificate(folder: Path) -> tuple[Path, Path]:
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def test_handshakes_that_do_not_end_take_few_descriptors_and_keep_no_one_out(
    root: Path, tmp_path: Path
) -> None:
    certificate, key = _certificate(tmp_path)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with (
        served(root, f"{LOOPBACK}:0", *options, scheme="https") as server,
        silent_callers(server.port, 200) as silent,
    ):
        context = ssl.create_default_context(cafile=str(certificate))
        headers = server.headers(Host=f"localhost:{server.port}")
        sent = request(headers, call("initialize", HELLO))
        assert raw(server.port, sent, wrap=context)[0] == 200
        silent[1].settimeout(30)  # it said nothing, and others came later
        with contextlib.suppress(ConnectionResetError):
            assert silent[1].recv(1) == b""
