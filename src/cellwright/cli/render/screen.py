"""How a notebook is shown, and the screen for it: the terminal or pipe of stdout, or a pager."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import TextIOWrapper

from rich.console import Console

from cellwright.cli.output import uses_colors
from cellwright.cli.render.images import Graphic, choose_mode
from cellwright.cli.render.layout import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Literal, NoReturn

    from rich.console import RenderableType

    ImageMode = Literal["kitty", "iterm", "sixel", "blocks", "none"]


# The length of a collapsed output; sources get twice that.
COLLAPSED_LINES = 15
# Longer lines of prose are hard to read.
PROSE_WIDTH = 100
EVERYTHING = sys.maxsize
# Width and height of a character in pixels, for terminals that do not report them.
CELL_SIZE = (10, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLimits:
    """How much is shown; the rest is only counted."""

    source_lines: int
    output_lines: int
    line_characters: int
    outputs: int
    table_rows: int
    html_characters: int
    json_depth: int
    json_items: int
    image_rows: int


COLLAPSED = ViewLimits(
    source_lines=2 * COLLAPSED_LINES,
    output_lines=COLLAPSED_LINES,
    line_characters=1_000,
    outputs=10,
    table_rows=COLLAPSED_LINES,
    html_characters=200_000,
    json_depth=2,
    json_items=5,
    image_rows=24,
)
EXPANDED = ViewLimits(
    source_lines=EVERYTHING,
    output_lines=EVERYTHING,
    line_characters=EVERYTHING,
    outputs=EVERYTHING,
    table_rows=EVERYTHING,
    html_characters=20_000_000,
    json_depth=6,
    json_items=20,
    image_rows=60,
)


class OnceFilter:
    """Lets each hint pass once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, words: str) -> list[str]:
        """The hint, or nothing if it was taken before."""
        is_new = words not in self._taken
        self._taken.add(words)
        return [words] if is_new else []


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenView:
    """How to show a notebook."""

    width: int
    expanded: bool = False
    outputs: bool = True
    colors: bool = False
    images: ImageMode = "none"
    cell_size: tuple[int, int] = CELL_SIZE
    screen_rows: int = EVERYTHING
    once: OnceFilter = field(default_factory=OnceFilter, compare=False)

    @property
    def limits(self) -> ViewLimits:
        """How much to show."""
        return EXPANDED if self.expanded else COLLAPSED

    @property
    def image_rows(self) -> int:
        """The most rows of a picture: it must not scroll while it is drawn."""
        return max(1, min(self.limits.image_rows, self.screen_rows - 2))


PIPE_WIDTH = 80
NARROWEST = 20
_DEPTHS = {"1": "standard", "2": "256", "3": "truecolor"}  # the usual meaning of FORCE_COLOR


class Screen(Console):
    """A console for text from notebooks: only text and our own styles pass."""

    def show(self, part: RenderableType) -> None:
        """Print a part through the gate; pictures need none, they are made of pixels."""
        self.print(part if isinstance(part, Graphic) else Gate(part), crop=False)

    def on_broken_pipe(self) -> NoReturn:
        """Let the command end quietly; rich would end the process."""
        raise BrokenPipeError


def make_screen(file: IO[str], width: int, *, colored: bool) -> Screen:
    """Make a screen of a given width; without colours it prints only text."""
    depth = _DEPTHS.get(os.environ.get("FORCE_COLOR", ""), "auto") if colored else None
    return Screen(
        file=file,
        width=width,
        height=10_000,  # never cut to the height of the terminal
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
) -> Iterator[tuple[Screen, ScreenView]]:
    """Open the screen of stdout, with the view for it."""
    is_terminal = sys.stdout.isatty()
    command = shlex.split(os.environ.get("PAGER") or "less") if pager and is_terminal else []
    paging = False
    if command:
        from shutil import which  # which loads what compresses archives

        paging = which(command[0]) is not None
    with _open_pager(command) if paging else _open_stdout() as file:
        columns, rows, cell_size = (
            _measure_terminal() if is_terminal else (PIPE_WIDTH, EVERYTHING, CELL_SIZE)
        )
        columns = width or max(NARROWEST, _read_columns() or columns)
        screen = make_screen(file, columns, colored=uses_colors(sys.stdout))
        has_colors = screen.color_system is not None
        # A pager passes on colours but not pictures.
        asked = "blocks" if paging and images != "none" else images
        mode = choose_mode(asked, os.environ, is_terminal=is_terminal, colors=has_colors)
        if asked == "auto" and screen.color_system == "standard" and mode == "blocks":
            mode = "none"  # sixteen colours are too few for a picture
        yield (
            screen,
            ScreenView(
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
    """Columns and rows of the terminal, and the size of a character, from the system."""
    import fcntl
    import struct
    import termios

    try:
        size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
    except OSError:
        return PIPE_WIDTH, EVERYTHING, CELL_SIZE
    rows, columns, across, down = struct.unpack("HHHH", size)
    if not (rows and columns):
        return PIPE_WIDTH, EVERYTHING, CELL_SIZE
    has_pixels = across >= columns and down >= rows
    return columns, rows, (across // columns, down // rows) if has_pixels else CELL_SIZE


@contextmanager
def _open_stdout() -> Iterator[IO[str]]:
    """Open stdout in UTF-8 in any locale, as for every other command."""
    sys.stdout.flush()
    file = TextIOWrapper(sys.stdout.buffer, "utf-8", "replace", newline="\n")
    try:
        yield file
        file.flush()
    finally:
        _detach(file)


@contextmanager
def _open_pager(command: list[str]) -> Iterator[IO[str]]:
    """Open a pager; less gets options to pass on colours and to exit if all fits the screen."""
    environ = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    # A reader who leaves early breaks the pipe at any write, also at the last one.
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
    """Leave the stream below open, and ignore that its reader may be gone."""
    with suppress(BrokenPipeError, ValueError):
        file.detach()
