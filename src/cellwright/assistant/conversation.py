"""`Conversation`: a chat as its doors show it, with a numbered log of what happens in it.

A turn runs by itself, whether or not a page looks at it. Those who come later get the log, and then
what follows. What a turn needs to know from the person is a question in the log, which waits until
it is answered. The log is saved while a turn runs, so that a turn that was lost with its process is
known as lost, with what it had changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cellwright.assistant.calls import relate_path
from cellwright.assistant.changes import ChangeSet, TurnEdit, read_edit
from cellwright.assistant.chat import (
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEndEvent,
    TurnStartEvent,
    drop_unanswered,
)
from cellwright.assistant.permissions import DECISIONS, find_effect
from cellwright.assistant.transcripts import ASKED, TurnRecord, derive_log
from cellwright.errors import CellwrightError, ChatBusy, InvalidEdit, NothingToUndo, WorkspaceError
from cellwright.journal.history import format_time
from cellwright.kernel.processes import is_running, make_mark
from cellwright.outputs.sanitize import make_all_visible, make_visible, one_line
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence

    from cellwright.assistant.chat import Chat, ChatEvent
    from cellwright.assistant.models.model import Model, ToolCall
    from cellwright.assistant.permissions import Decision, Operation
    from cellwright.assistant.requests import ChatRequest, ChatState
    from cellwright.assistant.transcripts import Transcript, Transcripts
    from cellwright.config.settings import Settings
    from cellwright.kernel.events import InputRequested
    from cellwright.tools.tool import Tool

Facts: TypeAlias = dict[str, Any]
Watcher: TypeAlias = "Callable[[str, Facts], object]"
"""Gets each `event` and `state` of a conversation, and `reset` if all of it is new."""

_log = logging.getLogger("cellwright.assistant")
_MOST_LOOKED_AT = 50  # changes of a notebook, for those of a turn that was lost
_CELL_NAMES = ("cellIds", "cells", "cellId", "cell", "cell_id", "cell_index")


class Conversation:
    """One chat, with all that belongs to it.

    Args:
        chat: answers requests.
        state: what is open, selected and attached.
        settings: the settings of its folder.
        transcript: the record of the chat.
        transcripts: where the record is saved; None if it is not.
    """

    def __init__(
        self,
        *,
        chat: Chat,
        state: ChatState,
        settings: Settings,
        transcript: Transcript,
        transcripts: Transcripts | None = None,
    ) -> None:
        self.chat = chat
        self.state = state
        self.settings = settings
        self.transcript = transcript
        self.transcripts = transcripts
        self.log: list[TurnRecord] = []
        self.running: TurnRecord | None = None
        self.notice: Callable[[str], object] = self._log_notice
        self._number = 0  # of the last event
        self._last_turn = 0
        self._task: asyncio.Task[None] | None = None
        self._watchers: list[Watcher] = []
        self._questions: dict[str, PendingQuestion] = {}
        self._call: tuple[str, float] | None = None  # the call at work, and when it began
        self._notebook: str | None = None  # that the running turn is about
        chat.progress = self._log_progress
        self.use_model(chat.model)

    @property
    def id(self) -> str:
        """The id of the chat."""
        return self.transcript.id

    @property
    def title(self) -> str:
        """The name that a person gave it, or the first question."""
        if self.transcript.name or not self.log:
            return self.transcript.name
        return " ".join(str(self.log[0].asked["prompt"]).split())[:200]

    @property
    def is_outdated(self) -> bool:
        """Whether another program has saved this chat since."""
        store, saved = self.transcripts, self.transcript.saved
        return bool(store and saved and not self.running and 0 != store.saved_at(self.id) != saved)

    # -- watching -------------------------------------------------------------------------------

    def snapshot(self) -> Facts:
        """All that has happened; `n` is the number of the last event."""
        return {
            "id": self.id,
            **self.describe(),
            "turns": [record.to_json() for record in self.log],
            "n": self._number,
        }

    def describe(self) -> Facts:
        """The title, the mode and the model now, and what runs."""
        return {
            "title": one_line(self.title),
            "mode": self.state.mode,
            "model": one_line(self.chat.model.name),
            "usage": self.chat.usage.to_json(),
            "running": self.running.number if self.running else None,
        }

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Let someone know of everything from now on; returns what ends it."""
        self._watchers.append(watcher)

        def leave() -> None:
            with contextlib.suppress(ValueError):
                self._watchers.remove(watcher)

        return leave

    def tell_state(self) -> None:
        """Tell those who watch what `describe` says now."""
        self._tell("state", self.describe())

    # -- turns ----------------------------------------------------------------------------------

    async def send(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Answer a request, one event at a time, as `Chat.send` does; the log has it, too.

        Raises:
            ChatBusy: a turn runs.
        """
        async with contextlib.aclosing(self._run(self._start(request), request)) as events:
            async for event in events:
                yield event

    def begin(self, request: ChatRequest, replaces: Sequence[int] = ()) -> int:
        """Begin to answer a request, and return the number of the turn, which runs by itself.

        Raises:
            ChatBusy: a turn runs.
        """
        record = self._start(request, replaces)
        self._task = asyncio.ensure_future(self._consume(record, request))
        return record.number

    async def stop(self) -> None:
        """Stop the turn that was begun, if it still runs; cells that it runs are interrupted."""
        task, record = self._task, self.running
        if task is None or task.done() or record is None:
            return
        task.cancel()
        await asyncio.wait([task])
        if not record.is_ended:  # it had not even begun
            self._end(record, {"event": "stopped"})

    async def wait(self) -> None:
        """Wait for the end of the turn that was begun."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def forget(self, turn: int) -> tuple[TurnRecord, list[int]]:
        """Forget a turn and all after it; their edits stay, and can be undone.

        Returns what was asked, and the numbers of these turns.
        """
        self.require_idle()
        record = self.find_turn(turn)
        at = self.log.index(record)
        gone = [each.number for each in self.log[at:]]
        del self.log[at:], self.chat.history[record.start :]
        return record, gone

    def find_turn(self, turn: object) -> TurnRecord:
        """A turn by its number."""
        for record in self.log:
            if record.number == turn:
                return record
        raise InvalidEdit(f"There is no turn {turn} in the chat {self.id}", hint="Open it again")

    def find_target(self, call: ToolCall) -> tuple[Tool | None, str | None]:
        """The tool of a call, and the file that it is about: the named one, or the notebook."""
        tool = next((each for each in self.chat.tools if each.name == call.name), None)
        named = call.arguments.get("path") or call.arguments.get("notebook_path")
        if isinstance(named, str):
            return tool, named
        needs_notebook = tool is not None and "requires-notebook" in tool.tags
        return tool, self._notebook if needs_notebook else None

    def require_idle(self) -> None:
        """Make sure that no turn runs."""
        if self.running is not None:
            raise ChatBusy(self.id)

    async def accept(self, turn: int | None = None) -> ChangeSet:
        """Make what a turn proposes the source of its cell; the last turn, by default.

        Raises:
            Conflict: the cell was changed since; it stays as it is.
        """
        self.require_idle()
        record = self.find_turn(turn if turn is not None else self._last_turn)
        if record.proposal is None:
            raise InvalidEdit(f"Turn {record.number} proposes nothing that is left to accept")
        changes = await self.chat.accept(record.proposal)
        record.changes, record.proposal = changes, None
        self._add(record, {"event": "accepted", "changes": changes.to_json()}, saves=True)
        return changes

    async def undo(
        self, turn: int | ChangeSet | None = None, cells: Collection[str] | None = None
    ) -> ChangeSet:
        """Take back the edits of a turn, or of the newest that has any left.

        Args:
            turn: its number, or its edits.
            cells: only what was done to these cells.

        Raises:
            NothingToUndo: there is none.
            Conflict: one of the cells was changed since; nothing was taken back.
        """
        self.require_idle()
        chosen = self.find_turn(turn).changes if isinstance(turn, int) else turn
        if turn is not None and chosen is None:
            raise NothingToUndo(f"undo: turn {turn} changed nothing")
        changes = await self.chat.undo(chosen, cells)
        record = next((each for each in self.log if each.changes is changes), None)
        self._add(record, {"event": "undone", "changes": changes.to_json()}, saves=True)
        return changes

    async def review(self, turn: int) -> str:
        """What a turn changed, as a diff."""
        changes = self.find_turn(turn).changes
        if changes is None:
            return ""
        return make_visible(await changes.diff(await self.chat.workspaces.get("agent")))

    # -- questions to the person ----------------------------------------------------------------

    def ask_watchers(self) -> None:
        """Let those who watch decide what needs a person; a turn waits until one of them does."""
        self.chat.guard.confirm = self._confirm
        self.chat.ask = self._ask_input

    def answer(self, question: str, answer: object) -> None:
        """Answer a question.

        Raises:
            WorkspaceError: it is not open.
            InvalidEdit: that is not one of the answers to it.
        """
        found = self._questions.get(question)
        if found is None or found.answer.done():
            raise WorkspaceError("The question is not open any more")
        if not isinstance(answer, str) or (found.options and answer not in found.options):
            raise InvalidEdit(
                "That is not an answer to the question",
                hint=f"One of {', '.join(found.options)}" if found.options else None,
            )
        found.answer.set_result(answer)

    async def _confirm(self, operation: Operation) -> Decision:
        options = [{"value": value, "title": title} for value, title in DECISIONS.items()]
        facts = {
            "kind": "confirm",
            "words": operation.words,
            "preview": operation.preview,
            "options": options,
            "password": False,
        }
        answer = await self._ask(facts, tuple(DECISIONS))
        return next((each for each in DECISIONS if each == answer), "no")

    async def _ask_input(self, request: InputRequested) -> str | None:
        facts = {
            "kind": "input",
            "words": str(request.prompt)[:500],
            "preview": "",
            "options": [],
            "password": bool(request.password),
        }
        return await self._ask(facts)

    async def _ask(self, facts: Facts, options: tuple[str, ...] = ()) -> str:
        record = self.running
        if record is None:
            raise WorkspaceError("No turn runs that could ask")
        name = f"{self.id}-{self._number + 1}"
        found = PendingQuestion(asyncio.get_running_loop().create_future(), options)
        self._questions[name] = found
        self._add(record, {"event": "question", "question": name, **facts})
        try:
            answer = await found.answer
        finally:
            del self._questions[name]
        shown = None if facts["password"] else answer
        self._add(record, {"event": "answered", "question": name, "answer": shown})
        return answer

    # -- the model, and the record --------------------------------------------------------------

    def use_model(self, model: Model) -> None:
        """Let another model answer from now on."""
        self.chat.model = model
        if hasattr(model, "notice"):
            model.notice = self._give_notice

    def _give_notice(self, text: str) -> None:
        self.notice(text)

    def rename(self, title: str) -> None:
        """Give the chat a title; an empty one is the first question again."""
        self.transcript.name = " ".join(title.split())[:200]
        self.save()
        self.tell_state()

    def update_transcript(self) -> Transcript:
        """Bring the transcript up to date and return it."""
        found, chat = self.transcript, self.chat
        found.model, found.mode = chat.model.name, self.state.mode
        found.desk = self.state.to_json()
        found.messages = [*chat.history, *drop_unanswered(chat.unfinished)]
        found.turns, found.usage = list(chat.turns), chat.usage
        found.log = [record.to_log(found.turns) for record in self.log]
        found.owner = make_mark() if self.running else ""
        return found

    def save(self) -> None:
        """Save the transcript, if there is something to save and it is wanted.

        If that fails, the chat continues without.
        """
        if self.transcripts is None or self.update_transcript().is_empty:
            return
        try:
            self.transcripts.save(self.transcript)
        except OSError as error:
            self.transcripts = None
            self.notice(f"The chat is not saved: {one_line(str(error))}")

    async def resume(self, transcript: Transcript) -> None:
        """Take an earlier chat up again, in place of this one.

        A turn that was lost with its process ends so, with all that it had changed.

        Raises:
            ChatBusy: a turn of it runs in another program.
        """
        self.require_idle()
        if transcript.owner and is_running(transcript.owner):
            raise ChatBusy(transcript.id, elsewhere=True)
        self.transcript, chat = transcript, self.chat
        chat.history[:] = transcript.messages
        chat.turns[:] = transcript.turns
        chat.usage = transcript.usage
        self.state.restore(transcript.desk)
        try:
            self.log = [TurnRecord.from_log(each, chat.turns) for each in transcript.log]
        except (LookupError, TypeError, ValueError) as error:
            _log.warning("the log of chat %s cannot be read: %s", transcript.id, error)
            self.log = []
        if not self.log:
            self.log = derive_log(transcript)
        self._last_turn = max((record.number for record in self.log), default=0)
        self._number = sum(len(record.events) for record in self.log)
        chat.turns[:] = [turn for turn in chat.turns if turn.edits]
        for record in self.log:
            if not record.is_ended:
                unknown = await self._find_edits(record, _find_open_call(record))
                self._end(record, {"event": "lost", "unknown": unknown})
        self._tell("reset", {})

    async def _find_edits(self, record: TurnRecord, call: Facts | None) -> Facts | None:
        """Add the edits of a call whose result was lost; returns the call if they are not known."""
        if call is None or call["effect"] != "edit" or not call["notebook"] or not call["started"]:
            return call
        workspace = await self.chat.workspaces.get("agent")
        try:
            entries = await workspace.open(call["notebook"]).log(limit=_MOST_LOOKED_AT)
        except (CellwrightError, ValueError) as error:
            _log.info("what a lost turn did is not known: %s", error)
            return call
        began = format_time(int(call["started"] * 1000))
        for entry in reversed(entries):
            cells = tuple(cell.handle for cell in entry.cells)
            is_ours = entry.actor == workspace.actor and entry.when >= began
            if is_ours and (not call["cells"] or set(cells) & set(call["cells"])):
                if record.changes is None:
                    record.changes = ChangeSet(str(record.asked["prompt"]))
                if all(turn is not record.changes for turn in self.chat.turns):
                    self.chat.turns.append(record.changes)
                record.changes.edits.append(TurnEdit(call["notebook"], entry.id, cells))
                break
        return None

    async def close(self) -> None:
        """Stop the turn that runs, and end what the chat has open."""
        await self.stop()
        await self.chat.workspaces.close()

    # -- inside ---------------------------------------------------------------------------------

    def _start(self, request: ChatRequest, replaces: Sequence[int] = ()) -> TurnRecord:
        self.require_idle()
        self._last_turn += 1
        asked = {
            "prompt": request.prompt,
            "files": list(self.state.files),
            "tools": list(self.state.tools),
            "cell": self.state.cell,
            "editor": request.editor
            and {
                "path": request.editor.path,
                "selected": list(request.editor.selected),
                "editing": request.editor.editing,
            },
        }
        record = TurnRecord(number=self._last_turn, asked=asked, start=len(self.chat.history))
        self.log.append(record)
        self.running, self._notebook = record, None
        shown = {name: asked[name] for name in ASKED}
        facts = {"event": "asked", "turn": record.number, **shown, "replaces": list(replaces)}
        self._add(record, facts, saves=True)
        self.tell_state()
        return record

    async def _consume(self, record: TurnRecord, request: ChatRequest) -> None:
        try:
            async for _ in self._run(record, request):
                pass
        except CellwrightError:
            pass  # the log has it
        except Exception:  # noqa: BLE001  # the log has it, and the chat continues
            _log.exception("a turn failed")

    async def _run(
        self, record: TurnRecord, request: ChatRequest
    ) -> AsyncGenerator[ChatEvent, None]:
        end: TurnEndEvent | None = None
        try:
            async with contextlib.aclosing(self.chat.send(request)) as events:
                async for event in events:
                    if record.changes is None and self.chat.turns:
                        record.changes = self.chat.turns[-1]
                    if isinstance(event, TurnEndEvent):
                        end = event  # once the chat has it in its history
                        continue
                    await self._log_event(record, event, request)
                    yield event
        except Exception as error:
            self._end(record, {"event": "failed", **_describe_failure(error)})
            raise
        except BaseException:  # the turn is stopped, or left
            self._end(record, {"event": "stopped"})
            raise
        if end is not None:
            record.proposal = end.proposal
            self._end(record, end.to_json())
            yield end

    async def _log_event(self, record: TurnRecord, event: ChatEvent, request: ChatRequest) -> None:
        facts = event.to_json()
        if isinstance(event, TextEvent):
            self._add_text(record, make_visible(event.text))
            return
        if isinstance(event, TurnStartEvent):
            self._notebook = event.notebook
        elif isinstance(event, ToolCallEvent):
            self._call = event.call.id, time.monotonic()
            facts |= await self._describe_call(event.call, request)
        elif isinstance(event, ToolResultEvent):
            began = self._call[1] if self._call else time.monotonic()
            self._call = None
            edit = read_edit("", event.answer.data)
            facts["text"] = event.answer.plain_text
            facts["seconds"] = round(time.monotonic() - began, 3)
            facts["cells"] = list(edit.cells) if edit else []
            for shown, image in zip(facts["images"], event.answer.images, strict=True):
                shown["data"] = b64encode(image.data).decode()
        self._add(record, facts, saves=isinstance(event, (ToolCallEvent, ToolResultEvent)))

    async def _describe_call(self, call: ToolCall, request: ChatRequest) -> Facts:
        """What a call is about, for a person who watches."""
        tool, path = self.find_target(call)
        path = relate_path(path, self.state.cwd) if path else None
        cells: list[str] = []
        if path and path.endswith(".ipynb"):
            workspace = await self.chat.workspaces.get(request.mode)
            with contextlib.suppress(CellwrightError, ValueError):
                notebook = await workspace.open(path).load()
                for ref in _list_cells(call.arguments):
                    with contextlib.suppress(CellwrightError, LookupError, ValueError):
                        cells.append(notebook.cell(ref).handle)
        return {
            "title": (tool.title if tool is not None else "") or call.name,
            "effect": find_effect(tool, call.arguments) if tool is not None else "read",
            "notebook": path,
            "cells": list(dict.fromkeys(cells)),
            "started": time.time(),
        }

    def _log_progress(self, report: Facts) -> None:
        record, call = self.running, self._call
        if record is None or call is None or not {"cell", "status"} <= report.keys():
            return  # from a run that outlived its turn, or what a cell printed
        cell = str(report.get("handle", report["cell"]))
        facts = {"event": "progress", "call": call[0], "cell": cell, "status": report["status"]}
        for event in record.events:
            if event["event"] == "progress" and (event["call"], event["cell"]) == (call[0], cell):
                event["status"] = report["status"]
                self._tell_event(record, make_all_visible(facts))
                return
        self._add(record, facts)

    def _log_notice(self, text: str) -> None:
        self._add(self.running, {"event": "note", "text": text})

    def _end(self, record: TurnRecord, facts: Facts) -> None:
        """End a turn; when those who watch hear of it, it is saved, and the next may begin."""
        if record.changes is not None and not record.changes.edits:
            record.changes = None
        facts = {"changes": record.changes and record.changes.to_json(), **facts}
        if self.running is record:
            self.running = self._call = None
        self._add(record, facts, saves=True)
        self.tell_state()

    def _add_text(self, record: TurnRecord, text: str) -> None:
        """Add a piece of text to the log, where all pieces of one text are joined."""
        last = record.events[-1] if record.events else {}
        if last.get("event") == "text":
            last["text"] += text
            self._tell_event(record, {"event": "text", "text": text})
        else:
            self._add(record, {"event": "text", "text": text})

    def _add(self, record: TurnRecord | None, facts: Facts, *, saves: bool = False) -> None:
        facts = make_all_visible(facts)
        if record is not None:
            record.events.append(facts)
        if saves:
            self.save()
        self._tell_event(record, dict(facts))

    def _tell_event(self, record: TurnRecord | None, facts: Facts) -> None:
        self._number += 1
        turn = record.number if record is not None else None
        self._tell("event", {"n": self._number, "turn": turn, "event": facts})

    def _tell(self, kind: str, facts: Facts) -> None:
        for watcher in list(self._watchers):
            watcher(kind, {"chat": self.id, **facts})


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question that waits; without `options`, any text answers it."""

    answer: asyncio.Future[str]
    options: tuple[str, ...] = ()


def _describe_failure(error: Exception) -> Facts:
    if isinstance(error, CellwrightError):
        return {"message": error.message, "code": error.code, "hint": error.hint}
    problem = shorten(f"{type(error).__name__}: {error}")
    return {"message": problem, "code": "INTERNAL_ERROR", "hint": None}


def _list_cells(arguments: Mapping[str, Any]) -> list[Any]:
    """The cells that a call names, by whichever name."""
    for name in _CELL_NAMES:
        found = arguments.get(name)
        if found is not None:
            refs = found if isinstance(found, list) else [found]
            return [ref for ref in refs if isinstance(ref, (str, int))]
    return []


def _find_open_call(record: TurnRecord) -> Facts | None:
    """The call that a lost turn was at, if it may have changed or run something."""
    for event in reversed(record.events):
        if event["event"] == "tool_result":
            return None
        if event["event"] == "tool_call":
            names = ("id", "name", "title", "effect", "notebook", "cells", "started")
            found = {name: event.get(name) for name in names}
            return found if found["effect"] in ("edit", "run") else None
    return None
