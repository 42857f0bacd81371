"""Starts a chat: from the command line and the settings to a session, and to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass, replace

import click

from cellwright.app.chats import chat_folder, open_chat, open_transcripts
from cellwright.app.workspaces import wants_engine
from cellwright.cli.chat.confirmation import Confirmer
from cellwright.cli.chat.display import JsonDisplay, PlainDisplay, make_brief_printer
from cellwright.cli.chat.session import ChatSession, buffer_log
from cellwright.cli.chat.slash_commands import NO_MODEL, find_tool
from cellwright.cli.chat.state import require_file, shorten_path
from cellwright.cli.options import print_warning, resolve_root
from cellwright.cli.output import INTERRUPTED, OK, exit_code, is_terminal
from cellwright.cli.questions import PlainAsker, read_in_thread, read_line
from cellwright.errors import CellwrightError
from cellwright.workspace.api.requests import find_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cellwright.assistant.chat import Chat
    from cellwright.assistant.conversation import Conversation
    from cellwright.assistant.requests import ChatState
    from cellwright.assistant.transcripts import Transcript, Transcripts
    from cellwright.cli.chat.display import ChatDisplay
    from cellwright.cli.chat.prompt import Prompt
    from cellwright.cli.chat.session import LogBuffer
    from cellwright.cli.options import CommandCall
    from cellwright.cli.questions import Asker
    from cellwright.workspace.api.requests import Mode
    from cellwright.workspace.workspace import AsyncWorkspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """What the command line asks for."""

    root: str | None
    cwd: str
    mode: Mode | None
    actor: str
    uses_engine: bool
    notebooks: tuple[str, ...] = ()
    open: str | None = None
    attach: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    cell: str | None = None
    model: str | None = None
    resume: str | None = None
    saves: bool = True
    prompt: str | None = None
    accept: bool = False
    yes: bool = False
    shows_prompts: bool = False
    is_interactive: bool = False


def run_chat(call: CommandCall, options: ChatOptions) -> int:
    """Hold a chat; returns the exit code."""
    with buffer_log() as log, _open_display(call, options) as display:
        try:
            return asyncio.run(_hold_chat(call, options, display, log))
        except asyncio.CancelledError:
            return INTERRUPTED
        except CellwrightError as error:
            if isinstance(display, JsonDisplay):
                display.print_error(error)
            else:
                call.output.fail(error)
            return exit_code(error)


async def _hold_chat(
    call: CommandCall, options: ChatOptions, display: ChatDisplay, log: LogBuffer
) -> int:
    opened = await _open_chat(options)
    try:
        return await _run_session(call, options, opened, display, log)
    finally:
        await opened.close()


async def _run_session(
    call: CommandCall,
    options: ChatOptions,
    opened: Conversation,
    display: ChatDisplay,
    log: LogBuffer,
) -> int:
    prompt: Prompt | None = None
    session: ChatSession | None = None
    if options.is_interactive:
        prompt = _make_prompt(opened, lambda: session)
    asker: Asker | None = prompt
    # A person at a terminal can be asked even if stdout is a pipe.
    can_ask = is_terminal(sys.stdin) and is_terminal(sys.stderr) and not call.output.as_json
    if asker is None and can_ask:
        asker = PlainAsker()
    confirmer = Confirmer(display, asker, yes=options.yes)
    opened.chat.guard.confirm = confirmer if confirmer.can_decide else None
    opened.chat.ask = confirmer.answer_input if asker is not None else None
    session = ChatSession(
        opened,
        display,
        confirmer,
        asker=asker,
        log=log,
        accept=options.accept,
        is_interactive=options.is_interactive,
    )
    session.turns.shows_prompts = options.shows_prompts
    with _handle_interrupts(session):
        if prompt is not None:
            _print_greeting(session, opened)
            session.print_warnings()
            return await session.run_prompts(prompt)
        if opened.chat.model.name == "direct" and not call.output.as_json:
            display.print_note(NO_MODEL)
        if options.prompt is not None:
            return await session.handle_line(options.prompt)
        return await _handle_stdin(session)


async def _handle_stdin(session: ChatSession) -> int:
    """Carry out each line of stdin; returns the first exit code that is not a success."""
    code = OK
    while not session.is_closed:
        line = await read_in_thread(read_line)
        if line is None:
            break
        if line.strip():
            ended = await session.handle_line(line.strip())
            code = code or ended
    return code


def _make_prompt(opened: Conversation, session: Any) -> Prompt:
    from cellwright.cli.chat.prompt import Completer, Prompt

    return Prompt(
        Completer(opened.chat, opened.state),
        chat_folder() / "history" if opened.transcripts is not None else None,
        status=lambda: session().status_line(),
        expand=lambda: session().expand_last_card(),
    )


def _print_greeting(session: ChatSession, opened: Conversation) -> None:
    display = session.display
    display.print_note(f"Cellwright chat · {session.status_line().strip()} · /help")
    if opened.chat.model.name == "direct":
        display.print_note(NO_MODEL)
    if opened.chat.history:
        count = sum(message.role == "user" for message in opened.chat.history)
        display.print_note(f"Continuing chat {opened.transcript.id}, {count} questions so far")
    display.print_gap()


@contextlib.contextmanager
def _handle_interrupts(session: ChatSession) -> Iterator[None]:
    """Let Ctrl-C interrupt the turn that runs; without one it ends the command."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def press() -> None:
        if session.turns.is_running:
            session.turns.interrupt()
        elif task is not None:
            task.cancel()

    with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
        loop.add_signal_handler(signal.SIGINT, press)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.remove_signal_handler(signal.SIGINT)


@contextlib.contextmanager
def _open_display(call: CommandCall, options: ChatOptions) -> Iterator[ChatDisplay]:
    """The display for a program, a pipe or a terminal."""
    if call.output.as_json:
        yield JsonDisplay()
    elif not is_terminal(sys.stdout) or os.environ.get("TERM", "dumb") == "dumb":
        yield PlainDisplay(call.output)
    else:
        from cellwright.cli.chat.terminal import Canvas, TerminalDisplay
        from cellwright.cli.render.screen import open_screen

        sys.stdout.flush()
        with open_screen(width=None, expanded=False, outputs=True, images="auto", pager=False) as (
            screen,
            view,
        ):
            brief = None if options.is_interactive else make_brief_printer(call.output)
            yield TerminalDisplay(Canvas(screen, view), brief)


# -- what a chat needs ----------------------------------------------------------------------


async def _open_chat(options: ChatOptions) -> Conversation:
    """Open the chat that the options name.

    Raises:
        CellwrightError: something that they name is missing or not allowed.
    """
    root, cwd = _resolve_folders(options)
    resumed, notebooks = _find_resumed(options, open_transcripts(), root)
    # The built-in assistant of a resumed chat gives way to the model of the settings.
    resumed_model = resumed.model if resumed is not None and resumed.model != "direct" else None
    opened = open_chat(
        root,
        cwd=cwd,
        actor=options.actor,
        mode=options.mode or "ask",
        engine=options.uses_engine and wants_engine(),
        model=options.model or resumed_model,
        saves=options.saves,
        warn=print_warning,
    )
    opened.state.cell = options.cell
    try:
        await _fill_state(opened.state, options, notebooks, opened.chat)
        if resumed is not None:
            await opened.resume(resumed if options.cell is None else replace(resumed, desk={}))
            if options.mode is None:
                opened.state.mode = find_mode(resumed.mode) or opened.state.mode
    except BaseException:
        await opened.close()
        raise
    return opened


def _resolve_folders(options: ChatOptions) -> tuple[str, str]:
    """The root, and the folder in it that relative names start from."""
    root = resolve_root(options.root, options.cwd)
    inside = f"{os.path.realpath(options.cwd)}/".startswith(
        f"{os.path.realpath(root).rstrip('/')}/"
    )
    return root, options.cwd if inside else root


def _find_resumed(
    options: ChatOptions, transcripts: Transcripts, root: str
) -> tuple[Transcript | None, tuple[str, ...]]:
    """The chat to continue, and the named notebooks.

    The id of the chat is optional, so that the word after `--resume` may be a notebook.
    """
    if options.resume is None:
        return None, options.notebooks
    if options.resume.endswith(".ipynb") and not transcripts.has(options.resume):
        return transcripts.load(root=root), (options.resume, *options.notebooks)
    return transcripts.load(options.resume or None, root), options.notebooks


async def _fill_state(
    state: ChatState, options: ChatOptions, notebooks: tuple[str, ...], chat: Chat
) -> None:
    """Open and attach what the command line names; its names start from its own folder."""
    workspace = await chat.workspaces.get(state.mode)
    named = [_rebase_path(name, options.cwd, state.cwd) for name in notebooks]
    for name in named:
        await workspace.open(name).load()
        state.attach(name)
    if options.open is not None:
        state.open = _rebase_path(options.open, options.cwd, state.cwd)
        await workspace.open(state.open).load()
    elif named:
        state.open = named[0]
    for name in options.attach:
        if name.startswith("#"):
            state.attach(f"#{find_tool(name, chat).reference}")
            continue
        path = _rebase_path(name, options.cwd, state.cwd)
        workspace.open(path)  # raises if it is outside the root
        require_file(path, state.cwd)
        state.attach(path)
    if options.cell is not None or options.select:
        await _select_cells(state, options, workspace)


def _rebase_path(name: str, start: str, cwd: str) -> str:
    """A name relative to one folder, as a name relative to another."""
    return shorten_path(os.path.join(start, os.path.expanduser(name)), cwd)  # noqa: PTH111, PTH118


async def _select_cells(state: ChatState, options: ChatOptions, workspace: AsyncWorkspace) -> None:
    """Select cells, and find the cell that the chat is about."""
    from cellwright.workspace.runs.choice import choose_cells

    if state.open is None:
        raise click.UsageError("--select and --cell need an open notebook")
    notebook = await workspace.open(state.open).load()
    refs = [ref for word in options.select for ref in word.split(",") if ref]
    state.selected = tuple(cell.handle for cell in choose_cells(notebook, refs))
    if options.cell is not None:
        state.cell = notebook.cell(options.cell).handle
