"""A sitting: one person, one chat, from the first prompt to the last."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from cellwright.assistant.models.model.direct import DirectModel
from cellwright.cli.chat.brief_direct import without_repetition
from cellwright.cli.chat.doing import Doing
from cellwright.cli.chat.echo import no_echo
from cellwright.cli.chat.ending import code_of_error, code_of_turn
from cellwright.cli.chat.inline import Proposals
from cellwright.cli.chat.slash import is_command, parse
from cellwright.cli.chat.turn import Turns
from cellwright.cli.output import OK, ReaderGone, Unexpected
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line

if TYPE_CHECKING:
    from cellwright.assistant.chat import Chat
    from cellwright.assistant.models.model.model import Model
    from cellwright.assistant.transcripts import Transcript, Transcripts
    from cellwright.cli.chat.asking import Asker
    from cellwright.cli.chat.confirming import Confirmer
    from cellwright.cli.chat.desk import Desk
    from cellwright.cli.chat.display import Display
    from cellwright.cli.chat.prompt import Prompt
    from cellwright.cli.chat.turn import Outcome
    from cellwright.cli.chat.warnings import Warnings
    from cellwright.config.settings import Settings


class Sitting:
    """What the person and the chat have before them.

    Args:
        chat: the conversation.
        desk: what is open, selected and attached.
        display: where it is shown.
        confirmer: puts questions of turns to the person.
        asker: puts questions of ours to them; nobody in a pipe.
        settings: those that hold here.
        transcript: what is kept of the chat.
        transcripts: where it is kept; nowhere if it is None.
        warnings: what was logged meanwhile.
        accept: whether proposals inside a cell are accepted beforehand.
        is_watched: whether somebody looks on at a terminal.
    """

    def __init__(
        self,
        chat: Chat,
        desk: Desk,
        display: Display,
        confirmer: Confirmer,
        *,
        asker: Asker | None,
        settings: Settings,
        transcript: Transcript,
        transcripts: Transcripts | None = None,
        warnings: Warnings | None = None,
        accept: bool = False,
        is_watched: bool = False,
    ) -> None:
        self.chat = chat
        self.desk = desk
        self.display = display
        self.settings = settings
        self.transcript = transcript
        self.transcripts = transcripts
        self.turns = Turns(chat, display, confirmer)
        self.is_over = False
        self._is_watched = is_watched
        self._warnings = warnings
        self.use(chat.model)
        self._doing = Doing(self, asker)
        self._proposals = Proposals(chat, display, asker, accept=accept, ask=self._turn)

    def use(self, model: Model) -> None:
        """Have another model answer from now on."""
        self.chat.model = without_repetition(model) if self._is_watched else model
        if not isinstance(model, DirectModel):
            from cellwright.assistant.models.model.language_model import LanguageModel

            if isinstance(model, LanguageModel):
                model.notice = self.display.note

    async def talk(self, prompt: Prompt) -> int:
        """Take one line after the other from somebody who types, until they leave."""
        prompt.pressed = self.turns.press
        warming = asyncio.ensure_future(prepare(self.chat.model))  # while they think and type
        try:
            return await self._talk(prompt)
        finally:
            warming.cancel()
            await asyncio.gather(warming, return_exceptions=True)

    async def _talk(self, prompt: Prompt) -> int:
        from cellwright.cli.chat.prompt import Pressed

        was_pressed = False
        while not self.is_over:
            try:
                line = (await prompt.next(self.desk.mode)).strip()
            except Pressed:
                if was_pressed:
                    break
                was_pressed = True
                self.display.note("Ctrl-C again leaves; so does Ctrl-D")
                continue
            except EOFError:
                break
            was_pressed = False
            if line:
                await self.take(line)
                self.display.gap()
        return OK

    async def take(self, line: str) -> int:
        """Carry out a command, or ask the assistant; returns the exit code that it would have."""
        try:
            if is_command(line):
                name, words = parse(line)
                await self._doing.do(name, words)
                return OK
            return await self.ask(line)
        except ReaderGone:
            raise
        except Exception as error:  # noqa: BLE001  # a bug in one command must not end the chat
            found = error if isinstance(error, CellwrightError) else Unexpected(error)
            self.display.problem(found)
            return code_of_error(found)
        finally:
            self.tell_warnings()

    def tell_warnings(self) -> None:
        """Say what was logged since this was last done."""
        for text in self._warnings.take() if self._warnings is not None else ():
            self.display.note(f"warning: {text}")

    async def ask(self, prompt: str) -> int:
        """One turn, and what is to be decided after it; returns its exit code."""
        outcome = await self._turn(prompt)
        try:
            if self.desk.cell is not None:
                outcome = await self._proposals.decide(outcome)
        finally:
            self.save()
        return code_of_turn(outcome, self.chat.model, prompt)

    def save(self) -> None:
        """Keep the chat as far as it went; that it cannot be kept is no reason to end it."""
        if self.transcripts is None or not (self.chat.history or self.chat.turns):
            return
        self.describe()
        try:
            self.transcripts.save(self.transcript)
        except OSError as error:
            self.transcripts = None
            self.display.note(f"The chat is not kept: {one_line(str(error))}")

    def describe(self) -> Transcript:
        """The transcript, as of now."""
        found = self.transcript
        found.model, found.mode = self.chat.model.name, self.desk.mode
        found.desk = self.desk.to_json()
        found.messages, found.turns = list(self.chat.history), list(self.chat.turns)
        return found

    def status(self) -> str:
        """Notebook, model, and what it took so far, in a line."""
        desk = self.desk
        facts = [one_line(desk.open) if desk.open else "no notebook open"]
        if desk.open and desk.open not in desk.files:
            facts[0] += " (not attached)"
        if desk.cell is not None:
            facts.append(f"in cell {one_line(desk.cell[:40])}")
        if desk.selected:
            facts.append(f"{len(desk.selected)} selected")
        others = [name for name in desk.attached if name != desk.open]
        if others:
            facts.append(f"+{len(others)} attached")
        facts.append(one_line(self.chat.model.name))
        usage = self.chat.usage
        if usage.input or usage.output:
            facts.append(f"{usage.input + usage.output:,} tokens")
            if usage.cost:
                facts.append(f"${usage.cost:.4f}" if usage.cost < 0.1 else f"${usage.cost:.2f}")
        return f" {' · '.join(facts)} "

    def expand_last(self) -> None:
        """The last card in full."""
        if self.turns.cards:
            self.display.expand(self.turns.cards[-1])

    async def _turn(self, prompt: str) -> Outcome:
        is_program = isinstance(self.chat.model, DirectModel)
        request = self.desk.request(prompt, names_files=not is_program)
        with no_echo() if self._is_watched else contextlib.nullcontext():
            return await self.turns.run(request)


async def prepare(model: Model) -> None:
    """Have a model load what it needs; what it lacks is told when it is asked."""
    ready = getattr(model, "prepare", None)
    if ready is not None:
        with contextlib.suppress(CellwrightError):
            await ready()
