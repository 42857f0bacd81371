"""One turn of a chat: its events, shown while they happen, and Ctrl-C during it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from cellwright.assistant.chat import (
    MOST_STEPS,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from cellwright.cli.output import ReaderGone, Unexpected
from cellwright.cli.render.cards.card import Card
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, Literal

    from cellwright.assistant.chat import ChatEvent
    from cellwright.assistant.conversation import Conversation
    from cellwright.assistant.models.model import ToolCall
    from cellwright.assistant.requests import ChatRequest
    from cellwright.cli.chat.confirmation import Confirmer
    from cellwright.cli.chat.display import ChatDisplay
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
class TurnOutcome:
    """How a turn ended, and what its tools answered."""

    ending: Ending = "stopped"
    begun: TurnStartEvent | None = None
    done: TurnEndEvent | None = None
    error: CellwrightError | None = None
    answers: list[ToolResult] = field(default_factory=list)


class TurnRunner:
    """Runs the turns of one chat, and keeps the cards of their calls."""

    def __init__(
        self, conversation: Conversation, display: ChatDisplay, confirmer: Confirmer
    ) -> None:
        self._conversation = conversation
        self.chat = conversation.chat
        self.display = display
        self.cards: list[Card] = []
        self.shows_prompts = False  # whether it names the files of the system prompt
        self._confirmer = confirmer
        self._card: Card | None = None
        self._interrupts: ChatInterrupts | None = None
        self.chat.progress = self._handle_progress

    @property
    def is_running(self) -> bool:
        """Whether a turn is running."""
        return self._interrupts is not None

    def interrupt(self) -> None:
        """Handle Ctrl-C during a turn."""
        if self._interrupts is not None:
            self._interrupts.press()

    async def run(self, request: ChatRequest) -> TurnOutcome:
        """Run a turn; an error in it is shown, and is in the outcome."""
        outcome = TurnOutcome()
        task = asyncio.ensure_future(self._consume(request, outcome))
        self._interrupts = ChatInterrupts(self._stop_run, task.cancel, self.display.print_note)
        try:
            await asyncio.wait([task])
            if task.cancelled():
                self._stop_card()
                self.display.print_note("The turn was stopped")
            else:
                self._show_error(task.exception(), outcome)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._interrupts = self._card = self._confirmer.card = None
        return outcome

    def _show_error(self, error: BaseException | None, outcome: TurnOutcome) -> None:
        """Show the error of a turn, if any; a bug in one turn must not end the chat."""
        if error is None:
            return
        if isinstance(error, ReaderGone) or not isinstance(error, Exception):
            raise error
        self._stop_card()
        found = error if isinstance(error, CellwrightError) else Unexpected(error)
        outcome.ending, outcome.error = "failed", found
        self.display.print_error(found)

    async def _consume(self, request: ChatRequest, outcome: TurnOutcome) -> None:
        async with contextlib.aclosing(self._conversation.send(request)) as events:
            async for event in events:
                await self._show_event(event, request, outcome)

    async def _show_event(
        self, event: ChatEvent, request: ChatRequest, outcome: TurnOutcome
    ) -> None:
        self.display.handle_event(event)
        if isinstance(event, TurnStartEvent):
            outcome.begun = event
            if self.shows_prompts:
                self.display.print_note(f"Prompt files: {', '.join(event.prompts)}")
        elif isinstance(event, TextEvent):
            self.display.add_text(event.text)
        elif isinstance(event, ToolCallEvent):
            self._card = self._confirmer.card = await self._make_card(event.call, request)
            self.display.begin_call(self._card)
        elif isinstance(event, ToolResultEvent):
            outcome.answers.append(event.answer)
            await self._end_card(event.answer, request)
        elif isinstance(event, TurnEndEvent):
            outcome.done, outcome.ending = event, event.ending
            self.display.end_turn()
            if event.ending == "limit":
                self.display.print_note(
                    f"Stopped after {MOST_STEPS} calls of the model; ask it to continue"
                )

    async def _make_card(self, call: ToolCall, request: ChatRequest) -> Card:
        tool, path = self._conversation.find_target(call)
        notebook = await self._load_notebook(path, request)
        card = Card(
            number=len(self.cards) + 1,
            call=call,
            title=tool.title if tool is not None else "",
            path=path or "",
            before=notebook,
            language=language_of_notebook(notebook) if notebook else _language_of_file(path or ""),
        )
        card.begin()
        self.cards.append(card)
        return card

    async def _end_card(self, answer: ToolResult, request: ChatRequest) -> None:
        card, self._card, self._confirmer.card = self._card, None, None
        if self._interrupts is not None:
            self._interrupts.set_run(None)
        if card is None:
            return
        card.end(answer, await self._load_notebook(card.path, request) if card.before else None)
        self.display.end_call(card)

    def _stop_card(self) -> None:
        """Show the current call as stopped, and end the turn."""
        if self._card is not None:
            self._card.stop()
        self.display.end_turn()

    def _handle_progress(self, report: dict[str, Any]) -> None:
        if self._interrupts is None:
            return  # from a run that outlived its turn
        if isinstance(report.get("run"), str):
            self._interrupts.set_run(report["run"])
        if self._card is not None:
            self._card.progress(report)
            self.display.update_call(self._card)

    async def _stop_run(self, run: str) -> None:
        workspace = await self.chat.workspaces.get("agent")
        await workspace.cancel(run)

    async def _load_notebook(self, path: str | None, request: ChatRequest) -> Notebook | None:
        """The notebook now, or None if it cannot be read; a card works without it."""
        if not path or not path.endswith(".ipynb"):
            return None
        workspace = await self.chat.workspaces.get(request.mode)
        try:
            return await workspace.open(path).load()
        except (CellwrightError, ValueError):
            return None


class ChatInterrupts:
    """Decides what Ctrl-C does in one turn.

    While cells run, the first Ctrl-C stops the run: the cell is interrupted, and the turn
    continues. The next one ends the turn.

    Args:
        stop_run: stops a run by its id.
        end_turn: ends the turn.
        say: tells the person what was done.
    """

    def __init__(
        self,
        stop_run: Callable[[str], Awaitable[object]],
        end_turn: Callable[[], object],
        say: Callable[[str], object],
    ) -> None:
        self._stop_run = stop_run
        self._end_turn = end_turn
        self._say = say
        self._run: str | None = None
        self._stopped: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def set_run(self, run: str | None) -> None:
        """Remember the current run; None when it has ended."""
        self._run = run

    def press(self) -> None:
        """Handle one Ctrl-C."""
        if self._run is not None and self._run != self._stopped:
            self._stopped = self._run
            self._say("Interrupting the kernel; Ctrl-C again ends the turn")
            task = asyncio.ensure_future(self._stop(self._run))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._end_turn()

    async def _stop(self, run: str) -> None:
        with contextlib.suppress(CellwrightError):  # it may have ended already
            await self._stop_run(run)


def language_of_notebook(notebook: Notebook) -> str:
    """The language of a notebook's code by its metadata."""
    from cellwright.cli.render.colors import language_of

    try:
        return language_of(notebook.metadata)
    except CellwrightError:
        return "python"


def _language_of_file(path: str) -> str:
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "text") if path else "python"
