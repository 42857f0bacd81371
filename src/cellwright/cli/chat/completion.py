"""How a half-typed line can go on: commands, files, cells, and the tools that are there."""

from __future__ import annotations

import asyncio
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellwright.cli.chat.desk import MODES
from cellwright.cli.chat.slash import COMMANDS
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from cellwright.assistant.chat import Chat
    from cellwright.cli.chat.desk import Desk

_half_file = re.compile(r"""(?<![\w@])@("?)([^\s"'`@]*|(?<=")[^"\n]*)$""").search
_half_tool = re.compile(r"(?<![\w#/&])#[A-Za-z0-9]*$").search
_HIDDEN = (".", "__pycache__", "node_modules")
_MOST_FILES = 5_000
_MOST_OFFERED = 200
_FRESH = 3.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to go on: `text` takes the place of the last `length` characters."""

    text: str
    length: int
    about: str = ""


class Files:
    """The files below a folder, notebooks first; looked up again after some seconds."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._found: list[str] = []
        self._when = -_FRESH

    async def names(self) -> list[str]:
        """Their names, relative to the folder."""
        if time.monotonic() - self._when > _FRESH:
            self._found = await asyncio.to_thread(self._look)
            self._when = time.monotonic()
        return self._found

    def _look(self) -> list[str]:
        found: list[str] = []
        for folder, folders, files in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
            shown = [name for name in sorted(files) if not name.startswith(".")]
            base = os.path.relpath(folder, self._folder)
            found += [name if base == "." else f"{base}/{name}" for name in shown]
            if len(found) >= _MOST_FILES:
                break
        found.sort(key=lambda name: (not name.endswith(".ipynb"), name.count("/"), name))
        return found[:_MOST_FILES]


class Completer:
    """Offers candidates for what was typed so far."""

    def __init__(self, chat: Chat, desk: Desk) -> None:
        self._chat = chat
        self._desk = desk
        self._files = Files(desk.cwd)

    async def candidates(self, text: str) -> list[Candidate]:
        """How a text can go on, at its end."""
        if text.startswith("/"):
            name, space, rest = text.partition(" ")
            if not space:
                return _commands(name)
            return await self._arguments(name, rest.lstrip())
        if _half_tool(text):
            return await self._tools(text)
        half = _half_file(text)
        return await self._mentions(half[1], half[2]) if half else []

    async def _tools(self, text: str) -> list[Candidate]:
        _, offer = await self._chat.look(self._desk.request(text))
        half = _half_tool(text)
        about = {f"#{tool.reference}": tool.title for tool in offer.there}
        length = len(half[0]) if half else 0
        return [Candidate(name, length, about.get(name, "")) for name in offer.complete(text)]

    async def _mentions(self, quote: str, half: str) -> list[Candidate]:
        length = 1 + len(quote) + len(half)
        found = _matching(await self._files.names(), half)
        return [Candidate(f"@{_quoted(name)}", length) for name in found]

    async def _arguments(self, name: str, half: str) -> list[Candidate]:
        if name == "/mode":
            return [Candidate(mode, len(half)) for mode in MODES if mode.startswith(half)]
        if name == "/open":
            notebooks = [each for each in await self._files.names() if each.endswith(".ipynb")]
            return [Candidate(each, len(half)) for each in _matching(notebooks, half)]
        if name == "/attach":
            if half.startswith("#"):
                return await self._tools(half)
            return [
                Candidate(each, len(half)) for each in _matching(await self._files.names(), half)
            ]
        if name == "/detach":
            return [Candidate(each, len(half)) for each in _matching(self._desk.attached, half)]
        if name == "/select":
            return await self._cells(half)
        if name == "/help":
            known = [each for each in COMMANDS if each.startswith(half.removeprefix("/"))]
            return [Candidate(each, len(half)) for each in known]
        return []

    async def _cells(self, half: str) -> list[Candidate]:
        if self._desk.open is None:
            return []
        workspace = await self._chat.workspaces.get(self._desk.mode)
        try:
            notebook = await workspace.open(self._desk.open).load()
        except (CellwrightError, ValueError):
            return []
        last = half.rsplit(maxsplit=1)[-1] if half and not half.endswith(" ") else ""
        return [
            Candidate(cell.handle, len(last), f"cell {cell.index + 1}, {cell.type}")
            for cell in notebook.cells[:_MOST_OFFERED]
            if cell.handle.startswith(last)
        ]


def _commands(half: str) -> list[Candidate]:
    return [
        Candidate(f"/{name}", len(half), command.about)
        for name, command in COMMANDS.items()
        if f"/{name}".startswith(half)
    ]


def _matching(names: list[str], half: str) -> list[str]:
    """The names that begin so, or whose last part does, then those that hold it."""
    low = half.lower()
    begins = [name for name in names if name.lower().startswith(low)]
    inside = [name for name in names if name.lower().rpartition("/")[2].startswith(low)]
    holds = [name for name in names if low in name.lower()]
    return list(dict.fromkeys([*begins, *inside, *holds]))[:_MOST_OFFERED]


def _quoted(name: str) -> str:
    return f'"{name}"' if re.search(r"[\s'`@]", name) else name
