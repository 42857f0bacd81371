"""Standard output, standard error and exit codes; and what to type next after an error.

Data goes to stdout, messages to stderr. With `--json`, stdout is one object: `ok`, `data`, `error`.
Whatever is printed for a person passes through here, and nothing in it is obeyed by a terminal or
hidden from the reader, wherever it came from.
"""

from __future__ import annotations

import os
import sys

import click

from cellwright.errors import (
    CellFailed,
    CellwrightError,
    ChatBusy,
    ConfigError,
    Conflict,
    EditorError,
    EngineError,
    ExecutionCancelled,
    ExecutionTimedOut,
    KernelError,
    Locked,
    ModeForbids,
    ModelError,
    ModelNotConfigured,
    OwnedElsewhere,
    SystemRefused,
    UnknownModel,
    UnknownRevision,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from cellwright.workspace.runs.execution import Execution


OK, FAILED, USAGE, BAD_NOTEBOOK, KERNEL, FORBIDDEN, CONFLICT = 0, 1, 2, 3, 4, 5, 6
INTERNAL, TIMEOUT, INTERRUPTED = 70, 124, 130

STATUS_CODES = {
    "ok": OK,
    "error": FAILED,
    "timed_out": TIMEOUT,
    "cancelled": INTERRUPTED,
    "died": KERNEL,
    "pending": FAILED,
}
"""The exit code for the status of a cell."""

STATUS_SIGNS = {
    "ok": ("✓", "green"),
    "error": ("✗", "red"),
    "timed_out": ("✗", "red"),
    "died": ("✗", "red"),
    "cancelled": ("✗", "yellow"),
    "running": ("●", "cyan"),
    "pending": ("○", "bright_black"),
    "never": ("○", "bright_black"),
}
"""A sign and a colour for each status of a cell or a run; the colour only repeats the sign."""

STATUS_ERRORS = {
    "error": "CELL_FAILED",
    "timed_out": "EXECUTION_TIMED_OUT",
    "cancelled": "EXECUTION_CANCELLED",
    "died": "KERNEL_DIED",
}
"""The error code for the status of a cell that failed."""


def exit_code(error: CellwrightError | type[CellwrightError]) -> int:
    """The exit code of a command that ends with this error, or this kind of error."""
    kind = error if isinstance(error, type) else type(error)
    if issubclass(kind, (ChatBusy, Conflict, OwnedElsewhere, UnknownRevision)):
        return CONFLICT
    if issubclass(kind, ModeForbids):
        return FORBIDDEN
    if issubclass(kind, (Locked, ExecutionTimedOut)):
        return TIMEOUT
    if issubclass(kind, CellFailed):
        return FAILED
    if issubclass(kind, ExecutionCancelled):
        return INTERRUPTED
    if kind.code == "USAGE" or issubclass(kind, (ConfigError, ModelNotConfigured, UnknownModel)):
        return USAGE
    if issubclass(kind, (EngineError, KernelError, ModelError, EditorError)):
        return KERNEL
    return INTERNAL if error.code == CellwrightError.code else BAD_NOTEBOOK


class Unexpected(CellwrightError):
    """A bug in Cellwright: an exception that is not one of its own errors."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(
            f"Unexpected {type(cause).__name__}: {cause}",
            hint="This is a bug in Cellwright; --verbose shows the traceback",
        )
        self.__cause__ = cause


class CommandOutput:
    """Prints answers, messages and errors, as the options of this call of a command say."""

    def __init__(
        self, command: str = "", *, as_json: bool, quiet: bool = False, verbose: bool = False
    ) -> None:
        self.command = command
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose

    @classmethod
    def of_words(cls, words: Sequence[str]) -> CommandOutput:
        """Read the options from the words of a command line that could not be parsed."""
        is_verbose = "--verbose" in words or "-v" in words
        return cls(words[0] if words else "", as_json="--json" in words, verbose=is_verbose)

    def data(self, value: Any, text: str | Iterable[str], *, styled: bool = False) -> None:
        """Print the answer: the value with `--json`, otherwise the text, unchanged.

        The value is plain data, or has a `to_json` that makes it so. `styled` text has colours,
        which stay; a command makes visible what it takes from elsewhere, or it could add some.
        """
        if self.as_json:
            print_json({"ok": True, "data": value, "error": None})
            return
        text = text if isinstance(text, str) else "".join(text)
        # A terminal would obey escape sequences of a notebook; a pipe gets them unchanged.
        if is_terminal(sys.stdout):
            text = _printable_in_colors(text) if styled else printable(text)
        write(text)

    def say(self, text: str, *, color: str | None = None) -> None:
        """Print a message for people to stderr."""
        if not self.quiet and not self.as_json:
            talk(one_line(text), color=color)

    def warn(self, warnings: Iterable[str]) -> None:
        """Print warnings of a command that succeeded."""
        if not self.as_json:
            for warning in warnings:
                talk("warning: ", color="yellow", nl=False)
                talk(one_line(warning))

    def report_failure(self, message: str, details: Iterable[str] = ()) -> None:
        """Print that something of a command failed that is not an error of the command itself."""
        if not self.as_json:
            click.secho("error: ", fg="red", nl=False, err=True, color=uses_colors(sys.stderr))
            click.echo(one_line(message), err=True)
            for line in details:
                click.echo(f"    {printable(line)}", err=True)

    def fail(self, error: CellwrightError) -> None:
        """Print an error with its hint."""
        if self.as_json:
            print_json({"ok": False, "data": None, "error": describe_error(error, self.command)})
            return
        if self.verbose:
            import traceback

            click.echo(printable("".join(traceback.format_exception(error))), err=True)
        _print_error(error.message, complete_hint(error, self.command))
        for conflict in getattr(error, "cells", ()):
            _show_conflict(conflict)


def describe_error(error: CellwrightError, command: str = "") -> dict[str, Any]:
    """Describe an error of a command as data; a conflict includes the text of both sides."""
    shape: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "hint": complete_hint(error, command),
        "retryable": error.retryable,
    }
    if isinstance(error, Conflict):
        from cellwright.workspace.api.answers import describe_conflict

        shape["cells"] = [describe_conflict(conflict) for conflict in error.cells]
    return shape


def describe_problem(code: str, message: str, hint: str | None = None) -> dict[str, Any]:
    """Describe what went wrong as data, where no error of ours was raised."""
    return {"code": code, "message": message, "hint": hint, "retryable": False}


def fail_usage(error: click.ClickException, *, as_json: bool) -> int:
    """Print that the command line is wrong; returns the exit code."""
    context = getattr(error, "ctx", None)
    hint = f"Try '{context.command_path} --help'" if context is not None else None
    if as_json:
        problem = describe_problem("USAGE", one_line(error.format_message()), hint)
        print_json({"ok": False, "data": None, "error": problem})
        return USAGE
    _print_error(one_line(error.format_message()), hint)
    return USAGE


def print_json(value: Any) -> None:
    """Print one object in one line of stdout; an answer in it is printed as its `to_json`."""
    import json

    # A lone surrogate in a source must not stop the command; JSON can escape it.
    text = json.dumps(value, ensure_ascii=False, default=_to_json)
    if is_terminal(sys.stdout) and not text.isprintable():
        text = json.dumps(value, default=_to_json)  # escapes C1 controls and bidi characters
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = json.dumps(value, default=_to_json).encode()
    write_bytes(data + b"\n")


def _to_json(value: Any) -> Any:
    return value.to_json()


def write(text: str) -> None:
    """Write text to stdout as UTF-8; `cellwright write` reads lone surrogates back."""
    write_bytes(text.encode("utf-8", "surrogatepass"))


class ReaderGone(Exception):
    """The reader of our output has closed the pipe; not an `OSError`, which click would catch."""


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout.

    Raises:
        ReaderGone: the other end of the pipe was closed.
    """
    if sys.stdout is None:  # closed, as under a daemon
        return
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()
        raise ReaderGone from None
    except OSError as error:
        discard_stdout()
        raise SystemRefused(
            f"{error.strerror or error} (standard output)",
            hint="The command did its work, but its answer could not be printed",
        ) from None


def talk(text: str = "", *, color: str | None = None, nl: bool = True) -> None:
    """Print a message to stderr; if it cannot be printed, the command works all the same."""
    try:
        click.secho(text, fg=color, nl=nl, err=True, color=uses_colors(sys.stderr))
    except OSError:
        _discard(sys.stderr)
        sys.stderr = None


def discard_stdout() -> None:
    """Redirect stdout to nowhere: flushing its buffer at exit would fail again."""
    _discard(sys.stdout)
    sys.stdout = None


def _discard(stream: Any) -> None:
    if stream is None:
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # not a real file


def read_input(name: str | None) -> str:
    """Read text from a file, or from stdin if the name is `-` or missing."""
    if name is None or name == "-":
        if sys.stdin is None:
            raise click.UsageError("There is no standard input")
        if sys.stdin.isatty():
            click.echo("Reading from the terminal; end with Ctrl-D", err=True)
        data = sys.stdin.buffer.read()
    else:
        try:
            with open(name, "rb") as file:  # noqa: PTH123  # cold start: no pathlib
                data = file.read()
        except OSError as error:
            raise click.FileError(name, error.strerror or str(error)) from None
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"The input is not UTF-8 at byte {error.start}") from None


def uses_colors(stream: Any) -> bool:
    """Whether text written to a stream may have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def measure_width() -> int | None:
    """The columns of the terminal of stdout; None in a pipe, where lines are never cut."""
    if not is_terminal(sys.stdout):
        return None
    import shutil

    return max(20, shutil.get_terminal_size().columns)


def fit(text: str, width: int | None) -> str:
    """A line cut to a width, with a sign at its end; uncut without one."""
    if width is None or len(text) * 2 <= width:
        return text
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def style_status(status: str, width: int) -> str:
    """A status with its sign, padded, and coloured for stdout."""
    sign, color = STATUS_SIGNS[status]
    text = f"{sign} {status:{width}}"
    return click.style(text, fg=color) if uses_colors(sys.stdout) else text


def is_terminal(stream: Any) -> bool:
    """Whether a stream, which may be closed, is a terminal."""
    return stream is not None and bool(stream.isatty())


def _print_error(message: str, hint: str | None) -> None:
    talk("error: ", color="red", nl=False)
    talk(one_line(message))
    if hint:
        talk()
        talk("hint: ", color="cyan", nl=False)
        talk(one_line(hint))


def _show_conflict(conflict: Any) -> None:
    talk(f"\ncell {one_line(conflict.handle)}: {one_line(conflict.reason)}")
    for name, side in (("now", conflict.current), ("yours", conflict.other)):
        if side is not None:
            talk(f"--- {name}", color="yellow")
            talk(printable(side))


def printable(text: str) -> str:
    """Text from a notebook, with everything visible that a terminal would obey or hide."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    from cellwright.outputs.sanitize import make_visible

    shown = make_visible(text)
    if shown.replace("\n", "").replace("\t", "").isprintable():
        return shown
    # What is left has no shape or is a strange blank; beyond, fonts know more than Python.
    return "".join(
        c if c.isprintable() or c in "\n\t" or ord(c) > 0xFFFF else f"<U+{ord(c):04X}>"
        for c in shown
    )


def _printable_in_colors(text: str) -> str:
    """The same for text with colours, which stay."""
    import re

    parts = re.split(r"(\x1b\[[0-9;]*m)", text)
    return "".join(part if place % 2 else printable(part) for place, part in enumerate(parts))


def one_line(text: str) -> str:
    """A name or label from a notebook, on one line and with control characters made visible."""
    return printable(text).replace("\n", "␊").replace("\t", " ")


_KERNEL = "`--kernel NAME`, one of `cellwright kernel specs`"
_RUNNER = f"{_KERNEL}, or `--runner`"

NEXT_STEPS = {
    "NEEDS_UPGRADE": "`cellwright upgrade NB`",
    "UNKNOWN_REVISION": "`cellwright read NB --json`",
    "JOURNAL_UNAVAILABLE": "see `cellwright doctor`",
    "CHANGE_NOT_FOUND": "`cellwright log NB`",
    "NOTHING_TO_UNDO": "`cellwright log NB`, `cellwright backup NB --restore ID^`",
    "KERNEL_MISSING": "see `cellwright kernel specs`",
    "KERNEL_MISSING run": _KERNEL,
    "KERNEL_MISSING eval": _RUNNER,
    "KERNEL_START_FAILED": "see `cellwright kernel specs`",
    "KERNEL_START_FAILED run": _KERNEL,
    "KERNEL_START_FAILED eval": _RUNNER,
    "KERNEL_CANNOT eval": "`--reset`, or `-s NAME`",
    "KERNEL_CANNOT run": "`--restart`",
    "SESSION_NOT_FOUND": "`cellwright sessions`",
    "MODE_FORBIDS": "`--mode agent`",
    "MODE_FORBIDS chat": "`/mode agent`, or `--mode agent` for the next chat",
    "OUTSIDE_ROOT": "`--root DIR`",
    "OWNED_ELSEWHERE": "without `--no-engine`, or `cellwright kernel shutdown NB`",
    "RUN_NOT_FOUND": "`cellwright runs`",
    "ENGINE_UNAVAILABLE": "`cellwright engine logs`, `--no-engine`",
    "ENGINE_DRAINING": "`cellwright engine stop`",
}
"""The next step by error code; after a space, the command that it is for."""


def complete_hint(error: CellwrightError, command: str = "") -> str | None:
    """Return the hint of an error, with the next step in the words of the command line."""
    step = NEXT_STEPS.get(f"{error.code} {command}") or NEXT_STEPS.get(error.code)
    return ": ".join(part for part in (error.hint, step) if part) or None


def complete_notes(execution: Execution, notebook: str) -> list[str]:
    """Return the notes of a cell that ran, and the command that brings lost variables back."""
    notes = list(execution.notes)
    if execution.replay and execution.cell:
        from shlex import quote

        command = f"cellwright run {quote(notebook)} --replay {quote(execution.cell)}"
        notes.append(f"`{command}` does that")
    return notes
