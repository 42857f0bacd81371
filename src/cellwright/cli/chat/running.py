"""Run the command: who types, who looks on, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from cellwright.cli.chat.asking import PlainAsker
from cellwright.cli.chat.confirming import Confirmer
from cellwright.cli.chat.display import JsonDisplay, PlainDisplay, brief_printer
from cellwright.cli.chat.ending import code_of_error
from cellwright.cli.chat.lines import next_line
from cellwright.cli.chat.opening import Wishes, open_chat
from cellwright.cli.chat.sitting import Sitting
from cellwright.cli.chat.telling import NO_MODEL
from cellwright.cli.chat.warnings import kept_warnings
from cellwright.cli.output import INTERRUPTED, OK, is_terminal
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cellwright.cli.chat.asking import Asker
    from cellwright.cli.chat.display import Display
    from cellwright.cli.chat.opening import Opened
    from cellwright.cli.chat.prompt import Prompt
    from cellwright.cli.chat.warnings import Warnings
    from cellwright.cli.options import Call


def run(call: Call, notebooks: tuple[str, ...], options: dict[str, Any], *, talks: bool) -> int:
    """Hold a chat; returns the exit code."""
    with kept_warnings() as warnings, _display(call, talks=talks) as display:
        try:
            work = _hold(call, notebooks, options, display, warnings, talks=talks)
            return asyncio.run(work)
        except asyncio.CancelledError:
            return INTERRUPTED
        except CellwrightError as error:
            if isinstance(display, JsonDisplay):
                display.problem(error)
            else:
                call.output.fail(error)
            return code_of_error(error)


async def _hold(
    call: Call,
    notebooks: tuple[str, ...],
    options: dict[str, Any],
    display: Display,
    warnings: Warnings,
    *,
    talks: bool,
) -> int:
    opened = await open_chat(
        Wishes(
            root=options["root"],
            cwd=options["cwd"],
            mode=options["mode"],
            actor=options["actor"],
            uses_engine=call.uses_engine,
            notebooks=notebooks,
            open=options["opened"],
            attach=options["attach"],
            select=options["select"],
            cell=options["cell"],
            model=options["model"],
            resume=options["resume"],
            keeps=not options["no_save"],
        )
    )
    try:
        return await _sit(call, opened, options, display, warnings, talks=talks)
    finally:
        await opened.chat.workspaces.close()


async def _sit(
    call: Call,
    opened: Opened,
    options: dict[str, Any],
    display: Display,
    warnings: Warnings,
    *,
    talks: bool,
) -> int:
    prompt: Prompt | None = None
    sitting: Sitting | None = None
    if talks:
        prompt = _prompt(opened, lambda: sitting)
    asker: Asker | None = prompt
    # Somebody at a terminal can be asked also where the answer goes into a pipe.
    if (
        asker is None
        and is_terminal(sys.stdin)
        and is_terminal(sys.stderr)
        and not call.output.as_json
    ):
        asker = PlainAsker()
    confirmer = Confirmer(display, asker, yes=options["yes"])
    opened.chat.guard.confirm = confirmer if confirmer.can_decide else None
    opened.chat.ask = confirmer.input if asker is not None else None
    sitting = Sitting(
        opened.chat,
        opened.desk,
        display,
        confirmer,
        asker=asker,
        settings=opened.settings,
        transcript=opened.transcript,
        transcripts=opened.transcripts,
        warnings=warnings,
        accept=options["accept"],
        is_watched=talks,
    )
    with _interruptible(sitting):
        if prompt is not None:
            _greet(sitting, opened)
            sitting.tell_warnings()
            return await sitting.talk(prompt)
        if opened.chat.model.name == "direct" and not call.output.as_json:
            display.note(NO_MODEL)
        if options["prompt"] is not None:
            return await sitting.take(options["prompt"])
        return await _read(sitting)


async def _read(sitting: Sitting) -> int:
    """Every line of stdin is a prompt or a command; the first code that is no success stands."""
    code = OK
    while not sitting.is_over:
        try:
            line = await next_line()
        except EOFError:
            break
        ended = await sitting.take(line)
        code = code or ended
    return code


def _prompt(opened: Opened, sitting: Any) -> Prompt:
    from cellwright.cli.chat.completion import Completer
    from cellwright.cli.chat.prompt import Prompt

    return Prompt(
        Completer(opened.chat, opened.desk),
        opened.folder / "history" if opened.transcripts is not None else None,
        status=lambda: sitting().status(),
        expand=lambda: sitting().expand_last(),
    )


def _greet(sitting: Sitting, opened: Opened) -> None:
    model = opened.chat.model.name
    display = sitting.display
    display.note(f"Cellwright chat · {sitting.status().strip()} · /help")
    if model == "direct":
        display.note(NO_MODEL)
    if opened.chat.history:
        count = sum(message.role == "user" for message in opened.chat.history)
        display.note(f"Going on with chat {opened.transcript.id}, {count} questions so far")
    display.gap()


@contextlib.contextmanager
def _interruptible(sitting: Sitting) -> Iterator[None]:
    """Ctrl-C is for the turn that goes on; without one it ends the command."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def press() -> None:
        if sitting.turns.is_going:
            sitting.turns.press()
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
def _display(call: Call, *, talks: bool) -> Iterator[Display]:
    """Who shows it: a terminal, a pipe, or JSON."""
    if call.output.as_json:
        yield JsonDisplay()
    elif not is_terminal(sys.stdout) or os.environ.get("TERM", "dumb") == "dumb":
        yield PlainDisplay(call.output)
    else:
        from cellwright.cli.chat.canvas import Canvas
        from cellwright.cli.chat.terminal import TerminalDisplay
        from cellwright.cli.render.screen import open_screen

        sys.stdout.flush()
        with open_screen(width=None, expanded=False, outputs=True, images="auto", pager=False) as (
            screen,
            view,
        ):
            brief = None if talks else brief_printer(call.output)
            yield TerminalDisplay(Canvas(screen, view), brief)
