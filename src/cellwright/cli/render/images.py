"""Pictures in a terminal: by the terminal's own protocol where it has one, else by half-blocks.

kitty, iTerm2 and sixel need a few lines each. The libraries for it ask the terminal questions
when they are imported, write around the console, or have gone unkept; see `choose_mode` for how
we tell what a terminal can do, which is by its environment alone.
"""

from __future__ import annotations

import binascii
import re
import struct
import warnings
import zlib
from base64 import b64decode
from dataclasses import dataclass
from io import BytesIO

from PIL import Image
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from cellwright.cli.render.protocols import SEQUENCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rich.console import Console, ConsoleOptions, RenderResult

    from cellwright.cli.render.limits import ImageMode, View

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG"}
_MOST_PIXELS = 50_000_000
_MOST_CHARACTERS = 100_000_000
_WIDEST_BLOCKS = 100
_BROKEN = (
    *(OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, OverflowError),
    *(MemoryError, struct.error, zlib.error, binascii.Error, Image.DecompressionBombError),
)


def choose_mode(
    asked: str, environ: Mapping[str, str], *, is_terminal: bool, colors: bool
) -> ImageMode:
    """How to draw pictures: as asked, or by what the environment tells about the terminal.

    Without colours there are none; `auto` takes a protocol only on a terminal that is known to
    have it, and not inside tmux or screen, which swallow it.
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


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that could be read, drawn on white."""

    image: Image.Image


def picture_size(mime: str, value: Any) -> tuple[int, int] | None:
    """Width and height of the picture in an output, by its head alone."""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Image.open(BytesIO(b64decode(value)), formats=[FORMATS[mime]]).size
    except _BROKEN:
        return None


def read_picture(mime: str, value: Any) -> Picture | None:
    """The picture in an output; None if it is broken, or larger than anybody would look at."""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a large picture is judged here, not by Pillow
            data = BytesIO(b64decode(value))
            image: Image.Image = Image.open(data, formats=[FORMATS[mime]])
            width, height = image.size
            if width * height > _MOST_PIXELS:
                return None
            image = image.convert("RGBA")
            # Figures are drawn for white paper; on a dark terminal their text would vanish.
            paper = Image.new("RGBA", image.size, "white")
            return Picture(Image.alpha_composite(paper, image).convert("RGB"))
    except _BROKEN:
        return None


class Blocks:
    """A picture of half-blocks: two pixels a character, the upper one in front."""

    def __init__(self, picture: Picture, most_rows: int) -> None:
        self.picture = picture
        self.most_rows = most_rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render as many rows as the picture has at this width."""
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
    """A picture drawn by the terminal itself, beside a margin that is printed first.

    Room is made by printing the rows; then the cursor goes back, and after the picture it is
    restored. So no terminal's own idea of where the cursor ends up matters.
    """

    def __init__(self, picture: Picture, view: View, margin: str, style: Style) -> None:
        self.picture = picture
        self.view = view
        self.margin = margin
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the rows, then the picture over them."""
        room = max(1, options.max_width - len(self.margin))
        columns, rows = self.size(room)
        for _ in range(rows):
            yield Segment(self.margin.rstrip(), self.style)
            yield Segment.line()
        drawn = SEQUENCES[self.view.images](self._fitting(columns, rows), columns, rows)
        back = f"\x1b7\x1b[{rows}A\x1b[{len(self.margin) + 1}G"
        yield Segment(f"{back}{drawn}\x1b8", None, _CONTROL)

    def size(self, room: int) -> tuple[int, int]:
        """How many columns and rows it takes: its own size, or what there is room for."""
        width, height = self.picture.image.size
        across, down = self.view.cell_size
        columns = max(1, min(room, -(-width // across)))
        rows = max(1, round(columns * across * height / width / down))
        if rows > self.view.image_rows:
            rows = self.view.image_rows
            columns = max(1, min(room, round(rows * down * width / height / across)))
        return columns, rows

    def _fitting(self, columns: int, rows: int) -> Image.Image:
        # Sixels are drawn pixel by pixel; the others scale, and need not be sent more than twice
        # what is seen.
        factor = 1 if self.view.images == "sixel" else 2
        across, down = self.view.cell_size
        image = self.picture.image.copy()
        image.thumbnail((columns * across * factor, rows * down * factor))
        return image


# Anything true: rich counts no width for such a segment and keeps it off what is no terminal.
_CONTROL: Any = ((),)
