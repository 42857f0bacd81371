"""Who decides what to call: a script that follows the plan of a task, or a model."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.agents.sides import ToolCall
from cellwright.outputs.sizes import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.agents.sides import Side
    from benchmarks.agents.tasks import Task

MOST_CALLS = 30
SYSTEM = (
    "You work on the Jupyter notebook {path} with the tools. Do what the person asks, "
    "nothing else, and answer them in one sentence when you are done."
)


@dataclass
class Bill:
    """What a task cost: calls, estimated tokens of arguments and of answers, and seconds."""

    calls: int = 0
    asked: int = 0
    answered: int = 0
    seconds: float = 0.0


async def pay(bill: Bill, side: Side, call: ToolCall) -> str:
    """Call a tool, and count what it costs."""
    began = time.perf_counter()
    text = await side.call(call)
    bill.seconds += time.perf_counter() - began
    bill.calls += 1
    bill.asked += round(estimate_tokens(call.tool + json.dumps(call.arguments)))
    bill.answered += round(estimate_tokens(text))
    return text


async def play_script(
    task: Task, side: Side, bill: Bill, meanwhile: Callable[[], Awaitable[None]]
) -> str:
    """Read, let the others have their moment, and follow the plan; returns the answer."""
    for call in await side.read():
        await pay(bill, side, call)
    await meanwhile()
    for call in await side.plan(task.plan, [source for _, source in task.cells]):
        await pay(bill, side, call)
    return " ".join(step[1] for step in task.plan if step[0] == "say")


class ModelPlayer:
    """A model behind an OpenAI-compatible address, with the tools of a side."""

    def __init__(self, address: str, model: str, key: str = "") -> None:
        self._address = f"{address.rstrip('/')}/chat/completions"
        self._model = model
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    async def play(
        self, task: Task, side: Side, bill: Bill, meanwhile: Callable[[], Awaitable[None]]
    ) -> str:
        """Let the model call tools until it answers; returns the answer."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM.format(path=side.path)},
            {"role": "user", "content": task.request},
        ]
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool["description"] or "",
                    "parameters": tool["schema"],
                },
            }
            for tool in side.tools
        ]
        has_read = False
        while bill.calls < MOST_CALLS:
            body = {"model": self._model, "messages": messages, "tools": tools}
            said = (await asyncio.to_thread(self._ask, body))["choices"][0]["message"]
            messages.append(said)
            calls = said.get("tool_calls") or []
            if not calls:
                return str(said.get("content") or "")
            for asked in calls:
                try:
                    arguments = json.loads(asked["function"]["arguments"] or "{}")
                    text = await pay(bill, side, ToolCall(asked["function"]["name"], arguments))
                except Exception as error:  # noqa: BLE001  # the model shall see what it did
                    text = f"error: {error}"
                messages.append({"role": "tool", "tool_call_id": asked["id"], "content": text})
            if not has_read:
                has_read = True
                await meanwhile()
        return ""

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310  # the address is the user's
            self._address, json.dumps(body).encode(), self._headers
        )
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found
