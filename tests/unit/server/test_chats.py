"""What pages say to the assistant and hear of it: turns that outlive their pages, and questions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.app.chats import Conversations, open_transcripts
from cellwright.assistant.models.model import TextDelta
from cellwright.assistant.models.scripted import ScriptedModel
from cellwright.server import chats as server_chats
from tests.conftest import ROOT
from tests.unit.assistant.chatting import call
from tests.unit.server.pages import ATTACHED, Page, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cellwright.assistant.models.model import ModelEvent, ModelRequest

    Use = Callable[..., ScriptedModel]

UPDATE = call("UpdateNotebookCell", cellId="load", content="print 43")
RUN = call("RunNotebookCells", cellIds=["load"])


class SlowModel:
    """Says a word, and the rest when the test wants it."""

    name = "slow"

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        del request
        yield TextDelta("Once ")
        await self.go_on.wait()
        yield TextDelta("upon a time")


def draw(snapshot: dict[str, Any], *live: dict[str, Any]) -> list[dict[str, Any]]:
    """What a page shows: the snapshot, and then the live events, with text joined."""
    shown = [(turn["turn"], event) for turn in snapshot["turns"] for event in turn["events"]]
    shown += [(each["turn"], each["event"]) for each in live if each["n"] > snapshot["n"]]
    joined: list[dict[str, Any]] = []
    for _, event in shown:
        if event["event"] == "text" and joined and joined[-1]["event"] == "text":
            joined[-1]["text"] += event["text"]
        else:
            joined.append(dict(event))
    return joined


async def test_a_turn_is_asked_streamed_confirmed_carried_out_reviewed_and_undone(
    page: Page, use: Use, folder: Path
) -> None:
    use(["I run it. ", RUN], ["And change it.", UPDATE], "Done.")
    chat = (await page.call("open"))["id"]
    assert await page.call("set", id=chat, mode="agent") == {"mode": "agent", "model": "scripted"}
    turn = (await page.call("send", id=chat, prompt="do it", **ATTACHED))["turn"]
    question = await page.event("question")
    assert (question["kind"], question["words"]) == ("confirm", "Run cell 2 of sales.ipynb?")
    assert [each["value"] for each in question["options"]] == ["once", "chat", "notebook", "no"]
    with pytest.raises(Refused) as refused:
        await page.call("send", id=chat, prompt="more", **ATTACHED)
    assert refused.value.code == "CHAT_BUSY"
    with pytest.raises(Refused):
        await page.call("answer", id=chat, question=question["question"], answer="maybe")
    await page.call("answer", id=chat, question=question["question"], answer="once")
    done = await page.event("done")
    assert [edit["cells"] for edit in done["changes"]["edits"]] == [["load"]]
    kinds = [event["event"] for event in page.events() if event["event"] != "progress"]
    assert kinds == [
        *("asked", "begun", "text", "tool_call", "question", "answered", "tool_result"),
        *("text", "tool_call", "tool_result", "text", "done"),
    ]
    run, update = page.events("tool_call")
    assert (run["effect"], run["notebook"], run["cells"]) == ("run", "sales.ipynb", ["load"])
    assert (update["effect"], update["title"]) == ("edit", "Update a notebook cell")
    assert page.events("progress")[-1]["status"] == "ok"
    assert page.events("tool_result")[0]["seconds"] >= 0
    assert "+print 43" in (await page.call("review", id=chat, turn=turn))["diff"]
    undone = await page.call("undo", id=chat, turn=turn)
    assert undone["changes"]["undone"]
    assert (await page.event("undone"))["changes"]["undone"]
    assert "print 43" not in (folder / "sales.ipynb").read_text(encoding="utf-8")


async def test_a_turn_goes_on_without_a_page_and_another_page_sees_all_of_it_once(
    chats: Conversations, page: Page
) -> None:
    chat = (await page.call("open"))["id"]
    model = SlowModel()
    chats.get(chat).use_model(model)
    await page.call("send", id=chat, prompt="tell me a story", **ATTACHED)
    await page.event("text")
    page.close()  # reloaded
    again = Page(chats)
    first = await again.call("open", id=chat)
    assert first["running"] == 1
    model.go_on.set()
    await again.event("done")
    late = Page(chats)
    last = await late.call("open", id=chat)
    assert draw(first, *again.heard()) == draw(last)
    assert [e["text"] for e in draw(last) if e["event"] == "text"] == ["Once upon a time"]
    numbers = [each["n"] for each in again.heard()]
    assert numbers == list(range(first["n"] + 1, last["n"] + 1))
    assert len(page.heard()) < last["n"]  # the page that was closed heard no more


async def test_a_chat_is_listed_renamed_and_deleted_and_other_pages_hear_of_it(
    chats: Conversations, page: Page, use: Use
) -> None:
    use("yes", "no")
    other = Page(chats)
    one = (await page.call("open"))["id"]
    assert (await page.call("list"))["chats"] == []
    await page.ask(one, "first question")
    (row,) = (await page.call("list"))["chats"]
    assert (row["id"], row["title"], row["messages"]) == (one, "first question", 2)
    await other.call("open", id=one)
    assert await page.call("rename", id=one, title=" A better\nname ") == {"title": "A better name"}
    assert other.heard("state")[-1]["title"] == "A better name"
    assert open_transcripts().load(one).title == "A better name"
    await page.call("delete", id=one)
    assert [each["chat"] for each in other.heard("deleted")] == [one]
    assert (await page.call("list"))["chats"] == []
    with pytest.raises(Refused):
        await page.call("open", id=one)


async def test_what_is_asked_again_replaces_the_turn_and_all_after_it(page: Page, use: Use) -> None:
    model = use("one", "two", "three")
    chat = (await page.call("open"))["id"]
    await page.ask(chat, "first")
    await page.ask(chat, "second")
    turn = (await page.call("retry", id=chat, turn=1, prompt="other"))["turn"]
    done = await page.event("done", turn)
    assert (turn, done["text"]) == (3, "three")
    assert (await page.event("asked", turn))["replaces"] == [1, 2]
    texts = [message.text for message in model.requests[-1].messages]
    assert texts[-1] == "other"
    assert not {"first", "second", "one", "two"} & set(texts)
    assert [each["turn"] for each in (await page.call("open", id=chat))["turns"]] == [3]


async def test_a_turn_is_stopped_and_says_what_it_had_changed(
    chats: Conversations, page: Page
) -> None:
    class ThenWaits(SlowModel):
        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            if request.messages[-1].role == "tool":
                await self.go_on.wait()
            yield UPDATE

    chat = (await page.call("open"))["id"]
    chats.get(chat).use_model(ThenWaits())
    await page.call("set", id=chat, mode="agent")
    await page.call("send", id=chat, prompt="change it", **ATTACHED)
    await page.event("tool_result")
    await page.call("stop", id=chat)
    stopped = await page.event("stopped")
    assert stopped["changes"]["edits"][0]["cells"] == ["load"]
    assert not page.events("done")
    assert page.heard("state")[-1]["running"] is None
    assert (await page.call("undo", id=chat))["changes"]["undone"]


async def test_paths_are_those_of_the_root_however_the_model_names_them(
    page: Page, use: Use, folder: Path
) -> None:
    name = str(folder / "sales.ipynb")
    use(call("UpdateNotebookCell", path=name, cellId="load", content="print 43"), "Done.")
    chat = (await page.call("open"))["id"]
    await page.call("set", id=chat, mode="agent")
    done = await page.ask(chat, "change it")
    assert page.events("begun")[0]["notebook"] == "sales.ipynb"
    assert page.events("tool_call")[0]["notebook"] == "sales.ipynb"
    assert [edit["path"] for edit in done["changes"]["edits"]] == ["sales.ipynb"]


async def test_another_model_waits_for_the_end_of_the_turn(
    chats: Conversations, page: Page
) -> None:
    chat = (await page.call("open"))["id"]
    model = SlowModel()
    chats.get(chat).use_model(model)
    await page.call("send", id=chat, prompt="go", **ATTACHED)
    await page.event("text")
    with pytest.raises(Refused) as refused:
        await page.call("set", id=chat, model="direct")
    assert refused.value.code == "CHAT_BUSY"
    model.go_on.set()
    await page.event("done")
    assert (await page.call("set", id=chat, model="direct"))["model"] == "direct"


async def test_what_is_asked_after_a_model_was_chosen_is_asked_of_that_model(
    chats: Conversations, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, is_ready = ScriptedModel("I am the chosen one."), asyncio.Event()

    async def choose_slowly(*_: object) -> ScriptedModel:
        await is_ready.wait()
        return chosen

    monkeypatch.setattr(server_chats, "choose_ready_model", choose_slowly)
    chat = (await page.call("open"))["id"]
    choice = asyncio.create_task(page.call("set", id=chat, model="slow:one"))
    asked = asyncio.create_task(page.ask(chat, "who are you?"))
    looked = asyncio.create_task(page.call("look", id=chat, **ATTACHED))
    await page.call("list")  # the server has heard all of it
    assert not chats.get(chat).log
    is_ready.set()
    await asyncio.gather(choice, looked)
    assert (await asked)["text"] == "I am the chosen one."


async def test_a_message_that_is_none_is_refused_and_nothing_else_happens(page: Page) -> None:
    for line in (b"", b"[]", b"\xff", b'"x"', b'{"id": 1}', b'{"id": 2, "method": ["chat.list"]}'):
        page.say(line)
    page.say(json.dumps({"id": 3, "method": "chat.open", "params": {"id": "../../etc"}}).encode())
    await page.until(lambda: len(page.sent) == 7)
    assert all("error" in message for message in page.sent)


async def test_a_chat_of_another_folder_does_not_exist_for_a_page(
    page: Page, use: Use, tmp_path_factory: pytest.TempPathFactory
) -> None:
    use("yes", "yes")
    other = Conversations(str(tmp_path_factory.mktemp("other")), actor="chat:ada", engine=False)
    theirs = await other.open()
    theirs.begin(theirs.state.build_request("a question"))
    await theirs.wait()
    assert open_transcripts().load(theirs.id)
    messages = set()
    for method, more in {"open": {}, "rename": {"title": "mine"}, "delete": {}}.items():
        for name in (theirs.id, "20260101-000000-abcd"):
            with pytest.raises(Refused) as refused:
                await page.call(method, id=name, **more)
            assert refused.value.code == "WORKSPACE_ERROR"
            messages.add(str(refused.value).replace(name, "…"))
    assert len(messages) == 1  # it cannot be told from one that never was
    for name in ("../chats/20260101-000000-abcd", "/etc/passwd", ""):
        with pytest.raises(Refused):
            await page.call("delete", id=name)
    assert open_transcripts().load(theirs.id).title == "a question"
    assert page.heard("deleted") == []
    await other.close()


# --- What the page and its hints name is there ---------------------------------------------------

LAB = ROOT / "lab" / "src" / "chat"


async def test_every_method_and_every_label_that_the_panel_names_is_there(page: Page) -> None:
    panel = "\n".join(path.read_text("utf-8") for path in LAB.glob("*.ts"))
    called = set(re.findall(r"\.call\('(\w+)'", panel))
    assert len(called) > 12
    assert {f"chat.{name}" for name in called} <= page.methods
    quoted = set(re.findall("“([^”$]+)”", panel))
    assert quoted
    for label in quoted:
        assert f"'{label}'" in panel, label


@pytest.mark.usefixtures("empty_keyring")
async def test_what_a_hint_says_can_be_done_on_a_page(
    page: Page, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    chat = (await page.call("open"))["id"]

    async def refuse(method: str, /, **params: Any) -> tuple[str, str]:
        with pytest.raises(Refused) as refused:
            await page.call(method, **params)
        return refused.value.code, refused.value.hint

    code, hint = await refuse("set", id=chat, model="openai:x")
    assert (code, "cellwright key openai" in hint) == ("MODEL_NOT_CONFIGURED", True)
    await page.call("key", provider="openai", key="sk-new")  # the same store
    assert (await page.call("set", id=chat, model="openai:x"))["model"] == "openai:x"
    code, hint = await refuse("set", id=chat, model="x")
    assert (code, "PROVIDER:NAME" in hint) == ("UNKNOWN_MODEL", True)

    use([RUN], "Done.")
    other = (await page.call("open"))["id"]
    assert await refuse("review", id=other, turn=9) == ("INVALID_EDIT", "Open it again")
    assert (await page.call("open", id=other))["turns"] == []
    await page.call("set", id=other, mode="agent")
    await page.call("send", id=other, prompt="run it", **ATTACHED)
    question = (await page.event("question"))["question"]
    code, hint = await refuse("answer", id=other, question=question, answer="maybe")
    assert (code, hint) == ("INVALID_EDIT", "One of once, chat, notebook, no")
    code, hint = await refuse("send", id=other, prompt="more", **ATTACHED)
    assert (code, "stop it" in hint) == ("CHAT_BUSY", True)
    await page.call("stop", id=other)
    assert (await page.ask(other, "again"))["event"] == "done"

    code, hint = await refuse("send", id="none", prompt="x", **ATTACHED)
    assert (code, hint) == ("WORKSPACE_ERROR", "Open it first")


async def test_a_page_that_asks_without_end_is_refused_and_answered_again_later(page: Page) -> None:
    lines = [f'{{"id": "flood-{n}", "method": "chat.list"}}'.encode() for n in range(500)]
    for line in lines:
        page.say(line)
    asked = {f"flood-{n}" for n in range(len(lines))}
    await page.until(lambda: asked <= {each.get("id") for each in page.sent})
    refused = [each["error"]["data"]["code"] for each in page.sent if "error" in each]
    assert 400 < len(refused) < 500
    assert set(refused) == {"INVALID_CALL"}
    await asyncio.sleep(0)  # the last one is answered, and then over
    assert await page.call("list") == {"chats": []}


async def test_nothing_that_a_page_hears_has_hidden_marks(page: Page, use: Use) -> None:
    """Also what it said itself, in answers, errors and the state of the chat."""
    use("The \u202eend\u200b.")
    chat = (await page.call("open"))["id"]
    mark = "a\u202eb\u200bc\x1b[31m"
    editor = {"path": f"{mark}.ipynb", "selected": [], "editing": None}
    calls = (
        ("rename", {"title": mark}),
        ("set", {"model": f"openai:{mark}"}),
        ("set", {"model": f"{mark}:x"}),
        ("set", {"model": "scripted"}),
        ("look", {"editor": editor}),
        ("look", {"editor": {**editor, "path": f"../{mark}"}}),
        ("look", {"files": [f"{mark}.txt"]}),
        ("preview", {"prompt": mark, "editor": editor, "files": [f"{mark}.ipynb"]}),
        ("answer", {"question": mark, "answer": mark}),
        ("send", {"prompt": mark, "editor": editor, "files": [], "tools": [mark]}),
    )
    for method, params in calls:
        with contextlib.suppress(Refused):
            await page.call(method, id=chat, **params)
    await page.until(lambda: [e for e in page.events() if e["event"] in ("done", "failed")])
    for method, params in (("open", {"id": mark}), ("key", {"provider": mark, "key": "x"})):
        with pytest.raises(Refused):
            await page.call(method, **params)
    await page.call("list")
    said = json.dumps(page.sent, ensure_ascii=False)
    assert [each for each in ("\u202e", "\u200b", "\x1b") if each in said] == []
