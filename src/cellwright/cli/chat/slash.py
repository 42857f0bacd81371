"""Commands of a chat that begin with a slash: what there is, and how a line is read."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass

from cellwright.errors import CellwrightError


class WrongCommand(CellwrightError):
    """A command of the chat was not written as it has to be."""

    code = "USAGE"


class UnknownCommand(WrongCommand):
    """No command of the chat is called that."""

    def __init__(self, name: str) -> None:
        near = difflib.get_close_matches(name, COMMANDS, n=2, cutoff=0.6)
        meant = " or ".join(f"/{each}" for each in near)
        hint = f"Did you mean {meant}?" if near else "/help lists them"
        super().__init__(f"There is no command `/{name}`", hint=hint)


@dataclass(frozen=True, slots=True)
class Command:
    """How a command is written, and what it does."""

    usage: str
    about: str


COMMANDS = {
    "open": Command("/open [NB]", "open a notebook, as in an editor; alone: close it"),
    "select": Command("/select [CELLS]", "select cells by id, index or range; alone: none"),
    "attach": Command("/attach FILE|#TOOL", "attach a file or a tool to what you ask"),
    "detach": Command("/detach [FILE|#TOOL]", "take it away; alone: all that is attached"),
    "mode": Command("/mode [ask|edit|agent]", "what the assistant may do"),
    "model": Command("/model [NAME]", "which model answers, as provider:name or direct"),
    "tools": Command("/tools", "which tools there are now, and why others are not"),
    "context": Command("/context", "what the model would be told now"),
    "review": Command(
        "/review [reject CELL]", "the changes of the last turn, by cell; accept or reject each"
    ),
    "undo": Command("/undo", "take back the changes of the last turn, with its outputs"),
    "expand": Command("/expand [N]", "a card in full; Ctrl-O: the last one"),
    "save": Command("/save [FILE]", "the chat as Markdown, or as JSON by the file's name"),
    "help": Command("/help [COMMAND]", "this list"),
    "quit": Command("/quit", "leave; Ctrl-D does so, too"),
}
_KEYS = (
    ("@file, #tool", "in what you write: attaches a file, names a tool; Tab completes them"),
    ("Enter, Alt-Enter", "sends it; begins a new line"),
    ("Ctrl-C", "interrupts the kernel while a cell runs, and otherwise the turn"),
)
_SAME = {"exit": "quit", "q": "quit", "?": "help"}


def parse(line: str) -> tuple[str, list[str]]:
    """The name of a command, and its words; quotes hold words together.

    Raises:
        UnknownCommand: there is none of that name.
        WrongCommand: a quote does not end.
    """
    name, _, rest = line.removeprefix("/").partition(" ")
    name = _SAME.get(name.strip().lower(), name.strip().lower())
    if name not in COMMANDS:
        raise UnknownCommand(name)
    try:
        return name, shlex.split(rest)
    except ValueError:
        raise WrongCommand(f"A quote does not end in `{line}`") from None


def is_command(line: str) -> bool:
    """Whether a line is a command; a path at the beginning of a sentence is none."""
    if not line.startswith("/"):
        return False
    first = line.split(maxsplit=1)[0]
    return "/" not in first[1:]


def help_rows(name: str | None = None) -> list[tuple[str, str]]:
    """All commands and keys, each with what it does; or one command."""
    if name is not None:
        wanted = name.removeprefix("/")
        if wanted not in COMMANDS:
            raise UnknownCommand(wanted)
        return [(COMMANDS[wanted].usage, COMMANDS[wanted].about)]
    return [*((command.usage, command.about) for command in COMMANDS.values()), ("", ""), *_KEYS]
