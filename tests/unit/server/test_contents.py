"""What pages may name, what they are shown, and what is kept from them."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.app.chats import open_transcripts
from cellwright.assistant.models.model import ToolCall
from cellwright.errors import ModelUnavailable
from cellwright.kernel.events import InputRequested
from cellwright.outputs.sanitize import unsafe
from tests.unit.assistant import notebooks
from tests.unit.assistant.chatting import call
from tests.unit.cli import samples
from tests.unit.server.pages import ATTACHED, EDITOR, Page, Refused
from tests.unit.server.test_chats import UPDATE, SlowModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright.app.chats import Conversations
    from cellwright.assistant.models.scripted import ScriptedModel
    from tests.unit.assistant.conftest import MemoryKeyring

    Use = Callable[..., ScriptedModel]

KEY = "sk-ant-a-key-for-this-test-only"
HIDDEN = "a\u202eb\x1b]0;title\x07c\u200bd\U000e0041e\r\x9bf"


def said_to(page: Page) -> str:
    return json.dumps(page.sent, ensure_ascii=False)


# --- Names of files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"files": ["../outside.txt"]},
        {"files": ["/etc/passwd"]},
        {"editor": {**EDITOR, "path": "../../sales.ipynb"}},
        {"files": ["link.txt"]},
    ],
)
@pytest.mark.parametrize("method", ["send", "preview", "look"])
async def test_a_name_that_leads_out_of_the_root_is_refused(
    page: Page, use: Use, folder: Path, method: str, more: dict[str, Any]
) -> None:
    model = use("never")
    (folder / "link.txt").symlink_to("/etc/passwd")
    chat = (await page.call("open"))["id"]
    with pytest.raises(Refused) as refused:
        await page.call(method, id=chat, prompt="hello", **{**ATTACHED, **more})
    assert refused.value.code == "OUTSIDE_ROOT"
    assert (model.requests, page.events()) == ([], [])


@pytest.mark.parametrize(
    "params",
    [
        {"prompt": 7},
        {"prompt": "x", "files": "sales.ipynb"},
        {"prompt": "x", "tools": [1]},
        {"prompt": "x", "editor": []},
        {"prompt": "x", "editor": {"path": None}},
        {"prompt": "x", "editor": {"path": "sales.ipynb", "selected": [1]}},
        {"prompt": "x", "cell": {}},
        {"prompt": "x", "files": ["a\0b"]},
    ],
)
async def test_params_of_another_shape_are_refused_and_begin_no_turn(
    page: Page, use: Use, params: dict[str, Any]
) -> None:
    model = use("never")
    chat = (await page.call("open"))["id"]
    with pytest.raises(Refused) as refused:
        await page.call("send", id=chat, **params)
    assert refused.value.code != "INTERNAL_ERROR"
    assert (model.requests, page.events()) == ([], [])


async def test_files_are_completed_notebooks_first_and_hidden_folders_left_out(
    page: Page, folder: Path
) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "sales.txt").touch()
    (folder / "sales.csv").touch()
    (folder / f"sales{HIDDEN[:3]}.csv").touch()
    for number in range(60):
        (folder / f"z{number}.txt").touch()
    found = (await page.call("files", text="SAL"))["files"]
    assert found == [
        {"path": "sales.ipynb", "notebook": True},
        {"path": "sales.csv", "notebook": False},
    ]
    assert len((await page.call("files", text=""))["files"]) == 50


# --- What a page is shown ------------------------------------------------------------------------


async def test_nothing_hidden_reaches_a_page(page: Page, use: Use, folder: Path) -> None:
    (folder / "evil.ipynb").write_bytes(samples.write(samples.code("load", f"print {HIDDEN}")))
    evil = {"editor": {**EDITOR, "path": "evil.ipynb"}, "files": ["evil.ipynb"]}
    run = call("RunNotebookCells", cellIds=["load"])
    unknown = ToolCall(HIDDEN, HIDDEN, {HIDDEN: [HIDDEN]})
    use([HIDDEN, call("GetNotebookCells", path="evil.ipynb"), unknown], run, HIDDEN)
    chat = (await page.call("open"))["id"]
    await page.call("set", id=chat, mode="agent")
    await page.call("send", id=chat, prompt=HIDDEN, **{**ATTACHED, **evil})
    question = await page.event("question")
    await page.call("answer", id=chat, question=question["question"], answer="once")
    await page.event("done")
    await page.call("rename", id=chat, title=HIDDEN)
    await page.call("list")
    await page.call("open", id=chat)
    await page.call("preview", id=chat, prompt=HIDDEN, **{**ATTACHED, **evil})
    shown = said_to(page)
    assert len(page.events("tool_result")) == 3
    assert unsafe.search(shown.replace("\n", "")) is None
    assert "<U+202E>" in shown


async def test_what_fails_is_said_with_its_code_and_what_was_changed_before(
    page: Page, use: Use
) -> None:
    use(UPDATE, ModelUnavailable("scripted", "the line is dead"))
    chat = (await page.call("open"))["id"]
    await page.call("set", id=chat, mode="agent")
    failed = await page.ask(chat, "change it")
    assert (failed["event"], failed["code"]) == ("failed", "MODEL_UNAVAILABLE")
    assert failed["changes"]["edits"][0]["cells"] == ["load"]
    assert failed["hint"]
    assert (await page.ask(chat, "again"))["event"] == "done"


async def test_a_password_is_in_no_event_and_in_no_transcript(
    page: Page, chats: Conversations
) -> None:
    chat = (await page.call("open"))["id"]
    model = SlowModel()
    found = chats.get(chat)
    found.use_model(model)
    await page.call("send", id=chat, prompt="go", **ATTACHED)
    await page.event("text")
    assert found.chat.ask is not None
    asking = asyncio.ensure_future(found.chat.ask(InputRequested("PIN?", password=True)))
    question = await page.event("question")
    assert question["password"] is True
    await page.call("answer", id=chat, question=question["question"], answer="1234-5678")
    assert await asking == "1234-5678"
    assert (await page.event("answered"))["answer"] is None
    model.go_on.set()
    await page.event("done")
    saved = (open_transcripts().folder / f"{chat}.json").read_text(encoding="utf-8")
    assert "1234-5678" not in said_to(page) + saved


async def test_a_cell_that_asks_for_a_line_is_answered(page: Page, use: Use, folder: Path) -> None:
    (folder / "sales.ipynb").write_bytes(samples.write(samples.code("load", "input Name?")))
    use(call("RunNotebookCells", cellIds=["load"]), "Done.")
    chat = (await page.call("open"))["id"]
    await page.call("set", id=chat, mode="agent")
    await page.call("send", id=chat, prompt="run it", **ATTACHED)
    first = await page.event("question")
    await page.call("answer", id=chat, question=first["question"], answer="chat")
    await page.until(lambda: len(page.events("question")) == 2)
    second = page.events("question")[1]
    assert (second["kind"], second["words"], second["password"]) == ("input", "Name?", False)
    await page.call("answer", id=chat, question=second["question"], answer="Ada")
    await page.event("done")
    assert "Ada" in page.events("tool_result")[0]["text"]
    with pytest.raises(Refused):
        await page.call("answer", id=chat, question=second["question"], answer="Bob")


async def test_a_proposal_for_a_cell_is_accepted_and_taken_back(
    page: Page, use: Use, folder: Path
) -> None:
    use("So:\n```python\nprint 44\n```\n")
    chat = (await page.call("open"))["id"]
    done = await page.ask(chat, "make it 44", cell="load", files=[])
    assert (done["proposal"]["cell"], done["proposal"]["source"]) == ("load", "print 44")
    assert "-print 42" in done["proposal"]["diff"]
    before = (folder / "sales.ipynb").read_bytes()
    changes = (await page.call("accept", id=chat, turn=1))["changes"]
    assert changes["edits"][0]["cells"] == ["load"]
    assert b"print 44" in (folder / "sales.ipynb").read_bytes()
    assert page.events("accepted")[0]["changes"] == changes
    with pytest.raises(Refused):
        await page.call("accept", id=chat, turn=1)
    await page.call("undo", id=chat, turn=1)
    assert (folder / "sales.ipynb").read_bytes() == before == notebooks.SALES


async def test_the_preview_is_what_the_model_gets(page: Page, use: Use) -> None:
    model = use("first answer", "second answer")
    chat = (await page.call("open"))["id"]
    await page.ask(chat, "first")
    asked = {**ATTACHED, "files": ["sales.ipynb", "other.ipynb"], "tools": ["getCellOutputs"]}
    asked["editor"] = {**EDITOR, "selected": ["sum"], "editing": "load"}
    preview = await page.call("preview", id=chat, prompt="#getNotebookCells é 😀", **asked)
    assert len(model.requests) == 1  # nothing was sent
    await page.ask(chat, "#getNotebookCells é 😀", **asked)
    request = model.requests[1]
    assert [(each["role"], each["text"]) for each in preview["messages"]] == [
        (message.role, message.text) for message in request.messages
    ]
    assert [each["name"] for each in preview["tools"]] == [each["name"] for each in request.tools]
    assert preview["notebook"] == "sales.ipynb"
    assert preview["tokens"] > 500
    looked = await page.call("look", id=chat, **{**asked, "files": []})
    assert looked["notebook"] is None
    assert "not attached" in looked["reason"]


# --- Keys ----------------------------------------------------------------------------------------


async def test_a_key_goes_to_the_keyring_and_to_no_other_place(
    page: Page, use: Use, empty_keyring: MemoryKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    strange = "0123456789-not-like-other-keys"
    use("ok")
    chat = (await page.call("open"))["id"]
    for key in (KEY, strange):
        stored = await page.call("key", provider="anthropic", key=f" {key}\n")
        assert stored["stored"] is True
        assert empty_keyring.keys == {("cellwright", "anthropic"): key}
    await page.ask(chat, f"is {strange} my key, or {KEY}?")
    saved = (open_transcripts().folder / f"{chat}.json").read_text(encoding="utf-8")
    assert "⟦a key was here⟧" in saved
    for key in (KEY, strange):
        assert key not in saved
        assert key not in caplog.text
        answers = [message for message in page.sent if "method" not in message]
        assert key not in json.dumps(answers)


@pytest.mark.parametrize("key", ["", "two words", "sk-\u00e9", "sk-a\x00b"])
async def test_what_cannot_be_a_key_is_refused_and_not_repeated(
    page: Page, empty_keyring: MemoryKeyring, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    with pytest.raises(Refused) as refused:
        await page.call("key", provider="anthropic", key=key)
    assert refused.value.code == "MODEL_NOT_CONFIGURED"
    assert empty_keyring.keys == {}
    if key:
        assert key not in said_to(page) + caplog.text


async def test_a_keyring_that_breaks_does_not_tell_the_key(
    page: Page,
    empty_keyring: MemoryKeyring,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(service: str, account: str, key: str) -> None:
        raise RuntimeError(f"{service} {account} {key}")

    monkeypatch.setattr(empty_keyring, "set_password", fail)
    with pytest.raises(Refused):
        await page.call("key", provider="anthropic", key=KEY)
    assert KEY not in said_to(page) + caplog.text


@pytest.mark.usefixtures("empty_keyring")
async def test_models_are_listed_with_what_each_needs(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CELLWRIGHT_ASSISTANT_MODEL", "anthropic:claude-x")
    found = await page.call("models")
    rows = {row["name"]: row for row in [*found["models"], *found["providers"]]}
    assert found["chosen"] == "anthropic:claude-x"
    assert rows["direct"]["ready"] is True
    assert rows["anthropic:claude-x"] == {
        "name": "anthropic:claude-x",
        "title": "anthropic:claude-x",
        "provider": "anthropic",
        "ready": False,
        "needs": "key",
        "hint": "Set ANTHROPIC_API_KEY, or run: cellwright key anthropic",
        "takes_key": True,
    }
    assert (rows["ollama"]["ready"], rows["openai"]["needs"]) == (True, "key")
    assert [rows[name]["takes_key"] for name in ("direct", "ollama", "openai")] == [
        *(False, False, True),
    ]
    await page.call("key", provider="anthropic", key=KEY)
    rows = {row["name"]: row for row in (await page.call("models"))["models"]}
    assert rows["anthropic:claude-x"]["ready"] is True
    assert rows["anthropic:claude-x"]["takes_key"] is True  # one that was refused can be replaced
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    rows = {row["name"]: row for row in (await page.call("models"))["models"]}
    assert rows["anthropic:claude-x"]["takes_key"] is False  # the variable counts first
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    from cellwright.assistant.models import catalog

    monkeypatch.setattr(catalog, "find_spec", lambda _: None)
    rows = {row["name"]: row for row in (await page.call("models"))["models"]}
    assert rows["anthropic:claude-x"]["needs"] == "extra"
    assert "pip install" in rows["anthropic:claude-x"]["hint"]


@pytest.mark.usefixtures("empty_keyring")
async def test_a_model_without_its_key_is_not_taken(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    chat = (await page.call("open"))["id"]
    for name, code in (("anthropic:x", "MODEL_NOT_CONFIGURED"), ("nothing:x", "UNKNOWN_MODEL")):
        with pytest.raises(Refused) as refused:
            await page.call("set", id=chat, model=name)
        assert refused.value.code == code
    assert (await page.call("open", id=chat))["model"] == "direct"
    with pytest.raises(Refused):
        await page.call("set", id=chat, mode="root")
