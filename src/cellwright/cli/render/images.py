"""Pictures in a terminal: by the terminal's own protocol where it has one, else by half-blocks.

Pillow decodes them and is imported when there is one. Only pixels go on from here, never a byte
of the file.
"""

from __future__ import annotations

import binascii
import struct
import warnings
import zlib
from base64 import b64decode
from dataclasses import dataclass
from io import BytesIO

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from cellwright.outputs.images import read_image_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from PIL import Image
    from rich.console import Console, ConsoleOptions, RenderResult

    from cellwright.cli.render.limits import View

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG"}
_MOST_PIXELS = 50_000_000
_MOST_CHARACTERS = 100_000_000
_WIDEST_BLOCKS = 100
_WIDEST_GRAPHIC = 250  # kitty can number 297 columns
_BROKEN = (
    *(OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, OverflowError),
    *(MemoryError, struct.error, zlib.error, binascii.Error),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that could be read, drawn on white."""

    image: Image.Image


def picture_size(mime: str, value: Any) -> tuple[int, int] | None:
    """Width and height of the picture in an output, by its head alone."""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return None
    try:
        return read_image_size(mime, b64decode(value))
    except (binascii.Error, ValueError):
        return None


def read_picture(mime: str, value: Any) -> Picture | None:
    """The picture in an output; None if it is broken, or larger than anybody would look at."""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return None
    from PIL import Image

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
    except (*_BROKEN, Image.DecompressionBombError):
        return None


class Blocks:
    """A picture of half-blocks: two pixels a character, the upper one in front."""

    def __init__(self, picture: Picture, most_rows: int) -> None:
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
    """A picture drawn by the terminal itself, beside a margin."""

    def __init__(self, picture: Picture, view: View, margin: str, style: Style) -> None:
        self.picture = picture
        self.view = view
        self.margin = margin
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the picture, with as many lines as it is high."""
        columns, rows = self.size(max(1, options.max_width - len(self.margin)))
        image = self._fitting(columns, rows)
        if self.view.images == "kitty":
            return self._in_place(image, columns, rows)
        return self._over_room(image, columns, rows)

    def _in_place(self, image: Image.Image, columns: int, rows: int) -> RenderResult:
        """The picture as rows of characters, each beside its margin: it is text like any other."""
        from cellwright.cli.render.protocols import kitty

        sent, *lines = kitty(image, columns, rows, self.view.cell_size)
        yield Segment(sent, None, _CONTROL)
        for line in lines:
            yield Segment(self.margin, self.style)
            yield Segment(line, None, _CONTROL)
            yield Segment.line()

    def _over_room(self, image: Image.Image, columns: int, rows: int) -> RenderResult:
        """The picture over rows that are printed first.

        Then the cursor goes back, and after the picture it is restored. So no terminal's own
        idea of where the cursor ends up matters.
        """
        from cellwright.cli.render.protocols import iterm, sixel

        for _ in range(rows):
            yield Segment(self.margin.rstrip(), self.style)
            yield Segment.line()
        if self.view.images == "sixel":
            drawn = sixel(image, columns, rows, self.view.cell_size)
        else:
            drawn = iterm(image, columns, rows)
        back = f"\x1b7\x1b[{rows}A\x1b[{len(self.margin) + 1}G"
        yield Segment(f"{back}{drawn}\x1b8", None, _CONTROL)

    def size(self, room: int) -> tuple[int, int]:
        """How many columns and rows it takes: its own size, or what there is room for."""
        width, height = self.picture.image.size
        across, down = self.view.cell_size
        columns = max(1, min(room, _WIDEST_GRAPHIC, -(-width // across)))
        rows = max(1, round(columns * across * height / width / down))
        if rows > self.view.image_rows:
            rows = self.view.image_rows
            columns = max(1, min(room, round(rows * down * width / height / across)))
        return columns, rows

    def _fitting(self, columns: int, rows: int) -> Image.Image:
        """The picture in its shape, on paper that is just as large as its cells."""
        from PIL import Image

        across, down = self.view.cell_size
        # iTerm2 scales it again, and may have finer pixels than it tells.
        factor = 2 if self.view.images == "iterm" else 1
        image = self.picture.image.copy()
        image.thumbnail((columns * across * factor, rows * down * factor))
        if self.view.images == "iterm":
            return image
        # What is left is to be seen through; sixels know no such thing, so there it is white.
        paper = Image.new("RGBA", (columns * across, rows * down), "#ffffff00")
        paper.paste(image)
        return paper if self.view.images == "kitty" else paper.convert("RGB")


# Anything true: rich counts no width for such a segment and keeps it off what is no terminal.
_CONTROL: Any = ((),)
