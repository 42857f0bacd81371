"""Who shows a chat: what every display can do, and those for pipes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Protocol

import click

from cellwright.cli.output import describe_error, one_line, print_json, uses_colors, write_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cellwright.assistant.events import ChatEvent
    from cellwright.cli.output import Output
    from cellwright.cli.render.cards.card import Card
    from cellwright.errors import CellwrightError


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """What was, or would be, done to one cell: in words, and as a diff of its source."""

    action: str
    name: str
    kind: str
    path: str
    diff: str
    language: str = "python"
    place: str = ""


class Display(Protocol):
    """Shows what happens in a chat."""

    def event(self, event: ChatEvent) -> None:
        """Something happened, before it is shown in any other way."""

    def said(self, text: str) -> None:
        """The model said something more."""

    def called(self, card: Card) -> None:
        """A tool is called."""

    def changed(self, card: Card) -> None:
        """Something happened to the call that is under way."""

    def returned(self, card: Card) -> None:
        """It is over."""

    def over(self) -> None:
        """The turn is over, one way or the other."""

    def tell(self, text: str) -> None:
        """Something that the person asked us for."""

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names, each with what there is to say of it."""

    def change(self, change: CellChange) -> None:
        """A change of a cell that the person is to look at."""

    def gap(self) -> None:
        """Room before the next prompt."""

    def note(self, text: str) -> None:
        """What we say beside that."""

    def problem(self, error: CellwrightError) -> None:
        """Something did not work."""

    def expand(self, card: Card) -> None:
        """All of a card."""


class PlainDisplay:
    """For pipes: the answer to stdout as it comes, all else to stderr, each call in a line."""

    def __init__(self, output: Output) -> None:
        from cellwright.outputs.sanitizer import Sanitizer

        self._output = output
        self._harmless = Sanitizer()
        self._ends_line = True

    def event(self, event: ChatEvent) -> None:
        """Nothing: it is shown below."""

    def said(self, text: str) -> None:
        """Print it as it is, but for what would drive a terminal at the other end."""
        self._write(self._harmless.feed(text))

    def called(self, card: Card) -> None:
        """Nothing yet."""

    def changed(self, card: Card) -> None:
        """Nothing yet."""

    def returned(self, card: Card) -> None:
        """A line about it."""
        from cellwright.cli.render.cards.results import brief

        self._line_end()
        self._output.say(brief(card))

    def over(self) -> None:
        """End the line."""
        self._line_end()

    def tell(self, text: str) -> None:
        """It is data: to stdout."""
        self._write(self._harmless.feed(text if text.endswith("\n") else f"{text}\n"))

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """A line for each."""
        widest = max((len(name) for name, _ in rows), default=0)
        self.tell("\n".join(f"{name:{widest}}  {about}".rstrip() for name, about in rows))

    def change(self, change: CellChange) -> None:
        """The diff is data, too."""
        facts = (change.action, change.name, change.kind, change.path, change.place)
        self.note(" · ".join(fact for fact in facts if fact))
        self.tell(change.diff)

    def gap(self) -> None:
        """There is no prompt."""

    def note(self, text: str) -> None:
        """To stderr."""
        self._output.say(one_line(text))

    def problem(self, error: CellwrightError) -> None:
        """To stderr, as every error."""
        self._line_end()
        self._output.fail(error)

    def expand(self, card: Card) -> None:
        """In a pipe there is nothing to expand; the facts are in the notebook."""
        self.returned(card)

    def _write(self, text: str) -> None:
        if text:
            write_bytes(text.encode("utf-8", "backslashreplace"))
            self._ends_line = text.endswith("\n")

    def _line_end(self) -> None:
        if not self._ends_line:
            self._write("\n")


class JsonDisplay:
    """For programs: every event as one object in one line of stdout, and nothing else."""

    def event(self, event: ChatEvent) -> None:
        """Print it."""
        print_json(event.to_json())

    def said(self, text: str) -> None:
        """The event has it."""

    def called(self, card: Card) -> None:
        """The event has it."""

    def changed(self, card: Card) -> None:
        """There is no event for this."""

    def returned(self, card: Card) -> None:
        """The event has it."""

    def over(self) -> None:
        """The event has it."""

    def tell(self, text: str) -> None:
        """Programs ask with events."""

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Programs ask with events."""

    def change(self, change: CellChange) -> None:
        """The event has it."""

    def gap(self) -> None:
        """There is no prompt."""

    def note(self, text: str) -> None:
        """Nobody reads it."""

    def problem(self, error: CellwrightError) -> None:
        """An event of its own."""
        self.line("error", error=describe_error(error))

    def expand(self, card: Card) -> None:
        """The event has it."""

    def line(self, kind: str, **facts: Any) -> None:
        """Something that is no event of the chat."""
        print_json({"event": kind, **facts})


def brief_printer(output: Output) -> Callable[[Card], None]:
    """Prints a line about a call to stderr, in colour if somebody looks at it."""

    def show(card: Card) -> None:
        from cellwright.cli.render.cards.results import brief
        from cellwright.cli.render.cards.statuses import sign_of

        text = brief(card)
        sign, _ = sign_of(card.status)
        color = {"✓": "green", "✗": "red"}.get(sign, "cyan")
        if not output.quiet:
            click.secho(text[:1], fg=color, nl=False, err=True, color=uses_colors(sys.stderr))
            click.echo(text[1:], err=True)

    return show
