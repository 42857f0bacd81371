"""Completes what the person types: commands, files, cells, and available tools."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cellwright.app.file_names import FileNames, match_names
from cellwright.cli.chat.slash_commands import COMMANDS
from cellwright.cli.chat.state import MODES
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.assistant.chat import Chat
    from cellwright.assistant.requests import ChatState

_half_file = re.compile(r"""(?<![\w@])@("?)([^\s"'`@]*|(?<=")[^"\n]*)$""").search
_half_tool = re.compile(r"(?<![\w#/&])#[A-Za-z0-9]*$").search
_MOST_OFFERED = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """A completion: `text` replaces the last `length` characters."""

    text: str
    length: int
    about: str = ""


class Completer:
    """Offers completions for the text before the cursor."""

    def __init__(self, chat: Chat, state: ChatState) -> None:
        self._chat = chat
        self._state = state
        self._files = FileNames(state.cwd)

    async def complete(self, text: str) -> list[Candidate]:
        """The completions at the end of a text."""
        if text.startswith("/"):
            name, space, rest = text.partition(" ")
            if not space:
                return _complete_commands(name)
            return await self._complete_arguments(name, rest.lstrip())
        if _half_tool(text):
            return await self._complete_tools(text)
        half = _half_file(text)
        return await self._complete_files(half[1], half[2]) if half else []

    async def _complete_tools(self, text: str) -> list[Candidate]:
        _, offer = await self._chat.look(self._state.build_request(text))
        half = _half_tool(text)
        about = {f"#{tool.reference}": tool.title for tool in offer.there}
        length = len(half[0]) if half else 0
        return [Candidate(name, length, about.get(name, "")) for name in offer.complete(text)]

    async def _complete_files(self, quote: str, half: str) -> list[Candidate]:
        length = 1 + len(quote) + len(half)
        found = match_names(await self._files.find(), half)
        return [Candidate(f"@{_quote_name(name)}", length) for name in found]

    async def _complete_arguments(self, name: str, half: str) -> list[Candidate]:
        if name == "/mode":
            return [Candidate(mode, len(half)) for mode in MODES if mode.startswith(half)]
        if name == "/open":
            notebooks = [each for each in await self._files.find() if each.endswith(".ipynb")]
            return [Candidate(each, len(half)) for each in match_names(notebooks, half)]
        if name == "/attach":
            if half.startswith("#"):
                return await self._complete_tools(half)
            return [
                Candidate(each, len(half)) for each in match_names(await self._files.find(), half)
            ]
        if name == "/detach":
            return [
                Candidate(each, len(half)) for each in match_names(self._state.attachments, half)
            ]
        if name == "/select":
            return await self._complete_cells(half)
        if name == "/help":
            known = [each for each in COMMANDS if each.startswith(half.removeprefix("/"))]
            return [Candidate(each, len(half)) for each in known]
        return []

    async def _complete_cells(self, half: str) -> list[Candidate]:
        if self._state.open is None:
            return []
        workspace = await self._chat.workspaces.get(self._state.mode)
        try:
            notebook = await workspace.open(self._state.open).load()
        except (CellwrightError, ValueError):
            return []
        last = half.rsplit(maxsplit=1)[-1] if half and not half.endswith(" ") else ""
        return [
            Candidate(cell.handle, len(last), f"cell {cell.index + 1}, {cell.type}")
            for cell in notebook.cells[:_MOST_OFFERED]
            if cell.handle.startswith(last)
        ]


def _complete_commands(half: str) -> list[Candidate]:
    return [
        Candidate(f"/{name}", len(half), command.about)
        for name, command in COMMANDS.items()
        if f"/{name}".startswith(half)
    ]


def _quote_name(name: str) -> str:
    return f'"{name}"' if re.search(r"[\s'`@]", name) else name
