"""`Chat`: from a request to prompts, tools, calls of a model, calls of tools, and an answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from cellwright.assistant.availability import offer_tools, render_references
from cellwright.assistant.calls import Calls, Guard
from cellwright.assistant.changes import ChangeSet
from cellwright.assistant.detection import detect
from cellwright.assistant.events import Begun, Called, Done, Returned, Said
from cellwright.assistant.models import Message, ModelRequest, Situation, TextDelta, Usage
from cellwright.assistant.permissions import Permissions
from cellwright.assistant.prompt_files import PromptFolder
from cellwright.assistant.proposals import find_proposal
from cellwright.assistant.rendering import render_context
from cellwright.assistant.replies import Reply, closing, unreadable, whole
from cellwright.errors import NothingToUndo
from cellwright.tools.profiles.positron import POSITRON

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Sequence
    from typing import Any

    from cellwright.assistant.availability import Offer
    from cellwright.assistant.detection import Detection
    from cellwright.assistant.events import ChatEvent
    from cellwright.assistant.models import Model
    from cellwright.assistant.permissions import Confirm
    from cellwright.assistant.proposals import Proposal
    from cellwright.assistant.requests import ChatRequest
    from cellwright.assistant.workspaces import Workspaces
    from cellwright.kernel.session import Ask
    from cellwright.tools.tool import Tool

_log = logging.getLogger("cellwright.assistant")

MOST_STEPS = 25
"""Calls of the model in one turn."""


class Chat:
    """One conversation.

    Args:
        workspaces: where notebooks are read, edited and run, by mode.
        model: who answers; may be changed between turns.
        tools: all that some request could have.
        confirm: puts to the person what runs or deletes something; without it that is refused.
        permissions: what has been allowed for good.
        prompts: the files of the system prompt.
        edit_mode_edits: whether mode `edit` may change notebooks.
        context_in_system_prompt: whether a notebook's state stands in the system prompt; by
            default it is a message of its own, so that models can cache what is before it.
        ask: answers `input()` of cells.
        progress: gets what happens while cells run.
    """

    def __init__(
        self,
        workspaces: Workspaces,
        model: Model,
        *,
        tools: Sequence[Tool] = POSITRON,
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
        self.tools = tuple(tools)
        self.guard = Guard(permissions=permissions or Permissions(), confirm=confirm)
        self.prompts = prompts or PromptFolder()
        self.edit_mode_edits = edit_mode_edits
        self.context_in_system_prompt = context_in_system_prompt
        self.ask = ask
        self.progress = progress
        self.history: list[Message] = []
        self.turns: list[ChangeSet] = []
        self.usage = Usage()
        self._turn = asyncio.Lock()

    async def look(self, request: ChatRequest) -> tuple[Detection, Offer]:
        """What a request is about and which tools it has, before anything is sent."""
        workspace = await self.workspaces.get(request.mode)
        detection = await detect(request, workspace)
        offer = offer_tools(
            request,
            self.tools,
            has_notebook=detection.context is not None,
            edit_mode_edits=self.edit_mode_edits,
        )
        return detection, offer

    async def send(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Answer a request, one event at a time.

        Whoever leaves before the end should close the generator (`contextlib.aclosing`).
        A turn that is broken off keeps what was done in it: its edits can be undone as any other.
        Whatever the model raises is raised here.
        """
        async with self._turn:
            changes = ChangeSet(request.prompt)
            turn: list[Message] = []
            try:
                async with contextlib.aclosing(self._answer(request, changes, turn)) as events:
                    async for event in events:
                        yield event
            finally:
                self.history += whole(turn)
                if changes.edits:
                    self.turns.append(changes)

    async def accept(self, proposal: Proposal) -> ChangeSet:
        """Make what was proposed for a cell its source; `undo` takes that back, too.

        Raises:
            Conflict: the cell has been changed since; it stays as it is.
        """
        changes = await proposal.accept(await self.workspaces.get("agent"))
        if changes.edits:
            self.turns.append(changes)
        return changes

    async def undo(
        self, changes: ChangeSet | None = None, cells: Collection[str] | None = None
    ) -> ChangeSet:
        """Take back the edits of a turn; of the newest that has any left, by default.

        Args:
            changes: those of the turn.
            cells: only what was done to these cells.

        Raises:
            NothingToUndo: there is none.
            Conflict: somebody has changed one of the cells since; nothing was taken back.
        """
        if changes is None:
            changes = next((turn for turn in reversed(self.turns) if not turn.is_undone), None)
        if changes is None:
            raise NothingToUndo("undo: no turn of this chat changed anything")
        # The person's own wish, so that the mode of their next request does not matter.
        await changes.undo(await self.workspaces.get("agent"), cells)
        return changes

    async def _answer(
        self, request: ChatRequest, changes: ChangeSet, turn: list[Message]
    ) -> AsyncGenerator[ChatEvent, None]:
        detection, offer = await self.look(request)
        context = detection.context
        mode = "inline" if request.location == "cell" else request.mode
        system = self.prompts.system_prompt(
            mode, has_notebook=context is not None, may_edit=self.edit_mode_edits
        )
        yield Begun(
            mode=request.mode,
            location=request.location,
            notebook=context.path if context else None,
            reason=detection.reason,
            tools=offer.names,
            tool_references=offer.references,
            prompts=system.names,
        )
        state = render_context(context) if context else ""
        head = self._head(system.text, state)
        told = render_references(offer.references)
        asked = f"{request.prompt}\n\n{told}" if told else request.prompt
        turn.append(Message(role="user", text=asked))
        calls = Calls(
            workspace=await self.workspaces.get(request.mode),
            offer=offer,
            guard=self.guard,
            context=context,
            changes=changes,
            ask=self.ask,
            progress=self.progress,
        )
        situation = Situation(request, context, detection.reason, offer.references)
        table = tuple(offer.toolbox.table())
        usage = Usage()
        for _ in range(MOST_STEPS):
            messages = (*head, *self.history, *turn)
            reply = Reply()
            stream = self.model.respond(ModelRequest(messages, table, situation))
            async with closing(stream):
                async for part in stream:
                    reply.take(part)
                    if isinstance(part, TextDelta):
                        yield Said(part.text)
            usage += reply.usage
            self.usage += reply.usage
            turn.append(reply.message())
            if not reply.calls:
                proposal = None
                if request.location == "cell":
                    proposal = find_proposal(reply.text, context, request.prompt)
                yield Done(
                    "answered", reply.text, changes if changes.edits else None, proposal, usage
                )
                return
            for call in reply.calls:
                yield Called(call)
                answer = unreadable(call) if call.problem else await calls.perform(call)
                turn.append(
                    Message(
                        role="tool",
                        text=answer.text,
                        call_id=call.id,
                        images=answer.images,
                        is_error=answer.is_error,
                        data=answer.data,
                    )
                )
                yield Returned(call, answer)
        _log.warning("a turn was ended after %d calls of the model", MOST_STEPS)
        yield Done("limit", "", changes if changes.edits else None, usage=usage)

    def _head(self, system: str, state: str) -> list[Message]:
        if state and self.context_in_system_prompt:
            return [Message(role="system", text=f"{system}\n\n{state}")]
        head = [Message(role="system", text=system)]
        return [*head, Message(role="user", text=state)] if state else head
