"""A chat session: one person and one chat, from the first prompt to the last."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque

from cellwright.assistant.models.direct import DirectModel
from cellwright.assistant.requests import find_missing_files
from cellwright.cli.chat.review import ProposalReview
from cellwright.cli.chat.slash_commands import SlashCommands, is_command, parse_command
from cellwright.cli.chat.state import WrongCommand
from cellwright.cli.chat.turn import TurnRunner
from cellwright.cli.output import (
    FAILED,
    FORBIDDEN,
    INTERRUPTED,
    OK,
    STATUS_CODES,
    ReaderGone,
    Unexpected,
    exit_code,
)
from cellwright.cli.questions import hide_typing
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cellwright.assistant.chat import TurnStartEvent
    from cellwright.assistant.conversation import Conversation
    from cellwright.assistant.models.model import Model
    from cellwright.cli.chat.confirmation import Confirmer
    from cellwright.cli.chat.display import ChatDisplay
    from cellwright.cli.chat.prompt import Prompt
    from cellwright.cli.chat.turn import TurnOutcome
    from cellwright.cli.questions import Asker
    from cellwright.tools.tool import ToolResult

_MOST_WARNINGS = 20
_LONGEST_WARNING = 500
_REFUSED = frozenset({"MODE_FORBIDS", "NOT_CONFIRMED", "DECLINED", "TOOL_UNAVAILABLE"})


class ChatSession:
    """Carries out what the person types: prompts for the assistant, and slash commands.

    Args:
        opened: the chat.
        display: where it is shown.
        confirmer: asks the person what turns need to know.
        asker: asks the person for decisions; None in a pipe.
        log: warnings that were logged during the session.
        accept: whether proposals for a cell are accepted in advance.
        is_interactive: whether a person types at a terminal.
    """

    def __init__(
        self,
        opened: Conversation,
        display: ChatDisplay,
        confirmer: Confirmer,
        *,
        asker: Asker | None,
        log: LogBuffer | None = None,
        accept: bool = False,
        is_interactive: bool = False,
    ) -> None:
        self.opened = opened
        self.chat = chat = opened.chat
        self.state = opened.state
        self.settings = opened.settings
        opened.notice = display.print_note
        self.display = display
        self.turns = TurnRunner(opened, display, confirmer)
        self.is_closed = False
        self._is_interactive = is_interactive
        self._log = log
        self.set_model(chat.model)
        self._commands = SlashCommands(self, asker)
        self._proposals = ProposalReview(opened, display, asker, accept=accept, ask=self._run_turn)

    def set_model(self, model: Model) -> None:
        """Let another model answer from now on."""
        if self._is_interactive and isinstance(model, DirectModel):
            model = DirectModel(repeats_outputs=False)  # cards show them
        self.opened.use_model(model)

    async def run_prompts(self, prompt: Prompt) -> int:
        """Carry out what a person types, line by line, until they leave."""
        prompt.on_interrupt = self.turns.interrupt
        # The model loads what it needs while the person types.
        loading = asyncio.ensure_future(_prepare_model(self.chat.model))
        try:
            return await self._run_prompts(prompt)
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)

    async def _run_prompts(self, prompt: Prompt) -> int:
        from cellwright.cli.chat.prompt import CtrlC

        was_pressed = False
        while not self.is_closed:
            try:
                line = (await prompt.read(self.state.mode)).strip()
            except CtrlC:
                if was_pressed:
                    return INTERRUPTED
                was_pressed = True
                self.display.print_note("Press Ctrl-C again, or Ctrl-D, to leave")
                continue
            except EOFError:
                break
            was_pressed = False
            if line:
                await self.handle_line(line)
                self.display.print_gap()
        return OK

    async def handle_line(self, line: str) -> int:
        """Carry out a slash command, or ask the assistant; returns the exit code."""
        try:
            if is_command(line):
                name, words = parse_command(line)
                await self._commands.run(name, words)
                return OK
            return await self._ask_assistant(line)
        except ReaderGone:
            raise
        except Exception as error:  # noqa: BLE001  # a bug in one command must not end the chat
            found = error if isinstance(error, CellwrightError) else Unexpected(error)
            self.display.print_error(found)
            return exit_code(found)
        finally:
            self.print_warnings()

    def print_warnings(self) -> None:
        """Print the warnings that were logged since the last call."""
        for text in self._log.drain() if self._log is not None else ():
            self.display.print_note(f"warning: {text}")

    async def _ask_assistant(self, prompt: str) -> int:
        """Run a turn and review its proposal; returns the exit code."""
        missing = find_missing_files(prompt, self.state.cwd)
        if missing:
            raise WrongCommand(
                f"There is no file `{one_line(missing[0])}`", hint="Nothing was sent to the model"
            )
        outcome = await self._run_turn(prompt)
        if self.state.cell is not None:
            outcome = await self._proposals.decide(outcome)
        if any(each.data.get("code") == "NOT_CONFIRMED" for each in outcome.answers):
            self.display.print_note("hint: `--yes` runs and deletes without asking")
        return exit_code_of_turn(outcome, self.chat.model, prompt)

    async def _run_turn(self, prompt: str) -> TurnOutcome:
        is_program = isinstance(self.chat.model, DirectModel)
        request = self.state.build_request(prompt, names_files=not is_program)
        with hide_typing() if self._is_interactive else contextlib.nullcontext():
            return await self.turns.run(request)

    def status_line(self) -> str:
        """The open notebook, the model, and the tokens used, on one line."""
        state = self.state
        facts = [one_line(state.open) if state.open else "no notebook open"]
        if state.open and state.open not in state.files:
            facts[0] += " (not attached)"
        if state.cell is not None:
            facts.append(f"in cell {one_line(state.cell[:40])}")
        if state.selected:
            facts.append(f"{len(state.selected)} selected")
        others = [name for name in state.attachments if name != state.open]
        if others:
            facts.append(f"+{len(others)} attached")
        facts.append(one_line(self.chat.model.name))
        usage = self.chat.usage
        if usage.input or usage.output:
            facts.append(f"{usage.input + usage.output:,} tokens")
            if usage.cost:
                facts.append(f"${usage.cost:.4f}" if usage.cost < 0.1 else f"${usage.cost:.2f}")
        return f" {' · '.join(facts)} "

    def expand_last_card(self) -> None:
        """Print the last card in full."""
        if self.turns.cards:
            self.display.expand_card(self.turns.cards[-1])


async def _prepare_model(model: Model) -> None:
    """Let a model load what it needs; an error is shown when the model is asked."""
    prepare = getattr(model, "prepare", None)
    if prepare is not None:
        with contextlib.suppress(CellwrightError):
            await prepare()


class LogBuffer(logging.Handler):
    """Keeps the last few warnings until they can be printed; works in any thread.

    Printed at once, they would tear apart an answer, or the line that the person types.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: deque[str] = deque(maxlen=_MOST_WARNINGS)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning."""
        self._kept.append(one_line(record.getMessage()[:_LONGEST_WARNING]))

    def drain(self) -> list[str]:
        """Remove and return the warnings, each once."""
        found = list(dict.fromkeys(self._kept))
        self._kept.clear()
        return found


@contextlib.contextmanager
def buffer_log() -> Iterator[LogBuffer]:
    """Keep the warnings that are logged inside the block."""
    handler = LogBuffer()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield handler
    finally:
        root.removeHandler(handler)


# -- exit codes -----------------------------------------------------------------------------
# A language model learns when a tool fails, and answers all the same: that is a success. The
# built-in assistant only carries out commands, so that its failure is the command's.


def exit_code_of_turn(outcome: TurnOutcome, model: Model, prompt: str) -> int:
    """The exit code of a turn."""
    if outcome.error is not None:
        return exit_code(outcome.error)
    if outcome.ending == "stopped":
        return INTERRUPTED
    if outcome.ending == "limit":
        return FAILED
    if not isinstance(model, DirectModel):
        return OK
    if outcome.begun is not None and _is_refused(outcome.begun, prompt):
        return FORBIDDEN
    return next((code for code in map(_exit_code_of_answer, outcome.answers) if code), OK)


def _is_refused(begun: TurnStartEvent, prompt: str) -> bool:
    """Whether the mode did not let the built-in assistant carry out the prompt."""
    from cellwright.assistant.models.sentences import TOOL_OF, find_verb

    if begun.mode == "agent":
        return False
    if any(each.tool is None for each in begun.tool_references):
        return True
    named = [each.tool.name for each in begun.tool_references if each.tool is not None]
    verb = find_verb(prompt, named)
    if verb is None or begun.notebook is None:
        return False
    return TOOL_OF.get(verb) not in begun.tools


def _exit_code_of_answer(answer: ToolResult) -> int:
    if not answer.is_error:
        return OK
    code = answer.data.get("code")
    if code in _REFUSED:
        return FORBIDDEN
    for row in answer.data.get("executions") or ():
        if row["status"] != "pending" and STATUS_CODES.get(row["status"], OK):
            return STATUS_CODES[row["status"]]
    from cellwright import errors

    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, CellwrightError) and kind.code == code:
            return exit_code(kind)
    return FAILED
