from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.mcp import http as module
from cellwright.mcp.http import HttpGuard, split_host

if TYPE_CHECKING:
    from collections.abc import Iterable

TOKEN = "t0ken-of-this-test-and-of-no-other-one"  # noqa: S105
GOOD = {
    "host": "127.0.0.1:8765",
    "authorization": f"Bearer {TOKEN}",
    "content-type": "application/json",
}


class Behind:
    """What is guarded: it notes what reaches it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"through"})


class Knocking:
    """Sends requests to a guard, without a network."""

    def __init__(self, **options: Any) -> None:
        self.behind = Behind()
        self.guard = HttpGuard(self.behind, TOKEN, **options)

    async def knock(
        self,
        headers: dict[str, str] | Iterable[tuple[str, str]] = GOOD,
        *,
        method: str = "POST",
        path: str = "/mcp",
        body: Iterable[bytes] = (b"{}",),
        **scope: Any,
    ) -> int:
        pairs = headers.items() if isinstance(headers, dict) else headers
        parts = list(body)
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not parts:
                return await asyncio.Future()
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message: Any) -> None:
            sent.append(message)

        raw, _, query = path.partition("?")
        settings: dict[str, Any] = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs],
            "server": ("127.0.0.1", 8765),
            "client": ("127.0.0.1", 40000),
            **scope,
        }
        await self.guard(settings, receive, send)
        self.answer = b"".join(message.get("body", b"") for message in sent)
        self.headers = dict(sent[0]["headers"])
        return int(sent[0]["status"])


async def test_the_right_request_passes_with_its_body() -> None:
    door = Knocking()

    assert await door.knock(body=[b'{"a"', b": 1}"]) == 200
    assert door.behind.bodies == [b'{"a": 1}']


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN} {TOKEN}",
        f"Bearer {TOKEN},{TOKEN}",
        "Bearer null",
        "Bearer " + "A" * 4000,
        "Bearer \xff\xfe",
    ],
)
async def test_a_wrong_token_is_refused_without_a_word_about_the_right_one(said: str) -> None:
    door = Knocking()

    assert await door.knock({**GOOD, "authorization": said}) == 401
    assert door.headers[b"www-authenticate"] == b"Bearer"
    assert json.loads(door.answer) == {"error": "unauthorized"}
    assert door.behind.bodies == []


async def test_no_token_at_all_and_one_in_the_address_are_refused() -> None:
    door = Knocking()
    headers = {name: value for name, value in GOOD.items() if name != "authorization"}

    assert await door.knock(headers) == 401
    assert await door.knock(headers, path=f"/mcp?token={TOKEN}") == 401
    assert await door.knock(headers, path=f"/mcp?access_token={TOKEN}") == 401
    assert await door.knock(path="/mcp?x=1") == 400


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "evil.com:8765",
        "localhost.evil.com:8765",
        "127.0.0.1.evil.com:8765",
        "127.0.0.1:8765.evil.com",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:8765@evil.com",
        "localhost.:8765",
        "LOCALHOST.EVIL.COM:8765",
        "0.0.0.0:8765",
        "[::1",
        "[::1]evil:8765",
        "[127.0.0.1]:8765",
        "127.1:8765",
        "2130706433:8765",
        "127.0.0.1:8765, evil.com",
        "127.0.0.1:+8765",
        "",
    ],
)
@pytest.mark.parametrize("ours", ["127.0.0.1", "192.168.7.8"])
async def test_a_foreign_host_is_refused_on_every_address(host: str, ours: str) -> None:
    door = Knocking()

    assert await door.knock({**GOOD, "host": host}, server=(ours, 8765)) == 421
    assert door.behind.bodies == []


async def test_our_own_names_and_those_that_the_user_gave_pass() -> None:
    door = Knocking(hosts=["Notebooks.Example"])

    for host in ("127.0.0.1:8765", "localhost:8765", "LocalHost:8765", "[::1]:8765"):
        assert await door.knock({**GOOD, "host": host}) == 200, host
    address = {"server": ("192.168.7.8", 8765)}
    assert await door.knock({**GOOD, "host": "192.168.7.8:8765"}, **address) == 200
    assert await door.knock({**GOOD, "host": "192.168.7.9:8765"}, **address) == 421
    assert await door.knock({**GOOD, "host": "notebooks.example"}) == 200
    standard = {"server": ("127.0.0.1", 80)}
    assert await door.knock({**GOOD, "host": "localhost"}, **standard) == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.com",
        "https://127.0.0.1:8765",
        "http://127.0.0.1",
        "http://127.0.0.1:9999",
        "http://localhost.evil.com:8765",
        "http://127.0.0.1:8765.evil.com",
        "http://127.0.0.1:8765/",
        "file://",
        "chrome-extension://abc",
        "",
    ],
)
async def test_a_page_of_somebody_else_is_refused_even_with_the_token(origin: str) -> None:
    door = Knocking()

    assert await door.knock({**GOOD, "origin": origin}) == 403
    assert door.behind.bodies == []


async def test_our_own_page_and_one_that_the_user_named_pass() -> None:
    door = Knocking(origins=["https://agent.example"])

    assert await door.knock({**GOOD, "origin": "http://127.0.0.1:8765"}) == 200
    assert await door.knock({**GOOD, "origin": "https://agent.example"}) == 200
    assert await door.knock({**GOOD, "origin": "https://agent.example.evil"}) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_what_a_browser_sends_for_another_site_is_refused(site: str) -> None:
    assert await Knocking().knock({**GOOD, "sec-fetch-site": site}) == 403


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"]
)
async def test_what_a_form_can_send_is_refused(kind: str) -> None:
    assert await Knocking().knock({**GOOD, "content-type": kind}) == 415


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "PATCH", "HEAD", "TRACE", "CONNECT", "X"])
async def test_other_methods_are_refused(method: str) -> None:
    assert await Knocking().knock(method=method) == 405


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/mcp/",
        "//mcp",
        "/mcp/..",
        "/../mcp",
        "/mcp%2f",
        "/%6dcp",
        "/MCP",
        "/sse",
        "/etc/passwd",
    ],
)
async def test_other_paths_are_refused(path: str) -> None:
    assert await Knocking().knock(path=path) == 404


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-type"])
async def test_a_header_that_comes_twice_is_refused(name: str) -> None:
    twice = [*GOOD.items(), ("origin", "http://127.0.0.1:8765"), (name, GOOD.get(name, "null"))]

    assert await Knocking().knock(twice) == 400


async def test_bodies_that_are_too_long_are_refused_early_or_late() -> None:
    door = Knocking(max_body=100)

    assert await door.knock({**GOOD, "x-long": "x" * 20_000}, body=[]) == 431
    assert await door.knock({**GOOD, "content-length": "101"}, body=[]) == 413
    assert await door.knock({**GOOD, "content-length": "-1"}, body=[]) == 413
    assert await door.knock({**GOOD, "content-length": "1e9"}, body=[]) == 413
    assert await door.knock(body=[b"x" * 60, b"x" * 60]) == 413
    assert await door.knock({**GOOD, "content-length": "100"}, body=[b"x" * 100]) == 200
    assert len(door.behind.bodies) == 1


async def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BODY_TIMEOUT", 0.05)

    assert await Knocking().knock(body=[]) == 408


async def test_strangers_are_slowed_down_and_who_knows_the_token_is_not() -> None:
    door = Knocking()
    found = [await door.knock({**GOOD, "authorization": "Bearer x"}) for _ in range(40)]

    assert found[:30] == [401] * 30
    assert found[-1] == 429
    assert await door.knock() == 200


async def test_too_many_requests_are_refused_until_time_has_passed() -> None:
    door = Knocking(rate=0.001, burst=3)

    assert [await door.knock() for _ in range(5)] == [200, 200, 200, 429, 429]
    assert await door.knock(client=("127.0.0.2", 1)) == 200


async def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, two: bytes) -> bool:
        compared.append((one, two))
        return one == two

    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    door = Knocking()
    await door.knock()
    await door.knock({**GOOD, "authorization": f"Basic {TOKEN}"})
    await door.knock({**GOOD, "authorization": ""})

    assert len(compared) == 3


async def test_a_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await HttpGuard(Behind(), TOKEN)({"type": "websocket", "headers": []}, None, send)  # type: ignore[arg-type]

    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_hosts_are_split_or_are_none() -> None:
    assert split_host("A.b:80") == ("a.b", 80)
    assert split_host("a") == ("a", None)
    assert split_host("[::1]:8") == ("::1", 8)
    assert split_host("[::1]") == ("::1", None)
    for wrong in ("[::1", "[]:1", "a:b", "a:", "a:1:2", "a:999999", "a:\u0661"):
        assert split_host(wrong)[0] == "", wrong


async def test_a_token_that_was_replaced_opens_nothing_and_ends_open_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.001)
    tokens = [TOKEN]
    begun = asyncio.Event()

    async def stream(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await asyncio.Future()

    door = Knocking()
    door.guard = HttpGuard(stream, lambda: tokens[-1])
    listening = asyncio.ensure_future(door.knock(method="GET"))
    await begun.wait()
    assert not listening.done()
    tokens.append("another-token-of-the-same-user-entirely")
    async with asyncio.timeout(20):
        assert await listening == 200  # and it is over
    assert await door.knock(method="GET") == 401
    tokens.append("")
    assert await door.knock({**GOOD, "authorization": "Bearer "}) == 401


class SomeSessions:
    """An app with sessions, which notes those that were ended."""

    def __init__(self) -> None:
        self.count = 0
        self.ended: list[str] = []
        self.held = asyncio.Event()

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        session = dict(scope["headers"]).get(b"mcp-session-id", b"").decode()
        headers = []
        if scope["method"] == "DELETE":
            self.ended.append(session)
        elif not session:
            self.count += 1
            headers = [(b"mcp-session-id", f"s{self.count}".encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "GET" or session == "s1":
            await self.held.wait()
        await send({"type": "http.response.body", "body": b""})


async def test_the_session_that_was_idle_for_longest_makes_room_for_a_new_one() -> None:
    app = SomeSessions()
    door = Knocking()
    door.guard = HttpGuard(app, TOKEN, max_sessions=4)

    async def use(session: str | None, method: str = "POST") -> int:
        more = {} if session is None else {"mcp-session-id": session}
        return await door.knock({**GOOD, **more}, method=method)

    for _ in range(4):
        assert await use(None) == 200
    calling = asyncio.ensure_future(use("s1"))  # a call that takes long
    listening = asyncio.ensure_future(use("s2", "GET"))
    await asyncio.sleep(0)
    await use("s3")
    assert app.ended == []
    await use(None)
    assert app.ended == ["s4"]  # neither busy, nor listened to, nor used since
    await use(None)
    await use(None)
    await use(None)
    assert app.ended == ["s4", "s3", "s5", "s6"]
    await use("s7", "DELETE")
    await use(None)  # there is room
    assert app.ended == ["s4", "s3", "s5", "s6", "s7"]
    app.held.set()
    await asyncio.gather(calling, listening)
