"""The assistant as an agent of the Agent Client Protocol, for editors such as Zed and Neovim.

An editor starts `cellwright acp` and talks to it over stdin and stdout. Each of its sessions is a
chat: the same turns, confirmations and transcripts as in the terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import acp
from acp import schema

import cellwright
from cellwright.app.chats import open_chat, open_transcripts
from cellwright.app.workspaces import name_actor, wants_engine
from cellwright.assistant.chat import (
    MOST_STEPS,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEndEvent,
)
from cellwright.assistant.permissions import Decision, find_effect
from cellwright.assistant.requests import is_notebook, resolve_file
from cellwright.engine import wire
from cellwright.errors import CellwrightError, ConfigError, InvalidCall
from cellwright.outputs.sanitize import make_all_visible, make_visible, one_line
from cellwright.tools.fence import build_fence, choose_number, make_readable
from cellwright.tools.wording import code_block, code_span, quote_path
from cellwright.workspace.api.requests import MODES, find_mode

if TYPE_CHECKING:
    from cellwright.assistant.chat import ChatEvent
    from cellwright.assistant.conversation import Conversation
    from cellwright.assistant.models.model import ToolCall
    from cellwright.assistant.permissions import Operation
    from cellwright.tools.tool import ToolResult
    from cellwright.workspace.api.requests import Mode

_ABOUT_MODES = {
    "ask": "Reads notebooks and files, and changes nothing",
    "edit": "Reads notebooks, and changes them where the settings allow it",
    "agent": "Changes and runs cells; asks before it runs or deletes something",
}
_KINDS: dict[str, schema.ToolKind] = {"read": "read", "edit": "edit", "run": "execute"}
_DECISIONS: dict[Decision, tuple[str, schema.PermissionOptionKind]] = {
    "once": ("Allow", "allow_once"),
    "chat": ("Allow for this chat", "allow_always"),
    "notebook": ("Always allow for this notebook", "allow_always"),
    "no": ("Reject", "reject_once"),
}
_COMMANDS = {
    "undo": "Take back what the last turn changed",
    "review": "Show what the last turn changed",
}
_LONGEST_TITLE = 200


@dataclass(slots=True)
class EditorSession:
    """A chat in an editor: `call` is the tool call at work, `turn` the turn."""

    id: str
    opened: Conversation
    call: ToolCall | None = None
    turn: asyncio.Task[schema.StopReason] | None = field(default=None)


class ChatAgent:
    """Answers one editor.

    Args:
        mode: the mode of new chats.
        model: the model of all chats; by default that of the settings.
    """

    def __init__(self, mode: Mode = "ask", model: str | None = None) -> None:
        self._mode: Mode = mode
        self._model = model
        self._client: acp.Client | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._actor = "editor"

    def on_connect(self, conn: acp.Client) -> None:
        """Keep the way back to the editor."""
        self._client = conn

    async def close(self) -> None:
        """Stop all turns, and end what the chats have open."""
        for session in self._sessions.values():
            await _stop(session)
            await session.opened.close()
        self._sessions.clear()

    async def initialize(
        self,
        protocol_version: int,  # noqa: ARG002  # there is one
        client_capabilities: schema.ClientCapabilities | None = None,  # noqa: ARG002
        client_info: schema.Implementation | None = None,
        **_: Any,
    ) -> schema.InitializeResponse:
        """Say what this agent can do."""
        if client_info is not None:
            self._actor = one_line(client_info.name)[:40]
        listing = schema.SessionCapabilities(list=schema.SessionListCapabilities())
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
                session_capabilities=listing,
            ),
            agent_info=schema.Implementation(
                name="cellwright", title="Cellwright", version=cellwright.__version__
            ),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Accept the user of this process; there is nothing to sign in to."""

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,  # noqa: ARG002
        mcp_servers: list[Any] | None = None,  # noqa: ARG002
        **_: Any,
    ) -> schema.NewSessionResponse:
        """Begin a chat in a folder."""
        session = await self._open(cwd)
        await self._offer_commands(session)
        return schema.NewSessionResponse(session_id=session.id, modes=_modes(session))

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,  # noqa: ARG002
        additional_directories: list[str] | None = None,  # noqa: ARG002
        **_: Any,
    ) -> schema.LoadSessionResponse:
        """Take an earlier chat up again, also one that was held in the terminal."""
        session = await self._open(cwd, session_id)
        for message in session.opened.transcript.messages:
            if message.text and message.role == "user":
                await self._send(session, acp.update_user_message_text(make_visible(message.text)))
            elif message.text and message.role == "assistant":
                await self._send(session, acp.update_agent_message_text(make_visible(message.text)))
        await self._offer_commands(session)
        return schema.LoadSessionResponse(modes=_modes(session))

    async def list_sessions(
        self,
        cwd: str | None = None,
        cursor: str | None = None,  # noqa: ARG002  # all fit on one page
        **_: Any,
    ) -> schema.ListSessionsResponse:
        """List the chats of a folder, the newest first."""
        found = await asyncio.to_thread(open_transcripts().find_all, cwd)
        rows = [
            schema.SessionInfo(session_id=each.id, cwd=each.root, title=one_line(each.title))
            for each in found
            if not each.is_empty
        ]
        return schema.ListSessionsResponse(sessions=rows)

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        """Change what the assistant may do from the next turn on."""
        session = self._find(session_id)
        mode = find_mode(mode_id)
        if mode is None:
            raise acp.RequestError.invalid_params({"modeId": f"one of {', '.join(MODES)}"})
        session.opened.state.mode = mode
        return schema.SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        """Answer a prompt; the answer streams to the editor meanwhile."""
        session = self._find(session_id)
        if session.turn is not None:
            raise acp.RequestError(-32600, "The last prompt is not answered yet")
        text, notes = _read_prompt(session, prompt)
        before = session.opened.chat.usage
        session.turn = asyncio.ensure_future(self._answer(session, text, notes))
        try:
            await asyncio.wait([session.turn])
            reason = "cancelled" if session.turn.cancelled() else session.turn.result()
        except CellwrightError as error:
            raise _request_error(error) from error
        finally:
            session.turn = session.call = None
        after = session.opened.chat.usage
        used = (after.input - before.input, after.output - before.output)
        usage = schema.Usage(total_tokens=sum(used), input_tokens=used[0], output_tokens=used[1])
        return schema.PromptResponse(stop_reason=reason, usage=usage if sum(used) else None)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn that runs; cells that it runs are interrupted."""
        if session_id in self._sessions:
            await _stop(self._sessions[session_id])

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        """End a chat; its transcript stays."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await _stop(session)
            await session.opened.close()
        return schema.CloseSessionResponse()

    # -- a chat ---------------------------------------------------------------------------

    async def _open(self, cwd: str, earlier: str | None = None) -> EditorSession:
        if not os.path.isdir(cwd):  # noqa: ASYNC240, PTH112
            raise acp.RequestError.invalid_params({"cwd": "there is no such folder"})
        try:
            found = open_transcripts().load(earlier) if earlier is not None else None
            opened = open_chat(
                cwd,
                cwd=cwd,
                actor=name_actor("acp", self._actor),
                mode=self._mode,
                engine=wants_engine(),
                model=self._model,
                repeats_outputs=False,  # the editor shows them
            )
            if found is not None:
                await opened.resume(found)
        except CellwrightError as error:
            raise _request_error(error) from error
        session = EditorSession(opened.transcript.id, opened)
        self._sessions[session.id] = session

        async def confirm(operation: Operation) -> Decision:
            return await self._confirm(session, operation)

        opened.chat.guard.confirm = confirm
        return session

    def _find(self, session_id: str) -> EditorSession:
        try:
            return self._sessions[session_id]
        except KeyError:
            raise acp.RequestError.resource_not_found(session_id) from None

    async def _answer(
        self, session: EditorSession, text: str, notes: list[str]
    ) -> schema.StopReason:
        name = text.strip().removeprefix("/")
        if text.strip().startswith("/") and name in _COMMANDS:
            said = await _carry_out(session, name)
            await self._send(session, acp.update_agent_message_text(said))
            return "end_turn"
        request = session.opened.state.build_request(text, names_files=True, notes=notes)
        ending = "answered"
        async with contextlib.aclosing(session.opened.send(request)) as events:
            async for event in events:
                await self._show(session, event)
                if isinstance(event, TurnEndEvent):
                    ending = event.ending
        if ending == "limit":
            note = f"\n\nStopped after {MOST_STEPS} calls of the model; ask it to continue."
            await self._send(session, acp.update_agent_message_text(note))
            return "max_turn_requests"
        return "end_turn"

    async def _show(self, session: EditorSession, event: ChatEvent) -> None:
        if isinstance(event, TextEvent):
            await self._send(session, acp.update_agent_message_text(make_visible(event.text)))
        elif isinstance(event, ToolCallEvent):
            session.call = event.call
            await self._send(session, _start(session, event.call))
        elif isinstance(event, ToolResultEvent):
            session.call = None
            await self._send(session, _end(event.call, event.answer))

    async def _confirm(self, session: EditorSession, operation: Operation) -> Decision:
        """Ask the person at the editor."""
        call = session.call
        if call is None or self._client is None:
            return "no"
        asked = schema.ToolCallUpdate(
            tool_call_id=call.id,
            title=one_line(operation.words)[:_LONGEST_TITLE],
            status="pending",
            content=[_show_literally(operation.preview)] if operation.preview else None,
        )
        options = [
            schema.PermissionOption(option_id=decision, name=name, kind=kind)
            for decision, (name, kind) in _DECISIONS.items()
        ]
        answer = await self._client.request_permission(
            session_id=session.id, tool_call=asked, options=options
        )
        chosen = getattr(answer.outcome, "option_id", "no")
        return next((each for each in _DECISIONS if each == chosen), "no")

    async def _offer_commands(self, session: EditorSession) -> None:
        commands = [
            schema.AvailableCommand(name=name, description=about)
            for name, about in _COMMANDS.items()
        ]
        await self._send(
            session,
            schema.AvailableCommandsUpdate(
                session_update="available_commands_update", available_commands=commands
            ),
        )

    async def _send(self, session: EditorSession, update: Any) -> None:
        if self._client is not None:
            await self._client.session_update(session_id=session.id, update=update)


class EditorPipes:
    """The messages of an editor, one a line; what is none is passed over.

    The library's own would end at a line of JSON that is not an object.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = wire.Frames()
        self._turn = asyncio.Lock()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end."""
        while True:
            while (line := self._frames.next()) is not None:
                with contextlib.suppress(InvalidCall):
                    return wire.decode(line)
            chunk = await self._reader.read(2**16)
            if not chunk:
                return None
            self._frames.feed(chunk)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message after those before it."""
        async with self._turn:
            self._writer.write(wire.encode(message))
            await self._writer.drain()

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def serve_editor(mode: Mode, model: str | None) -> None:
    """Serve the editor at stdin and stdout until it leaves.

    Raises:
        ConfigError: there is no editor, but a file, or nothing.
    """
    for number, name in enumerate(("stdin", "stdout")):
        if not _is_pipe(number):
            raise ConfigError(
                f"There is no editor at {name}: it is neither a pipe nor a terminal",
                hint="An editor starts this command; docs/chat.md says how",
            )
    agent = ChatAgent(mode, model)
    reader, writer = await acp.stdio_streams()
    try:
        await acp.run_agent(agent, EditorPipes(reader, writer))  # type: ignore[arg-type]  # its protocol has unstable parts
    finally:
        await agent.close()


def _is_pipe(number: int) -> bool:
    """Whether one can wait for what comes or goes there; the loop hangs where one cannot."""
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number)


async def _stop(session: EditorSession) -> None:
    if session.turn is not None:
        session.turn.cancel()
        await asyncio.wait([session.turn])


async def _carry_out(session: EditorSession, command: str) -> str:
    """Carry out a slash command; returns what to say."""
    chat = session.opened.chat
    if command == "undo":
        changes = await session.opened.undo()
        names = ", ".join(code_span(one_line(name)) for name in changes.notebooks)
        return f"Took back the changes of {names}."
    left = [turn for turn in chat.turns if not turn.is_undone]
    if not left:
        return "No turn of this chat changed anything that is left."
    diff = await left[-1].diff(await chat.workspaces.get("agent"))
    return code_block(make_visible(diff), "diff")


def _read_prompt(session: EditorSession, blocks: list[Any]) -> tuple[str, list[str]]:
    """The text of a prompt; the files that it names are attached, and a notebook is opened.

    Beside it, what the person has not written: texts of pages and the like.
    """
    state, parts, is_open = session.opened.state, [], False
    notes: list[str] = []
    for block in blocks:
        if isinstance(block, schema.TextContentBlock):
            parts.append(block.text)
            continue
        resource = getattr(block, "resource", block)
        address = getattr(resource, "uri", "")
        place = resolve_file(address.partition("#")[0], state.cwd) if address else None
        text = getattr(resource, "text", None)
        if place is not None:
            inside = f"{state.cwd.rstrip('/')}/"
            name = place.removeprefix(inside)
            name = f"./{name}" if name.startswith("#") else name  # a file, and not a tool
            state.attach(name)
            # The name of a file may read like a sentence, or name a tool.
            is_plain = quote_path(name.replace(" ", "_"), len(name)) == name.replace(" ", "_")
            mention = f'@"{name}"' if " " in name else f"@{name}"
            parts.append(mention if is_plain else "(a file that is attached)")
            if is_notebook(place) and not is_open:  # the editor has no other word for it
                state.open, state.selected, is_open = name, (), True
        elif isinstance(text, str):
            parts.append("(a text that is attached)")
            lines = make_readable(text).split("\n")
            notes.append(build_fence(choose_number([address, text]), address, lines))
        else:
            parts.append("(something was attached that this assistant cannot read)")
    return " ".join(parts), notes


def _start(session: EditorSession, call: ToolCall) -> schema.ToolCallStart:
    tool, place = session.opened.find_target(call)
    path = resolve_file(place, session.opened.state.cwd) if place else None
    title = (tool.title if tool is not None else "") or call.name
    return acp.start_tool_call(
        call.id,
        one_line(title)[:_LONGEST_TITLE],
        kind=_KINDS[find_effect(tool, call.arguments)] if tool is not None else "other",
        status="in_progress",
        locations=[schema.ToolCallLocation(path=path)] if path else None,
        raw_input=make_all_visible(dict(call.arguments)),
    )


def _end(call: ToolCall, answer: ToolResult) -> schema.ToolCallProgress:
    content = [_show_literally(answer.plain_text)]
    content += [
        acp.tool_content(acp.image_block(b64encode(image.data).decode(), image.mime))
        for image in answer.images
    ]
    return acp.update_tool_call(
        call.id, status="failed" if answer.is_error else "completed", content=content
    )


def _modes(session: EditorSession) -> schema.SessionModeState:
    return schema.SessionModeState(
        current_mode_id=session.opened.state.mode,
        available_modes=[
            schema.SessionMode(id=mode, name=mode.capitalize(), description=_ABOUT_MODES[mode])
            for mode in MODES
        ],
    )


def _request_error(error: CellwrightError) -> acp.RequestError:
    words = f"{error.message}. {error.hint}." if error.hint else error.message
    return acp.RequestError(-32603, one_line(words), {"code": error.code})


def _show_literally(text: str) -> Any:
    """Text from outside in a block of code: editors draw Markdown, which can hide and pretend."""
    return acp.tool_content(acp.text_block(code_block(make_visible(text))))
