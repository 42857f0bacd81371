"""The size of a picture by its first bytes: PNG, JPEG, GIF, WebP. Needs no library."""

from __future__ import annotations

from struct import error, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST = 2**31 - 1  # what a PNG can have; other numbers are not sizes

_ENDS = {"image/png": b"IEND", "image/jpeg": b"\xff\xd9", "image/gif": b"\0;"}
_TRAILING = 1024  # bytes that programs leave behind the end

# Heads of frames (SOF), of all kinds of JPEG: those in between are tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers that no length follows
_MOST_SEGMENTS = 10_000  # before the frame; somebody may have made a picture of nothing else


def size_in_head(mime: str, data: bytes) -> tuple[int, int] | None:
    """Width and height as the head of a picture states them; None if it is none of its type."""
    read = _READERS.get(mime)
    try:
        size = read(data) if read is not None else None
    except (error, IndexError):
        return None  # it ends within its head
    return size if size and all(0 < side <= _LARGEST for side in size) else None


def has_end(mime: str, data: bytes) -> bool:
    """Whether a picture goes on to its end; a head alone proves nothing."""
    if mime == "image/webp":
        return len(data) >= 8 and len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return mime in _ENDS and _ENDS[mime] in data[-_TRAILING:]


def _png(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    width, height = unpack_from(">II", data, 16)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\xff\xd8"):
        return None
    place = 2
    for _ in range(_MOST_SEGMENTS):
        if data[place] != 0xFF:
            break
        marker = data[place + 1]
        if marker in _FRAMES:
            height, width = unpack_from(">HH", data, place + 5)
            return width, height
        if marker == 0xFF:
            place += 1  # filled up with it
        elif marker in _ALONE:
            place += 2
        else:
            place += 2 + int(unpack_from(">H", data, place + 2)[0])
    return None


def _gif(data: bytes) -> tuple[int, int] | None:
    if not data.startswith((b"GIF87a", b"GIF89a")):
        return None
    width, height = unpack_from("<HH", data, 6)
    return width, height


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        packed = unpack_from("<6B", data, 24)
        return 1 + int.from_bytes(packed[:3], "little"), 1 + int.from_bytes(packed[3:], "little")
    if kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
