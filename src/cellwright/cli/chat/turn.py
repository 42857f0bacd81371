"""One turn: what a chat says about it, shown as it happens."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cellwright.assistant.chat import (
    MOST_STEPS,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from cellwright.cli.chat.interrupts import Interrupts
from cellwright.cli.output import ReaderGone, Unexpected
from cellwright.cli.render.cards.card import Card
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from typing import Any, Literal

    from cellwright.assistant.chat import Chat, ChatEvent
    from cellwright.assistant.models.model.model import ToolCall
    from cellwright.assistant.requests import ChatRequest
    from cellwright.cli.chat.confirming import Confirmer
    from cellwright.cli.chat.display import Display
    from cellwright.document.notebook import Notebook
    from cellwright.tools.tool import ToolResult

    Ending = Literal["answered", "limit", "stopped", "failed"]


_LANGUAGES = {
    "py": "python",
    "md": "markdown",
    "json": "json",
    "toml": "toml",
    "yml": "yaml",
    "yaml": "yaml",
    "sh": "bash",
    "sql": "sql",
    "r": "r",
    "jl": "julia",
    "js": "javascript",
    "ts": "typescript",
    "html": "html",
    "css": "css",
}


@dataclass(slots=True)
class Outcome:
    """How a turn went."""

    ending: Ending = "stopped"
    begun: TurnStartEvent | None = None
    done: TurnEndEvent | None = None
    error: CellwrightError | None = None
    answers: list[ToolResult] = field(default_factory=list)


class Turns:
    """Carries out turns of one chat, and keeps the cards of their calls."""

    def __init__(self, chat: Chat, display: Display, confirmer: Confirmer) -> None:
        self.chat = chat
        self.display = display
        self.cards: list[Card] = []
        self._confirmer = confirmer
        self._card: Card | None = None
        self._interrupts: Interrupts | None = None
        chat.progress = self._progress

    @property
    def is_going(self) -> bool:
        """Whether one is under way."""
        return self._interrupts is not None

    def press(self) -> None:
        """Ctrl-C was pressed during a turn."""
        if self._interrupts is not None:
            self._interrupts.press()

    async def run(self, request: ChatRequest) -> Outcome:
        """Carry one out; whatever goes wrong is in the outcome, and was shown."""
        outcome = Outcome()
        task = asyncio.ensure_future(self._consume(request, outcome))
        self._interrupts = Interrupts(self._stop_run, task.cancel, self.display.note)
        try:
            await asyncio.wait([task])
            if task.cancelled():
                self._stopped()
                self.display.note("The turn was ended")
            else:
                self._failed(task.exception(), outcome)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._interrupts = self._card = self._confirmer.card = None
        return outcome

    def _failed(self, error: BaseException | None, outcome: Outcome) -> None:
        """Tell what went wrong, if anything did; a bug in one turn must not end the chat."""
        if error is None:
            return
        if isinstance(error, ReaderGone) or not isinstance(error, Exception):
            raise error
        self._stopped()
        found = error if isinstance(error, CellwrightError) else Unexpected(error)
        outcome.ending, outcome.error = "failed", found
        self.display.problem(found)

    async def _consume(self, request: ChatRequest, outcome: Outcome) -> None:
        async with contextlib.aclosing(self.chat.send(request)) as events:
            async for event in events:
                await self._show(event, request, outcome)

    async def _show(self, event: ChatEvent, request: ChatRequest, outcome: Outcome) -> None:
        self.display.event(event)
        if isinstance(event, TurnStartEvent):
            outcome.begun = event
        elif isinstance(event, TextEvent):
            self.display.said(event.text)
        elif isinstance(event, ToolCallEvent):
            self._card = self._confirmer.card = await self._new_card(event.call, outcome, request)
            self.display.called(self._card)
        elif isinstance(event, ToolResultEvent):
            outcome.answers.append(event.answer)
            await self._end_card(event.answer, request)
        elif isinstance(event, TurnEndEvent):
            outcome.done, outcome.ending = event, event.ending
            self.display.over()
            if event.ending == "limit":
                self.display.note(f"Ended after {MOST_STEPS} calls of the model; ask to go on")

    async def _new_card(self, call: ToolCall, outcome: Outcome, request: ChatRequest) -> Card:
        active = outcome.begun.notebook if outcome.begun is not None else None
        named = call.arguments.get("path") or call.arguments.get("notebook_path")
        tool = next((each for each in self.chat.tools if each.name == call.name), None)
        needs_notebook = tool is not None and "requires-notebook" in tool.tags
        path = named if isinstance(named, str) else active if needs_notebook else None
        notebook = await self._load(path, request)
        card = Card(
            number=len(self.cards) + 1,
            call=call,
            title=tool.title if tool is not None else "",
            path=path or "",
            before=notebook,
            language=language_in(notebook) if notebook else _language_of_file(path or ""),
        )
        card.begin()
        self.cards.append(card)
        return card

    async def _end_card(self, answer: ToolResult, request: ChatRequest) -> None:
        card, self._card, self._confirmer.card = self._card, None, None
        if self._interrupts is not None:
            self._interrupts.running(None)
        if card is None:
            return
        card.end(answer, await self._load(card.path, request) if card.before else None)
        self.display.returned(card)

    def _stopped(self) -> None:
        """The turn ended before its time; what was open is shown as it is."""
        if self._card is not None:
            self._card.stop()
        self.display.over()

    def _progress(self, report: dict[str, Any]) -> None:
        if self._interrupts is None:
            return  # a word from a run that nobody waits for any more
        if isinstance(report.get("run"), str):
            self._interrupts.running(report["run"])
        if self._card is not None:
            self._card.progress(report)
            self.display.changed(self._card)

    async def _stop_run(self, run: str) -> None:
        workspace = await self.chat.workspaces.get("agent")
        await workspace.cancel(run)

    async def _load(self, path: str | None, request: ChatRequest) -> Notebook | None:
        """A notebook as it is now, if it can be read; a card is shown without it, too."""
        if not path or not path.endswith(".ipynb"):
            return None
        workspace = await self.chat.workspaces.get(request.mode)
        try:
            return await workspace.open(path).load()
        except (CellwrightError, ValueError):
            return None


def _language_of_file(path: str) -> str:
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "text") if path else "python"


def language_in(notebook: Notebook) -> str:
    """The language of a notebook's code, by what it says about itself."""
    from cellwright.cli.render.source import language_of

    try:
        return language_of(notebook.metadata)
    except CellwrightError:
        return "python"
