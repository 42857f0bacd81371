"""Pictures in a terminal: in its own protocol if it has one, else as half-blocks.

Pillow decodes them and is imported when there is a picture. Only pixels are passed on, never a
byte of the file.
"""

from __future__ import annotations

import binascii
import os
import re
import struct
import sys
import warnings
import zlib
from base64 import b64decode, b64encode
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO, StringIO

from rich.color import Color, ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style

from cellwright.outputs.images import read_image_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from PIL import Image
    from rich.console import ConsoleOptions, RenderableType, RenderResult

    from cellwright.cli.render.screen import ImageMode, ScreenView

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG"}
_MOST_PIXELS = 50_000_000
_MOST_CHARACTERS = 100_000_000
_WIDEST_BLOCKS = 100
_WIDEST_GRAPHIC = 250  # kitty can number 297 columns
_SIXELS = "\x1bP"
_SIZES = ("TEXTUAL_CELL_WIDTH", "TEXTUAL_CELL_HEIGHT")
# Any true value: rich gives such a segment no width, and prints it only on a terminal.
_CONTROL: Any = ((),)
_BROKEN = (
    *(OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, OverflowError),
    *(MemoryError, struct.error, zlib.error, binascii.Error),
)


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """A picture on a white background."""

    image: Image.Image


def picture_size(mime: str, value: Any) -> tuple[int, int] | None:
    """Width and height of the picture in an output, read from its head."""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return None
    try:
        return read_image_size(mime, b64decode(value))
    except (binascii.Error, ValueError):
        return None


def read_picture(mime: str, value: Any) -> DecodedPicture | None:
    """Decode the picture in an output; None if it is broken or far too large."""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return None
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the check below decides which are too large
            data = BytesIO(b64decode(value))
            image: Image.Image = Image.open(data, formats=[FORMATS[mime]])
            width, height = image.size
            if width * height > _MOST_PIXELS:
                return None
            image = image.convert("RGBA")
            # Figures are made for white paper; their text is not visible on a dark terminal.
            paper = Image.new("RGBA", image.size, "white")
            return DecodedPicture(Image.alpha_composite(paper, image).convert("RGB"))
    except (*_BROKEN, Image.DecompressionBombError):
        return None


class HalfBlocks:
    """A picture of half-blocks: two pixels in each character, one above the other."""

    def __init__(self, picture: DecodedPicture, most_rows: int) -> None:
        self.picture = picture
        self.most_rows = most_rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render as many rows as the picture has at this width."""
        from PIL import Image

        image = self.picture.image
        width = min(image.width, options.max_width, _WIDEST_BLOCKS)
        height = max(1, round(image.height * width / image.width))
        if height > 2 * self.most_rows:
            height = 2 * self.most_rows
            width = max(1, round(image.width * height / image.height))
        small = image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)
        pixels = small.tobytes()
        rows = [pixels[start : start + 3 * width] for start in range(0, len(pixels), 3 * width)]
        for upper, lower in zip(rows[::2], [*rows[1::2], None], strict=False):
            for x in range(0, 3 * width, 3):
                front = Color.from_rgb(*upper[x : x + 3])
                back = Color.from_rgb(*lower[x : x + 3]) if lower else None
                yield Segment("▀", Style(color=front, bgcolor=back))
            yield Segment.line()


class Graphic:
    """A picture that the terminal draws, beside a margin."""

    def __init__(
        self, picture: DecodedPicture, view: ScreenView, margin: str, style: Style
    ) -> None:
        self.picture = picture
        self.view = view
        self.margin = margin
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the picture and its margin."""
        columns, rows = self.size(max(1, options.max_width - len(self.margin)))
        image = self._scale(columns, rows)
        if self.view.images == "kitty":
            return self._render_rows(image, columns, rows)
        return self._render_over(image, columns, rows)

    def _render_rows(self, image: Image.Image, columns: int, rows: int) -> RenderResult:
        """Render the picture as rows of characters, each beside its margin."""
        sent, *lines = encode_kitty(image, columns, rows, self.view.cell_size)
        yield Segment(sent, None, _CONTROL)
        for line in lines:
            yield Segment(self.margin, self.style)
            yield Segment(line, None, _CONTROL)
            yield Segment.line()

    def _render_over(self, image: Image.Image, columns: int, rows: int) -> RenderResult:
        """Render empty rows, and the picture over them.

        The cursor is moved back for the picture and restored after it, because terminals differ
        in where they leave it.
        """
        for _ in range(rows):
            yield Segment(self.margin.rstrip(), self.style)
            yield Segment.line()
        if self.view.images == "sixel":
            drawn = encode_sixel(image, columns, rows, self.view.cell_size)
        else:
            drawn = encode_iterm(image, columns, rows)
        back = f"\x1b7\x1b[{rows}A\x1b[{len(self.margin) + 1}G"
        yield Segment(f"{back}{drawn}\x1b8", None, _CONTROL)

    def size(self, room: int) -> tuple[int, int]:
        """The columns and rows of the picture: its own size, or the size that fits."""
        width, height = self.picture.image.size
        across, down = self.view.cell_size
        columns = max(1, min(room, _WIDEST_GRAPHIC, -(-width // across)))
        rows = max(1, round(columns * across * height / width / down))
        if rows > self.view.image_rows:
            rows = self.view.image_rows
            columns = max(1, min(room, round(rows * down * width / height / across)))
        return columns, rows

    def _scale(self, columns: int, rows: int) -> Image.Image:
        """Scale the picture, on a background as large as its cells."""
        from PIL import Image

        across, down = self.view.cell_size
        # iTerm2 scales it again, and may have finer pixels than it reports.
        factor = 2 if self.view.images == "iterm" else 1
        image = self.picture.image.copy()
        image.thumbnail((columns * across * factor, rows * down * factor))
        if self.view.images == "iterm":
            return image
        # The rest is transparent; sixels cannot be, so for them it is white.
        paper = Image.new("RGBA", (columns * across, rows * down), "#ffffff00")
        paper.paste(image)
        return paper if self.view.images == "kitty" else paper.convert("RGB")


# -- which way to draw pictures ------------------------------------------------------------------


def choose_mode(
    asked: str, environ: Mapping[str, str], *, is_terminal: bool, colors: bool
) -> ImageMode:
    """Choose how to draw pictures: as asked, or by the environment of the terminal.

    Without colours there are no pictures. `auto` chooses a protocol only on a terminal that is
    known to have it, and not inside tmux or screen, which swallow it.
    """
    if not colors or asked == "none":
        return "none"
    if asked != "auto":
        return asked  # type: ignore[return-value]  # the choices of the option
    terminal = environ.get("TERM", "")
    program = environ.get("TERM_PROGRAM", "")
    if not is_terminal or environ.get("TMUX") or terminal.startswith(("screen", "tmux")):
        return "blocks"
    if environ.get("KITTY_WINDOW_ID") or "kitty" in terminal or "ghostty" in (program + terminal):
        return "kitty"
    if program == "iTerm.app" or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    if program == "WezTerm" or any(name.startswith("WEZTERM_") for name in environ):
        return "iterm"
    return "sixel" if re.match("foot|mlterm|yaft", terminal) else "blocks"


def find_possible_mode(mode: ImageMode) -> ImageMode:
    """The same mode, or the next best one if a library is missing.

    Imports the libraries, so call it only when there is a picture.
    """
    from cellwright.outputs.images import has_pillow

    if mode == "none" or not has_pillow():
        return "none"
    if mode in {"kitty", "sixel"}:
        return mode if has_library() else "blocks"
    return mode


def describe_missing(mode: ImageMode) -> str:
    """Say what to install for a mode that is not possible."""
    from cellwright.outputs.images import EXTRA

    better = "" if find_possible_mode(mode) == "none" else " in full resolution"
    return f"to draw pictures{better}: {EXTRA}"


# -- terminal protocols --------------------------------------------------------------------------
# textual-image asks the terminal for its abilities when it is imported, and for the size of a
# character when it first draws, and so loses what was typed in the meantime; it also writes kitty's
# pictures around the console. It does all this on `sys.__stdout__`, and only if that is a terminal.
# So it gets a replacement, whose content we print. The abilities of a terminal we read from its
# environment, and the size of a character from the system.


@cache
def has_library() -> bool:
    """Whether textual-image is installed, for kitty and sixel."""
    try:
        with _without_terminal():
            import textual_image.renderable  # noqa: F401
    except ImportError:
        return False
    return True


def encode_kitty(
    image: Image.Image, columns: int, rows: int, cell_size: tuple[int, int]
) -> tuple[str, ...]:
    """The picture, and then its rows: characters that kitty replaces with parts of it."""
    with _without_terminal(cell_size) as written:
        from textual_image.renderable import TGPImage

        lines = _render_segments(TGPImage(image, columns, rows))
        # The colour encodes the number of the picture, so it must stay exact.
        shown = [
            line.style.render(line.text.rstrip("\n"), color_system=ColorSystem.TRUECOLOR)
            for line in lines
            if line.style is not None
        ]
        return written.getvalue(), *shown


def encode_sixel(image: Image.Image, columns: int, rows: int, cell_size: tuple[int, int]) -> str:
    """Bands of six rows of pixels, in at most 256 colours."""
    with _without_terminal(cell_size):
        from textual_image.renderable import SixelImage

        # Only the sixels: the library also moves the cursor, which would ignore our margin.
        segments = _render_segments(SixelImage(image, columns, rows))
        return next(part.text for part in segments if part.text.startswith(_SIXELS))


def encode_iterm(image: Image.Image, columns: int, rows: int) -> str:
    """iTerm2's inline picture, which WezTerm draws as well."""
    buffer = BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # encoded again: only pixels are passed on
    data = b64encode(buffer.getvalue()).decode("ascii")
    size = f"width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File=inline=1;{size};doNotMoveCursor=1:{data}\x07"


@contextmanager
def _without_terminal(cell_size: tuple[int, int] | None = None) -> Iterator[StringIO]:
    """Replace the terminal for the library; yields what it writes.

    The library reads the size of a character from the environment, only the first time.
    """
    replacement, stdout = StringIO(), sys.__stdout__
    sizes = dict(zip(_SIZES, map(str, cell_size), strict=True)) if cell_size else {}
    before = {name: os.environ.get(name) for name in sizes}
    sys.__stdout__ = replacement  # type: ignore[assignment, misc]
    os.environ.update(sizes)
    try:
        yield replacement
    finally:
        sys.__stdout__ = stdout  # type: ignore[misc]
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _render_segments(picture: RenderableType) -> list[Segment]:
    console = Console(file=StringIO(), force_jupyter=False)
    return list(console.render(picture))
