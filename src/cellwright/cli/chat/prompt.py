"""The prompt: history, completion, the mode before the line and the status below it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import Completer as ToolkitCompleter
from prompt_toolkit.completion import Completion
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

from cellwright.app.chats import FileNames, match_names
from cellwright.cli.chat.slash_commands import COMMANDS
from cellwright.cli.questions import SIGN, discard_typing
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line
from cellwright.workspace.api.requests import MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyPressEvent

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


_MOST_HISTORY = 1_000_000
_STYLE = Style.from_dict(
    {
        "bottom-toolbar": "noreverse fg:ansibrightblack",
        "mode.ask": "bold fg:ansiblue",
        "mode.edit": "bold fg:ansiyellow",
        "mode.agent": "bold fg:ansimagenta",
        "sign": "fg:ansibrightblack",
        "key": "bold",
        "completion-menu": "noreverse bg:ansidefault fg:ansidefault",
        "completion-menu.completion": "noreverse bg:ansidefault fg:ansidefault",
        "completion-menu.completion.current": "noreverse bg:ansidefault bold fg:ansicyan",
        "completion-menu.meta.completion": "noreverse bg:ansidefault fg:ansibrightblack",
        "completion-menu.meta.completion.current": "noreverse bg:ansidefault fg:ansibrightblack",
        "scrollbar.background": "bg:ansidefault",
        "scrollbar.button": "bg:ansidefault",
    }
)


class CtrlC(Exception):
    """Ctrl-C was pressed; a `KeyboardInterrupt` would end the event loop."""


class _ToolkitAdapter(ToolkitCompleter):
    def __init__(self, completer: Completer) -> None:
        self._completer = completer

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Any:
        """Offer nothing: all completions are asynchronous."""
        del document, complete_event
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Offer what our completer finds."""
        del complete_event
        for found in await self._completer.complete(document.text_before_cursor):
            yield Completion(
                found.text,
                -found.length,
                display=one_line(found.text),
                display_meta=one_line(found.about),
            )


class Prompt:
    """Reads prompts, and asks what turns need to know.

    `on_interrupt` is called when Ctrl-C is pressed while a cell waits for a line.

    Args:
        completer: offers completions.
        history: the file of earlier prompts; None to keep them in memory.
        status: makes the line below the prompt.
        expand: shows the last card in full.
    """

    def __init__(
        self,
        completer: Completer,
        history: Path | None,
        *,
        status: Callable[[], str],
        expand: Callable[[], object],
    ) -> None:
        self.on_interrupt: Callable[[], object] | None = None
        self._status = status
        self._expand = expand
        self._session: PromptSession[str] = PromptSession(
            history=_open_history(history),
            completer=_ToolkitAdapter(completer),
            complete_while_typing=True,
            key_bindings=self._keys(),
            multiline=True,
            prompt_continuation="",
            bottom_toolbar=self._toolbar,
            style=_STYLE,
            reserve_space_for_menu=6,
            enable_suspend=True,
        )

    async def read(self, mode: str) -> str:
        """Read a prompt.

        Raises:
            CtrlC: it was pressed at an empty prompt.
            EOFError: Ctrl-D, or the terminal was closed.
        """
        message = FormattedText([(f"class:mode.{mode}", mode), ("class:sign", f" {SIGN} ")])
        return await self._session.prompt_async(
            message,
            prompt_continuation=" " * (len(mode) + 3),
            handle_sigint=False,
            set_exception_handler=False,
        )

    async def line(self, prompt: str, *, password: bool = False) -> str | None:
        """Ask for a line of text; None if the person gives none."""
        keys = KeyBindings()
        keys.add("c-c")(lambda event: event.app.exit(exception=CtrlC))
        session: PromptSession[str] = PromptSession(
            one_line(prompt), style=_STYLE, key_bindings=keys, is_password=password
        )
        try:
            return await session.prompt_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            return None
        except CtrlC:
            if self.on_interrupt is not None:
                self.on_interrupt()
            return None

    async def key(self, choices: Mapping[str, str]) -> str | None:
        """Ask for one key, without Enter; what was typed before the question is discarded."""
        discard_typing()
        keys = KeyBindings()

        def choose(key: str) -> Callable[[KeyPressEvent], None]:
            return lambda event: event.app.exit(result=key)

        for key in choices:
            keys.add(key)(choose(key))
            keys.add(key.upper())(choose(key))
        for name in ("c-c", "c-d", "escape"):
            keys.add(name)(choose(""))
        keys.add("<any>")(lambda _: None)
        session: PromptSession[str] = PromptSession(
            key_bindings=keys, style=_STYLE, erase_when_done=True
        )
        message = FormattedText([("", "    ")])
        for key, meaning in choices.items():
            message += [("class:key", key), ("class:sign", f" {meaning}   ")]
        message.append(("class:sign", f"{SIGN} "))
        try:
            found = await session.prompt_async(
                message, handle_sigint=False, set_exception_handler=False
            )
        except EOFError:
            return None
        return found or None

    def _toolbar(self) -> FormattedText:
        return FormattedText([("", self._status())])

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            state = buffer.complete_state
            if state is not None and state.current_completion is not None:
                buffer.complete_state = None  # the text has it already
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                event.app.exit(exception=CtrlC)

        @keys.add("c-o")
        def _(event: KeyPressEvent) -> None:
            del event
            run_in_terminal(self._expand)

        return keys


def _open_history(path: Path | None) -> History:
    """Open the history in a file that only its owner can read, and shorten a long one."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
        if path.stat().st_size > _MOST_HISTORY:
            kept = path.read_bytes()[-_MOST_HISTORY // 2 :]
            path.write_bytes(kept[kept.find(b"\n#") + 1 :])
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
