"""The routes of a real Jupyter server: who may use them, and a turn from end to end."""

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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tornado.websocket import WebSocketClientConnection

    from tests.browser.conftest import Server


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
        self._number = 0

    async def read(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            line = await self.socket.read_message()
        assert line is not None
        self.heard.append(json.loads(line))
        return self.heard[-1]

    async def call(self, method: str, /, **params: Any) -> Any:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self.socket.write_message(json.dumps(message))
        while (answer := await self.read()).get("id") != self._number:
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
    with urlopen(f"{server.url}api/contents{token}", timeout=30) as answer:  # noqa: ASYNC210, S310
        cookies = [each.partition(";")[0] for each in answer.headers.get_all("Set-Cookie")]
    cookie = "; ".join(cookies)  # which a browser sends along from every site
    for route in ("chat", "engine"):
        assert knock(server, token, route) == 101
        for wrong in ("", "?token=wrong"):
            ours = knock(server, wrong, route, Origin=f"http://{host}")
            assert knock(server, wrong, route) == ours == 403
        assert knock(server, "", route, Cookie=cookie, Origin=f"http://{host}") == 101
        assert knock(server, "", route, Cookie=cookie, Origin="http://evil.example") == 403
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
