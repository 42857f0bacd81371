"""The tool calls of one turn: refused, put to the person, carried out, and on record."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cellwright.assistant.changes import edited_by
from cellwright.assistant.following import followed
from cellwright.assistant.permissions import describe_operation, effect_of, kind_of
from cellwright.errors import CellwrightError
from cellwright.tools.tool import Answer, Caller
from cellwright.tools.toolbox import failure
from cellwright.tools.words import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.assistant.availability import Offer
    from cellwright.assistant.changes import ChangeSet
    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.models import ToolCall
    from cellwright.assistant.permissions import Confirm, Kind, Permissions
    from cellwright.kernel.session import Ask
    from cellwright.tools.tool import Tool
    from cellwright.workspace.workspace import AsyncWorkspace

_log = logging.getLogger("cellwright.assistant")


@dataclass(slots=True, kw_only=True)
class Guard:
    """What a chat may do without asking.

    `confirm` asks the person; without it nobody can be asked, and what needs a word is refused.
    `allowed` is what they have allowed for the rest of the chat.
    """

    permissions: Permissions
    confirm: Confirm | None = None
    allowed: set[tuple[Kind, str]] = field(default_factory=set)

    async def passes(self, tool: Tool, call: ToolCall, where: Where) -> Answer | None:
        """Let a call pass, or answer it."""
        kind = kind_of(tool, call.arguments)
        if kind is None or where.real is None:
            return None  # a notebook that cannot be opened is refused by the tool itself
        key = (kind, where.real)
        if key in self.allowed or self.permissions.allows(*key):
            return None
        operation = describe_operation(
            tool, call.arguments, kind, where.path, await where.notebook()
        )
        if self.confirm is None:
            return _refusal(f"{operation.words} Nobody is there to say yes", "NOT_CONFIRMED")
        decision = await self.confirm(operation)
        if decision == "chat":
            self.allowed.add(key)
        elif decision == "notebook":
            self.permissions.grant(*key)
        elif decision != "once":
            said = f"{operation.words} The person said no; do not try it in another way"
            return _refusal(said, "DECLINED")
        return None


@dataclass(frozen=True, slots=True)
class Where:
    """The notebook that a call is about; `real` is None if it cannot be opened."""

    workspace: AsyncWorkspace
    path: str
    real: str | None

    @classmethod
    def of(cls, workspace: AsyncWorkspace, tool: Tool, call: ToolCall, active: str | None) -> Where:
        """The one that is named, else the active one; the folder itself for tools without one."""
        named = call.arguments.get("path") or call.arguments.get("notebook_path")
        if not named and "path" in tool.model.model_fields:
            named = active
        if not isinstance(named, str):
            return cls(workspace, "", workspace.cwd)
        try:
            return cls(workspace, named, workspace.open(named).real)
        except (CellwrightError, ValueError):
            return cls(workspace, named, None)

    async def notebook(self) -> Any:
        """What is in it, if it can be read."""
        try:
            return await self.workspace.open(self.path).load() if self.path else None
        except (CellwrightError, ValueError):
            return None


@dataclass(slots=True, kw_only=True)
class Calls:
    """Carries out the calls of one turn."""

    workspace: AsyncWorkspace
    offer: Offer
    guard: Guard
    context: NotebookContext | None
    changes: ChangeSet
    ask: Ask | None = None
    progress: Callable[[dict[str, Any]], object] | None = None

    async def perform(self, call: ToolCall) -> Answer:
        """Carry out one call; whatever goes wrong is an answer."""
        tool = self.offer.find(call.name)
        if tool is None:
            refusal = self.offer.refuse(call.name)
            return refusal or await self._call(call)
        where = Where.of(self.workspace, tool, call, self.context.path if self.context else None)
        try:
            refusal = await self.guard.passes(tool, call, where)
        except CellwrightError as error:
            return failure(error)
        if refusal is not None:
            return refusal
        task = asyncio.ensure_future(self._call(call))
        try:
            answer = await asyncio.shield(task)
        except asyncio.CancelledError:
            if effect_of(tool, call.arguments) == "run":
                task.cancel()
            # An edit that is under way will be made: it belongs to the turn, and to its undo.
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                self._note(where, task.result())
            raise
        self._note(where, answer)
        return answer

    async def _call(self, call: ToolCall) -> Answer:
        caller = Caller(
            workspace=self.workspace,
            ask=self.ask,
            progress=self.progress,
            active=self.context.path if self.context else None,
            selected=self.context.selection if self.context else {},
        )
        try:
            answer = await self.offer.toolbox.call(call.name, call.arguments, caller)
            return await followed(answer, self.workspace)
        except CellwrightError as error:
            return failure(error)
        except Exception as error:  # noqa: BLE001  # a bug in one tool must not end the chat
            _log.exception("%s failed", call.name)
            return _refusal(one_line(f"{type(error).__name__}: {error}"), "INTERNAL_ERROR")

    def _note(self, where: Where, answer: Answer) -> None:
        made = edited_by(where.path, answer.data)
        if made is not None:
            self.changes.edits.append(made)


def _refusal(text: str, code: str) -> Answer:
    return Answer(f"error: {code}: {text}.", {"code": code}, is_error=True)
