"""Displays show a chat: the base of all displays, and those for pipes and for programs."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from cellwright.cli.output import (
    describe_error,
    one_line,
    print_json,
    printable,
    uses_colors,
    write_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cellwright.assistant.chat import ChatEvent
    from cellwright.cli.output import CommandOutput
    from cellwright.cli.render.cards.card import Card
    from cellwright.errors import CellwrightError


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedChange:
    """A change of one cell, made or proposed: in words, and as a diff of its source."""

    action: str
    name: str
    kind: str
    path: str
    diff: str
    language: str = "python"
    position: str = ""


class ChatDisplay:
    """Shows what happens in a chat; a method that a display does not override shows nothing."""

    def handle_event(self, event: ChatEvent) -> None:
        """Handle an event, before its content is shown by another method."""

    def add_text(self, text: str) -> None:
        """Show more text of the model."""

    def begin_call(self, card: Card) -> None:
        """Show that a tool is called."""

    def update_call(self, card: Card) -> None:
        """Show that the current call has changed."""

    def end_call(self, card: Card) -> None:
        """Show the result of the current call."""

    def end_turn(self) -> None:
        """Show all that is left of a turn, which has ended or failed."""

    def print_text(self, text: str) -> None:
        """Print text that the person asked for."""

    def print_table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print names, each with a description."""

    def print_change(self, change: DisplayedChange) -> None:
        """Print a change of a cell for the person to review."""

    def print_gap(self) -> None:
        """Print an empty line before the next prompt."""

    def print_note(self, text: str) -> None:
        """Print a short message."""

    def print_error(self, error: CellwrightError) -> None:
        """Print an error."""

    def expand_card(self, card: Card) -> None:
        """Print a card in full."""


class PlainDisplay(ChatDisplay):
    """For pipes: the answer goes to stdout as it comes, a line for each call to stderr."""

    def __init__(self, output: CommandOutput) -> None:
        from cellwright.outputs.sanitize import Sanitizer

        self._output = output
        self._sanitizer = Sanitizer()
        self._ends_line = True

    def add_text(self, text: str) -> None:
        """Print it, without control sequences for a terminal at the other end."""
        self._write(self._sanitizer.feed(text))

    def end_call(self, card: Card) -> None:
        """Print a line about it."""
        from cellwright.cli.render.cards.results import summarize_card

        self._end_line()
        self._output.say(summarize_card(card))

    def end_turn(self) -> None:
        """End the line."""
        self._end_line()

    def print_text(self, text: str) -> None:
        """Print it to stdout: it is data."""
        self._write(self._sanitizer.feed(text if text.endswith("\n") else f"{text}\n"))

    def print_table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print a line for each row."""
        widest = max((len(name) for name, _ in rows), default=0)
        self.print_text("\n".join(f"{name:{widest}}  {about}".rstrip() for name, about in rows))

    def print_change(self, change: DisplayedChange) -> None:
        """Print the diff to stdout: it is data."""
        facts = (change.action, change.name, change.kind, change.path, change.position)
        self.print_note(" · ".join(fact for fact in facts if fact))
        self.print_text(change.diff)

    def print_note(self, text: str) -> None:
        """Print it to stderr."""
        self._output.say(one_line(text))

    def print_error(self, error: CellwrightError) -> None:
        """Print it to stderr."""
        self._end_line()
        self._output.fail(error)

    def expand_card(self, card: Card) -> None:
        """Print a line about it; all of it is in the notebook."""
        self.end_call(card)

    def _write(self, text: str) -> None:
        if text:
            write_bytes(text.encode("utf-8", "backslashreplace"))
            self._ends_line = text.endswith("\n")

    def _end_line(self) -> None:
        if not self._ends_line:
            self._write("\n")


class JsonDisplay(ChatDisplay):
    """For programs: each event is one JSON object in one line of stdout, and nothing else is."""

    def handle_event(self, event: ChatEvent) -> None:
        """Print the event."""
        print_json(event.to_json())

    def print_error(self, error: CellwrightError) -> None:
        """Print an event for it."""
        self.print_event("error", error=describe_error(error, "chat"))

    def print_event(self, kind: str, **facts: Any) -> None:
        """Print an event that is not one of the chat."""
        print_json({"event": kind, **facts})


def make_brief_printer(output: CommandOutput) -> Callable[[Card], None]:
    """Make a function that prints a line about a call to stderr, in colour on a terminal."""

    def print_brief(card: Card) -> None:
        from cellwright.cli.render.cards.card import sign_of
        from cellwright.cli.render.cards.results import summarize_card

        text = summarize_card(card)
        sign, _ = sign_of(card.status)
        color = {"✓": "green", "✗": "red"}.get(sign, "cyan")
        if not output.quiet:
            click.secho(text[:1], fg=color, nl=False, err=True, color=uses_colors(sys.stderr))
            click.echo(printable(text[1:]), err=True)

    return print_brief
