"""Chats after the server was stopped: what was lost says so, and other programs' chats are the same."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.app import chats as app_chats
from cellwright.app.chats import Conversations, open_transcripts
from cellwright.assistant.models.model import Usage
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.kernel.processes import is_running, make_mark
from tests.unit.server.pages import ATTACHED, Page, Refused
from tests.unit.server.test_chats import UPDATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.memory_kernel import MemoryKernel

    Use = Callable[..., ScriptedModel]

GONE = "1-2-3-4"


@pytest.fixture
async def restart(folder: Path, kernels: list[MemoryKernel]) -> AsyncIterator[Callable[[], Page]]:
    """Pages of servers that are started one after the other."""
    del kernels
    made = []

    def make() -> Page:
        made.append(Conversations(str(folder), actor="chat:ada", engine=False))
        return Page(made[-1])

    yield make
    for each in made:
        await each.close()


def file_of(chat: str) -> Path:
    return open_transcripts().folder / f"{chat}.json"


async def run_to(page: Page, kind: str) -> tuple[str, dict[str, Any]]:
    """Ask for a change; gives the chat, and what was saved when the first such event came."""
    chat = (await page.call("open"))["id"]
    await page.call("set", id=chat, mode="agent")
    kept: list[dict[str, Any]] = []

    def keep(message: dict[str, Any]) -> None:
        if message.get("params", {}).get("event", {}).get("event") == kind and not kept:
            kept.append(json.loads(file_of(chat).read_text(encoding="utf-8")))

    page.on_message = keep
    assert (await page.ask(chat, "change it"))["event"] == "done"
    return chat, kept[0]


async def test_a_turn_that_was_lost_says_so_and_what_it_changed_can_be_undone(
    restart: Callable[[], Page], use: Use, folder: Path
) -> None:
    use(UPDATE, "Done.")
    chat, saved = await run_to(restart(), "tool_result")
    assert is_running(saved["owner"])
    file_of(chat).write_text(json.dumps({**saved, "owner": GONE}), encoding="utf-8")
    model = use("I see.")
    page = restart()
    found = await page.call("open", id=chat)
    assert found["running"] is None
    assert found["title"] == "change it"
    last = found["turns"][-1]["events"][-1]
    assert (last["event"], last["unknown"]) == ("lost", None)
    assert [edit["cells"] for edit in last["changes"]["edits"]] == [["load"]]
    assert "lost" in file_of(chat).read_text(encoding="utf-8")
    await page.ask(chat, "what did you do?")
    roles = [message.role for message in model.requests[0].messages]
    assert roles == ["system", "user", "user", "assistant", "tool", "user"]
    assert "print 43" in (folder / "sales.ipynb").read_text(encoding="utf-8")
    assert (await page.call("undo", id=chat, turn=1))["changes"]["undone"]
    assert "print 43" not in (folder / "sales.ipynb").read_text(encoding="utf-8")


@pytest.mark.parametrize("is_made", [True, False])
async def test_the_history_tells_whether_a_call_without_a_result_was_carried_out(
    restart: Callable[[], Page], use: Use, *, is_made: bool
) -> None:
    use(UPDATE, "Done.")
    chat, saved = await run_to(restart(), "tool_call")
    if not is_made:
        saved["log"][0]["events"][-1]["started"] = time.time() + 1000
    file_of(chat).write_text(json.dumps({**saved, "owner": GONE}), encoding="utf-8")
    page = restart()
    last = (await page.call("open", id=chat))["turns"][-1]["events"][-1]
    assert (last["event"], last["unknown"]) == ("lost", None)
    assert bool(last["changes"]) is is_made
    if is_made:
        assert (await page.call("undo", id=chat))["changes"]["undone"]
    else:
        with pytest.raises(Refused):
            await page.call("undo", id=chat)


async def test_a_run_whose_end_was_not_seen_is_named(restart: Callable[[], Page], use: Use) -> None:
    use(UPDATE, "Done.")
    chat, saved = await run_to(restart(), "tool_call")
    saved["log"][0]["events"][-1] |= {"effect": "run", "title": "Run notebook cells"}
    file_of(chat).write_text(json.dumps({**saved, "owner": GONE}), encoding="utf-8")
    last = (await restart().call("open", id=chat))["turns"][-1]["events"][-1]
    assert (last["event"], last["unknown"]["title"]) == ("lost", "Run notebook cells")


async def test_a_chat_whose_turn_runs_in_another_program_is_not_taken_from_it(
    restart: Callable[[], Page], use: Use
) -> None:
    use("one")
    page = restart()
    chat = (await page.call("open"))["id"]
    await page.ask(chat, "first")
    saved = json.loads(file_of(chat).read_text(encoding="utf-8"))
    assert saved["owner"] == ""
    file_of(chat).write_text(json.dumps({**saved, "owner": make_mark()}), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        await restart().call("open", id=chat)
    assert refused.value.code == "CHAT_BUSY"


async def test_two_programs_that_take_turns_in_one_chat_lose_nothing(
    restart: Callable[[], Page], use: Use
) -> None:
    model = use("one", "two", "three")
    here, there = restart(), restart()
    chat = (await here.call("open"))["id"]
    await here.ask(chat, "first")
    await there.call("open", id=chat)
    await there.ask(chat, "second")
    assert here.heard("reset") == []
    await here.ask(chat, "third")
    assert [each["chat"] for each in here.heard("reset")] == [chat]
    said = [message.text for message in model.requests[-1].messages if message.role != "system"]
    assert said[1:] == ["first", "one", "second", "two", "third"]
    turns = (await here.call("open", id=chat))["turns"]
    assert [turn["prompt"] for turn in turns] == ["first", "second", "third"]


async def test_tokens_and_costs_are_those_of_the_whole_chat_and_an_unknown_cost_is_null(
    restart: Callable[[], Page], use: Use
) -> None:
    use(["one", Usage(10, 2, 0, 0.5)], ["two", Usage(5, 1, 0, None)])
    page = restart()
    chat = (await page.call("open"))["id"]
    await page.ask(chat, "first")
    found = (await restart().call("open", id=chat))["usage"]
    assert (found["input"], found["output"], found["cost"]) == (10, 2, 0.5)
    await page.ask(chat, "second")
    assert page.heard("state")[-1]["usage"]["cost"] is None
    assert (await restart().call("open", id=chat))["usage"] == page.heard("state")[-1]["usage"]


async def test_a_chat_that_was_saved_before_there_was_a_log_is_shown_from_its_messages(
    restart: Callable[[], Page], use: Use
) -> None:
    use(["Look: ", UPDATE], "Done.", "And?")
    chat, _ = await run_to(restart(), "done")
    saved = json.loads(file_of(chat).read_text(encoding="utf-8"))
    for name in ("log", "usage", "name", "owner"):
        del saved[name]
    file_of(chat).write_text(json.dumps(saved), encoding="utf-8")
    page = restart()
    found = await page.call("open", id=chat)
    kinds = [event["event"] for turn in found["turns"] for event in turn["events"]]
    assert kinds == ["asked", "text", "tool_call", "tool_result", "text", "done"]
    assert (found["title"], found["usage"]["cost"]) == ("change it", None)
    assert (await page.call("undo", id=chat, turn=1))["changes"]["undone"]
    await page.ask(chat, "more")
    assert [row["title"] for row in (await page.call("list"))["chats"]] == ["change it"]


def test_the_chats_of_the_terminal_are_the_same_ones(
    folder: Path, kernels: list[MemoryKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.unit.cli.chatting import chat as chat_in_terminal

    del kernels
    model = ScriptedModel("From the terminal.", UPDATE, "From the page.", "Again.")
    monkeypatch.setattr(app_chats, "choose_model", lambda *_, **__: model)
    assert chat_in_terminal("sales.ipynb", "-p", "hello").code == 0

    async def look() -> str:
        chats = Conversations(str(folder), actor="chat:ada", engine=False)
        page = Page(chats)
        (row,) = (await page.call("list"))["chats"]
        found = await page.call("open", id=row["id"])
        assert [each["prompt"] for each in found["turns"]] == ["hello"]
        await page.call("set", id=row["id"], mode="agent")
        await page.ask(row["id"], "and here", **ATTACHED)
        await chats.close()
        return str(row["id"])

    chat = asyncio.run(look())
    said = chat_in_terminal("--resume", chat, stdin="/undo\nonce more\n")
    assert "Undid the turn's changes to 1 cell of sales.ipynb" in said.err
    texts = [message.text for message in model.requests[-1].messages]
    assert {"hello", "From the terminal.", "and here", "From the page.", "once more"} <= set(texts)
    log = open_transcripts().load(chat).log
    assert [event["event"] for event in log[1]["events"]][-2:] == ["done", "undone"]
