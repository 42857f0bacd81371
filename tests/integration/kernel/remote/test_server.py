"""The REST side: what servers are asked, what goes wrong with it, and where the token goes."""

from __future__ import annotations

import logging
import socket
import ssl
import subprocess
import traceback
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelError, KernelStartFailed, KernelUnreachable
from cellwright.kernel.remote import RemoteKernel, RemoteServer, Timeouts
from tests.conftest import require_tool
from tests.integration.kernel.remote import servers
from tests.integration.kernel.remote.proxy import Proxy, answer
from tests.integration.kernel.remote.servers import free_port, running
from tests.integration.kernel.remote.talking import result, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.kernel.remote.servers import RealServer


@pytest.fixture
async def way(jupyter_server: RealServer) -> AsyncIterator[Proxy]:
    async with Proxy(jupyter_server.port) as proxy:
        yield proxy


@pytest.fixture
def there(jupyter_server: RealServer, way: Proxy) -> RemoteServer:
    return RemoteServer(way.url(jupyter_server.url), jupyter_server.token)


def posts(way: Proxy) -> int:
    return sum(asked.line.startswith("POST") for asked in way.seen)


def test_without_the_servers_these_tests_are_skipped_by_name_and_fail_in_ci(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(servers, "PYTHON", tmp_path / "nothing")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="jupyter_server"):
        servers.require_servers()

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="jupyter_server"):
        servers.require_servers()


async def test_kernels_specs_and_sessions_are_listed(there: RemoteServer) -> None:
    specs = await there.specs()
    assert specs.default == "python3"
    assert specs.languages["python3"] == "python"

    kernel = await there.start_kernel("python3")
    assert await there.kernel(kernel.id) is not None
    assert kernel.id in {running.id for running in await there.kernels()}
    assert kernel.name == "python3"

    await there.delete(kernel.id)
    await there.delete(kernel.id)
    assert await there.kernel(kernel.id) is None
    assert not await there.restart(kernel.id)


async def test_a_server_that_fails_once_is_asked_once_more(there: RemoteServer, way: Proxy) -> None:
    way.answers = [answer(503)]
    before = {running.id for running in await there.kernels()}

    kernel = await there.start_kernel("python3")

    assert posts(way) == 2
    assert {running.id for running in await there.kernels()} - before == {kernel.id}
    await there.delete(kernel.id)


async def test_a_server_that_fails_twice_is_not_asked_a_third_time(
    there: RemoteServer, way: Proxy
) -> None:
    way.answers = [answer(500, '{"message": "first"}'), answer(502, '{"message": "second"}')]

    with pytest.raises(KernelStartFailed) as caught:
        await RemoteKernel(there, name="python3").start()

    assert "502: second" in str(caught.value)
    assert posts(way) == 2


async def test_a_connection_that_breaks_once_is_made_once_more(
    there: RemoteServer, way: Proxy
) -> None:
    way.answers = [b""]
    kernel = await there.start_kernel()
    assert posts(way) == 2
    await there.delete(kernel.id)


async def test_an_answer_that_is_lost_does_not_start_two(there: RemoteServer, way: Proxy) -> None:
    before = {running.id for running in await there.kernels()}
    way.lost_answers = 1

    kernel = await there.start_kernel()

    assert posts(way) == 2
    assert {running.id for running in await there.kernels()} - before == {kernel.id}
    await there.delete(kernel.id)


async def test_what_cannot_be_repeated_is_not(there: RemoteServer, way: Proxy) -> None:
    way.answers = [answer(503), answer(503)]

    with pytest.raises(KernelUnreachable):
        await there.interrupt("some-id")

    assert posts(way) == 1


async def test_nothing_listens_is_said_in_words() -> None:
    with pytest.raises(KernelUnreachable) as caught:
        await RemoteServer(f"http://127.0.0.1:{free_port()}").kernels()

    assert "nothing listens there" in str(caught.value)


async def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        quick = Timeouts(connect=0.3, request=0.3)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(KernelUnreachable) as caught:
            await RemoteServer(url, timeouts=quick).kernels()

    assert "too long" in str(caught.value)


@pytest.mark.parametrize("kind", ["server", "gateway"])
async def test_a_wrong_token_is_named_as_such(
    kind: str, jupyter_server: RealServer, gateway: RealServer
) -> None:
    real = jupyter_server if kind == "server" else gateway
    for token in ("wrong", None):
        with pytest.raises(KernelUnreachable) as caught:
            await RemoteServer(real.url, token).specs()

        assert "token" in (caught.value.hint or "")
        assert "wrong" not in str(caught.value)


@pytest.mark.all
async def test_a_server_without_a_token_needs_none(tmp_path: Path) -> None:
    open_to_all = "--IdentityProvider.token="
    with running("server", tmp_path, open_to_all, token="") as real:
        kernel = RemoteKernel(RemoteServer(real.url))
        await kernel.start()
        assert result(await run(kernel, "6 * 7")) == "42"
        await kernel.shutdown()


async def test_a_host_may_be_an_ipv6_address(jupyter_server: RealServer) -> None:
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    async with Proxy(jupyter_server.port, host="::1") as proxy:
        kernel = RemoteKernel(RemoteServer(proxy.url(jupyter_server.url), jupyter_server.token))
        await kernel.start()
        assert "[::1]" in kernel.info.details["server"]
        assert result(await run(kernel, "6 * 7")) == "42"
        await kernel.shutdown()


# --- The token -----------------------------------------------------------------------------------


async def test_the_token_is_in_one_header_and_nowhere_else(
    jupyter_server: RealServer, way: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = jupyter_server.token
    server = RemoteServer(f"{way.url(jupyter_server.url)}/lab?token={token}&x=1#there")
    kernel = RemoteKernel(server)
    await kernel.start()
    await run(kernel, "1")
    await kernel.shutdown()

    assert len(way.seen) >= 3
    for asked in way.seen:
        assert token not in asked.line
        assert asked.headers.count(token) == 1
        assert f"Authorization: token {token}" in asked.headers
    shown = [repr(server), repr(server.rest), repr(server.rest._token), repr(kernel)]
    shown += [str(server.address), str(kernel.info), repr(vars(server)), repr(vars(server.rest))]
    shown += [str(vars(record)) for record in caplog.records]
    assert caplog.records
    assert not [text for text in shown if token in text]
    assert token not in jupyter_server.log.read_text()


@pytest.mark.parametrize(
    "reply",
    [
        answer(500, '{"message": "what is TOKEN?"}'),
        answer(403, '{"message": "not with TOKEN"}'),
        answer(404, '{"reason": "TOKEN"}'),
        answer(302, Location="http://evil.example/TOKEN?token=TOKEN"),
        answer(302, Location="http://TOKEN.example/"),
        answer(200, "TOKEN"),
        b"TOKEN TOKEN\r\n\r\n",
        b"",
    ],
)
async def test_a_server_that_says_the_token_back_is_not_quoted(
    jupyter_server: RealServer, way: Proxy, reply: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = jupyter_server.token
    server = RemoteServer(way.url(jupyter_server.url), token)
    told = reply.replace(b"TOKEN", token.encode())
    if b"Content-Length" in told:  # the length has grown with the token
        head, _, body = told.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if b"Content-Length" not in line]
        told = b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])
    for call in (server.specs, server.start_kernel):
        way.answers = [told, told]
        way.should_fail = lambda _: True
        with pytest.raises(KernelError) as caught:
            await call()

        whole = "".join(traceback.format_exception(caught.value)) + str(caught.value.hint)
        assert token not in whole
    assert not [record for record in caplog.records if token in str(vars(record))]


@pytest.mark.parametrize("step", ["GET", "POST", "websocket"])
async def test_a_redirect_is_not_followed_and_gets_no_token(
    jupyter_server: RealServer, way: Proxy, step: str
) -> None:
    async with Proxy(jupyter_server.port) as elsewhere:
        target = elsewhere.url(jupyter_server.url)
        way.should_fail = lambda asked: (
            asked.is_websocket if step == "websocket" else asked.line.startswith(step)
        )
        way.answers = [answer(307, Location=f"{target}/api/kernels")]
        server = RemoteServer(way.url(jupyter_server.url), jupyter_server.token)
        before = await RemoteServer(jupyter_server.url, jupyter_server.token).kernels()
        call = server.specs if step == "GET" else RemoteKernel(server).start
        with pytest.raises(KernelUnreachable) as caught:
            await call()

        assert elsewhere.seen == []
        assert "redirects elsewhere" in str(caught.value)
        after = await RemoteServer(jupyter_server.url, jupyter_server.token).kernels()
        assert {kernel.id for kernel in after} <= {kernel.id for kernel in before}


async def test_a_token_in_the_clear_to_another_machine_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    RemoteServer("http://127.0.0.1:1", "secret-token")
    RemoteServer("https://example.org", "secret-token")
    assert caplog.records == []

    RemoteServer("http://example.org", "secret-token")

    assert [record.message for record in caplog.records] == ["token goes unencrypted"]
    assert "secret-token" not in str(vars(caplog.records[0]))


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine that nobody but its maker trusts, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *(require_tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
            *("-keyout", str(key), "-out", str(made), "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return made, key


async def test_certificates_are_checked(
    jupyter_server: RealServer, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, key = certificate
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made, key)
    async with Proxy(jupyter_server.port, tls=tls) as proxy:
        url, token = proxy.url(jupyter_server.url), jupyter_server.token
        assert url.startswith("https://")

        with pytest.raises(KernelUnreachable) as caught:
            await RemoteServer(url, token).specs()
        assert "certificate" in str(caught.value)
        assert proxy.seen == []

        monkeypatch.setenv("SSL_CERT_FILE", str(made))
        kernel = RemoteKernel(RemoteServer(url, token))
        await kernel.start()
        assert result(await run(kernel, "6 * 7")) == "42"
        await kernel.shutdown()
