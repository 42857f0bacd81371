"""A page that talks with the assistant, without a browser and without a socket."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

from cellwright.server.chats import ChatPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.app.chats import Conversations

EDITOR = {"path": "sales.ipynb", "selected": [], "editing": None}
ATTACHED: dict[str, Any] = {"editor": EDITOR, "files": ["sales.ipynb"], "tools": []}


class Refused(Exception):
    """The server's answer to a call is an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["data"]["code"]
        self.hint = error["data"]["hint"]


class Page:
    """Keeps all messages that it is sent, and waits for what a test wants to see."""

    def __init__(self, chats: Conversations) -> None:
        self.sent: list[dict[str, Any]] = []
        self.on_message: Callable[[dict[str, Any]], object] = lambda _: None
        self._numbers = itertools.count(1)
        self._came = asyncio.Event()
        self._page = ChatPage(chats, self._take)

    def _take(self, message: dict[str, Any]) -> None:
        self.sent.append(json.loads(json.dumps(message)))
        self.on_message(message)
        self._came.set()

    async def until(self, find: Callable[[], Any]) -> Any:
        async with asyncio.timeout(60):
            while not (found := find()):
                self._came.clear()
                await self._came.wait()
        return found

    @property
    def methods(self) -> set[str]:
        return set(self._page._methods)

    def say(self, line: bytes) -> None:
        self._page.take(line)

    async def call(self, method: str, /, **params: Any) -> Any:
        number = next(self._numbers)
        self.say(json.dumps({"id": number, "method": f"chat.{method}", "params": params}).encode())
        answer = await self.until(lambda: [m for m in self.sent if m.get("id") == number])
        if "error" in answer[0]:
            raise Refused(answer[0]["error"])
        return answer[0]["result"]

    def heard(self, kind: str = "event") -> list[dict[str, Any]]:
        return [m["params"] for m in self.sent if m.get("method") == f"chat.{kind}"]

    def events(self, kind: str | None = None, turn: int | None = None) -> list[dict[str, Any]]:
        return [
            each["event"]
            for each in self.heard()
            if kind in (None, each["event"]["event"]) and turn in (None, each["turn"])
        ]

    async def event(self, kind: str, turn: int | None = None) -> dict[str, Any]:
        """Wait for an event of that kind, and give the last one."""
        found: list[dict[str, Any]] = await self.until(lambda: self.events(kind, turn))
        return found[-1]

    async def ask(self, chat: str, prompt: str, **more: Any) -> dict[str, Any]:
        """Send a prompt about the notebook, and wait for the end of the turn."""
        turn = (await self.call("send", id=chat, prompt=prompt, **{**ATTACHED, **more}))["turn"]
        ends = ("done", "failed", "stopped")
        return await self.until(  # type: ignore[no-any-return]
            lambda: next((e for e in self.events(turn=turn) if e["event"] in ends), None)
        )

    def close(self) -> None:
        self._page.close()
