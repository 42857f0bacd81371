"""What a page says to the assistant, and what it hears: the messages of `cellwright/chat`.

They are JSON-RPC, as the engine's are; `docs/assistant.md` lists them. This module knows no
WebSocket: `relay.py` has that.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from cellwright.app.chats import FileNames, match_names
from cellwright.assistant.models.catalog import list_models, list_providers
from cellwright.assistant.models.direct import DirectModel
from cellwright.assistant.models.keys import SERVICE, check_key, store_key
from cellwright.assistant.models.providers import DIRECT, choose_model
from cellwright.config.loading import load
from cellwright.engine import wire
from cellwright.errors import CellwrightError, InvalidCall
from cellwright.outputs.sanitize import make_all_visible
from cellwright.outputs.sizes import estimate_tokens
from cellwright.workspace.api.requests import MODES, find_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from cellwright.app.chats import Conversations
    from cellwright.assistant.conversation import Conversation
    from cellwright.assistant.models.model import Model
    from cellwright.assistant.requests import ChatRequest, ChatState
    from cellwright.config.settings import Settings
    from cellwright.workspace.api.requests import Mode

    Facts = dict[str, Any]

log = logging.getLogger("cellwright.server")

_MOST_FILES = 50
_MOST_CALLS = 64  # of one page at once


class ChatPage:
    """One page.

    Args:
        chats: the chats of the server.
        send: sends a message to the page, after those before it.
    """

    def __init__(self, chats: Conversations, send: Callable[[Facts], object]) -> None:
        self._chats = chats
        self._pass_on = send
        self._watched: dict[str, Callable[[], None]] = {}
        self._names = FileNames(chats.root)
        self._tasks: set[asyncio.Task[None]] = set()
        # What a page says after it chose a model is said to that model, however long it takes.
        self._choosing = asyncio.Lock()
        self._stop_listening = chats.listen(self._hear)
        self._methods: dict[str, Callable[[Facts], Awaitable[Facts]]] = {
            "chat.list": self._list,
            "chat.open": self._open,
            "chat.leave": self._leave_chat,
            "chat.rename": self._rename,
            "chat.delete": self._delete,
            "chat.set": self._set,
            "chat.send": self._send_prompt,
            "chat.retry": self._retry,
            "chat.stop": self._stop,
            "chat.answer": self._answer_question,
            "chat.accept": self._accept,
            "chat.undo": self._undo,
            "chat.review": self._review,
            "chat.preview": self._preview,
            "chat.look": self._look,
            "chat.files": self._list_files,
            "chat.models": self._list_models,
            "chat.key": self._store_key,
        }

    def take(self, line: bytes) -> None:
        """Carry out a message of the page, beside those before it."""
        try:
            message = wire.decode(line)
        except InvalidCall as error:
            self._send(wire.make_failure(None, error))
            return
        number = message.get("id")
        if isinstance(number, (int, str)):
            if len(self._tasks) >= _MOST_CALLS:
                busy = InvalidCall("too many calls of this page are not answered yet")
                self._send(wire.make_failure(number, busy))
                return
            task = asyncio.ensure_future(self._answer(number, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _send(self, message: Facts) -> None:
        """Send a message with nothing hidden in its texts: a page shows all of them as they are."""
        self._pass_on(make_all_visible(message))

    def close(self) -> None:
        """Hear nothing any more; turns continue."""
        self._stop_listening()
        for name in list(self._watched):
            self._leave(name)

    async def _answer(self, number: int | str, message: Facts) -> None:
        method, params = message.get("method"), message.get("params", {})
        carry_out = self._methods.get(method) if isinstance(method, str) else None
        if carry_out is None or not isinstance(params, dict):
            problem = InvalidCall("There is no such method, or its params are not an object")
            self._send(wire.make_failure(number, problem))
            return
        try:
            # The answer is sent before anything else can happen: a snapshot, and what follows it.
            self._send(wire.make_answer(number, await carry_out(params)))
        except CellwrightError as error:
            self._send(wire.make_failure(number, error))
        except Exception as error:
            # The text of an error may have what the page sent.
            log.error("%s failed", method, exc_info=None if method == "chat.key" else error)  # noqa: TRY400
            failed = CellwrightError(f"{type(error).__name__} in the server; its log has more")
            self._send(wire.make_failure(number, failed))

    def _hear(self, kind: str, facts: Facts) -> None:
        """Tell the page of a chat that it watches, or that one was deleted."""
        if kind == "deleted":
            self._watched.pop(facts["chat"], None)
        self._send(wire.make_notification(f"chat.{kind}", facts))

    def _leave(self, name: str) -> None:
        leave = self._watched.pop(name, None)
        if leave is not None:
            leave()

    # -- chats ----------------------------------------------------------------------------------

    async def _list(self, params: Facts) -> Facts:
        del params
        return {"chats": await self._chats.list()}

    async def _open(self, params: Facts) -> Facts:
        name = params.get("id")
        found = await self._chats.open(None if name is None else _read_text(params, "id"))
        self._leave(found.id)
        self._watched[found.id] = found.watch(self._hear)
        return found.snapshot()

    async def _leave_chat(self, params: Facts) -> Facts:
        self._leave(_read_text(params, "id"))
        return {}

    async def _rename(self, params: Facts) -> Facts:
        title = await self._chats.rename(_read_text(params, "id"), _read_text(params, "title"))
        return {"title": title}

    async def _delete(self, params: Facts) -> Facts:
        name = _read_text(params, "id")
        self._watched.pop(name, None)
        await self._chats.delete(name)
        return {}

    async def _set(self, params: Facts) -> Facts:
        chat = self._find(params)
        async with self._choosing:
            if "model" in params:
                model = await choose_ready_model(_read_text(params, "model"), chat.settings)
                chat.require_idle()
                chat.use_model(model)
            if "mode" in params:
                chat.state.mode = _read_mode(params)
        chat.save()
        chat.tell_state()
        return {"mode": chat.state.mode, "model": chat.chat.model.name}

    # -- turns ----------------------------------------------------------------------------------

    async def _send_prompt(self, params: Facts) -> Facts:
        chat = await self._find_ready(params)
        chat.require_idle()
        chat = await self._chats.open(chat.id)  # another program may have saved it since
        state = await read_state(chat, params)
        prompt = _read_text(params, "prompt")
        chat.require_idle()
        chat.state = state
        return {"turn": chat.begin(build_request(chat, state, prompt))}

    async def _retry(self, params: Facts) -> Facts:
        chat = await self._find_ready(params)
        chat.require_idle()
        asked = chat.find_turn(params.get("turn")).asked
        state = await read_state(chat, {**asked, **params})
        prompt = _read_text({**asked, **params}, "prompt")
        _, gone = chat.forget(_read_turn(params))
        chat.state = state
        return {"turn": chat.begin(build_request(chat, state, prompt), gone)}

    async def _stop(self, params: Facts) -> Facts:
        await self._find(params).stop()
        return {}

    async def _answer_question(self, params: Facts) -> Facts:
        self._find(params).answer(_read_text(params, "question"), params.get("answer"))
        return {}

    async def _accept(self, params: Facts) -> Facts:
        changes = await self._find(params).accept(_read_turn(params))
        return {"changes": changes.to_json()}

    async def _undo(self, params: Facts) -> Facts:
        turn = None if params.get("turn") is None else _read_turn(params)
        cells = None if params.get("cells") is None else _read_texts(params, "cells")
        changes = await self._find(params).undo(turn, cells)
        return {"changes": changes.to_json()}

    async def _review(self, params: Facts) -> Facts:
        return {"diff": await self._find(params).review(_read_turn(params))}

    # -- before a turn --------------------------------------------------------------------------

    async def _preview(self, params: Facts) -> Facts:
        chat = await self._find_ready(params)
        state = await read_state(chat, params)
        plan = await chat.chat.plan(build_request(chat, state, _read_text(params, "prompt")))
        call = plan.build_call()
        context = plan.detection.context
        schemas = wire.encode({"tools": list(call.tools)}).decode() if call.tools else ""
        effects = {tool.name: tool.effects for tool in plan.offer.there}
        return {
            "notebook": context.path if context else None,
            "reason": plan.detection.reason,
            "messages": [
                {
                    "role": message.role,
                    "text": message.text,
                    "calls": [
                        {"name": each.name, "arguments": dict(each.arguments)}
                        for each in message.calls
                    ],
                    "images": len(message.images),
                }
                for message in call.messages
            ],
            "tools": [
                {
                    "name": tool["name"],
                    "description": tool["description"],
                    "effect": effect if isinstance(effect, str) else "run",
                    "parameters": tool["inputSchema"],
                }
                for tool in call.tools
                for effect in [effects[tool["name"]]]
            ],
            "tokens": round(sum(estimate_tokens(each.text) for each in call.messages))
            + round(estimate_tokens(schemas)),
            "prompts": plan.prompts,
        }

    async def _look(self, params: Facts) -> Facts:
        chat = await self._find_ready(params)
        state = await read_state(chat, params)
        detection, offer = await chat.chat.look(
            build_request(chat, state, str(params.get("prompt", "")))
        )
        return {
            "notebook": detection.context.path if detection.context else None,
            "reason": detection.reason,
            "tools": [
                {"name": tool.reference, "title": tool.title, "description": tool.description}
                for tool in offer.there
                if tool.reference
            ],
        }

    async def _list_files(self, params: Facts) -> Facts:
        # A name that would be changed by making it visible could not be opened by what is shown.
        names = [name for name in await self._names.find() if make_all_visible(name) == name]
        shown = match_names(names, _read_text(params, "text"), _MOST_FILES)
        return {
            "files": [{"path": each, "notebook": each.lower().endswith(".ipynb")} for each in shown]
        }

    # -- models ---------------------------------------------------------------------------------

    async def _list_models(self, params: Facts) -> Facts:
        chat = self._find(params) if params.get("id") is not None else None
        settings = await asyncio.to_thread(load, self._chats.root)
        used = [row["model"] for row in await self._chats.list()]
        chosen = chat.chat.model.name if chat else settings.assistant_model or DIRECT
        return {
            "models": await list_models(settings, [chosen, *used]),
            "providers": await list_providers(settings),
            "chosen": chosen,
        }

    async def _store_key(self, params: Facts) -> Facts:
        provider = _read_text(params, "provider")
        key = check_key(provider, _read_text(params, "key"))
        await asyncio.to_thread(store_key, provider, key)
        self._chats.hide(key)
        return {"stored": True, "where": f"the keyring of the server's user, as {SERVICE}"}

    # -- inside ---------------------------------------------------------------------------------

    def _find(self, params: Facts) -> Conversation:
        return self._chats.get(params.get("id"))

    async def _find_ready(self, params: Facts) -> Conversation:
        async with self._choosing:
            return self._find(params)


async def read_state(chat: Conversation, params: Facts) -> ChatState:
    """What a page has open, selected and attached; its names are confined to the root."""
    editor = params.get("editor")
    if not isinstance(editor, (dict, type(None))):
        raise InvalidCall("`editor` is an object or null")
    cell = None if params.get("cell") is None else _read_text(params, "cell")
    editing = None
    if editor is not None and editor.get("editing") is not None:
        editing = _read_text(editor, "editing")
    state = replace(
        chat.state,
        open=None if editor is None else _read_text(editor, "path"),
        selected=() if editor is None else tuple(_read_texts(editor, "selected")),
        editing=editing,
        cell=cell,
        files=_read_texts(params, "files"),
        tools=[name.removeprefix("#") for name in _read_texts(params, "tools")],
    )
    workspace = await chat.chat.workspaces.get(state.mode)
    for name in [*state.files, *([state.open] if state.open is not None else [])]:
        workspace.open(name)  # raises if it is outside the root
    return state


async def choose_ready_model(name: str, settings: Settings) -> Model:
    """Return a model that can be asked.

    Raises:
        ModelError: there is no such model, or its key or its library is missing.
    """
    model = choose_model(name, settings, repeats_outputs=False)
    prepare = getattr(model, "prepare", None)
    if prepare is not None:
        await prepare()
    return model


def build_request(chat: Conversation, state: ChatState, prompt: str) -> ChatRequest:
    """Make a request; a language model would not know of attached files otherwise."""
    is_program = isinstance(chat.chat.model, DirectModel)
    return state.build_request(prompt, names_files=not is_program)


def _read_text(params: Facts, name: str) -> str:
    found = params.get(name)
    if not isinstance(found, str):
        raise InvalidCall(f"`{name}` is a text")
    return found


def _read_texts(params: Facts, name: str) -> list[str]:
    found = params.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidCall(f"`{name}` is a list of texts")
    return found


def _read_turn(params: Facts) -> int:
    found = params.get("turn")
    if not isinstance(found, int) or isinstance(found, bool):
        raise InvalidCall("`turn` is the number of a turn")
    return found


def _read_mode(params: Facts) -> Mode:
    found = find_mode(params.get("mode"))
    if found is None:
        raise InvalidCall(f"`mode` is one of {', '.join(MODES)}")
    return found
