"""A conversation with what it cannot do without: a model over HTTP, and a process that may be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cellwright import read
from cellwright.app.chats import Conversations
from cellwright.assistant.models.model import ToolCall
from tests.integration.assistant import wire
from tests.integration.assistant.model_servers import DIALECTS, Fails, Holds, serve
from tests.unit.server.pages import ATTACHED, EDITOR, Page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.assistant.model_servers import Dialect
    from tests.memory_kernel import MemoryKernel

pytestmark = pytest.mark.usefixtures("empty_keyring")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_preview_is_what_goes_over_the_wire_to_the_byte(
    folder: Path, kernels: list[MemoryKernel], monkeypatch: pytest.MonkeyPatch, dialect: Dialect
) -> None:
    del kernels
    chats = Conversations(str(folder), actor="chat:ada", engine=False)
    page = Page(chats)
    look = ToolCall("look", "GetNotebookCells", {"path": "sales.ipynb"})
    async with serve(dialect, [look, "Seven cells.", "Still seven."]) as server:
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_MODEL", f"{dialect}:scripted")
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_BASE_URL", server.base_url)
        chat = (await page.call("open"))["id"]
        await page.ask(chat, "How many cells?")
        asked = {**ATTACHED, "files": ["sales.ipynb", "other.ipynb"], "tools": ["getCellOutputs"]}
        asked["editor"] = {**EDITOR, "selected": ["sum"], "editing": "load"}
        preview = await page.call("preview", id=chat, prompt="And #now? é 😀 \\u2028", **asked)
        assert len(server.requests) == 2
        assert (await page.ask(chat, "And #now? é 😀 \\u2028", **asked))["text"] == "Still seven."
        sent = server.last
    await chats.close()
    shown = [(message["role"], message["text"]) for message in preview["messages"]]
    assert [text for role, text in shown if role == "system"] == [sent.system]
    if dialect == "openai":
        bodies = [(each["role"], wire.text_of(each["content"])) for each in sent.body["messages"]]
        assert shown == bodies
    else:
        said = [(role, text) for role, text in shown if role in ("user", "assistant") and text]
        assert said == sent.said
        assert [text for role, text in shown if role == "tool"] == [
            each[1] for each in sent.results
        ]
    assert [each["name"] for each in preview["tools"]] == list(sent.tools)
    assert [each["description"] for each in preview["tools"]] == sent.descriptions
    assert [each["parameters"] for each in preview["tools"]] == list(sent.tools.values())


async def test_a_model_that_is_slow_to_answer_is_stopped_and_one_that_fails_says_why(
    folder: Path, kernels: list[MemoryKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    del kernels
    chats = Conversations(str(folder), actor="chat:ada", engine=False)
    page = Page(chats)
    async with serve("openai", [Holds(["Once upon"]), Fails(401, "bad key")]) as server:
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_MODEL", "openai:scripted")
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_BASE_URL", server.base_url)
        chat = (await page.call("open"))["id"]
        await page.call("send", id=chat, prompt="Tell me a story", **ATTACHED)
        await page.event("text")
        await page.call("stop", id=chat)
        await page.event("stopped")
        await server.wait_left()  # the answer is not paid for any longer
        failed = await page.ask(chat, "Once more")
        assert (failed["event"], failed["code"]) == ("failed", "MODEL_REFUSED")
    await chats.close()


SERVER = """
import asyncio, sys
from cellwright.app import chats
from cellwright.assistant.models.model import ToolCall
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.assistant.requests import ChatState

def wait(request):
    print("edited", flush=True)
    sys.stdin.read()

async def main():
    edit = ToolCall("a", "UpdateNotebookCell", {"cellId": "load", "content": "print 43"})
    model = ScriptedModel(["I change it.", edit], wait)
    chats.choose_model = lambda *_, **__: model
    found = await chats.Conversations(sys.argv[1], actor="chat:ada", engine=False).open()
    print(found.id, flush=True)
    found.state = ChatState(cwd=sys.argv[1], mode="agent", open="sales.ipynb", files=["sales.ipynb"])
    found.begin(found.state.build_request("change it"))
    await found.wait()

asyncio.run(main())
"""


async def test_a_server_that_is_killed_in_the_middle_of_a_turn_leaves_a_chat_that_says_so(
    folder: Path, kernels: list[MemoryKernel]
) -> None:
    del kernels
    command = [sys.executable, "-P", "-c", SERVER, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=folder, env=dict(os.environ), **pipes)  # noqa: ASYNC220
    with process:
        assert process.stdout is not None
        chat = (await asyncio.to_thread(process.stdout.readline)).decode().strip()
        assert await asyncio.to_thread(process.stdout.readline) == b"edited\n"
        chats = Conversations(str(folder), actor="chat:ada", engine=False)
        page = Page(chats)
        page.say(json.dumps({"id": "busy", "method": "chat.open", "params": {"id": chat}}).encode())
        (busy,) = await page.until(lambda: [m for m in page.sent if m.get("id") == "busy"])
        assert busy["error"]["data"]["code"] == "CHAT_BUSY"  # it is alive
        process.send_signal(signal.SIGKILL)
    found = await page.call("open", id=chat)
    events = found["turns"][-1]["events"]
    assert [event["event"] for event in events] == [
        *("asked", "begun", "text", "tool_call", "tool_result", "lost")
    ]
    assert events[-1]["changes"]["edits"][0]["cells"] == ["load"]
    assert read(folder / "sales.ipynb").cell("load").source == "print 43"
    await page.call("undo", id=chat)
    assert read(folder / "sales.ipynb").cell("load").source == "print 42"
    await chats.close()
