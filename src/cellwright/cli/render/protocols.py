"""What terminals are sent for a picture: kitty's and sixel's by textual-image, iTerm2's by us.

textual-image asks the terminal what it can do as soon as it is imported, and how large a character
is when it draws first; whatever was typed meanwhile is lost as an answer. Besides, it writes
pictures for kitty around the console. All this it does on `sys.__stdout__`, and only if that is a
terminal; so it is given a stand-in, whose content is then ours to print. What a terminal can do we
tell by its environment, and the size of a character by the system.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from contextlib import contextmanager
from functools import cache
from io import BytesIO, StringIO

from rich.color import ColorSystem
from rich.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL.Image import Image
    from rich.console import RenderableType
    from rich.segment import Segment

_SIXELS = "\x1bP"
_SIZES = ("TEXTUAL_CELL_WIDTH", "TEXTUAL_CELL_HEIGHT")


@cache
def has_library() -> bool:
    """Whether textual-image is there, for kitty and sixel."""
    try:
        with _no_terminal():
            import textual_image.renderable  # noqa: F401
    except ImportError:
        return False
    return True


def kitty(image: Image, columns: int, rows: int, cell_size: tuple[int, int]) -> tuple[str, ...]:
    """The picture itself, and then its rows: characters that kitty replaces by parts of it."""
    with _no_terminal(cell_size) as written:
        from textual_image.renderable import TGPImage

        lines = _segments(TGPImage(image, columns, rows))
        # The colour is the picture's number, so that all of it has to arrive.
        shown = [
            line.style.render(line.text.rstrip("\n"), color_system=ColorSystem.TRUECOLOR)
            for line in lines
            if line.style is not None
        ]
        return written.getvalue(), *shown


def sixel(image: Image, columns: int, rows: int, cell_size: tuple[int, int]) -> str:
    """Bands of six rows of pixels, in at most 256 colours."""
    with _no_terminal(cell_size):
        from textual_image.renderable import SixelImage

        # The library makes room and moves the cursor as well; we have a margin to mind.
        segments = _segments(SixelImage(image, columns, rows))
        return next(part.text for part in segments if part.text.startswith(_SIXELS))


def iterm(image: Image, columns: int, rows: int) -> str:
    """iTerm2's inline picture, which WezTerm draws as well."""
    buffer = BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # anew, so that nothing but pixels is passed on
    data = b64encode(buffer.getvalue()).decode("ascii")
    size = f"width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File=inline=1;{size};doNotMoveCursor=1:{data}\x07"


@contextmanager
def _no_terminal(cell_size: tuple[int, int] | None = None) -> Iterator[StringIO]:
    """Be on no terminal for a while; collects what would be written to it.

    The size of a character is what the library takes from the environment, the first time only.
    """
    stand_in, stdout = StringIO(), sys.__stdout__
    told = dict(zip(_SIZES, map(str, cell_size), strict=True)) if cell_size else {}
    before = {name: os.environ.get(name) for name in told}
    sys.__stdout__ = stand_in  # type: ignore[assignment, misc]  # for as long as it takes
    os.environ.update(told)
    try:
        yield stand_in
    finally:
        sys.__stdout__ = stdout  # type: ignore[misc]
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _segments(picture: RenderableType) -> list[Segment]:
    console = Console(file=StringIO(), force_jupyter=False)
    return list(console.render(picture))
