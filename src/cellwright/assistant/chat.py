"""`Chat`: one conversation. A request becomes prompts, calls of a model and of tools, and an answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from cellwright.assistant.availability import offer_tools, render_references
from cellwright.assistant.calls import CallGuard, TurnCalls
from cellwright.assistant.changes import ChangeSet, find_proposal
from cellwright.assistant.context import render_context
from cellwright.assistant.models.model import (
    ChatMessage,
    ModelRequest,
    NativeReply,
    Situation,
    TextDelta,
    ToolCall,
    Usage,
)
from cellwright.assistant.permissions import Permissions
from cellwright.assistant.prompt_files import PromptFolder
from cellwright.assistant.requests import attached_plain_files, detect
from cellwright.errors import NothingToUndo
from cellwright.tools.profiles.positron import POSITRON
from cellwright.tools.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

    from cellwright.assistant.availability import ToolOffer, ToolReference
    from cellwright.assistant.changes import Proposal
    from cellwright.assistant.models.model import Model, ModelEvent
    from cellwright.assistant.permissions import Confirm
    from cellwright.assistant.requests import ChatRequest, Detection
    from cellwright.kernel.session import Ask
    from cellwright.tools.tool import Tool
    from cellwright.workspace.api.requests import Mode
    from cellwright.workspace.workspace import AsyncWorkspace

    Connect = Callable[[Mode], Awaitable[AsyncWorkspace]]
    Close = Callable[[], Awaitable[object]]


class ChatWorkspaces:
    """The workspaces of one chat; `cellwright.app.workspaces.open_chat_workspaces` makes them.

    Args:
        connect: makes the workspace of a mode.
        close: ends what these workspaces share.
    """

    def __init__(self, connect: Connect, close: Close | None = None) -> None:
        self._connect = connect
        self._close = close
        self._open: dict[Mode, AsyncWorkspace] = {}
        self._turn = asyncio.Lock()

    async def get(self, mode: Mode) -> AsyncWorkspace:
        """The workspace of a mode, made when it is first asked for."""
        async with self._turn:
            if mode not in self._open:
                self._open[mode] = await self._connect(mode)
            return self._open[mode]

    async def close(self) -> None:
        """Close the workspaces; kernels of this process end."""
        for workspace in self._open.values():
            await workspace.close()
        self._open.clear()
        if self._close is not None:
            await self._close()


_log = logging.getLogger("cellwright.assistant")

MOST_STEPS = 25
"""Calls of the model in one turn."""

Ending: TypeAlias = Literal["answered", "limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStartEvent:
    """What a request is about, and what the model has.

    `notebook` is None while notebook mode is off, and `reason` says why it is.
    """

    kind: ClassVar[str] = "begun"
    mode: str
    location: str
    notebook: str | None
    reason: str
    tools: list[str]
    tool_references: tuple[ToolReference, ...]
    prompts: list[str]

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "event": self.kind,
            "mode": self.mode,
            "location": self.location,
            "notebook": self.notebook,
            "reason": self.reason,
            "tools": self.tools,
            "tool_references": [
                {"name": each.name, "tool": each.tool and each.tool.name, "note": each.note}
                for each in self.tool_references
            ],
            "prompts": self.prompts,
        }


@dataclass(frozen=True, slots=True)
class TextEvent:
    """A piece of what the model says."""

    kind: ClassVar[str] = "text"
    text: str

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {"event": self.kind, "text": self.text}


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A call of a tool by the model."""

    kind: ClassVar[str] = "tool_call"
    call: ToolCall

    def to_json(self) -> dict[str, Any]:
        """As data."""
        call = self.call
        return {
            "event": self.kind,
            "id": call.id,
            "name": call.name,
            "arguments": dict(call.arguments),
        }


@dataclass(frozen=True, slots=True)
class ToolResultEvent:
    """The result of a tool call."""

    kind: ClassVar[str] = "tool_result"
    call: ToolCall
    answer: ToolResult

    def to_json(self) -> dict[str, Any]:
        """As data; pictures only by their kind and size."""
        images = [
            {"mime": each.mime, "width": each.width, "height": each.height}
            for each in self.answer.images
        ]
        return {
            "event": self.kind,
            "id": self.call.id,
            "name": self.call.name,
            "text": self.answer.text,
            "data": self.answer.data,
            "is_error": self.answer.is_error,
            "images": images,
        }


@dataclass(frozen=True, slots=True)
class TurnEndEvent:
    """The end of a turn.

    `changes` has all its edits, if it made any. `proposal` is the new source that an answer
    inside a cell proposes for that cell. `usage` is what all calls of the model in it took.
    """

    kind: ClassVar[str] = "done"
    ending: Ending = "answered"
    text: str = ""
    changes: ChangeSet | None = None
    proposal: Proposal | None = None
    usage: Usage = field(default_factory=Usage)

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "event": self.kind,
            "ending": self.ending,
            "text": self.text,
            "changes": self.changes and self.changes.to_json(),
            "proposal": self.proposal and self.proposal.to_json(),
            "usage": self.usage.to_json(),
        }


ChatEvent: TypeAlias = TurnStartEvent | TextEvent | ToolCallEvent | ToolResultEvent | TurnEndEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """What a turn begins with.

    The model is sent `head`, the `history` of the chat and the `question`; then, with every call,
    what the turn has added to them.
    """

    detection: Detection
    offer: ToolOffer
    prompts: list[str]
    tools: tuple[dict[str, Any], ...]
    head: tuple[ChatMessage, ...]
    history: tuple[ChatMessage, ...]
    question: ChatMessage

    def build_call(self, turn: Sequence[ChatMessage] = ()) -> ModelRequest:
        """Make a call of the model: the first one, unless the turn has messages already."""
        detection, offer = self.detection, self.offer
        situation = Situation(offer.request, detection.context, detection.reason, offer.references)
        messages = (*self.head, *self.history, *(turn or (self.question,)))
        return ModelRequest(messages, self.tools, situation)


class Chat:
    """One conversation.

    Args:
        workspaces: where notebooks are read, edited and run, by mode.
        model: answers; may be changed between turns.
        tools: all that some request could have.
        file_tools: tools for plain files, such as `FILE_TOOLS`. While a request is about a
            notebook, those that read are there if a plain file is attached, and no others, so
            that a notebook is not changed as a file.
        confirm: asks the person before something is run or deleted; without it that is refused.
        permissions: what has been allowed for good.
        prompts: the files of the system prompt.
        edit_mode_edits: whether mode `edit` may change notebooks.
        context_in_system_prompt: whether the state of the notebook is in the system prompt; by
            default it is a message of its own, so that models can cache what is before it.
        ask: answers `input()` of cells.
        progress: gets what happens while cells run.
    """

    def __init__(
        self,
        workspaces: ChatWorkspaces,
        model: Model,
        *,
        tools: Sequence[Tool] = POSITRON,
        file_tools: Sequence[Tool] = (),
        confirm: Confirm | None = None,
        permissions: Permissions | None = None,
        prompts: PromptFolder | None = None,
        edit_mode_edits: bool = False,
        context_in_system_prompt: bool = False,
        ask: Ask | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self.workspaces = workspaces
        self.model = model
        self.tools = (*tools, *file_tools)
        self._notebook_tools = tuple(tools)
        self._reading_tools = tuple(tool for tool in file_tools if "read-only" in tool.tags)
        self.guard = CallGuard(permissions=permissions or Permissions(), confirm=confirm)
        self.prompts = prompts or PromptFolder()
        self.edit_mode_edits = edit_mode_edits
        self.context_in_system_prompt = context_in_system_prompt
        self.ask = ask
        self.progress = progress
        self.history: list[ChatMessage] = []
        self.unfinished: list[ChatMessage] = []  # the messages of the turn that runs
        self.turns: list[ChangeSet] = []
        self.usage = Usage()
        self._turn = asyncio.Lock()

    async def look(self, request: ChatRequest) -> tuple[Detection, ToolOffer]:
        """What a request is about and which tools it has, before anything is sent."""
        workspace = await self.workspaces.get(request.mode)
        detection = await detect(request, workspace)
        has_notebook = detection.context is not None
        tools: Sequence[Tool] = self.tools
        if has_notebook:
            has_files = bool(attached_plain_files(request, workspace.cwd))
            tools = (*self._notebook_tools, *(self._reading_tools if has_files else ()))
        offer = offer_tools(
            request,
            tools,
            has_notebook=has_notebook,
            edit_mode_edits=self.edit_mode_edits,
        )
        return detection, offer

    async def plan(self, request: ChatRequest) -> TurnPlan:
        """What a turn begins with: what it is about, and what the model is sent first."""
        detection, offer = await self.look(request)
        context = detection.context
        mode = "inline" if request.location == "cell" else request.mode
        system = self.prompts.system_prompt(
            mode, has_notebook=context is not None, may_edit=self.edit_mode_edits
        )
        state = render_context(context) if context else ""
        references = render_references(offer.references)
        asked = "\n\n".join(filter(None, (request.prompt, *request.notes, references)))
        return TurnPlan(
            detection=detection,
            offer=offer,
            prompts=system.names,
            tools=tuple(offer.toolbox.table()),
            head=tuple(self._head(system.text, state)),
            history=tuple(self.history),
            question=ChatMessage(role="user", text=asked),
        )

    async def send(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Answer a request, one event at a time.

        To leave before the end, close the generator (`contextlib.aclosing`). Edits of a turn that
        was broken off can be undone as any other. What the model raises is raised here.
        """
        async with self._turn:
            changes = ChangeSet(request.prompt)
            self.turns.append(changes)
            try:
                async with contextlib.aclosing(self._answer(request, changes)) as events:
                    async for event in events:
                        yield event
            finally:
                self.history += drop_unanswered(self.unfinished)
                self.unfinished = []
                if not changes.edits:
                    self.turns[:] = [each for each in self.turns if each is not changes]

    async def accept(self, proposal: Proposal) -> ChangeSet:
        """Make a proposal the source of its cell; `undo` takes that back, too.

        Raises:
            Conflict: the cell was changed since; it stays as it is.
        """
        changes = await proposal.accept(await self.workspaces.get("agent"))
        if changes.edits:
            self.turns.append(changes)
        return changes

    def find_newest_changes(self) -> ChangeSet | None:
        """The edits of the newest turn that has any left."""
        return next((turn for turn in reversed(self.turns) if not turn.is_undone), None)

    async def undo(
        self, changes: ChangeSet | None = None, cells: Collection[str] | None = None
    ) -> ChangeSet:
        """Take back the edits of a turn; of the newest that has any left, by default.

        Args:
            changes: the edits of the turn.
            cells: only what was done to these cells.

        Raises:
            NothingToUndo: there is none.
            Conflict: one of the cells was changed since; nothing was taken back.
        """
        if changes is None:
            changes = self.find_newest_changes()
        if changes is None:
            raise NothingToUndo("undo: no turn of this chat changed anything")
        # The person asks for it, so that the mode of a request does not matter.
        await changes.undo(await self.workspaces.get("agent"), cells)
        return changes

    async def _answer(
        self, request: ChatRequest, changes: ChangeSet
    ) -> AsyncGenerator[ChatEvent, None]:
        plan = await self.plan(request)
        context, offer, turn = plan.detection.context, plan.offer, self.unfinished
        yield TurnStartEvent(
            mode=request.mode,
            location=request.location,
            notebook=context.path if context else None,
            reason=plan.detection.reason,
            tools=offer.names,
            tool_references=offer.references,
            prompts=plan.prompts,
        )
        turn.append(plan.question)
        calls = TurnCalls(
            workspace=await self.workspaces.get(request.mode),
            offer=offer,
            guard=self.guard,
            context=context,
            changes=changes,
            ask=self.ask,
            progress=self.progress,
        )
        usage = Usage()
        for _ in range(MOST_STEPS):
            reply = ModelReply()
            stream = self.model.respond(plan.build_call(turn))
            async with close_stream(stream):
                async for part in stream:
                    reply.take(part)
                    if isinstance(part, TextDelta):
                        yield TextEvent(part.text)
            usage += reply.usage
            self.usage += reply.usage
            turn.append(reply.message())
            if not reply.calls:
                proposal = None
                if request.location == "cell":
                    proposal = find_proposal(reply.text, context, request.prompt)
                yield TurnEndEvent(
                    "answered", reply.text, changes if changes.edits else None, proposal, usage
                )
                return
            for call in reply.calls:
                yield ToolCallEvent(call)
                result = describe_unreadable(call) if call.problem else await calls.perform(call)
                turn.append(_result_message(call, result))
                yield ToolResultEvent(call, result)
        _log.warning("a turn was ended after %d calls of the model", MOST_STEPS)
        yield TurnEndEvent("limit", "", changes if changes.edits else None, usage=usage)

    def _head(self, system: str, state: str) -> list[ChatMessage]:
        if state and self.context_in_system_prompt:
            return [ChatMessage(role="system", text=f"{system}\n\n{state}")]
        head = [ChatMessage(role="system", text=system)]
        return [*head, ChatMessage(role="user", text=state)] if state else head


@dataclass(slots=True)
class ModelReply:
    """What a model has answered so far."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    native: NativeReply | None = None

    def take(self, event: ModelEvent) -> None:
        """Add what came."""
        if isinstance(event, TextDelta):
            self.text += event.text
        elif isinstance(event, ToolCall):
            self.calls.append(event)
        elif isinstance(event, Usage):
            self.usage += event
        else:
            self.native = event

    def message(self) -> ChatMessage:
        """As a message of the conversation."""
        return ChatMessage(
            role="assistant", text=self.text, calls=tuple(self.calls), native=self.native
        )


@contextlib.asynccontextmanager
async def close_stream(stream: AsyncIterator[ModelEvent]) -> AsyncIterator[None]:
    """Close a stream that is left before its end, since its answer may cost money."""
    try:
        yield
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _result_message(call: ToolCall, result: ToolResult) -> ChatMessage:
    return ChatMessage(
        role="tool",
        text=result.text,
        call_id=call.id,
        images=result.images,
        is_error=result.is_error,
        data=result.data,
        parts=result.parts,
        left_out=result.left_out,
        shown=result.plain_text if result.plain_text != result.text else "",
    )


def describe_unreadable(call: ToolCall) -> ToolResult:
    """The result of a call whose arguments cannot be read; the model may try again."""
    text = f"error: {call.name} was called with arguments that cannot be read; nothing was done"
    return ToolResult(f"{text}\n- {call.problem}", {"code": "INVALID_PARAMETERS"}, is_error=True)


def drop_unanswered(turn: list[ChatMessage]) -> list[ChatMessage]:
    """A turn without calls that have no result; models do not accept those."""
    answered = {message.call_id for message in turn if message.role == "tool"}
    kept = []
    for message in turn:
        if any(call.id not in answered for call in message.calls):
            break
        kept.append(message)
    return kept if len(kept) > 1 else []  # a question without an answer is asked again
