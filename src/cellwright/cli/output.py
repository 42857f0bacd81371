"""What goes to stdout, what to stderr, and how a command ends.

stdout is data, stderr is talk. With `--json`, stdout is one object: `ok`, `data`, `error`.
"""

from __future__ import annotations

import json
import os
import sys

import click

from cellwright.errors import (
    CellFailed,
    CellwrightError,
    ConfigError,
    Conflict,
    EngineError,
    ExecutionCancelled,
    ExecutionTimedOut,
    KernelError,
    Locked,
    ModeForbids,
    ModelError,
    ModelNotConfigured,
    OwnedElsewhere,
    UnknownModel,
    UnknownRevision,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

OK, FAILED, USAGE, BAD_NOTEBOOK, KERNEL, FORBIDDEN, CONFLICT = 0, 1, 2, 3, 4, 5, 6
INTERNAL, TIMEOUT, INTERRUPTED = 70, 124, 130


def exit_code(error: CellwrightError) -> int:
    """The exit code that an error of ours ends a command with."""
    if isinstance(error, (Conflict, OwnedElsewhere, UnknownRevision)):
        return CONFLICT
    if isinstance(error, ModeForbids):
        return FORBIDDEN
    if isinstance(error, (Locked, ExecutionTimedOut)):
        return TIMEOUT
    if isinstance(error, CellFailed):
        return FAILED
    if isinstance(error, ExecutionCancelled):
        return INTERRUPTED
    if isinstance(error, (ConfigError, ModelNotConfigured, UnknownModel)):
        return USAGE
    if isinstance(error, (EngineError, KernelError, ModelError)):
        return KERNEL
    return INTERNAL if error.code == CellwrightError.code else BAD_NOTEBOOK


class Unexpected(CellwrightError):
    """Something went wrong that we did not foresee."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(
            f"Unexpected {type(cause).__name__}: {cause}",
            hint="This is a bug of Cellwright; --verbose shows where",
        )
        self.__cause__ = cause


class Output:
    """How this call of the command wants to be answered."""

    def __init__(self, *, as_json: bool, quiet: bool = False, verbose: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Output:
        """As the words of a command line say, for errors that come before it is parsed."""
        return cls(as_json="--json" in words, verbose="--verbose" in words or "-v" in words)

    def data(self, value: Any, text: str | Iterable[str], *, styled: bool = False) -> None:
        """Print the answer: the value with `--json`, the text otherwise, exactly as it is.

        `styled` text has been made for a terminal: it may hold colours of ours, and nothing else.
        """
        if self.as_json:
            print_json({"ok": True, "data": value, "error": None})
            return
        text = text if isinstance(text, str) else "".join(text)
        # To a pipe exactly as it is; a terminal would obey what a notebook tells it.
        write(printable(text) if is_terminal(sys.stdout) and not styled else text)

    def say(self, text: str, *, color: str | None = None) -> None:
        """Tell a person something that is no data."""
        if not self.quiet and not self.as_json:
            click.secho(text, fg=color, err=True, color=colors(sys.stderr))

    def warn(self, warnings: Iterable[str]) -> None:
        """Tell what did not work out, though the command did."""
        if not self.as_json:
            for warning in warnings:
                click.secho("warning: ", fg="yellow", nl=False, err=True, color=colors(sys.stderr))
                click.echo(one_line(warning), err=True)

    def fail(self, error: CellwrightError) -> None:
        """Tell what went wrong and what to do next."""
        if self.as_json:
            print_json({"ok": False, "data": None, "error": describe_error(error)})
            return
        if self.verbose:
            import traceback

            traceback.print_exception(error)
        _complain(error.message, error.hint)
        for conflict in getattr(error, "cells", ()):
            _show_conflict(conflict)


def describe_error(error: CellwrightError) -> dict[str, Any]:
    """An error as data; of a conflict also what every side holds."""
    shape: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }
    if isinstance(error, Conflict):
        from cellwright.workspace.answers import describe_conflict

        shape["cells"] = [describe_conflict(conflict) for conflict in error.cells]
    return shape


def usage_failure(error: click.ClickException, *, as_json: bool) -> int:
    """Tell that the command line itself was wrong."""
    context = getattr(error, "ctx", None)
    hint = f"Try '{context.command_path} --help'" if context is not None else None
    if as_json:
        described = {"code": "USAGE", "message": one_line(error.format_message()), "hint": hint}
        print_json({"ok": False, "data": None, "error": {**described, "retryable": False}})
        return USAGE
    _complain(one_line(error.format_message()), hint)
    return USAGE


def print_json(value: Any) -> None:
    """One object on stdout, in one line."""
    # A lone surrogate in a source must not end the command; JSON can escape it.
    text = json.dumps(value, ensure_ascii=False)
    if is_terminal(sys.stdout) and not text.isprintable():
        text = json.dumps(value)  # it would obey a C1 control, and turn round what bidi says
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = json.dumps(value).encode()
    write_bytes(data + b"\n")


def write(text: str) -> None:
    """Write data to stdout, exactly, as UTF-8; a lone surrogate as `write` reads it back."""
    write_bytes(text.encode("utf-8", "surrogatepass"))


class ReaderGone(Exception):
    """Whoever read our output has had enough; not an OSError, which click has its own way with."""


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout.

    Raises:
        ReaderGone: the other end of the pipe was closed.
    """
    if sys.stdout is None:  # closed, as under a daemon: nobody listens
        return
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        let_go_of_stdout()
        raise ReaderGone from None
    except OSError:
        let_go_of_stdout()
        raise


def let_go_of_stdout() -> None:
    """Have no more of it: what waits in its buffer would fail again when Python ends."""
    if sys.stdout is None:
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # it is no file of the system's
    sys.stdout = None


def read_input(name: str | None) -> str:
    """Text from a file, or from stdin if the name is `-` or missing."""
    if name is None or name == "-":
        if sys.stdin is None:
            raise click.UsageError("There is no standard input to read from")
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


def colors(stream: Any) -> bool:
    """Whether to colour what goes to a stream."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def is_terminal(stream: Any) -> bool:
    """Whether a person looks at a stream, which may be closed."""
    return stream is not None and bool(stream.isatty())


def _complain(message: str, hint: str | None) -> None:
    click.secho("error: ", fg="red", nl=False, err=True, color=colors(sys.stderr))
    click.echo(message, err=True)
    if hint:
        click.echo(err=True)
        click.secho("hint: ", fg="cyan", nl=False, err=True, color=colors(sys.stderr))
        click.echo(hint, err=True)


def _show_conflict(conflict: Any) -> None:
    click.echo(f"\ncell {one_line(conflict.handle)}: {one_line(conflict.reason)}", err=True)
    for name, side in (("now", conflict.current), ("yours", conflict.other)):
        if side is not None:
            click.secho(f"--- {name}", fg="yellow", err=True, color=colors(sys.stderr))
            click.echo(printable(side), err=True)


def printable(text: str) -> str:
    """Text from a notebook without what would drive the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else _visible(c) for c in text)


def one_line(text: str) -> str:
    """A name or a label from outside, which must not start a line of its own."""
    return printable(text).replace("\n", "␊").replace("\t", " ")


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures
    return character if code > 0xFFFF else f"\\u{code:04x}"
