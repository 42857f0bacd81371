"""The routes of pages in a real Jupyter server: who may use them, and a turn from end to end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.browser.conftest import read_saved
from tests.engines import ask as ask_engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tornado.websocket import WebSocketClientConnection

    from tests.browser.conftest import Server


ROUTES = ("chat", "engine")
# What no page says: no JSON, no objects, too deep, calls that are ours alone, other types.
MESSAGES = (
    *("", "{", "[1]", "7", '"x"', "null", "[" * 100_000, '{"id": 1, "method": ' + "[" * 100_000),
    *('{"id": 1, "method": "stop"}', '{"id": 1, "method": "hello", "params": {}}'),
    *('{"id": 1, "method": ["stop"]}', '{"id": 1, "method": {"stop": 1}, "params": []}'),
    *('{"id": {}, "method": "chat.key"}', '{"id": 1, "method": "chat.key", "params": {"key": 1}}'),
    *('{"id": 1, "method": "\\ud800", "params": {"path": "\\udcff"}}', "\0", "\u202e" * 1000),
    *('{"method": "stop", "params": {"call": {}}}', '{"id": NaN, "method": "status"}'),
    '{"id": 1, "method": "editor.register", "params": {"path": "../x", "kernel": {"id": 7}}}',
    '{"id": 1, "method": "editor.presence", "params": {"path": 1, "kernel": {"token": "mine"}}}',
    b"\xff\xfe\xfd",
)


@contextlib.asynccontextmanager
async def connect(server: Server, route: str, **headers: str) -> AsyncIterator[Client]:
    address = server.url.replace("http:", "ws:") + route
    socket = await websocket_connect(HTTPRequest(address, headers=headers))
    try:
        yield Client(socket)
    finally:
        socket.close()
        while await socket.read_message() is not None:
            pass


def knock(server: Server, token: str, route: str = "chat", **headers: str) -> int:
    """Ask for a WebSocket, and give the status of the answer."""
    place = urlsplit(server.url)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    with contextlib.closing(HTTPConnection(place.netloc, timeout=30)) as connection:
        address = f"{place.path}cellwright/{route}{token}"
        connection.request("GET", address, headers={**upgrade, **key, **headers})
        with connection.getresponse() as answer:
            return answer.status


class Client:
    """A page without a browser."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []
        self.number = 0

    async def read(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            line = await self.socket.read_message()
        assert line is not None
        self.heard.append(json.loads(line))
        return self.heard[-1]

    async def call(self, method: str, /, **params: Any) -> Any:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        await self.socket.write_message(json.dumps(message))
        while (answer := await self.read()).get("id") != self.number:
            pass
        return answer.get("result", answer)

    async def event(self, *kinds: str) -> dict[str, Any]:
        """The next event of one of these kinds."""
        while True:
            message = await self.read()
            event: dict[str, Any] = message.get("params", {}).get("event", {})
            if event.get("event") in kinds:
                return event


async def test_only_a_user_of_the_server_gets_in_and_no_page_of_another_site(
    server: Server,
) -> None:
    token = f"?token={server.token}"
    host = urlsplit(server.url).netloc
    for route in ROUTES:
        assert knock(server, token, route) == 101
        for wrong in ("", "?token=wrong"):
            for headers in ({}, {"Origin": f"http://{host}"}):
                assert knock(server, wrong, route, **headers) == 403
    with urlopen(f"{server.url}api/contents{token}", timeout=30) as answer:  # noqa: ASYNC210, S310
        cookies = [each.partition(";")[0] for each in answer.headers.get_all("Set-Cookie")]
    cookie = "; ".join(cookies)  # which a browser sends along from every site
    for route in ROUTES:
        assert knock(server, "", route, Cookie=cookie, Origin=f"http://{host}") == 101
        for origin in ("evil.example", f"{host}.evil.example", "localhost.evil.example"):
            assert knock(server, "", route, Cookie=cookie, Origin=f"http://{origin}") == 403
        assert knock(server, "", route, Cookie=cookie, Origin="null") == 403
        assert knock(server, "", route, Cookie=cookie, Host="evil.example") == 403
    async with connect(server, f"cellwright/chat{token}", Origin=f"http://{host}") as client:
        answer = await client.call("hello")
        assert answer["error"]["data"]["code"] == "INVALID_CALL"
        chat = (await client.call("chat.open"))["id"]
        await client.call("chat.send", id=chat, prompt="hello")
        assert "built-in assistant" in (await client.event("done"))["text"]


@pytest.mark.all
async def test_the_built_in_assistant_runs_a_cell_and_a_page_that_comes_later_sees_it(
    server: Server,
) -> None:
    name = f"route-{time.monotonic_ns()}.ipynb"
    path = server.write(name, "print(6 * 7)")
    route = f"cellwright/chat?token={server.token}"
    editor = {"path": name, "selected": ["a"], "editing": None}
    asked: dict[str, Any] = {"editor": editor, "files": [name], "tools": []}
    async with connect(server, route) as client:
        chat = asked["id"] = (await client.call("chat.open"))["id"]
        looked = await client.call("chat.look", **asked)
        assert [tool["name"] for tool in looked["tools"]] == ["getNotebookCells", "getCellOutputs"]
        await client.call("chat.send", prompt="#getNotebookCells show all cells", **asked)
        assert "print(6 * 7)" in (await client.event("done"))["text"]
        await client.call("chat.set", id=chat, mode="agent")
        await client.call("chat.send", prompt="#runNotebookCells run cell 1", **asked)
        question = await client.event("question")
    # The page is reloaded while the turn waits.
    async with connect(server, route) as client:
        found = await client.call("chat.open", id=chat)
        assert found["running"] == 2
        assert found["turns"][1]["events"][-1] == question
        await client.call("chat.answer", id=chat, question=question["question"], answer="once")
        assert (await client.event("done", "failed", "stopped"))["event"] == "done"
        assert "".join(read_saved(path)[0]["outputs"][0]["text"]) == "42\n"
        outside = await client.call("chat.send", prompt="x", **{**asked, "files": ["../x"]})
        assert outside["error"]["data"]["code"] == "OUTSIDE_ROOT"


@pytest.mark.parametrize("route", ROUTES)
async def test_no_message_of_a_page_ends_the_server_or_brings_its_token_into_the_log(
    server: Server, route: str
) -> None:
    address = f"cellwright/{route}?token={server.token}"
    before = len(server.log.read_text())
    pid = ask_engine("status")["pid"]
    async with connect(server, address) as client:
        client.number = 1000  # the hostile ones have small numbers
        for message in MESSAGES:
            await client.socket.write_message(message, binary=isinstance(message, bytes))
        method = "chat.list" if route == "chat" else "status"
        answer = await client.call(method)
    assert ("chats" if route == "chat" else "pid") in answer
    assert server.token not in json.dumps(client.heard)
    assert ask_engine("status")["pid"] == pid
    logged = server.log.read_text()[before:]
    assert server.token not in logged
    assert "Traceback" not in logged
