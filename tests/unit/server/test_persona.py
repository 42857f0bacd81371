"""The persona of Jupyter AI, without Jupyter AI: who may answer what a turn asks."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.assistant.chatting import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.app.chats import Conversations
    from cellwright.assistant.models.scripted import ScriptedModel

    Use = Callable[..., ScriptedModel]

ADA, ROBOT = "ada", "jupyter-ai-personas::other::OtherPersona"


class Chat:
    """Keeps what the persona writes."""

    def __init__(self) -> None:
        self.text = ""

    def add_message(self, message: Any, **_: Any) -> str:
        del message
        return "1"

    def update_message(self, message: Any, **_: Any) -> None:
        self.text += message.body

    def get_attachments(self) -> dict[str, Any]:
        return {}


class BasePersona:
    """As much of Jupyter AI's class as ours uses."""

    id = "jupyter-ai-personas::cellwright::CellwrightPersona"

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    def as_user(self) -> Any:
        return SimpleNamespace(mention_name="Cellwright")

    def set_status(self) -> None: ...

    def clear_status(self) -> None: ...


@pytest.fixture
def persona_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    names = {
        "jupyter_ai_persona_manager": {"BasePersona": BasePersona, "PersonaDefaults": dict},
        "jupyter_ai_persona_manager.awareness_models": dict.fromkeys(
            (
                *("ModelConfiguration", "ModelOption"),
                *("SettingConfiguration", "SettingOption"),
            ),
            dict,
        ),
        "jupyterlab_chat": {},
        "jupyterlab_chat.models": {"Message": SimpleNamespace, "NewMessage": SimpleNamespace},
    }
    for name, members in names.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "cellwright.server.persona", raising=False)
    from cellwright.server import persona

    yield persona.CellwrightPersona
    del sys.modules["cellwright.server.persona"]


async def test_another_persona_cannot_allow_what_a_person_is_asked_for(
    persona_class: Any, chats: Conversations, use: Use
) -> None:
    use([call("RunNotebookCells", cellIds=["load"])], "Done.")
    persona = persona_class(chat := Chat())
    persona._found = found = await chats.open()
    found.state.mode = "agent"
    found.state.open = "sales.ipynb"
    found.state.attach("sales.ipynb")

    async def say(sender: str, body: str) -> str:
        before = len(chat.text)
        await persona.process_message(SimpleNamespace(sender=sender, body=body, attachments=()))
        return chat.text[before:]

    assert "Run cell 2 of sales.ipynb?" in await say(ADA, "@Cellwright run it")
    for word in ("yes", "always", "chat", "no"):
        assert "A person has to answer" in await say(ROBOT, word)
    (turn,) = found.snapshot()["turns"]
    assert [each["event"] for each in turn["events"]][-1] == "question"
    assert "Done." in await say(ADA, "yes")
