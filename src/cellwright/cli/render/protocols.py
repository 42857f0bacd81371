"""The sequences by which terminals draw pictures: kitty, iTerm2, sixel."""

from __future__ import annotations

import re
from base64 import b64encode
from io import BytesIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from PIL.Image import Image

_CHUNK = 4096  # what kitty takes at once
_COLORS = 128
_run = re.compile(r"(.)\1{3,}")


def kitty(image: Image, columns: int, rows: int) -> str:
    """Transmit and show at once, scaled to the cells, the cursor left alone, no answer wanted."""
    payload = _png(image)
    chunks = [payload[start : start + _CHUNK] for start in range(0, len(payload), _CHUNK)]
    parts = []
    for number, chunk in enumerate(chunks):
        keys = f"a=T,f=100,q=2,C=1,c={columns},r={rows}," if number == 0 else ""
        more = int(number < len(chunks) - 1)
        parts.append(f"\x1b_G{keys}m={more};{chunk}\x1b\\")
    return "".join(parts)


def iterm(image: Image, columns: int, rows: int) -> str:
    """iTerm2's inline picture, which WezTerm draws as well."""
    size = f"width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File=inline=1;{size};doNotMoveCursor=1:{_png(image)}\x07"


def sixel(image: Image, columns: int, rows: int) -> str:
    """Bands of six rows, a layer for each colour; the size is that of the image itself."""
    del columns, rows
    indexed = image.quantize(_COLORS)
    palette = indexed.getpalette() or []
    pixels, width = indexed.tobytes(), indexed.width
    used = sorted(set(pixels))
    registers = "".join(
        f"#{color};2;" + ";".join(str(part * 100 // 255) for part in palette[3 * color :][:3])
        for color in used
    )
    bands = "-".join(
        _band(pixels[start : start + 6 * width], width)
        for start in range(0, len(pixels), 6 * width)
    )
    return f'\x1bP0;1q"1;1;{width};{indexed.height}{registers}{bands}\x1b\\'


def _band(pixels: bytes, width: int) -> str:
    """One band: for every colour in it, which of its pixels to set."""
    lines = [pixels[start : start + width] for start in range(0, len(pixels), width)]
    return "$".join(f"#{color}{layer}" for color, layer in _layers(lines, sorted(set(pixels))))


def _layers(lines: list[bytes], colors: list[int]) -> Iterator[tuple[int, str]]:
    for color in colors:
        bits = 0
        for number, line in enumerate(lines):
            table = bytearray(256)
            table[color] = 1 << number
            bits |= int.from_bytes(line.translate(bytes(table)))
        columns = bits.to_bytes(len(lines[0])).translate(_SIXELS)
        layer = columns.decode("ascii").rstrip("?")
        yield color, _run.sub(lambda found: f"!{len(found[0])}{found[1]}", layer)


def _png(image: Image) -> str:
    """Encoded anew, so that nothing but pixels is passed on."""
    buffer = BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return b64encode(buffer.getvalue()).decode("ascii")


_SIXELS = bytes(63 + value if value < 64 else 63 for value in range(256))
SEQUENCES: dict[str, Callable[[Image, int, int], str]] = {
    "kitty": kitty,
    "iterm": iterm,
    "sixel": sixel,
}
