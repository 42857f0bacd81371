"""The assistant as a persona of Jupyter AI: each chat of Jupyter AI has a conversation of ours.

What a turn needs to know from the person is asked in the chat; their next message is the answer. The
turn waits meanwhile, and so does a cell that it runs.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from jupyter_ai_persona_manager import BasePersona, PersonaDefaults
from jupyter_ai_persona_manager.awareness_models import (
    ModelConfiguration,
    ModelOption,
    SettingConfiguration,
    SettingOption,
)
from jupyterlab_chat.models import Message, NewMessage

from cellwright.app.chats import serve_chats
from cellwright.assistant.models.catalog import list_models
from cellwright.assistant.transcripts import ENDINGS
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line
from cellwright.server.chats import build_request, choose_ready_model, read_state
from cellwright.tools.wording import code_block, code_span
from cellwright.workspace.api.requests import MODES, find_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from cellwright.assistant.conversation import Conversation

    Facts = dict[str, Any]

_DECISIONS = {
    **dict.fromkeys(("yes", "y", "ok", "once", "allow"), "once"),
    **dict.fromkeys(("no", "n", "reject"), "no"),
    "chat": "chat",
    "always": "notebook",
}
_HOW = "Answer `yes`, `no`, `chat` (for the rest of this chat) or `always` (for this notebook)."
_LONGEST_RESULT = 2000
_PERSONAS = "jupyter-ai-personas"  # how the names of all personas begin


class CellwrightPersona(BasePersona):
    """Reads, edits and runs notebooks for the people of one chat."""

    _found: Conversation | None = None
    _question: Facts | None = None

    @property
    def defaults(self) -> PersonaDefaults:
        """Say who this is."""
        return PersonaDefaults(
            name="Cellwright",
            description="Reads, edits and runs notebooks; asks before it runs or deletes a cell",
            avatar_path=str(Path(__file__).with_name("persona.svg")),
            system_prompt="",
        )

    async def prepare(self) -> None:
        """Open the conversation of this chat, and say which modes and models there are."""
        found = await self._open()
        rows = await list_models(found.settings, [found.chat.model.name])
        options = [ModelOption(id=row["name"], name=row["title"]) for row in rows]
        current = found.chat.model.name
        self.report_model_configuration(ModelConfiguration(current=current, options=options))
        modes = [SettingOption(id=mode, name=mode.capitalize()) for mode in MODES]
        mode = SettingConfiguration(id="mode", name="Mode", current=found.state.mode, options=modes)
        self.report_settings_configuration([mode])

    async def update_model(self, model_id: str) -> None:
        """Let another model answer."""
        found = await self._open()
        found.use_model(await choose_ready_model(model_id, found.settings))

    async def update_settings(self, settings: dict[str, str | None]) -> None:
        """Change what the assistant may do."""
        found = await self._open()
        found.state.mode = find_mode(settings.get("mode")) or found.state.mode

    async def process_message(self, message: Message) -> None:
        """Answer a message, up to the end of the turn or to a question to the person."""
        found = await self._open()
        events: asyncio.Queue[Facts] = asyncio.Queue()
        leave = found.watch(
            lambda kind, facts: events.put_nowait(facts["event"]) if kind == "event" else None
        )
        self.set_status()
        reply: str | None = None
        try:
            async for text in self._tell(found, message, events):
                if reply is None:
                    new = NewMessage(body="", sender=self.id)
                    reply = self.chat.add_message(new, trigger_actions=[])
                # Without actions: a notebook that says `@Name` must not call other personas.
                now = {"id": reply, "time": time.time(), "sender": self.id, "raw_time": False}
                piece = Message(body=text, **now)
                self.chat.update_message(piece, append=True, trigger_actions=[])
        finally:
            leave()
            self.clear_status()

    async def cancel_response(self) -> None:
        """Stop the turn."""
        self._question = None
        await (await self._open()).stop()

    async def _open(self) -> Conversation:
        """Find the conversation of this chat, also after a restart of the server; by its title."""
        if self._found is None:
            chats = serve_chats(self.get_root())
            title = one_line(f"Jupyter AI: {self.get_chat_path(relative=True)}")
            rows = [row["id"] for row in await chats.list() if row["title"] == title]
            self._found = await chats.open(rows[0] if rows else None)
            self._found.rename(title)
        return self._found

    def get_root(self) -> str:
        """Return the root folder of the server."""
        inside = f"/{self.get_chat_path(relative=True)}"
        return str(self.get_chat_path()).removesuffix(inside) or "/"

    async def _take(self, found: Conversation, message: Message) -> str:
        """Begin a turn, or answer the question of the one that runs; returns why not, if not."""
        text = str(message.body).replace(f"@{self.as_user().mention_name}", " ").strip()
        question = self._question
        if question is not None and found.running is not None:
            if str(message.sender).startswith(_PERSONAS):
                return "A person has to answer the question above."
            answer = (
                text if question["kind"] == "input" else _DECISIONS.get(text.strip(".! ").lower())
            )
            if answer is None:
                return _HOW
            self._question = None
            found.answer(question["question"], answer)
            return ""
        found.require_idle()
        state = await read_state(found, self._read_attachments(found, message))
        found.state = state
        found.begin(build_request(found, state, text))
        return ""

    def _read_attachments(self, found: Conversation, message: Message) -> Facts:
        """Return what is attached; a notebook is the open one from then on."""
        state, known = found.state, self.chat.get_attachments()
        files, opened = list(state.files), state.open
        selected = list(state.selected)
        for name in message.attachments or ():
            each = known[name]
            files += [each.value] if each.value not in files else []
            if each.value.lower().endswith(".ipynb"):
                opened = each.value
                selected = [cell.id for cell in getattr(each, "cells", None) or ()]
        editor = {"path": opened, "selected": selected, "editing": None} if opened else None
        return {"editor": editor, "files": files, "tools": []}

    async def _tell(
        self, found: Conversation, message: Message, events: asyncio.Queue[Facts]
    ) -> AsyncIterator[str]:
        """Say what comes of a message, as Markdown."""
        try:
            problem = await self._take(found, message)
        except CellwrightError as error:
            problem = code_span(one_line(f"{error.message}. {error.hint or ''}"))
        if problem:
            yield problem
            return
        while True:
            event = await events.get()
            if event["event"] == "question" and event["password"]:
                await found.stop()
                yield "\n\nA cell asks for a password, which would be kept in this chat.\n\n"
            elif event["event"] == "question":
                self._question = event
                how = _HOW if event["kind"] == "confirm" else "Your next message is the answer."
                preview = f"\n\n{code_block(event['preview'])}" if event["preview"] else ""
                yield f"\n\n**{code_span(event['words'])}**{preview}\n\n{how}\n"
                return
            elif text := _describe(event):
                yield text
            if event["event"] in ENDINGS:
                return


def _describe(event: Facts) -> str:
    """Return an event as Markdown; texts of notebooks are literal."""
    kind = event["event"]
    if kind == "text":
        return str(event["text"])
    if kind == "tool_call":
        where = f" {code_span(event['notebook'])}" if event["notebook"] else ""
        return f"\n\n**{code_span(event['title'])}**{where}\n\n"
    if kind == "tool_result":
        return f"{code_block(event['text'][:_LONGEST_RESULT])}\n\n"
    if kind == "note":
        return f"\n\n{code_span(event['text'])}\n\n"
    if kind == "failed":
        hint = f" {event['hint']}." if event["hint"] else ""
        return f"\n\nThe turn failed: {code_span(event['message'] + '.' + hint)}\n"
    if kind == "stopped":
        return "\n\nThe turn was stopped.\n"
    if kind == "done" and event["ending"] == "limit":
        return "\n\nThe turn was ended after many calls of the model; ask it to continue.\n"
    return ""
