"""Where a view is printed: the terminal or pipe that stdout is, or a pager."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from shutil import which

from rich.console import Console

from cellwright.cli.output import uses_colors
from cellwright.cli.render.images import Graphic, choose_mode
from cellwright.cli.render.layout import Gate
from cellwright.cli.render.view import CELL_SIZE, EVERYTHING, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, NoReturn

    from rich.console import RenderableType

PIPE_WIDTH = 80
NARROWEST = 20
_DEPTHS = {"1": "standard", "2": "256", "3": "truecolor"}  # as others read FORCE_COLOR


class Screen(Console):
    """A console that prints what comes from notebooks, and only that."""

    def show(self, part: RenderableType) -> None:
        """Print one part; everything passes the gate but pictures, made of pixels alone."""
        self.print(part if isinstance(part, Graphic) else Gate(part), crop=False)

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command, which ends quietly; rich would end the process."""
        raise BrokenPipeError


def make_screen(file: IO[str], width: int, *, colored: bool) -> Screen:
    """A screen of a given width; without colours it prints text and nothing else."""
    depth = _DEPTHS.get(os.environ.get("FORCE_COLOR", ""), "auto") if colored else None
    return Screen(
        file=file,
        width=width,
        height=10_000,  # nothing is ever cut to the height of the terminal
        force_terminal=colored,
        force_jupyter=False,
        color_system=depth,  # type: ignore[arg-type]  # one of rich's words
        no_color=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


@contextmanager
def open_screen(
    *, width: int | None, expanded: bool, outputs: bool, images: str, pager: bool
) -> Iterator[tuple[Screen, View]]:
    """The screen that stdout is, and how to show something on it."""
    is_terminal = sys.stdout.isatty()
    command = shlex.split(os.environ.get("PAGER") or "less") if pager and is_terminal else []
    paging = bool(command) and which(command[0]) is not None
    with _open_pager(command) if paging else _open_stdout() as file:
        columns, rows, cell_size = (
            _measure_terminal() if is_terminal else (PIPE_WIDTH, EVERYTHING, CELL_SIZE)
        )
        columns = width or max(NARROWEST, _read_columns() or columns)
        screen = make_screen(file, columns, colored=uses_colors(sys.stdout))
        has_colors = screen.color_system is not None
        # A pager passes colours on but no pictures.
        asked = "blocks" if paging and images != "none" else images
        mode = choose_mode(asked, os.environ, is_terminal=is_terminal, colors=has_colors)
        if asked == "auto" and screen.color_system == "standard" and mode == "blocks":
            mode = "none"  # sixteen colours make no picture
        yield (
            screen,
            View(
                width=screen.width,
                expanded=expanded,
                outputs=outputs,
                colors=has_colors,
                images=mode,
                cell_size=cell_size,
                screen_rows=rows,
            ),
        )


def _read_columns() -> int | None:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdigit() and int(columns) else None


def _measure_terminal() -> tuple[int, int, tuple[int, int]]:
    """Columns and rows of the terminal, and the size of a character; it is not asked anything."""
    import fcntl
    import struct
    import termios

    try:
        told = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
    except OSError:
        return PIPE_WIDTH, EVERYTHING, CELL_SIZE
    rows, columns, across, down = struct.unpack("HHHH", told)
    if not (rows and columns):
        return PIPE_WIDTH, EVERYTHING, CELL_SIZE
    has_pixels = across >= columns and down >= rows
    return columns, rows, (across // columns, down // rows) if has_pixels else CELL_SIZE


@contextmanager
def _open_stdout() -> Iterator[IO[str]]:
    """Standard output, in UTF-8 whatever the locale says, as for every other command."""
    sys.stdout.flush()
    file = TextIOWrapper(sys.stdout.buffer, "utf-8", "replace", newline="\n")
    try:
        yield file
        file.flush()
    finally:
        _detach(file)


@contextmanager
def _open_pager(command: list[str]) -> Iterator[IO[str]]:
    """The reader's pager; less is told to pass colours on and to end if all fits the screen."""
    environ = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    # That the reader leaves early is noticed by any write, also the last one.
    with (
        suppress(BrokenPipeError),
        subprocess.Popen(command, stdin=subprocess.PIPE, env=environ) as process,  # noqa: S603
    ):
        assert process.stdin is not None  # noqa: S101  # it was asked for
        file = TextIOWrapper(process.stdin, "utf-8", "replace", newline="\n")
        try:
            yield file
            file.flush()
        finally:
            _detach(file)


def _detach(file: TextIOWrapper) -> None:
    """Leave the stream below open, and do not complain that nobody reads it any more."""
    with suppress(BrokenPipeError, ValueError):
        file.detach()
