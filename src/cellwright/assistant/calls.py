"""The tool calls of one turn: refused, confirmed by the person, carried out, and recorded."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cellwright.assistant.changes import read_edit
from cellwright.assistant.permissions import describe_operation, find_effect, find_kind
from cellwright.errors import CellwrightError
from cellwright.tools.errors import describe_error
from cellwright.tools.native.running import describe_run_error
from cellwright.tools.page import Page
from cellwright.tools.profiles.plain_files import is_notebook
from cellwright.tools.tool import ToolCaller, ToolResult
from cellwright.tools.wording import run_facts, shorten, show_run, summarize_run
from cellwright.workspace.runs.execution import Executions

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.assistant.availability import ToolOffer
    from cellwright.assistant.changes import ChangeSet
    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.models.model import ToolCall
    from cellwright.assistant.permissions import Confirm, Kind, Permissions
    from cellwright.kernel.session import Ask
    from cellwright.tools.tool import Tool
    from cellwright.workspace.workspace import AsyncWorkspace


_log = logging.getLogger("cellwright.assistant")
_TOKENS = 8000


@dataclass(slots=True, kw_only=True)
class TurnCalls:
    """Carries out the calls of one turn."""

    workspace: AsyncWorkspace
    offer: ToolOffer
    guard: CallGuard
    context: NotebookContext | None
    changes: ChangeSet
    ask: Ask | None = None
    progress: Callable[[dict[str, Any]], object] | None = None

    async def perform(self, call: ToolCall) -> ToolResult:
        """Carry out one call; whatever goes wrong is a result."""
        tool = self.offer.find(call.name)
        if tool is None:
            refusal = self.offer.refuse(call.name)
            return refusal or await self._call(call)
        where = CallTarget.of(
            self.workspace, tool, call, self.context.path if self.context else None
        )
        try:
            refusal = await self.guard.check(tool, call, where)
        except CellwrightError as error:
            return describe_error(error)
        if refusal is not None:
            return refusal
        task = asyncio.ensure_future(self._call(call))
        try:
            result = await asyncio.shield(task)
        except asyncio.CancelledError:
            if find_effect(tool, call.arguments) == "run":
                task.cancel()
            # An edit that is under way will be made: it belongs to the turn, and to its undo.
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                self._record(where, task.result())
            raise
        self._record(where, result)
        return result

    async def _call(self, call: ToolCall) -> ToolResult:
        caller = ToolCaller(
            workspace=self.workspace,
            ask=self.ask,
            progress=self.progress,
            active=self.context.path if self.context else None,
            selected=self.context.selection if self.context else {},
        )
        try:
            result = await self.offer.toolbox.call(call.name, call.arguments, caller)
            return await wait_for_run(result, self.workspace)
        except CellwrightError as error:
            return describe_error(error)
        except Exception as error:  # noqa: BLE001  # a bug in one tool must not end the chat
            _log.exception("%s failed", call.name)
            return _refusal(shorten(f"{type(error).__name__}: {error}"), "INTERNAL_ERROR")

    def _record(self, where: CallTarget, result: ToolResult) -> None:
        made = read_edit(relate_path(where.path, self.workspace.cwd), result.data)
        if made is not None:
            self.changes.edits.append(made)


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The notebook that a call is about; `real` is None if it cannot be opened."""

    workspace: AsyncWorkspace
    path: str
    real: str | None

    @classmethod
    def of(
        cls, workspace: AsyncWorkspace, tool: Tool, call: ToolCall, active: str | None
    ) -> CallTarget:
        """The notebook that is named, else the active one; the folder for tools without one."""
        named = call.arguments.get("path") or call.arguments.get("notebook_path")
        if not named and "path" in tool.model.model_fields:
            named = active
        if not isinstance(named, str):
            return cls(workspace, "", workspace.cwd)
        try:
            return cls(workspace, named, workspace.open(named).real)
        except (CellwrightError, ValueError):
            return cls(workspace, named, None)

    async def is_overwritten_by(self, tool: Tool, call: ToolCall) -> bool:
        """Whether the call replaces all that a file which is not a notebook holds."""
        content = call.arguments.get("content")
        if self.real is None or "content" not in tool.model.model_fields or is_notebook(self.real):
            return False
        try:
            held = await self.workspace.open(self.path).raw()
        except (CellwrightError, ValueError):
            return False  # there is none, or the tool itself says what is wrong
        return (
            bool(held) and isinstance(content, str) and held != content.encode("utf-8", "replace")
        )

    async def notebook(self) -> Any:
        """The notebook, if it can be read."""
        try:
            return await self.workspace.open(self.path).load() if self.path else None
        except (CellwrightError, ValueError):
            return None


@dataclass(slots=True, kw_only=True)
class CallGuard:
    """What a chat may do without asking.

    `confirm` asks the person; without it, what needs a confirmation is refused. `allowed` is what
    the person has allowed for the rest of the chat.
    """

    permissions: Permissions
    confirm: Confirm | None = None
    allowed: set[tuple[Kind, str]] = field(default_factory=set)

    async def check(self, tool: Tool, call: ToolCall, where: CallTarget) -> ToolResult | None:
        """Refuse a call with a result, or return None to let it pass."""
        kind = find_kind(tool, call.arguments)
        if kind is None and await where.is_overwritten_by(tool, call):
            kind = "overwrite"
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


def relate_path(name: str, cwd: str) -> str:
    """A path by its name inside a folder, if it is inside, as pages and people know it."""
    clean = os.path.normpath(os.path.join(cwd, name))  # noqa: PTH118
    return clean.removeprefix(f"{cwd.rstrip('/')}/") if name else name


async def wait_for_run(result: ToolResult, workspace: AsyncWorkspace) -> ToolResult:
    """The result at the end of its run; the same, if it has no run that has not ended.

    Tools answer within a minute, since other clients give up then. Here a person sees that cells
    run, and can stop them: cancelling the wait stops the run.
    """
    run = result.data.get("run")
    if not isinstance(run, str) or result.data.get("done", True):
        return result
    try:
        found = await workspace.attach(run)
    except asyncio.CancelledError:
        await workspace.cancel(run)
        raise
    if found.error is not None:
        return describe_run_error(found.error, run)
    executions = found.answer if isinstance(found.answer, Executions) else Executions()
    page = Page(_TOKENS)
    page.head(summarize_run(executions))
    await asyncio.to_thread(show_run, page, executions)  # it may decode pictures
    data = {**result.data, "done": True, "executions": run_facts(executions)}
    return page.to_result(
        data, is_error=any(each.is_failure or each.is_unsaved for each in executions)
    )


def _refusal(text: str, code: str) -> ToolResult:
    return ToolResult(f"error: {code}: {text}.", {"code": code}, is_error=True)
